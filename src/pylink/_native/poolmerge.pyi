"""Equal literals and jump tables of kernels' pools, merged when a pool is larger than its bank."""

from pylink._native.tables import PlacedTables

def merge_pools(placed: PlacedTables, limit: int) -> bool:
    """Make one pool of those of all kernels unless it has more than ``limit`` bytes.

    Returns whether it was made: ``outs``, ``values``, ``homes`` and ``null_value`` then follow it,
    and its contents are added. Otherwise nothing changes. MemoryError when memory is exhausted.
    """
