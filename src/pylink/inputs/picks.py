"""The code that a link takes from its sources, in rows, with the compiled parts."""

from __future__ import annotations

from pylink.facts.inputkinds import CUBIN
from pylink.facts.picknumbers import PickOrigin, PickState
from pylink.inputs.damage import report_entry
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.payload import DamagedPayload
from pylink.rowformats import PICK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.compileinputs import CompileInput
    from pylink.inputs.payload import Unpacker
    from pylink.inputs.sources import Sources


class Pick:
    """One cubin, PTX text or LTO-IR module that a link takes: the fields of a PickRow.

    `source`, `container` and `index` are the numbers of source, container and entry; `sm`, `flags`
    and `header` are the entry's. `kind` is the kind of an input. The bytes start at `offset` of
    arena number `arena`: `room` bytes with padding, `size` without, and `full_size` after
    decompression with `codec`. `embedded` is a PickOrigin: what the bytes are in. `state`
    is a PickState: GOOD, or why the code cannot be linked.
    """

    __slots__ = (
        "arena", "codec", "container", "embedded", "flags", "full_size", "header", "index", "kind",
        "offset", "room", "size", "sm", "source", "state",
    )  # fmt: skip

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


def pack_cubin_row(arena: int, offset: int, size: int) -> bytes:
    """Return the PickRow of an uncompressed cubin in arena number `arena`.

    With -1, the cubin is in no arena: a function of its caller gives `payloads.gather` the bytes.
    """
    extents = offset, offset, size, size, size
    return PICK.pack(0, arena, 0, 0, 0, CUBIN, 0, PickState.GOOD, PickOrigin.FILE, 0, *extents)


class Picks:
    """The code that a link takes from `sources`: PickRows in `rows`, in order of the sources.

    `source_numbers` has the source of each row. `special` are the rows that are not cubins, or that
    cannot be linked: `compile_inputs` has what is compiled, by row, and `plain` the files that are
    read as cubins; the rest of them is not linked. `bare` are the host files and fat binaries
    without containers. `codecs` has a bit for each codec that native code needs.
    """

    __slots__ = (
        "bare", "codecs", "compile_inputs", "plain", "rows", "source_numbers", "sources", "special",
        "unpacker",
    )  # fmt: skip

    def __init__(
        self,
        sources: Sources,
        rows: bytes,
        source_numbers: list[int],
        *,
        special: list[int],
        bare: list[int],
        codecs: int,
        unpacker: Unpacker,
    ) -> None:
        self.sources = sources
        self.rows = rows
        self.source_numbers = source_numbers
        self.special = special
        self.bare = bare
        self.codecs = codecs
        self.unpacker = unpacker
        self.compile_inputs: dict[int, CompileInput] = {}
        self.plain: set[int] = set()

    def is_taken(self, number: int) -> bool:
        """Return whether the link takes row `number`, one of `special`."""
        return number in self.compile_inputs or number in self.plain

    def taken_sources(self) -> list[int]:
        """Return the source number of every row that the link takes."""
        dropped = {number for number in self.special if not self.is_taken(number)}
        return [
            source for number, source in enumerate(self.source_numbers) if number not in dropped
        ]

    def compile_inputs_in_order(self) -> list[CompileInput]:
        """Return what is compiled, or was, in order of rows."""
        return [self.compile_inputs[number] for number in sorted(self.compile_inputs)]

    def cubins(self) -> tuple[bytes, Sequence[int]]:
        """Return the PickRows of all cubins, also of compiled ones, and their numbers in `rows`."""
        if not self.special:
            return self.rows, range(len(self.source_numbers))
        dropped = set(self.special) - self.plain
        dropped -= {
            number
            for number, compile_input in self.compile_inputs.items()
            if compile_input.kind == CUBIN
        }
        numbers = [number for number in range(len(self.source_numbers)) if number not in dropped]
        size = PICK.size
        rows = b"".join(
            pack_cubin_row(-1, 0, len(self.compile_inputs[number].data))
            if number in self.compile_inputs
            else self.rows[size * number : size * number + size]
            for number in numbers
        )
        return rows, numbers

    def take_cubin(self, number: int, sink: Sink) -> bytes:
        """Return the cubin of row `number`: a compiled one, or one that native code cannot unpack.

        A compiled one is dropped from this object. A damaged cubin is reported; the result is
        empty then.
        """
        compile_input = self.compile_inputs.get(number)
        if compile_input is None:
            return self.unpack(Pick(self.rows, number), sink)
        data, compile_input.data = compile_input.data, b""
        return data

    def peek(self, pick: Pick) -> bytes:
        """Return the payload of an entry or the bytes of a file; empty if damaged."""
        source = self.sources[pick.source]
        packed = memoryview(source.arena)[pick.offset : pick.offset + pick.size]
        try:
            return self.unpacker.unpack(packed, pick.flags, pick.full_size, source.name)
        except DamagedPayload:
            return b""

    def unpack(self, pick: Pick, sink: Sink) -> bytes:
        """Return the payload of an entry; empty, with a report, if it is damaged."""
        source = self.sources[pick.source]
        packed = memoryview(source.arena)[pick.offset : pick.offset + pick.size]
        try:
            payload = self.unpacker.unpack(packed, pick.flags, pick.full_size, source.name)
            # Check this here, since later phases could not name the entry and its file.
            if pick.kind == CUBIN and payload[:4] != ELF_MAGIC:
                raise DamagedPayload("its cubin is not an ELF file")
        except DamagedPayload as damage:
            report_entry(source, pick.index, str(damage), sink, damage.kind)
            return b""
        return payload
