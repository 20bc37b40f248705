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

def adopt_relocations(
    arena: bytes,
    files: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    pools: bytes,
    outs: bytes,
    keeps: bytes,
) -> tuple[bytes, bytes]:
    """From sm_100 on, mercury relocations of pools go with their bytes: (outs, keeps).

    A kernel's own entries come first, then function by function those of each constant in its pool,
    the last constant first. Those of a copy that lost stand before those of the copy that stays,
    ascending, the last copy's first.
    """
