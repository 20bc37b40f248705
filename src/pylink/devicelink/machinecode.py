"""A builder for host code: bytes, relocations, jumps and unwinding data."""

from __future__ import annotations

import struct
from itertools import chain, groupby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    # Offset, type, name of the symbol, addend.
    Relocation: TypeAlias = tuple[int, int, str, int]
    # A relocation that each copy of some code has: offsets, type, symbols (one for all copies, or
    # one for each), addends.
    Column: TypeAlias = tuple[range, int, str | Sequence[str], Sequence[int]]

# A record of .eh_frame, with the field of its length in front, has a multiple of this many bytes.
RECORD_ALIGN = 8
CIE_ID, CIE_VERSION = 0, 1
PCREL_SDATA4 = 0x1B  # encoding of addresses in FDEs: relative, 4 bytes
DW_CFA_ADVANCE_LOC, DW_CFA_ADVANCE_LOC1, DW_CFA_ADVANCE_LOC2 = 0x40, 0x02, 0x03


class Function:
    """A function of the code: offset and size in bytes.

    `frames` has the operations of its entry in .eh_frame (FDE): how the frame changes.
    """

    __slots__ = ("frames", "name", "size", "start")

    def __init__(
        self, name: str, start: int, size: int = 0, frames: bytearray | None = None
    ) -> None:
        self.name = name
        self.start = start
        self.size = size
        self.frames = bytearray() if frames is None else frames


class CopiedRelocations:
    """Relocations of `count` copies of the same code, in the order of the copies.

    Each of the `columns` is one relocation of the code, with its values in all copies. As one row
    each, the relocations of thousands of units would take longer than all else in the object.
    """

    __slots__ = ("columns", "count")

    def __init__(self, columns: Sequence[Column], count: int) -> None:
        self.columns = columns
        self.count = count

    def symbols(self) -> Iterable[str]:
        """Return the symbols in the order of their first use, perhaps more than once."""
        varying = [symbols for _, _, symbols, _ in self.columns if not isinstance(symbols, str)]
        first = [
            symbols if isinstance(symbols, str) else symbols[0] for _, _, symbols, _ in self.columns
        ]
        return chain(first, chain.from_iterable(zip(*varying, strict=True)))

    def pack(self, number_of: Mapping[str, int]) -> bytes:
        """Return rows of a RELA section; `number_of` has each symbol's number in .symtab."""
        count, width = self.count, 3 * len(self.columns)  # a row has three words
        data = bytearray(8 * width * count)
        words = memoryview(data).cast("q")
        for place, (offsets, kind, symbols, addends) in enumerate(self.columns):
            if isinstance(symbols, str):
                infos = [number_of[symbols] << 32 | kind] * count
            else:
                infos = [number_of[symbol] << 32 | kind for symbol in symbols]
            for word, column in enumerate((offsets, infos, addends), 3 * place):
                words[word::width] = memoryview(struct.pack(f"<{count}q", *column)).cast("q")
        return bytes(data)


