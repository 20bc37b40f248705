"""Relocation arithmetic: values of resolved relocations, and the loop that writes them.

S is the symbol's offset in its section (sections have address 0), A the addend. Field positions
are bit numbers from r_offset, little endian; names of types (pylink/facts/relocations.py) end in
them. The patch table has a row (offset u64, value u64, type u32, bank u16, implicit u16) for each
field: offset in the image, S + A or, where ``implicit`` says that the field itself holds A, S.
"""

from pylink._native.image import Canvas
from pylink._native.tables import Patches, PlacedTables

def patch(image: Canvas, patches: Patches) -> int:
    """Write every row into ``image``, in place.

    Returns the first row whose type cannot be resolved or whose field runs past the image, or -1;
    rows before it are written.
    """

def find_unfit(patches: Patches, size: int) -> int:
    """The first row that ``patch`` would refuse for an image of ``size`` bytes, or -1."""

def resolve_values(placed: PlacedTables) -> Patches:
    """A row for every FixRow that changes bytes, in order of the FixRow table.

    Relocations of capsules are left to ``patch_capsules``.
    """

def patch_capsules(image: Canvas, placed: PlacedTables) -> int:
    """Write constant offsets into the records of mercury capsules, in place.

    Returns the OutRow of the first capsule whose records do not follow each other, or -1. The
    records are described in the source and in docs/format-notes/literal-pools.md.
    """
