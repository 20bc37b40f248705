"""--preserve-relocs: the record of relocations that the link resolved (docs/format-notes.md)."""

from pylink._native.tables import MergedTables, PlacedTables

def record_resolved(merged: MergedTables) -> None:
    """List every FixupRow with its `.nv.resolvedrela` section, in `outs` and `emitted`.

    The entries are appended EmittedRow rows, each list newest first; from sm_100 on only those of
    shared memory. Mercury records get their sections here, as twins of the plain ones.
    """

def names_deleted(placed: PlacedTables, reserved: int) -> bool:
    """Return whether debug data refers to an extern array that has lost its symbol.

    It only counts if `.nv_debug.shared` has variables, more than the `reserved` bytes.
    """
