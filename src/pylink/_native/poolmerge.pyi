"""Equal literals and jump tables of kernels' pools, merged when a pool is larger than its bank."""

from pylink._native.tables import PlacedTables

def merge_pools(placed: PlacedTables, limit: int) -> bool:
    """Merge the pools of all kernels into one, unless it has more than `limit` bytes.

    True if they were merged: then `outs`, `values`, `homes` and `null_value` are updated, and the
    contents are added. Otherwise nothing changes. MemoryError if memory is exhausted.
    """
