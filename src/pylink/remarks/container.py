"""The container of remarks in LLVM's bitstream: blocks, records, abbreviations, string table.

    version 0: RMRK, block info, meta with the string table, a block for each remark
    version 1: RMRK, block info, meta, a block for each remark, meta with the string table

LLVM 19 writes and reads only version 0, LLVM 22 only version 1. The numbers below are those that
`llvm-bcanalyzer --dump` shows for files of both releases.
"""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes
from pylink.facts.bitstreamnumbers import (
    BLOB,
    BLOCK_INFO,
    DEFINE,
    END_BLOCK,
    ENTER_BLOCK,
    FIRST_ABBREVIATION,
    FIXED,
    OUTER_WIDTH,
    SET_BLOCK,
    UNABBREVIATED,
    VBR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    # An operand of an abbreviation: encoding, and width in bits (0 for arrays and blobs).
    Operand = tuple[int, int]

MAGIC = b"RMRK"

# Container versions.
LLVM_19 = 0
LLVM_22 = 1
VERSIONS = (LLVM_19, LLVM_22)

# Type of a container that does not refer to another file, by version.
STANDALONE = {LLVM_19: 2, LLVM_22: 1}
# Version of the remarks themselves: LLVM has no other.
REMARK_VERSION = 0

# Ids of blocks, beside BLOCK_INFO.
META = 8
REMARK = 9

# Codes of the records of the block info block, beside SET_BLOCK.
BLOCK_NAME = 2
RECORD_NAME = 3

# Codes of the records of meta blocks (1 to 4) and of remark blocks (5 to 9).
CONTAINER = 1
VERSION = 2
STRINGS = 3
EXTERNAL = 4
HEADER = 5
LOCATION = 6
HOTNESS = 7
ARGUMENT_WITH_LOCATION = 8
ARGUMENT = 9

# Bits of an abbreviation id in each block.
WIDTHS = {BLOCK_INFO: 2, META: 3, REMARK: 4}

# Operands of abbreviations: _WORD is one number of 32 bits. _PLACE is a location: the number of the
# file's name in the string table, the line, and the column.
_WORD = (FIXED, 32)
_PLACE = ((VBR, 7), _WORD, _WORD)

# Name and operands of each record that is written, by block and code, in the order in which LLVM
# defines their abbreviations. The first operand, not listed, is the code as a literal.
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
            ARGUMENT_WITH_LOCATION: ("Argument with debug location", ((VBR, 7), (VBR, 7), *_PLACE)),
            ARGUMENT: ("Argument", ((VBR, 7), (VBR, 7))),
        },
    ),
}


class BitWriter:
    """Writes bits, lowest first, in 32-bit words.

    Each addition copies what was written before. This is too slow for the remarks themselves, so
    only the parts that a file has once are written in this way.
    """

    __slots__ = ("_size", "_value")

    def __init__(self) -> None:
        self._value = 0  # all bits as one number
        self._size = 0  # in bits

    def write_fixed(self, value: int, width: int) -> None:
        """Write a number of `width` bits."""
        self._value |= value << self._size
        self._size += width

    def write_vbr(self, value: int, width: int) -> None:
        """Write a number in groups of `width` bits; the highest bit says that a group follows."""
        continuation = 1 << (width - 1)
        while value >= continuation:
            self.write_fixed(value & (continuation - 1) | continuation, width)
            value >>= width - 1
        self.write_fixed(value, width)

    def align(self) -> None:
        """Write zeros up to a multiple of 32 bits."""
        self._size += -self._size % 32

    def write_blob(self, data: bytes) -> None:
        """Write bytes, with their number in front."""
        self.write_vbr(len(data), 6)
        self.align()
        self.write_fixed(int.from_bytes(data, "little"), 8 * len(data))
        self.align()

    def write_record(self, code: int, operands: Iterable[int], id_width: int) -> None:
        """Write a record without abbreviation: its code, the number of operands, and these.

        Each is a number in groups of 6 bits. `id_width` is the width of abbreviation ids in the
        block.
        """
        values = list(operands)
        self.write_fixed(UNABBREVIATED, id_width)
        for value in (code, len(values), *values):
            self.write_vbr(value, 6)

    def define_abbreviation(self, code: int, operands: tuple[Operand, ...], id_width: int) -> None:
        """Write the definition of the abbreviation of records with `code`.

        `id_width` is the width of abbreviation ids in the block.
        """
        self.write_fixed(DEFINE, id_width)
        self.write_vbr(1 + len(operands), 5)
        self.write_fixed(1, 1)  # the first operand is a literal, the code
        self.write_vbr(code, 8)
        for encoding, width in operands:
            self.write_fixed(0, 1)  # not a literal
            self.write_fixed(encoding, 3)
            if encoding in (FIXED, VBR):
                self.write_vbr(width, 5)

    def to_bytes(self) -> bytes:
        return self._value.to_bytes(self._size // 8, "little")


def encode_block(number: int, contents: BitWriter) -> bytes:
    """Return the bytes of a block that is not inside another one; `number` is its id.

    The mark for the end of the block is appended to `contents`.
    """
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


def encode_block_info() -> bytes:
    """Return the bytes of the block that names blocks and records and defines abbreviations."""
    info = BitWriter()
    width = WIDTHS[BLOCK_INFO]
    for number, (name, records) in RECORDS.items():
        info.write_record(SET_BLOCK, (number,), width)
        info.write_record(BLOCK_NAME, name.encode(), width)
        for position, (code, (record, operands)) in enumerate(records.items()):
            info.write_record(RECORD_NAME, (code, *record.encode()), width)
            if position == 0:  # LLVM's writer repeats the number of the block here
                info.write_record(SET_BLOCK, (number,), width)
            info.define_abbreviation(code, operands, width)
    return encode_block(BLOCK_INFO, info)


def encode_head(version: int, strings: bytes | None) -> bytes:
    """Return the bytes of a file in front of the remarks: magic, block info and a meta block.

    `strings` is the string table in version 0, else None.
    """
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
    return MAGIC + encode_block_info() + encode_block(META, meta)


def encode_tail(strings: bytes) -> bytes:
    """Return the bytes after the remarks in version 1: the string table."""
    meta = BitWriter()
    meta.write_fixed(FIRST_ABBREVIATION + 2, WIDTHS[META])
    meta.write_blob(strings)
    return encode_block(META, meta)


def encode_string_table(strings: Iterable[str]) -> bytes:
    """Return the strings, joined with a NUL after each.

    A NUL within a string becomes the text `\\x00`.
    """
    texts = list(strings)
    data = to_bytes("\0".join(texts)) + b"\0" if texts else b""
    if data.count(b"\0") != len(texts):
        data = b"".join(to_bytes(text.replace("\0", "\\x00")) + b"\0" for text in texts)
    return data
