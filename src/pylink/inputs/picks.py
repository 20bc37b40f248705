"""What a link takes of its sources: rows, and what is made of those that are not plain cubins."""

from __future__ import annotations

from pylink.inputs.damage import report_entry
from pylink.inputs.kinds import CUBIN, ELF_MAGIC
from pylink.inputs.payload import DamagedPayload
from pylink.rowformats import PICK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.payload import Unpacker
    from pylink.inputs.pieces import Piece
    from pylink.inputs.sources import Sources

# The states of a PickRow, and what a row was an entry of.
GOOD, TOO_LARGE = 0, 2
FILE, ALONE, HOSTED = 0, 1, 2


class Pick:
    """One cubin, PTX text or LTO-IR module that a link takes, an object for one row.

    `source` is the number of its source, `container` and `index` those of container and entry in
    that; `sm`, `flags` and `header` are those of the entry. `kind` is that of an input. Bytes are
    at `offset` of the arena with the number `arena`: `room` with their padding, `size` without, and
    `full_size` when they are decompressed with `codec`. `embedded` says what it was an entry of:
    HOSTED for host code, ALONE for a fat binary, FILE for no entry. `state` says why it cannot be
    had.
    """

    __slots__ = (
        "arena",
        "codec",
        "container",
        "embedded",
        "flags",
        "full_size",
        "header",
        "index",
        "kind",
        "offset",
        "room",
        "size",
        "sm",
        "source",
        "state",
    )

    def __init__(self, picks: bytes, number: int) -> None:
        (
            self.source,
            self.arena,
            self.container,
            self.index,
            self.sm,
            self.kind,
            self.codec,
            self.state,
            self.embedded,
            self.flags,
            self.header,
            self.offset,
            self.room,
            self.size,
            self.full_size,
        ) = PICK.unpack_from(picks, PICK.size * number)


def row_at(arena: int, offset: int, size: int) -> bytes:
    """The PickRow of a cubin that lies there as it is; an `arena` of -1: with the caller."""
    return PICK.pack(0, arena, 0, 0, 0, CUBIN, 0, GOOD, FILE, 0, offset, offset, size, size, size)


class Picks:
    """What a link takes of `sources`: a PickRow in `rows` each, in their order.

    `homes` has the number of the source of each, and `odd` are the rows that are not plain cubins:
    `pieces` has those that are compiled, by row, `plain` the rows of files that are taken for
    cubins, and the others are not linked. `bare` are the sources of host code without any of the
    device, and `codecs` has a bit for each that native code is to have.
    """

    __slots__ = ("bare", "codecs", "homes", "odd", "pieces", "plain", "rows", "sources", "unpacker")

    def __init__(
        self,
        sources: Sources,
        rows: bytes,
        homes: list[int],
        *,
        odd: list[int],
        bare: list[int],
        codecs: int,
        unpacker: Unpacker,
    ) -> None:
        self.sources = sources
        self.rows = rows
        self.homes = homes
        self.odd = odd
        self.bare = bare
        self.codecs = codecs
        self.unpacker = unpacker
        self.pieces: dict[int, Piece] = {}
        self.plain: set[int] = set()

    def is_taken(self, number: int) -> bool:
        """Whether the link has anything of an odd row."""
        return number in self.pieces or number in self.plain

    def taken(self) -> list[int]:
        """The number of the source of everything that the link has."""
        odd_left = {number for number in self.odd if not self.is_taken(number)}
        return [home for number, home in enumerate(self.homes) if number not in odd_left]

    def pieces_in_order(self) -> list[Piece]:
        """What is compiled."""
        return [self.pieces[number] for number in sorted(self.pieces)]

    def cubins(self) -> tuple[bytes, Sequence[int]]:
        """The rows of the cubins, also of those that were compiled, and their numbers."""
        if not self.odd:
            return self.rows, range(len(self.homes))
        odd_left = set(self.odd) - self.plain
        odd_left -= {number for number, piece in self.pieces.items() if piece.kind == CUBIN}
        numbers = [number for number in range(len(self.homes)) if number not in odd_left]
        size = PICK.size
        rows = b"".join(
            row_at(-1, 0, len(self.pieces[number].data))
            if number in self.pieces
            else self.rows[size * number : size * number + size]
            for number in numbers
        )
        return rows, numbers

    def take(self, number: int, sink: Sink) -> bytes:
        """The cubin of a row that native code has not: compiled, or damaged; let go by this."""
        piece = self.pieces.get(number)
        if piece is None:
            return self.unpack(Pick(self.rows, number), sink)
        data, piece.data = piece.data, b""
        return data

    def peek(self, pick: Pick) -> bytes:
        """The payload of an entry or the bytes of a file; nothing when it is damaged."""
        source = self.sources[pick.source]
        packed = memoryview(source.arena)[pick.offset : pick.offset + pick.size]
        try:
            return self.unpacker.unpack(packed, pick.flags, pick.full_size, source.name)
        except DamagedPayload:
            return b""

    def unpack(self, pick: Pick, sink: Sink) -> bytes:
        """The payload of an entry; nothing, and a report, when it is damaged."""
        source = self.sources[pick.source]
        packed = memoryview(source.arena)[pick.offset : pick.offset + pick.size]
        try:
            payload = self.unpacker.unpack(packed, pick.flags, pick.full_size, source.name)
            # What follows could not say which entry of which file this was.
            if pick.kind == CUBIN and payload[:4] != ELF_MAGIC:
                raise DamagedPayload("its cubin is not an ELF file")
        except DamagedPayload as damage:
            report_entry(source, pick.index, str(damage), sink, damage.kind)
            return b""
        return payload