class Code:
    """The code of one section. `instruction_size` is that of the smallest instruction, in bytes."""

    __slots__ = (
        "_frame_offset",
        "_jumps",
        "_labels",
        "data",
        "functions",
        "instruction_size",
        "relocations",
    )

    def __init__(self, instruction_size: int) -> None:
        self.instruction_size = instruction_size
        self.data = bytearray()
        self.relocations: list[Relocation | CopiedRelocations] = []
        self.functions: list[Function] = []
        self._labels: dict[str, int] = {}
        # Offsets of equal instructions, their target, and the function that encodes the distance.
        self._jumps: list[tuple[range, str, Callable[[int, int], int]]] = []
        self._frame_offset = 0  # up to here, the operations of the function describe the frame

    def begin(self, name: str) -> None:
        """Start a function, which is also a label."""
        self.functions.append(Function(name, len(self.data)))
        self._frame_offset = len(self.data)
        self.label(name)

    def end(self) -> None:
        """Complete the function that began last."""
        function = self.functions[-1]
        function.size = len(self.data) - function.start

    def label(self, name: str) -> None:
        """Define a label for the next instruction."""
        self._labels[name] = len(self.data)

    def offset_of(self, label: str) -> int:
        """Return the offset of a label, in bytes."""
        return self._labels[label]

    def relocate(self, kind: int, symbol: str, addend: int = 0) -> None:
        """Add a relocation of the next bytes."""
        self.relocations.append((len(self.data), kind, symbol, addend))

    def jump(self, label: str, encode: Callable[[int, int], int]) -> None:
        """Let `finish` replace the next 4 bytes by `encode(word, distance to the label)`.

        `word` is the number in these bytes, which the caller appends afterwards. The distance is in
        bytes, from the first of them.
        """
        place = len(self.data)
        self._jumps.append((range(place, place + 1), label, encode))

    def frame(self, operations: str) -> None:
        """Add operations of DWARF, in hexadecimal, that describe the frame from here on."""
        function = self.functions[-1]
        # Distances are in units of the smallest instruction, the code alignment factor.
        steps = (len(self.data) - self._frame_offset) // self.instruction_size
        self._frame_offset = len(self.data)
        if steps >= 1 << 8:
            function.frames += struct.pack("<BH", DW_CFA_ADVANCE_LOC2, steps)
        elif steps >= DW_CFA_ADVANCE_LOC:
            function.frames += bytes((DW_CFA_ADVANCE_LOC1, steps))
        elif steps:
            function.frames.append(DW_CFA_ADVANCE_LOC | steps)
        function.frames += bytes.fromhex(operations)

    def append_copies(
        self,
        other: Code,
        names: Sequence[str],
        moves: Mapping[str, tuple[str | Sequence[str], Sequence[int]]],
    ) -> None:
        """Append a copy of the only function of `other` under each of the names.

        `moves` says, by symbol, how relocations with that symbol change. It has the new symbol, one
        for all copies or a list with one for each, and numbers to add to the addends, one for each
        copy. A relocation is changed in all copies at once: a step may have thousands of units.
        """
        function, step, count = other.functions[0], len(other.data), len(names)
        first, size = len(self.data), step * count

        def places(offset: int) -> range:
            """Return the offsets at which the copies have the byte at `offset` in `other`."""
            return range(first + offset, first + offset + size, step)

        self.data += other.data * count
        self.functions += [
            Function(name, start, function.size, function.frames)
            for name, start in zip(names, places(0), strict=True)
        ]
        self._labels.update(zip(names, places(0), strict=True))
        columns: list[Column] = []
        for relocation in other.relocations:
            assert isinstance(relocation, tuple)
            offset, kind, symbol, addend = relocation
            symbols, added = moves.get(symbol, (symbol, [0] * count))
            columns.append((places(offset), kind, symbols, [addend + more for more in added]))
        self.relocations.append(CopiedRelocations(columns, count))
        self._jumps += [
            (places(offsets.start), label, encode) for offsets, label, encode in other._jumps
        ]

    def finish(self) -> bytes:
        """Return the code, with its jumps encoded."""
        for places, label, encode in self._jumps:
            if places:
                word = int.from_bytes(self.data[places.start : places.start + 4], "little")
                target = self._labels[label]
                _set_words(self.data, places, [encode(word, target - place) for place in places])
        return bytes(self.data)


def _set_words(data: bytearray, places: range, words: list[int]) -> None:
    """Set a word of 4 bytes at each of the offsets `places`."""
    encoded = struct.pack(f"<{len(words)}I", *words)
    for byte in range(4):
        data[places.start + byte : places.stop + byte : places.step] = encoded[byte::4]


class FrameTable:
    """Contents of .eh_frame for functions of one section, and their relocations."""

    __slots__ = ("data", "relocations")

    def __init__(
        self,
        functions: list[Function],
        section: str,
        relative_type: int,
        *,
        instruction_size: int,
        return_register: int,
        initial_frame: str,
    ) -> None:
        """Make the table for `functions`, which are in the section with the name `section`.

        The other parameters are the attributes of a `Machine` that have the same names.
        """
        augmentation = bytes((1, PCREL_SDATA4))  # size in bytes, and contents
        data_step = 0x78  # -8 as sleb128: operations count places of registers in words
        head = struct.pack(
            "<IB3sBBB", CIE_ID, CIE_VERSION, b"zR\0", instruction_size, data_step, return_register
        )
        table = bytearray(_make_record(head + augmentation + bytes.fromhex(initial_frame)))
        self.relocations: list[CopiedRelocations] = []
        # Functions of one size and frame have equal records (FDEs), except for the distance to the
        # CIE and the start, so a group of neighbors is made as copies of one record.
        for (size, operations), group in groupby(functions, _frame_of):
            starts = [function.start for function in group]
            # An FDE: length, distance to the CIE, start and size of the function, augmentation.
            record = _make_record(struct.pack("<IiIB", 0, 0, size, 0) + operations)
            first, end = len(table), len(table) + len(record) * len(starts)
            table += record * len(starts)
            # A distance counts from its own field back to the CIE, at the start of the table.
            distances = range(first + 4, end + 4, len(record))
            _set_words(table, distances, [*distances])
            fields = range(first + 8, end + 8, len(record))
            column = (fields, relative_type, section, starts)
            self.relocations.append(CopiedRelocations([column], len(starts)))
        self.data = bytes(table)


def _frame_of(function: Function) -> tuple[int, bytearray]:
    """Return the size and the frame operations of a function, on which its record depends."""
    return function.size, function.frames


def _make_record(body: bytes) -> bytes:
    """Return a record of .eh_frame: its length, then the body, padded with DW_CFA_nop (0)."""
    body += bytes(-(len(body) + 4) % RECORD_ALIGN)
    return struct.pack("<I", len(body)) + body
