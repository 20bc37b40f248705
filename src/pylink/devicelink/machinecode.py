"""A builder for host code: bytes, relocations, jumps and unwinding data."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A record of .eh_frame begins with its length, which is a multiple of this.
RECORD_ALIGN = 8
CIE_ID = 0
PCREL_SDATA4 = 0x1B  # encoding of addresses in FDEs: relative, 4 bytes
DW_CFA_ADVANCE_LOC, DW_CFA_ADVANCE_LOC1, DW_CFA_ADVANCE_LOC2 = 0x40, 0x02, 0x03


class Function:
    """A function in the code; `frames` are the instructions of its FDE."""

    __slots__ = ("frames", "name", "size", "start")

    def __init__(self, name: str, start: int) -> None:
        self.name = name
        self.start = start
        self.size = 0
        self.frames = bytearray()


class Code:
    """The code of one section. `unit` is the size of the smallest instruction, in bytes.

    `relocations` are rows of the offset, the type, the name of the symbol, and the addend.
    """

    __slots__ = ("_jumps", "_labels", "_place", "data", "functions", "relocations", "unit")

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self.data = bytearray()
        self.relocations: list[tuple[int, int, str, int]] = []
        self.functions: list[Function] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str, Callable[[int, int], int]]] = []
        self._place = 0

    def begin(self, name: str) -> None:
        """Start a function, which is also a label."""
        self.functions.append(Function(name, len(self.data)))
        self._place = len(self.data)
        self.label(name)

    def end(self) -> None:
        function = self.functions[-1]
        function.size = len(self.data) - function.start

    def label(self, name: str) -> None:
        self._labels[name] = len(self.data)

    def offset_of(self, label: str) -> int:
        return self._labels[label]

    def relocate(self, kind: int, symbol: str, addend: int = 0) -> None:
        """Add a relocation of the next bytes."""
        self.relocations.append((len(self.data), kind, symbol, addend))

    def jump(self, label: str, encode: Callable[[int, int], int]) -> None:
        """Let `finish` replace the next word by `encode(word, distance to the label)`.

        The caller appends the word afterwards.
        """
        self._jumps.append((len(self.data), label, encode))

    def frame(self, operations: str) -> None:
        """Add operations of DWARF, in hexadecimal, that describe the frame from here on."""
        function = self.functions[-1]
        steps = (len(self.data) - self._place) // self.unit
        self._place = len(self.data)
        if steps >= 1 << 8:
            function.frames += struct.pack("<BH", DW_CFA_ADVANCE_LOC2, steps)
        elif steps >= DW_CFA_ADVANCE_LOC:
            function.frames += bytes((DW_CFA_ADVANCE_LOC1, steps))
        elif steps:
            function.frames.append(DW_CFA_ADVANCE_LOC | steps)
        function.frames += bytes.fromhex(operations)

    def repeat(self, other: Code, name: str, moves: Mapping[str, tuple[str, int]]) -> None:
        """Append a copy of the function of `other` with another name.

        `moves` maps symbols of relocations to the symbol in the copy and an offset for the addend.
        """
        function = other.functions[0]
        start = len(self.data)
        self.begin(name)
        self.data += other.data
        self.functions[-1].frames = function.frames
        self.functions[-1].size = function.size
        for offset_of_field, kind, symbol, addend in other.relocations:
            if symbol in moves:
                moved, offset = moves[symbol]
                self.relocations.append((start + offset_of_field, kind, moved, addend + offset))
            else:
                self.relocations.append((start + offset_of_field, kind, symbol, addend))
        self._jumps += [
            (start + offset_of_field, label, encode)
            for offset_of_field, label, encode in other._jumps
        ]

    def finish(self) -> bytes:
        """The code, with its jumps encoded."""
        for offset, label, encode in self._jumps:
            word = int.from_bytes(self.data[offset : offset + 4], "little")
            struct.pack_into("<I", self.data, offset, encode(word, self._labels[label] - offset))
        return bytes(self.data)


class FrameTable:
    """Contents of .eh_frame for functions of one section, and their relocations."""

    __slots__ = ("data", "relocations")

    def __init__(
        self,
        functions: list[Function],
        section: str,
        relative: int,
        *,
        unit: int,
        return_register: int,
        initial: str,
    ) -> None:
        """`relative` is the type of a relocation of 4 bytes relative to its field.

        `initial` has the operations for the frame at the start of each function, in hexadecimal.
        """
        augmentation = bytes((1, PCREL_SDATA4))
        data_step = 0x78  # -8 as sleb128
        head = struct.pack("<IB3sBBB", CIE_ID, 1, b"zR\0", unit, data_step, return_register)
        table = bytearray(_record(head + augmentation + bytes.fromhex(initial)))
        self.relocations: list[tuple[int, int, str, int]] = []
        # Functions of units have equal records, except for the distance to the CIE.
        ends: dict[tuple[int, bytes], tuple[bytes, bytes]] = {}
        for function in functions:
            offset = len(table)
            self.relocations.append((offset + 8, relative, section, function.start))
            key = function.size, bytes(function.frames)
            if key not in ends:
                body = struct.pack("<IiIB", 0, 0, function.size, 0) + function.frames
                record = _record(body)
                ends[key] = record[:4], record[8:]
            length, end = ends[key]
            back = offset + 4  # to the CIE, at the start
            table += length + back.to_bytes(4, "little") + end
        self.data = bytes(table)


def _record(body: bytes) -> bytes:
    """A record with its length, padded with DW_CFA_nop (0)."""
    body += bytes(-(len(body) + 4) % RECORD_ALIGN)
    return struct.pack("<I", len(body)) + body
