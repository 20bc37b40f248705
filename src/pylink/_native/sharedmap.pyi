"""Shared memory between the tables of the link and ``pylink._native.shared``."""

from pylink._native.tables import MergedTables, PlacedTables, SharedTables

def gather(merged: MergedTables) -> SharedTables:
    """Who uses which variable.

    Ties of extern arrays are entities: the function with the use or, with -g, the array. With -r
    only the kernels' own code counts, and ``array_align`` says which kernels name arrays through
    their instance. A variable that no symbol names has the entity -1.
    """

def apply(
    placed: PlacedTables, shared: SharedTables, keep_symbols: bool, reserves: bool = True
) -> None:
    """Bring the places back.

    Fills ``values``, ``homes`` and ``outs`` with shared memory in them, ``symbol_values``,
    ``merc_values``, ``dynamic`` and ``lost``; and ``null_value``, as nvlink gives variables without
    a symbol that of the null symbol. With -r variables keep their alignments as values.
    With ``keep_symbols`` they stay in the symbol table: those with one user in that kernel's
    section, with values that count the bytes the system reserves, if it ``reserves`` any.
    """

def find_oversized(
    shared: SharedTables, limit: int, family: int, reserves: bool = True
) -> list[tuple[int, int]]:
    """Kernels with more shared memory of their own than `limit` bytes: (entity, bytes)."""
