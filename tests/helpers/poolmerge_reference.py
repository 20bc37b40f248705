"""A naive reference of the one pool that all kernels share if the pool of one would be too large.

Written from "Pools that are too large" in docs/format-notes/literal-pools.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Sizes in bytes of pieces of which identical ones are found, at any alignment.
SMALL = (12, 16, 20, 24, 32, 48, 64)


@dataclass
class Symbol:
    """A constant of a pool.

    `linked_value` is the value that nvlink gives it, `place` that of its piece.
    """

    value: int
    size: int
    linked_value: int = -1
    place: int = -1


@dataclass
class Pool:
    """The pool of one copy of a function, and the offset at which it was placed before.

    `lost` says that another copy of the function is linked.
    """

    data: bytes
    align: int
    offset: int = 0
    lost: bool = False
    symbols: list[Symbol] = field(default_factory=list)

    def bytes_of(self, symbol: Symbol) -> bytes:
        """Return the bytes of a symbol."""
        return self.data[symbol.value : symbol.value + symbol.size]


@dataclass
class Written:
    """A piece of the one pool at the offset `place`; `lost` says that it is of a lost copy."""

    data: bytes
    align: int
    place: int
    lost: bool


class Merged:
    """The one pool of all kernels.

    `kernels` has the pools of each kernel in order of creation, its own one first. `null_value` is
    the value of the null symbol, `limit` the largest size of a pool in bytes.
    """

    def __init__(self, kernels: list[list[Pool]], null_value: int, limit: int) -> None:
        self.data = b""
        self.limit = limit
        self.null_value = null_value
        self.written: list[Written] = []
        self.nulls: dict[int, int] = {}  # places of literals of 0, by their offsets before
        for pools in reversed(kernels):
            for pool in pools:
                self.add(pool)
        self.align = max((pool.align for pools in kernels for pool in pools), default=0)
        self.fits = len(self.data) <= limit

    def add(self, pool: Pool) -> None:
        """Add the pool of a copy."""
        if pool.lost:
            _, value = self.piece(pool.data, pool, pool.offset)
            self.null_value = self.null_value if value is None else value
        for symbol in pool.symbols:
            place, value = self.piece(pool.bytes_of(symbol), pool, pool.offset + symbol.value)
            if symbol.place < 0:
                symbol.place = place
                symbol.linked_value = (pool.offset + symbol.value) % self.limit
            symbol.linked_value = symbol.linked_value if value is None else value

    def piece(self, data: bytes, pool: Pool, before: int) -> tuple[int, int | None]:
        """Add a piece of a pool, which had the offset `before` in the kernel's own pool.

        Return its place, and the value that its symbol gets (None: the symbol keeps its own).
        """
        looked_at = is_looked_at(data, pool.align)
        null = is_null(data, pool.align)
        if null and before in self.nulls:
            return self.nulls[before], None
        for written in self.written if looked_at and not null else ():
            if (written.data, written.align) == (data, pool.align):
                return written.place, self.null_value if written.lost else written.place
        self.data += bytes(-len(self.data) % pool.align) + data
        place = len(self.data) - len(data)
        if null:
            self.nulls[before] = place
        elif looked_at:
            self.written.append(Written(data, pool.align, place, pool.lost))
        return place, place if looked_at else None

    def value(self, pool: Pool, symbol: Symbol) -> int:
        """Return a symbol's value: nvlink's if its bytes are there, else its place."""
        data = pool.bytes_of(symbol)
        if symbol.linked_value + len(data) <= len(self.data):
            bytes_there = self.data[symbol.linked_value : symbol.linked_value + len(data)]
            return symbol.linked_value if bytes_there == data else symbol.place
        return symbol.place


def is_looked_at(data: bytes, align: int) -> bool:
    """Return whether of identical pieces of this size only one is kept."""
    return len(data) in SMALL or (len(data) in (4, 8) and len(data) == align)


def is_null(data: bytes, align: int) -> bool:
    """Return whether a piece is a literal of 0, which has rules of its own."""
    return is_looked_at(data, align) and len(data) <= 8 and not any(data)
