"""The members of archives: their offsets, names and kinds."""

from mmap import mmap
from typing import TypeAlias

# Rows of members; `pylink.inputs.archiveformat` has their columns.
MemberRows: TypeAlias = bytes
# The place at which the next call of `list_members` continues, in bytes: offset in `data` of the
# next header, offset of the table of long names (0 before it is found), and size of that table.
WalkState: TypeAlias = tuple[int, int, int]
# A reason of `pylink.inputs.archiveformat`, the offset of the header in the archive, the number
# that is wrong, and what it must not exceed.
MemberFault: TypeAlias = tuple[int, int, int, int]

def list_members(
    data: bytes | mmap, start: int, size: int, max_members: int, state: WalkState | tuple[()]
) -> tuple[MemberRows, WalkState | None, MemberFault | None]:
    """List the next members of an archive, at most `max_members`: (rows, state, fault).

    The archive has `size` bytes and begins at offset `start` of `data`. Pass an empty tuple as
    `state` at first, then the state that the previous call returned. It is None after the last
    member and after a fault. Names, and contents unless the archive is thin, are inside the
    archive. `IndexError` for an archive that runs past the data, or is shorter than its magic word.
    """

def split_rows(data: bytes, rows: MemberRows, prefix: str) -> tuple[list[str], bytes, bytes, bytes]:
    """Split rows of members into columns: (names, kinds, extents, inline).

    Names start with `prefix`. `kinds` has a byte of `pylink.facts.inputkinds` each
    (meaningless in a thin archive), `extents` a row (offset u64, size u64), `inline` a byte that
    says whether the name is in front of the contents. `IndexError` for a name outside `data`.
    """
