"""What the pools of kernels have to hold, said plainly (docs/format-notes/literal-pools.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import pack_into, unpack_from


@dataclass
class Pool:
    """Bytes of one copy's pool, and of its tables (offset in the pool, mercury offset)."""

    data: bytes
    labels: list[tuple[int, int]] = field(default_factory=list)
    lost: bool = False


@dataclass
class Piece:
    """A pool that goes to kernels, at one offset in all; `stays` is that of the copy that stays."""

    pool: Pool
    stays: Pool
    kernels: list[int]
    offset: int


def translated(pool: Pool, stays: Pool) -> bytes:
    """Tables lead to the code that stays; what it has no entry for becomes 0."""
    places = {mercury: unpack_from("<I", stays.data, at)[0] for at, mercury in stays.labels}
    data = bytearray(pool.data)
    for at, mercury in pool.labels:
        pack_into("<I", data, at, places.get(mercury, 0))
    return bytes(data)


def fill_reference(own: list[Pool | None], sizes: list[int], pieces: list[Piece]) -> list[bytes]:
    """The pool of each kernel, `sizes` bytes long: its own bytes, then the pieces."""
    images = [
        bytearray((pool.data if pool else b"").ljust(size, b"\0"))
        for pool, size in zip(own, sizes, strict=True)
    ]
    for piece in pieces:
        data = translated(piece.pool, piece.stays) if piece.pool.lost else piece.pool.data
        for kernel in piece.kernels:
            images[kernel][piece.offset : piece.offset + len(data)] = data
    return [bytes(image) for image in images]
