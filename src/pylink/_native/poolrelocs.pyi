"""Mercury relocations of pools, which go where `pools.place_pools` placed their bytes."""

from pylink._native.results import MergedTables

def adopt_relocations(merged: MergedTables) -> None:
    """Add the Mercury relocations of placed literal pools to `outs` and `emitted` (sm_100 on).

    In a kernel's list its own entries come first, then those of each device function, the last
    constant of its pool first. Entries of copies that lost come in front of the linked copy's, the
    last copy first.
    """
