"""Rebuilds the plain debug sections of sm_100 and later, which nvlink does not concatenate.

A `Blob` here has packed little-endian rows; the names of their types are below. Offsets and sizes
are bytes.

`ValueError` for inconsistent tables, `MalformedDebugSection` for contents that break their format.
"""

from typing import TypeAlias

from pylink._native.tables import Blob

# (offset u64, size u64, count u64): one input's contents in the arena, and how many of the next
# rows of the table with relocations or patches are its own.
Pieces: TypeAlias = Blob
# (r_offset u64, target u32, outcome u32): offset in the piece; a number that grows with the place
# of a live function in the order of the output's symbols; outcome of the symbol. Outcomes: 0 the
# copy in the output, 1 a function that is not in the output, 2 a copy that lost to another one or
# was replaced, 3 not a function (such rows are ignored).
PieceRelocations: TypeAlias = Blob
# (r_offset u64, value u64) for each field that the link resolved in the header of a line unit: its
# offset in the mercury form of the piece, and its value, of which the low 32 bits are written.
HeaderPatches: TypeAlias = Blob
# (r_offset u64, row u64) for each relocation that stays, in the order of the output's relocation
# section: offset in the new section, and row of PieceRelocations.
Moved: TypeAlias = Blob
# (piece u64, start u64, base u64) for each line unit, ascending: the unit at `start` of its piece
# is now at `base` of the new section, which `.debug_info` refers to.
LineUnits: TypeAlias = Blob
# Bytes of the new section.
Contents: TypeAlias = Blob

class MalformedDebugSection(ValueError):
    """A section breaks its format.

    `piece` is a row of Pieces, `offset` an offset in the piece, or with `mercury` in its mercury
    twin.
    """

    piece: int
    offset: int
    mercury: bool
    def __init__(self, piece: int, offset: int, *, mercury: bool, reason: str) -> None: ...

def rebuild_line(
    arena: bytes,
    pieces: Pieces,
    relocs: PieceRelocations,
    headers: Pieces,
    patches: HeaderPatches,
    *,
    ended: bool = False,
) -> tuple[Contents, Moved, LineUnits]:
    """Rebuild `.debug_line` or `.nv_debug_line_sass`: (contents, kept relocations, units).

    `headers` are the mercury twins of the pieces, in the same order, with `patches` as
    their rows: the `.debug_str` offset in a line header is relocated there only. With `ended`
    a unit without sequences gets the opcode that ends one, `00 01 01`. DWARF versions 2 to 4 with
    32-bit lengths.
    """

def rebuild_frame(arena: bytes, pieces: Pieces, relocs: PieceRelocations) -> tuple[Contents, Moved]:
    """Rebuild `.debug_frame` (64-bit DWARF): (contents, kept relocations).

    Only the relocations at the address field of an FDE count.
    """

def rebuild_reg_sass(arena: bytes, pieces: Pieces, names: bytes) -> Contents:
    """Concatenate `.nv_debug_info_reg_sass`; ranges of functions that `names` lacks become 0.

    `names` holds the names of the output's functions, each ended by NUL. Only the first
    entry of each of these names keeps the start and end of its registers. `pieces` have counts of
    0, since no table of relocations belongs to them.
    """
