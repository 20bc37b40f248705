"""One pool of literals and jump tables for all kernels, if that of a kernel exceeds its bank."""

from pylink._native.results import PlacedTables

def merge_pools(placed: PlacedTables, limit: int) -> bool:
    """Merge all kernels' literal pools into one, unless it would have more than `limit` bytes.

    Nor are they merged if a piece was placed in the pool of a function other than a kernel. Returns
    whether they were merged: then `outs`, `values`, `homes` and `null_value` are updated, and the
    contents are added. Otherwise nothing changes. MemoryError if memory is exhausted.
    """
