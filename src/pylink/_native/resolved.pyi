"""--preserve-relocs: the record of relocations that the link resolved (docs/format-notes.md)."""

from pylink._native.results import MergedTables, PlacedTables

def record_resolved(merged: MergedTables) -> None:
    """List the resolved relocations of each section S in its `.nv.resolvedrela.S`.

    Appends a row to `emitted` for each of `fixups` that has such a list and is not just cleared. It
    must not name a symbol that the output lacks, a unified table, or `.nv.ptx.const0.size`. From
    sm_100 on, it must also be in code and name a shared variable. Each list has the newest row
    first. Lists of mercury relocations get their sections here, in `outs`, as twins of the plain
    ones.
    """

def refers_to_deleted_array(placed: PlacedTables, reserved: int) -> bool:
    """Return whether debug data refers to an extern array that has lost its symbol.

    Every reference from a section other than code counts. False if `.nv_debug.shared` has no
    variables after its `reserved` bytes, those of the system.
    """
