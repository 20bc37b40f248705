"""Mercury relocations of pools, which go where ``pools.place_pools`` placed their bytes."""

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
