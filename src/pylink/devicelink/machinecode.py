"""A builder for host code: bytes, relocations, jumps and unwinding data."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A record of .eh_frame begins with its length, which is a multiple of this.
RECORD_ALIGN = 8
CIE_ID, CIE_VERSION = 0, 1
PCREL_SDATA4 = 0x1B  # encoding of addresses in FDEs: relative, 4 bytes
DW_CFA_ADVANCE_LOC, DW_CFA_ADVANCE_LOC1, DW_CFA_ADVANCE_LOC2 = 0x40, 0x02, 0x03


class Function:
    """A function of the code: offset and size in bytes.

    `frames` has the operations of its entry in .eh_frame (FDE): how the frame changes.
    """

    __slots__ = ("frames", "name", "size", "start")

    def __init__(self, name: str, start: int) -> None:
        self.name = name
        self.start = start
        self.size = 0
        self.frames = bytearray()


class Code:
    """The code of one section. `instruction_size` is that of the smallest instruction, in bytes.

    `relocations` are rows of the offset, the type, the name of the symbol, and the addend. `_jumps`
    are rows of the offset, the label, and the function that encodes the instruction.
    """

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
        self.relocations: list[tuple[int, int, str, int]] = []
        self.functions: list[Function] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str, Callable[[int, int], int]]] = []
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
        """The offset of a label, in bytes."""
        return self._labels[label]

    def relocate(self, kind: int, symbol: str, addend: int = 0) -> None:
        """Add a relocation of the next bytes."""
        self.relocations.append((len(self.data), kind, symbol, addend))

    def jump(self, label: str, encode: Callable[[int, int], int]) -> None:
        """Let `finish` replace the next 4 bytes by `encode(word, distance to the label)`.

        `word` are these bytes, which the caller appends afterwards, as a number. The distance is in
        bytes.
        """
        self._jumps.append((len(self.data), label, encode))

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

    def append_copy(self, other: Code, name: str, moves: Mapping[str, tuple[str, int]]) -> None:
        """Append a copy of the only function of `other` with another name.

        `moves` maps symbols of relocations to the symbol in the copy, and to the number of bytes
        that is added to the addend.
        """
        function = other.functions[0]
        start = len(self.data)
        self.begin(name)
        self.data += other.data
        self.functions[-1].frames = function.frames
        self.functions[-1].size = function.size
        for offset_of_field, kind, symbol, addend in other.relocations:
            if symbol in moves:
                new_symbol, added = moves[symbol]
                self.relocations.append((start + offset_of_field, kind, new_symbol, addend + added))
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
        relative_type: int,
        *,
        instruction_size: int,
        return_register: int,
        initial_frame: str,
    ) -> None:
        """Make the table from the attributes of a `Machine` of these names.

        `section` is the name of the section that contains the functions.
        """
        augmentation = bytes((1, PCREL_SDATA4))  # size in bytes, and contents
        data_step = 0x78  # -8 as sleb128: operations count places of registers in words
        head = struct.pack(
            "<IB3sBBB", CIE_ID, CIE_VERSION, b"zR\0", instruction_size, data_step, return_register
        )
        table = bytearray(_make_record(head + augmentation + bytes.fromhex(initial_frame)))
        self.relocations: list[tuple[int, int, str, int]] = []
        # Functions of units have equal records, except for the distance to the CIE: the length in
        # front of it and the bytes after it, by size and operations of the function.
        parts: dict[tuple[int, bytes], tuple[bytes, bytes]] = {}
        for function in functions:
            offset = len(table)
            # An FDE: length, distance to the CIE, start and size of the function, augmentation.
            self.relocations.append((offset + 8, relative_type, section, function.start))
            key = function.size, bytes(function.frames)
            if key not in parts:
                record = _make_record(
                    struct.pack("<IiIB", 0, 0, function.size, 0) + function.frames
                )
                parts[key] = record[:4], record[8:]
            length, rest = parts[key]
            distance = offset + 4  # from its own field back to the CIE, at the start of the table
            table += length + distance.to_bytes(4, "little") + rest
        self.data = bytes(table)


def _make_record(body: bytes) -> bytes:
    """A record of .eh_frame: its length, then the body, padded with DW_CFA_nop (0)."""
    body += bytes(-(len(body) + 4) % RECORD_ALIGN)
    return struct.pack("<I", len(body)) + body
