"""Mercury relocations of pools, which follow the bytes that `pools.place_pools` placed."""

from pylink._native.tables import MergedTables

def adopt_relocations(merged: MergedTables) -> None:
    """Move Mercury relocations of pools with their bytes (from sm_100 on), in `outs`, `emitted`.

    A kernel's own entries come first, then by function the entries of each constant in its pool,
    the last constant first. Entries of losing copies come in front of those of the winning copy,
    ascending, the last copy's first.
    """
