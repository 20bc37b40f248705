"""Literal pools and jump tables of device functions (docs/format-notes/literal-pools.md).

``.nv.constant2.F`` of a device function is no section of an executable: its bytes are appended to
the pool of every kernel that reaches F, at one offset for all of them. The pool table has a row
(section i32, kernel i32, offset u64, function u32, born u32) for each such copy: input section,
entity, offset in the kernel's pool in bytes, entity, and 1 where the kernel had no pool before.
"""

def place_pools(
    sections: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    calls: bytes,
    prototypes: bytes,
) -> bytes:
    """Place every pool: the pool table in the order of placement, last-born function first."""

def born_kernels(pools: bytes) -> bytes:
    """The kernels whose first pool comes from a device function, as i32 entities in order."""

def apply_pools(
    arena: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    pools: bytes,
    outs: bytes,
    values: bytes,
    homes: bytes,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Fill the kernels' pools: (outs, values, homes, blob, spans).

    The values of the functions' own constants become offsets in the pools; ``blob`` has the whole
    contents of every pool that grew, ``spans`` the SpanRow of each.
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

    A kernel's own entries come first, then pool by pool those of each constant of the function,
    the last constant first.
    """
