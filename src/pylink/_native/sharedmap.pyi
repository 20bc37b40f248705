"""Converts between the tables of the link and those of `pylink._native.shared`."""

from pylink._native.results import MergedTables, PlacedTables, SharedTables

def gather(merged: MergedTables) -> SharedTables:
    """Make the tables of shared variables and their users.

    A tie is the entity of the function that uses an extern array or, with -g, of the array: kernels
    with the same tie need the array at one address. With -r only the kernels' own code counts, and
    `merged.array_align` says which kernels refer to arrays through their instance. A variable
    without a symbol has the entity -1.
    """

def apply_layout(
    placed: PlacedTables, shared: SharedTables, *, keep_symbols: bool, reserves: bool = True
) -> None:
    """Copy the layout of shared memory to the tables of the link.

    Fills `values`, `homes`, `outs`, `symbol_values`, `merc_values`, `dynamic` and `lost`; also
    `null_value`, since nvlink stores the value of variables without a symbol in the null symbol.
    With -r variables keep their alignments as values. With `keep_symbols` they stay in the symbol
    table, and a common variable that one kernel uses is in the section of this kernel.
    `symbol_values` of an executable count the bytes that the system reserves, if it `reserves` any
    (from sm_100 on in some releases even if not).
    """

def find_oversized(
    shared: SharedTables, limit: int, family: int, *, reserves: bool = True
) -> list[tuple[int, int]]:
    """List the kernels with more than `limit` bytes of shared memory: (entity, bytes).

    Bytes that the system reserves do not count.
    """
