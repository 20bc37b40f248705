"""Places the pools of functions (docs/format-notes/literal-pools.md).

`.nv.constant2.F` of a device function is not a section of an executable: its bytes are appended
to the pool of every kernel that reaches F, at one offset for all of them. So are the pools of
copies of a weak function that lost against an earlier one. The pool table has a row (section i32,
kernel i32, offset u64, end u64, function u32, align u32, flags u32, 4 spare bytes) for each such
piece. The columns are: input section; entity; offset in the kernel's pool in bytes; size of the
kernel's pool with all pieces of the function; entity (the kernel itself for pieces of its own);
alignment of the kernel's pool from there on; flags: 1 where the kernel had no pool before, 2 for a
piece of a copy that lost, 4 where the copy that stays has no pool.
"""

from pylink._native.tables import MergedTables, Sections

def cut_pools(merged: MergedTables) -> Sections:
    """The input sections with their effective sizes; the same object if none changes.

    The pool of a winning copy ends with its constants; bytes that an earlier stage appended are
    dropped.
    """

def place_pools(merged: MergedTables) -> None:
    """Place every pool, the last section's first: fills `pools`.

    With -r the pools of device functions stay separate: only pools of later copies move.
    """
