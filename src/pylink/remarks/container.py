"""The container of remarks in LLVM's bitstream: blocks, records, abbreviations, string table.

    version 0: RMRK, block info, meta with the string table, a block for each remark
    version 1: RMRK, block info, meta, a block for each remark, meta with the string table

LLVM 19 writes and reads version 0, LLVM 22 version 1; each refuses the other. The numbers are those
that `llvm-bcanalyzer --dump` shows for files of both releases.
"""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    # An operand of an abbreviation: encoding and width.
    Operand = tuple[int, int]

MAGIC = b"RMRK"

# Container versions.
LLVM_19 = 0
LLVM_22 = 1
VERSIONS = (LLVM_19, LLVM_22)

# Type of a container that does not refer to another file, by version.
STANDALONE = {LLVM_19: 2, LLVM_22: 1}
REMARK_VERSION = 0

# Blocks.
BLOCK_INFO = 0
META = 8
REMARK = 9

# Records of the block info block.
SET_BLOCK = 1
BLOCK_NAME = 2
RECORD_NAME = 3

# Records of meta blocks, then of remark blocks.
CONTAINER = 1
VERSION = 2
STRINGS = 3
EXTERNAL = 4
HEADER = 5
LOCATION = 6
HOTNESS = 7
ARGUMENT_WITH_LOCATION = 8
ARGUMENT = 9

# Abbreviation ids of every block, and widths of ids.
END_BLOCK = 0
ENTER_BLOCK = 1
DEFINE = 2
UNABBREVIATED = 3
FIRST_ABBREVIATION = 4
OUTER_WIDTH = 2
WIDTHS = {BLOCK_INFO: 2, META: 3, REMARK: 4}

# Encodings of an operand.
LITERAL = 0
FIXED = 1
VBR = 2
ARRAY = 3
CHAR6 = 4
BLOB = 5

_WORD = (FIXED, 32)
_PLACE = ((VBR, 7), _WORD, _WORD)

# Name and operands of each record, by block, in the order in which LLVM defines their
# abbreviations. The first operand, not listed, is the number of the record as a literal.
RECORDS: dict[int, tuple[str, dict[int, tuple[str, tuple[Operand, ...]]]]] = {
    META: (
        "Meta",
        {
            CONTAINER: ("Container info", (_WORD, (FIXED, 2))),
            VERSION: ("Remark version", (_WORD,)),
            STRINGS: ("String table", ((BLOB, 0),)),
        },
    ),
    REMARK: (
        "Remark",
        {
            HEADER: ("Remark header", ((FIXED, 3), (VBR, 6), (VBR, 6), (VBR, 8))),
            LOCATION: ("Remark debug location", _PLACE),
            HOTNESS: ("Remark hotness", ((VBR, 8),)),
            ARGUMENT_WITH_LOCATION: (
                "Argument with debug location",
                ((VBR, 7), (VBR, 7), *_PLACE),
            ),
            ARGUMENT: ("Argument", ((VBR, 7), (VBR, 7))),
        },
    ),
}


class BitWriter:
    """Writes bits, lowest first, in 32-bit words; for the parts that a file has once."""

    __slots__ = ("_bits", "_size")

    def __init__(self) -> None:
        self._bits = 0
        self._size = 0

    def write_fixed(self, value: int, width: int) -> None:
        self._bits |= value << self._size
        self._size += width

    def write_vbr(self, value: int, width: int) -> None:
        continuation = 1 << (width - 1)
        while value >= continuation:
            self.write_fixed(value & (continuation - 1) | continuation, width)
            value >>= width - 1
        self.write_fixed(value, width)

    def align(self) -> None:
        self._size += -self._size % 32

    def write_blob(self, data: bytes) -> None:
        self.write_vbr(len(data), 6)
        self.align()
        self.write_fixed(int.from_bytes(data, "little"), 8 * len(data))
        self.align()

    def write_record(self, code: int, operands: Iterable[int], width: int) -> None:
        """Write a record without abbreviation."""
        values = list(operands)
        self.write_fixed(UNABBREVIATED, width)
        for value in (code, len(values), *values):
            self.write_vbr(value, 6)

    def define(self, code: int, operands: tuple[Operand, ...], width: int) -> None:
        """Write the definition of a record's abbreviation."""
        self.write_fixed(DEFINE, width)
        self.write_vbr(1 + len(operands), 5)
        self.write_fixed(1, 1)
        self.write_vbr(code, 8)
        for encoding, bits in operands:
            self.write_fixed(0, 1)
            self.write_fixed(encoding, 3)
            if encoding in (FIXED, VBR):
                self.write_vbr(bits, 5)

    def to_bytes(self) -> bytes:
        return self._bits.to_bytes(self._size // 8, "little")


def block(number: int, contents: BitWriter) -> bytes:
    """The bytes of a block at top level; ends `contents`."""
    contents.write_fixed(END_BLOCK, WIDTHS[number])
    contents.align()
    data = contents.to_bytes()
    head = BitWriter()
    head.write_fixed(ENTER_BLOCK, OUTER_WIDTH)
    head.write_vbr(number, 8)
    head.write_vbr(WIDTHS[number], 4)
    head.align()
    head.write_fixed(len(data) // 4, 32)
    return head.to_bytes() + data


def block_info() -> bytes:
    """The block that names blocks and records and defines their abbreviations."""
    info = BitWriter()
    width = WIDTHS[BLOCK_INFO]
    for number, (name, records) in RECORDS.items():
        info.write_record(SET_BLOCK, (number,), width)
        info.write_record(BLOCK_NAME, name.encode(), width)
        for position, (code, (record, operands)) in enumerate(records.items()):
            info.write_record(RECORD_NAME, (code, *record.encode()), width)
            if position == 0:  # LLVM's writer repeats the number of the block here
                info.write_record(SET_BLOCK, (number,), width)
            info.define(code, operands, width)
    return block(BLOCK_INFO, info)


def head(version: int, strings: bytes | None) -> bytes:
    """The bytes before the remarks, in version 0 with the string table."""
    meta = BitWriter()
    width = WIDTHS[META]
    meta.write_fixed(FIRST_ABBREVIATION, width)
    meta.write_fixed(version, 32)
    meta.write_fixed(STANDALONE[version], 2)
    meta.write_fixed(FIRST_ABBREVIATION + 1, width)
    meta.write_fixed(REMARK_VERSION, 32)
    if strings is not None:
        meta.write_fixed(FIRST_ABBREVIATION + 2, width)
        meta.write_blob(strings)
    return MAGIC + block_info() + block(META, meta)


def tail(strings: bytes) -> bytes:
    """The bytes after the remarks in version 1: the string table."""
    meta = BitWriter()
    meta.write_fixed(FIRST_ABBREVIATION + 2, WIDTHS[META])
    meta.write_blob(strings)
    return block(META, meta)


def string_table(strings: Iterable[str]) -> bytes:
    """The strings with a NUL after each; a NUL within a string becomes the text `\\x00`."""
    texts = list(strings)
    data = to_bytes("\0".join(texts)) + b"\0" if texts else b""
    if data.count(b"\0") != len(texts):
        data = b"".join(to_bytes(text.replace("\0", "\\x00")) + b"\0" for text in texts)
    return data
