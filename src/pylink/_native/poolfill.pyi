"""Fill the pools that ``pools.place_pools`` placed."""

def apply_pools(
    arena: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    pools: bytes,
    outs: bytes,
    values: bytes,
    homes: bytes,
) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
    """Fill the kernels' pools: (outs, values, homes, blob, spans, null_value).

    The values of the functions' own constants become offsets in the pools; ``blob`` has the whole
    contents of every pool that grew, ``spans`` the SpanRow of each, ``null_value`` the value of the
    null symbol: the offset of the last pool of a copy that lost, or 0.
    """
