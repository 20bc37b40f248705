"""--preserve-relocs: the record of relocations that the link resolved (docs/format-notes.md)."""

from pylink._native.results import MergedTables, PlacedTables

def record_resolved(merged: MergedTables) -> None:
    """List the resolved relocations of each section S in its `.nv.resolvedrela.S`.

    Appends a row to `emitted` for each of `fixups` that has such a list and whose symbol the output
    has, from sm_100 on only for shared variables that code names; each list has the newest first.
    Records of mercury relocations get their sections here, in `outs`, as twins of the plain ones.
    """

def refers_to_deleted_array(placed: PlacedTables, reserved: int) -> bool:
    """Return whether debug data refers to an extern array that has lost its symbol.

    Every reference from a section other than code counts. False if `.nv_debug.shared` has no
    variables after its `reserved` bytes, those of the system.
    """
