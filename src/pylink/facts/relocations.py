"""Relocation types: the names after R_CUDA_, and for mercury types the plain twins.

The names are those that the public `cuobjdump` 13.2 prints. Numbers from 116 on have no name.
Mercury numbers (from 0x10000, in `.nv.merc.rela.*`) have no public names. The twin of a mercury
relocation is the plain relocation at the same place of the machine code.
"""

from __future__ import annotations

# Forms in which a field stores the bits of a value V. In native code, a form is its index here.
FORMS = (
    "NONE",  # the link fills no field
    "WHOLE",  # V
    "HIGH",  # V >> 32
    "WORDS",  # V >> 2
    "BANK14",  # (V >> 2 & 0x3fff) | bank << 14
    "BANK16",  # (V & 0xffff) | bank << 16
    "BANK17",  # (V & 0x1ffff) | bank << 17
    "SPLIT19",  # as BANK14, but its bit 18 is at bit 26 and the other 18 bits begin at bit 28
    "BYTE",  # one byte of V, written at r_offset; the row's first bit is that of the byte in V
    "NOTHING",  # the field stays unchanged
    "ZERO",  # zeros
)

# A row for each number from 0 on: name, then form:bits:first bit of the field, then properties.
#
# * loader: the driver always resolves the relocation, when it loads the program.
# * mark: the relocation marks an instruction; its symbol is the null symbol.
# * plain=: the type that replaces this one in a link without unified tables.
_TYPES = """
    NONE
    32 WHOLE:32:0
    64 WHOLE:64:0
    G32 WHOLE:32:0 loader
    G64 WHOLE:64:0 loader
    ABS32_26 WHOLE:32:26
    TEX_HEADER_INDEX loader
    SAMP_HEADER_INDEX loader
    SURF_HW_DESC loader
    SURF_HW_SW_DESC loader
    ABS32_LO_26 WHOLE:32:26
    ABS32_HI_26 HIGH:32:26
    ABS32_23 WHOLE:32:23
    ABS32_LO_23 WHOLE:32:23
    ABS32_HI_23 HIGH:32:23
    ABS24_26 WHOLE:24:26
    ABS24_23 WHOLE:24:23
    ABS16_26 WHOLE:16:26
    ABS16_23 WHOLE:16:23
    TEX_SLOT WHOLE:8:32
    SAMP_SLOT WHOLE:5:40
    SURF_SLOT WHOLE:6:26
    TEX_BINDLESSOFF13_32 WORDS:13:32
    TEX_BINDLESSOFF13_47 WORDS:13:47
    CONST_FIELD19_28 SPLIT19:19:28
    CONST_FIELD19_23 BANK14:19:23
    TEX_SLOT9_49 WHOLE:9:49
    6_31 WHOLE:6:31
    2_47 WHOLE:2:47
    TEX_BINDLESSOFF13_41 WORDS:13:41
    TEX_BINDLESSOFF13_45 WORDS:13:45
    FUNC_DESC32_23
    FUNC_DESC32_LO_23
    FUNC_DESC32_HI_23
    FUNC_DESC_32
    FUNC_DESC_64
    CONST_FIELD21_26 BANK16:21:26
    QUERY_DESC21_37 BANK16:21:37
    CONST_FIELD19_26 BANK14:19:26
    CONST_FIELD21_23 BANK16:21:23
    PCREL_IMM24_26
    PCREL_IMM24_23
    ABS32_20 WHOLE:32:20
    ABS32_LO_20 WHOLE:32:20
    ABS32_HI_20 HIGH:32:20
    ABS24_20 WHOLE:24:20
    ABS16_20 WHOLE:16:20
    FUNC_DESC32_20
    FUNC_DESC32_LO_20
    FUNC_DESC32_HI_20
    CONST_FIELD19_20 BANK14:19:20
    BINDLESSOFF13_36 WORDS:13:36
    SURF_HEADER_INDEX loader
    INSTRUCTION64 loader
    CONST_FIELD21_20 BANK16:21:20
    ABS32_32 WHOLE:32:32
    ABS32_LO_32 WHOLE:32:32
    ABS32_HI_32 HIGH:32:32
    ABS47_34 loader
    ABS16_32 WHOLE:16:32
    ABS24_32 WHOLE:24:32
    FUNC_DESC32_32
    FUNC_DESC32_LO_32
    FUNC_DESC32_HI_32
    CONST_FIELD19_40 BANK14:19:40
    BINDLESSOFF14_40 WORDS:14:40
    CONST_FIELD21_38 BANK16:21:38
    INSTRUCTION128 loader
    YIELD_OPCODE9_0 NOTHING mark
    YIELD_CLEAR_PRED4_87 NOTHING mark
    32_LO WHOLE:32:0
    32_HI HIGH:32:0
    UNUSED_CLEAR32 ZERO:32:0
    UNUSED_CLEAR64 ZERO:64:0
    ABS24_40 WHOLE:24:40
    ABS55_16_34 loader
    8_0 BYTE:8:0
    8_8 BYTE:8:8
    8_16 BYTE:8:16
    8_24 BYTE:8:24
    8_32 BYTE:8:32
    8_40 BYTE:8:40
    8_48 BYTE:8:48
    8_56 BYTE:8:56
    G8_0 BYTE:8:0 loader
    G8_8 BYTE:8:8 loader
    G8_16 BYTE:8:16 loader
    G8_24 BYTE:8:24 loader
    G8_32 BYTE:8:32 loader
    G8_40 BYTE:8:40 loader
    G8_48 BYTE:8:48 loader
    G8_56 BYTE:8:56 loader
    FUNC_DESC_8_0 loader
    FUNC_DESC_8_8 loader
    FUNC_DESC_8_16 loader
    FUNC_DESC_8_24 loader
    FUNC_DESC_8_32 loader
    FUNC_DESC_8_40 loader
    FUNC_DESC_8_48 loader
    FUNC_DESC_8_56 loader
    ABS20_44 WHOLE:20:44
    SAMP_HEADER_INDEX_0 loader
    UNIFIED WHOLE:64:0 plain=64
    UNIFIED_32 WHOLE:32:0 plain=32
    UNIFIED_8_0 BYTE:8:0 plain=8_0
    UNIFIED_8_8 BYTE:8:8 plain=8_8
    UNIFIED_8_16 BYTE:8:16 plain=8_16
    UNIFIED_8_24 BYTE:8:24 plain=8_24
    UNIFIED_8_32 BYTE:8:32 plain=8_32
    UNIFIED_8_40 BYTE:8:40 plain=8_40
    UNIFIED_8_48 BYTE:8:48 plain=8_48
    UNIFIED_8_56 BYTE:8:56 plain=8_56
    UNIFIED32_LO_32 WHOLE:32:32 plain=ABS32_LO_32
    UNIFIED32_HI_32 HIGH:32:32 plain=ABS32_HI_32
    ABS56_16_34 NOTHING loader
    CONST_FIELD22_37 BANK17:22:37
"""


