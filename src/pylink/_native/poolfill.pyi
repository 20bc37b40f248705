"""Fills the pools that `pools.place_pools` placed."""

from pylink._native.tables import PlacedTables

def apply_pools(placed: PlacedTables) -> None:
    """Fill the kernels' pools, and add the contents of every pool that grew.

    The `values` of the functions' own constants become offsets in the pools, their `homes` and
    `outs` are set accordingly; `null_value` is the offset of the last pool of a losing copy, or 0.
    """

def exceeds(placed: PlacedTables, limit: int) -> bool:
    """Return whether a kernel's pool, as placed, has more than `limit` bytes."""
