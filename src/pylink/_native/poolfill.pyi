"""Fills the pools that `pools.place_pools` placed."""

from pylink._native.results import PlacedTables

def apply_pools(placed: PlacedTables) -> None:
    """Fill the kernels' literal pools, and add the contents of every pool that grew.

    The `values` of constants of device functions become offsets in the pools, their `homes` the
    pools, and `outs` get the pools' sizes and alignments. `null_value` is the offset in its
    kernel's pool of the last pool of a device function's copy that lost, or 0.
    """

def has_pool_above(placed: PlacedTables, limit: int) -> bool:
    """Return whether a pool that `place_pools` placed bytes in has more than `limit` bytes."""