class Relocation:
    """A relocation type: a row of `_TYPES`, with the number of that row.

    The patched field has `bits` bits from bit `first` on, counted from r_offset, and `form` says
    how it stores the value. With the form BYTE the field is the byte at r_offset, and `first` is a
    bit of the value. `loader`, `mark` and `plain` are the properties; `plain` may be empty.
    """

    __slots__ = ("bits", "first", "form", "loader", "mark", "name", "number", "plain")

    def __init__(self, number: int, row: str) -> None:
        self.number = number
        self.name, *properties = row.split()
        self.form, self.bits, self.first = "NONE", 0, 0
        self.plain = ""
        self.loader = "loader" in properties
        self.mark = "mark" in properties
        for item in properties:
            if item.startswith("plain="):
                self.plain = item.removeprefix("plain=")
            elif item.isupper() or ":" in item:
                form, _, field = item.partition(":")
                self.form = form
                self.bits, self.first = map(int, field.split(":")) if field else (0, 0)

    @property
    def size(self) -> int:
        """The number of bytes from r_offset on that the relocation may change."""
        if self.form == "BYTE" or self.name.startswith("FUNC_DESC_8_"):
            return 1
        return 4 if (self.bits, self.first) == (32, 0) else 8

    @property
    def clear(self) -> bool:
        """Whether the relocation fills the field with zeros."""
        return self.form == "ZERO"


RELOCATIONS = tuple(
    Relocation(number, row) for number, row in enumerate(_TYPES.strip().splitlines())
)
R_CUDA = {row.number: row.name for row in RELOCATIONS}
R_CUDA_32 = next(row.number for row in RELOCATIONS if row.name == "32")

# Types such as 8_0, 8_8 to 8_56 write one byte of a 64-bit value: its first bit in the value.
_FIRST_BITS = range(0, 64, 8)
# The name of the plain twin of each mercury number that has one.
MERCURY_TWINS = {
    0x10001: "G64",
    0x10002: "64",
    0x10003: "32",
    0x10004: "ABS16_32",
    0x10005: "ABS32_LO_32",
    0x10006: "ABS32_HI_32",
    0x1000E: "UNUSED_CLEAR64",
    0x1000F: "FUNC_DESC_64",
    **{0x10010 + i: f"8_{bit}" for i, bit in enumerate(_FIRST_BITS)},
    **{0x10018 + i: f"G8_{bit}" for i, bit in enumerate(_FIRST_BITS)},
    **{0x10020 + i: f"FUNC_DESC_8_{bit}" for i, bit in enumerate(_FIRST_BITS)},
    0x10028: "ABS32_LO_32",
    0x10029: "ABS32_HI_32",
    0x10032: "UNIFIED",
    0x10033: "UNIFIED_32",
    **{0x10034 + i: f"UNIFIED_8_{bit}" for i, bit in enumerate(_FIRST_BITS)},
    0x1003D: "64",
    0x1003E: "UNIFIED32_LO_32",
    0x1003F: "UNIFIED32_HI_32",
}

# Mercury types that also occur in data, in which they fill the field of their twins.
MERCURY_DATA = frozenset(
    {
        *(0x10001, 0x10002, 0x10003, 0x10032, 0x10033),
        *range(0x10010, 0x10028),
        *range(0x10034, 0x1003C),
    }
)
# A 32-bit offset into the code of a function; it has no plain twin.
MERCURY_CODE_OFFSET32 = 0x10008


def relocation_name(number: int) -> str:
    """Return the name of a relocation type, such as `R_CUDA_64` or `0x10002 as 64`.

    The latter is a mercury type with its plain twin. A type without a name is shown by its number.
    """
    if number in R_CUDA:
        return f"R_CUDA_{R_CUDA[number]}"
    if number in MERCURY_TWINS:
        return f"{number:#x} as {MERCURY_TWINS[number]}"
    return f"{number:#x}"
