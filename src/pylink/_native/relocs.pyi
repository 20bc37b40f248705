"""Relocation arithmetic: values of resolved relocations.

S is the symbol's offset in its section (sections have address 0), A the addend. A row of `Patches`
is for one field, at `offset` in the image. Its `value` is S + A; it is S alone if `implicit` says
that the field itself holds A. `image.write_contents` writes the fields.
"""

from pylink._native.results import PlacedTables
from pylink._native.tables import Patches

def find_unfit(patches: Patches, size: int) -> int:
    """Return the number of the first row of `patches` that cannot be written, or -1.

    Its type has no field, or the field ends after the image, which has `size` bytes.
    """

def resolve_values(placed: PlacedTables) -> Patches:
    """Make a row for every FixupRow that has to fill a field, in order of the FixupRow table.

    Relocations of code in capsules are omitted, since `image.write_contents` fills capsules itself.
    So are those of mercury sections whose bytes are copies of the plain ones.
    """
