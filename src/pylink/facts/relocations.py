"""Relocation numbers: R_CUDA_ names, and for the mercury numbers the plain twins.

The names were read off the public `cuobjdump` 13.2, which was shown every number in turn; 116 and
up have none. Mercury numbers (0x10000 and up, in `.nv.merc.rela.*`) have no public names; the
twin of one is the plain relocation that stands at the same place of the machine code.
"""

from __future__ import annotations

_R_CUDA = """
    NONE 32 64 G32 G64 ABS32_26 TEX_HEADER_INDEX SAMP_HEADER_INDEX SURF_HW_DESC SURF_HW_SW_DESC
    ABS32_LO_26 ABS32_HI_26 ABS32_23 ABS32_LO_23 ABS32_HI_23 ABS24_26 ABS24_23 ABS16_26 ABS16_23
    TEX_SLOT SAMP_SLOT SURF_SLOT TEX_BINDLESSOFF13_32 TEX_BINDLESSOFF13_47 CONST_FIELD19_28
    CONST_FIELD19_23 TEX_SLOT9_49 6_31 2_47 TEX_BINDLESSOFF13_41 TEX_BINDLESSOFF13_45
    FUNC_DESC32_23 FUNC_DESC32_LO_23 FUNC_DESC32_HI_23 FUNC_DESC_32 FUNC_DESC_64
    CONST_FIELD21_26 QUERY_DESC21_37 CONST_FIELD19_26 CONST_FIELD21_23 PCREL_IMM24_26
    PCREL_IMM24_23 ABS32_20 ABS32_LO_20 ABS32_HI_20 ABS24_20 ABS16_20 FUNC_DESC32_20
    FUNC_DESC32_LO_20 FUNC_DESC32_HI_20 CONST_FIELD19_20 BINDLESSOFF13_36 SURF_HEADER_INDEX
    INSTRUCTION64 CONST_FIELD21_20 ABS32_32 ABS32_LO_32 ABS32_HI_32 ABS47_34 ABS16_32 ABS24_32
    FUNC_DESC32_32 FUNC_DESC32_LO_32 FUNC_DESC32_HI_32 CONST_FIELD19_40 BINDLESSOFF14_40
    CONST_FIELD21_38 INSTRUCTION128 YIELD_OPCODE9_0 YIELD_CLEAR_PRED4_87 32_LO 32_HI
    UNUSED_CLEAR32 UNUSED_CLEAR64 ABS24_40 ABS55_16_34 8_0 8_8 8_16 8_24 8_32 8_40 8_48 8_56
    G8_0 G8_8 G8_16 G8_24 G8_32 G8_40 G8_48 G8_56 FUNC_DESC_8_0 FUNC_DESC_8_8 FUNC_DESC_8_16
    FUNC_DESC_8_24 FUNC_DESC_8_32 FUNC_DESC_8_40 FUNC_DESC_8_48 FUNC_DESC_8_56 ABS20_44
    SAMP_HEADER_INDEX_0 UNIFIED UNIFIED_32 UNIFIED_8_0 UNIFIED_8_8 UNIFIED_8_16 UNIFIED_8_24
    UNIFIED_8_32 UNIFIED_8_40 UNIFIED_8_48 UNIFIED_8_56 UNIFIED32_LO_32 UNIFIED32_HI_32
    ABS56_16_34 CONST_FIELD22_37
"""
R_CUDA = dict(enumerate(_R_CUDA.split()))

# The bit of a word at which the byte types begin.
_BITS = range(0, 64, 8)
MERCURY_TWINS = {
    0x10001: "G64",
    0x10002: "64",
    0x10003: "32",
    0x10004: "ABS16_32",
    0x10005: "ABS32_LO_32",
    0x10006: "ABS32_HI_32",
    0x1000E: "UNUSED_CLEAR64",
    0x1000F: "FUNC_DESC_64",
    **{0x10010 + i: f"8_{bit}" for i, bit in enumerate(_BITS)},
    0x10028: "ABS32_LO_32",
    0x10029: "ABS32_HI_32",
    0x10032: "UNIFIED",
    0x10033: "UNIFIED_32",
    **{0x10034 + i: f"UNIFIED_8_{bit}" for i, bit in enumerate(_BITS)},
    0x1003D: "64",
    0x1003E: "UNIFIED32_LO_32",
    0x1003F: "UNIFIED32_HI_32",
}


def relocation_name(number: int) -> str:
    """The name of a relocation type; of a mercury number, the number and its twin."""
    if number in R_CUDA:
        return f"R_CUDA_{R_CUDA[number]}"
    if number in MERCURY_TWINS:
        return f"{number:#x} as {MERCURY_TWINS[number]}"
    return f"{number:#x}"
