"""Shared memory between the tables of the link and ``pylink._native.shared``."""

def gather(
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    calls: bytes,
    prototypes: bytes,
    fixes: bytes,
    outs: bytes,
    referenced: bytes,
    tie_by_name: bool,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Who uses which variable: (variables, uses, extern_uses, variable_entities, kernel_entities).

    ``referenced`` marks, a byte per entity, what any code refers to. Ties of extern arrays are
    entities: the function with the use or, with ``tie_by_name`` (-g), the array. The first three
    are tables of ``shared.layout_shared``, the last two i32 entities by its numbers.
    """

def apply(
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    outs: bytes,
    values: bytes,
    homes: bytes,
    variable_entities: bytes,
    kernel_entities: bytes,
    offsets: bytes,
    kernels: bytes,
    functions: bytes,
    executable: bool,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
    """Bring the places back: (values, homes, outs, dynamic, lost, merc_values).

    ``offsets``, ``kernels`` and ``functions`` are what ``shared.layout_shared`` returned. Without
    ``executable`` (-r) nothing is laid out yet: sections keep their pieces. The first three are
    the tables with shared memory filled in; ``dynamic`` has the u64 offset of extern arrays per
    function entity, ``lost`` a byte per entity for variables without a place, ``merc_values`` the
    u64 values that the mercury symbol table has.
    """
