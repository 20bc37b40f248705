"""A naive reference of the pools of kernels, from docs/format-notes/literal-pools.md.

A pool has the literals and jump tables of a function, in bank 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import pack_into, unpack_from


@dataclass
class Pool:
    """The bytes of the pool of one copy (definition) of a function.

    `labels` has for each entry of a jump table its offset in the pool, and the offset to which it
    jumps in the mercury code. `lost` says that another copy of the function is linked.
    """

    data: bytes
    labels: list[tuple[int, int]] = field(default_factory=list)
    lost: bool = False


@dataclass
class Piece:
    """A pool that is added to kernels at one offset.

    `stays` is the pool of the copy that is linked.
    """

    pool: Pool
    stays: Pool
    kernels: list[int]
    offset: int


def translated(pool: Pool, stays: Pool) -> bytes:
    """Return a pool with table entries of the linked copy `stays`, which jump to the same place.

    An entry is 0 if that copy has none for the place.
    """
    places = {mercury: unpack_from("<I", stays.data, at)[0] for at, mercury in stays.labels}
    data = bytearray(pool.data)
    for at, mercury in pool.labels:
        pack_into("<I", data, at, places.get(mercury, 0))
    return bytes(data)


def fill_reference(
    own_pools: list[Pool | None], sizes: list[int], pieces: list[Piece]
) -> list[bytes]:
    """Return the pool of each kernel, which has `sizes` bytes: its own bytes, then the pieces."""
    images = [
        bytearray((pool.data if pool else b"").ljust(size, b"\0"))
        for pool, size in zip(own_pools, sizes, strict=True)
    ]
    for piece in pieces:
        data = translated(piece.pool, piece.stays) if piece.pool.lost else piece.pool.data
        for kernel in piece.kernels:
            images[kernel][piece.offset : piece.offset + len(data)] = data
    return [bytes(image) for image in images]
