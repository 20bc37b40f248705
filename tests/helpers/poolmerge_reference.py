"""The one pool of all kernels where one would be too large (docs/format-notes/literal-pools.md).

Plain lists and searches, from "Pools that are too large".
"""

from __future__ import annotations

from dataclasses import dataclass, field

SMALL = (12, 16, 20, 24, 32, 48, 64)


@dataclass
class Symbol:
    """A constant of a pool; nvlink's value for it and the place of its piece are found."""

    value: int
    size: int
    given: int = -1
    place: int = -1


@dataclass
class Pool:
    """The bytes of one copy of a function, and where they were placed; `symbols` by value."""

    data: bytes
    align: int
    offset: int = 0
    lost: bool = False
    symbols: list[Symbol] = field(default_factory=list)

    def bytes_of(self, symbol: Symbol) -> bytes:
        return self.data[symbol.value : symbol.value + symbol.size]


@dataclass
class Written:
    """A piece that is there."""

    data: bytes
    align: int
    place: int
    lost: bool


class Merged:
    """The pool of `kernels`, whose own pools stand first, in the order in which these are born."""

    def __init__(self, kernels: list[list[Pool]], null_value: int, limit: int) -> None:
        self.data = b""
        self.limit = limit
        self.null_value = null_value
        self.written: list[Written] = []
        self.nulls: dict[int, int] = {}  # place before: place now
        for pools in reversed(kernels):
            for pool in pools:
                self.add(pool)
        self.align = max((pool.align for pools in kernels for pool in pools), default=0)
        self.fits = len(self.data) <= limit

    def add(self, pool: Pool) -> None:
        if pool.lost:
            _, value = self.piece(pool.data, pool, pool.offset)
            self.null_value = self.null_value if value is None else value
        for symbol in pool.symbols:
            place, value = self.piece(pool.bytes_of(symbol), pool, pool.offset + symbol.value)
            if symbol.place < 0:
                symbol.place = place
                symbol.given = (pool.offset + symbol.value) % self.limit
            symbol.given = symbol.given if value is None else value

    def piece(self, data: bytes, pool: Pool, before: int) -> tuple[int, int | None]:
        """Where a piece is now, and the value that its symbol gets, if it does not keep its own."""
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
        """Where the link has the symbol: as nvlink if its bytes are there, else at their place."""
        data = pool.bytes_of(symbol)
        if symbol.given + len(data) <= len(self.data):
            there = self.data[symbol.given : symbol.given + len(data)]
            return symbol.given if there == data else symbol.place
        return symbol.place


def is_looked_at(data: bytes, align: int) -> bool:
    return len(data) in SMALL or (len(data) in (4, 8) and len(data) == align)


def is_null(data: bytes, align: int) -> bool:
    """A literal 0, which no other stands for."""
    return is_looked_at(data, align) and len(data) <= 8 and not any(data)
