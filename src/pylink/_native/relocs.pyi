"""Relocation arithmetic: values of resolved relocations.

S is the symbol's offset in its section (sections have address 0), A the addend. The patch table has
a row (offset u64, value u64, type u32, bank u16, implicit u16) for each field: offset in the image,
S + A or, if `implicit` says that the field itself holds A, S. `image.write_contents` writes them.
"""

from pylink._native.tables import Patches, PlacedTables

def find_unfit(patches: Patches, size: int) -> int:
    """The first row whose type cannot be resolved or whose field runs past `size`; or -1."""

def resolve_values(placed: PlacedTables) -> Patches:
    """Make a row for every FixupRow that changes bytes, in order of the FixupRow table.

    Records of capsules are omitted.
    """
