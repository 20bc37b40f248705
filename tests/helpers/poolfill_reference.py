"""A naive reference of the pools of kernels, from docs/format-notes/literal-pools.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import pack_into, unpack_from


@dataclass
class Pool:
    """The bytes of one copy's pool, and its table entries: offset in the pool, mercury offset.

    `lost` says that another copy of the function is linked.
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
    """Return pool, with entries of tables changed to those of the linked copy, 0 without one."""
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
