"""One pool of literals and jump tables for all kernels, if that of a kernel exceeds its bank."""

from pylink._native.results import PlacedTables

def merge_pools(placed: PlacedTables, limit: int) -> bool:
    """Merge all kernels' literal pools into one of at most `limit` bytes; False if that fails.

    It fails, and nothing changes, if the one pool would be larger, or if `place_pools` put bytes
    into the pool of a function other than a kernel. Otherwise `outs`, `values`, `homes` and
    `null_value` are updated, and the contents are added. MemoryError if memory is exhausted.
    """
