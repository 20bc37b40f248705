"""Mercury relocations of pools, which go where ``pools.place_pools`` placed their bytes."""

from pylink._native.tables import MergedTables

def adopt_relocations(merged: MergedTables) -> None:
    """Mercury relocations of pools go with their bytes (from sm_100 on), in ``outs``, ``emitted``.

    A kernel's own entries come first, then function by function those of each constant in its pool,
    the last constant first. Those of a copy that lost stand before those of the copy that stays,
    ascending, the last copy's first.
    """
