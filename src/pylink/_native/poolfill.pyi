"""Fills the pools that `pools.place_pools` placed."""

from pylink._native.results import PlacedTables

def apply_pools(placed: PlacedTables) -> None:
    """Fill the kernels' literal pools, and add the contents of every pool that grew.

    The `values` of constants of device functions become offsets in the pools, their `homes` the
    pools, and `outs` get the pools' sizes and alignments. `null_value` is for pools of lost copies
    of device functions: the offset of the last one in a kernel's pool, or 0 without any.
    """

def has_pool_above(placed: PlacedTables, limit: int) -> bool:
    """Return whether a pool that `place_pools` placed bytes in has more than `limit` bytes."""
