"""Shared memory between the tables of the link and ``pylink._native.shared``."""

def gather(
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    calls: bytes,
    prototypes: bytes,
    fixes: bytes,
    outs: bytes,
    referenced: bytes,
    uses_array: bytes,
    tie_by_name: bool,
    executable: bool,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Who uses which variable: (variables, uses, extern_uses, variable_entities, kernel_entities).

    ``referenced`` marks, a byte per entity, what any code refers to. Ties of extern arrays are
    entities: the function with the use or, with ``tie_by_name`` (-g), the array. Without
    ``executable`` (-r) only the kernels' own code counts, and ``uses_array`` says, a byte per
    entity, which kernels name arrays through their instance. The first three are tables of
    ``shared.layout_shared``, the last two i32 entities by its numbers.
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
    ties: bytes,
    uses: bytes,
    executable: bool,
    keep_symbols: bool,
    family: int,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]:
    """Bring the places back.

    Returns (values, symbol_values, merc_values, homes, outs, dynamic, lost): the tables with shared
    memory filled in, u64 st_value per entity in both symbol tables, the u64 address of extern
    arrays per tie or kernel entity, a byte per entity for variables without a place.

    ``offsets``, ``kernels`` and ``ties`` are what ``shared.layout_shared`` returned. Without
    ``executable`` (-r) variables keep their alignments as values. With ``keep_symbols`` they stay
    in the symbol table: those with one user, which ``uses`` tells, in that kernel's section, with
    values that count the bytes the system reserves.
    """

def find_oversized(
    kernel_entities: bytes, kernels: bytes, limit: int, family: int
) -> list[tuple[int, int]]:
    """Kernels with more shared memory of their own than `limit` bytes: (entity, bytes)."""
