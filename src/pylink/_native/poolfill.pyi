"""Fill the pools that ``pools.place_pools`` placed."""

from pylink._native.tables import PlacedTables

def apply_pools(placed: PlacedTables) -> None:
    """Fill the kernels' pools, and add the whole contents of every one that grew.

    The ``values`` of the functions' own constants become offsets in the pools, their ``homes`` and
    ``outs`` follow; ``null_value`` is the offset of the last pool of a copy that lost, or 0.
    """

def exceeds(placed: PlacedTables, limit: int) -> bool:
    """Whether a kernel's pool has more than ``limit`` bytes, as it was placed."""
