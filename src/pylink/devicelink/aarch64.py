"""The code that registers linked device code, for aarch64.

All code is position-independent, begins with a landing pad (BTI) where it can be reached by a
pointer, and signs the return addresses that it stores (PAC).
"""

from __future__ import annotations

from pylink.devicelink.hostmachine import (
    BSS,
    CALLBACK,
    CALLBACKS,
    COMMON,
    CONSTRUCTOR,
    COUNT,
    FIRST_ID,
    HANDLE,
    LAST_ID,
    LIST,
    MODULE_IDS,
    NOTHING,
    SEGMENT,
    TEXT,
    UNREGISTER,
    USE,
    Layout,
    Machine,
)
from pylink.devicelink.machinecode import Code
from pylink.facts.elf import EM_AARCH64

R_ABS64, R_PREL32 = 257, 261
R_ADR_PREL_PG_HI21, R_ADD_ABS_LO12_NC = 275, 277
R_JUMP26, R_CALL26 = 282, 283
R_ADR_GOT_PAGE, R_LD64_GOT_LO12_NC = 311, 312
AARCH64_FEATURE_1_AND, BTI, PAC = 0xC0000000, 1, 2

BTI_C, PACIASP, AUTIASP, RET = 0xD503245F, 0xD503233F, 0xD50323BF, 0xD65F03C0
SAVE_PAIR, LOAD_PAIR = 0xA9BE7BFD, 0xA8C27BFD  # x29 and x30, with 32 bytes of stack
SET_FRAME = 0x910003FD  # mov x29, sp
ADRP, ADD, LDR, B, BL = 0x90000000, 0x91000000, 0xF9400000, 0x14000000, 0x94000000
MOVZ_W6, MOVK_W6_16 = 0x52800006, 0x72A00006
B_NE, B_HS, B_LO = 0x54000001, 0x54000002, 0x54000003
CBZ_W0 = 0x34000000
NEGATE_RA_STATE = "2d"
FRAME_32 = "0e209d049e03"  # CFA is sp + 32; x29 is there, x30 beside it
FRAME_GONE = "0e00ddde"


class AArch64(Machine):
    """64-bit Arm."""

    number = EM_AARCH64
    instruction = 4
    code_align = 4
    container_align = 256  # `.align 8` is a power of two for its assembler
    absolute = R_ABS64
    relative = R_PREL32
    property = (AARCH64_FEATURE_1_AND, BTI | PAC)
    return_register = 30
    initial_frame = "0c1f00"

    def unregister(self, code: Code) -> None:
        code.begin(UNREGISTER)
        _words(code, BTI_C)
        _address(code, 0, BSS, HANDLE)
        _words(code, LDR)  # x0 = [x0]
        _branch(code, B, "__cudaUnregisterFatBinary")
        code.end()

    def common(self, code: Code, layout: Layout) -> None:
        """Called with the wrapper in x0 and the callback in x1."""
        code.begin(COMMON)
        _address(code, 2, BSS, COUNT)
        _words(code, 0xB9400043)  # w3 = [x2]
        _address(code, 4, BSS, layout.offset(LIST))
        _words(code, 0xF9400405, 0xF8237885)  # x5 = [x0, 8]; [x4, 8 x3] = x5
        _address(code, 5, BSS, layout.offset(CALLBACKS))
        _words(code, 0xF82378A1, 0x11000463, 0xB9000043)  # [x5, 8 x3] = x1; ++w3; [x2] = w3
        _count(code, layout.count)
        _words(code, 0x6B06007F)  # cmp w3, w6
        _conditional(code, B_NE, "return")
        _words(code, 0xF823789F, PACIASP)  # [x4, 8 x3] = 0
        code.frame(NEGATE_RA_STATE)
        _words(code, SAVE_PAIR)
        code.frame(FRAME_32)
        _words(code, SET_FRAME, 0xA90153F3)  # x19 and x20 to [sp, 16]
        code.frame("93029401")
        _address(code, 0, SEGMENT, 0)
        _branch(code, BL, "__cudaRegisterFatBinary")
        _address(code, 19, BSS, HANDLE)
        _words(code, 0xF9000260)  # [x19] = x0
        _address(code, 0, TEXT, code.offset_of(UNREGISTER))
        _branch(code, BL, "atexit")
        _words(code, 0x52800014)  # w20 = 0
        code.label("next")
        _words(code, 0xF9400260)  # x0 = [x19]
        _address(code, 1, BSS, layout.offset(CALLBACKS))
        _words(code, 0xF8747821, 0xD63F0020, 0x11000694)  # x1 = [x1, 8 x20]; blr x1; ++w20
        _count(code, layout.count)
        _words(code, 0x6B06029F)  # cmp w20, w6
        _conditional(code, B_LO, "next")
        _words(code, 0xF9400260, 0xA94153F3, LOAD_PAIR)  # x0 = [x19]; x19 and x20 from [sp, 16]
        code.frame(FRAME_GONE + "d3d4")
        _words(code, AUTIASP)
        code.frame(NEGATE_RA_STATE)
        _branch(code, B, "__cudaRegisterFatBinaryEnd")
        code.label("return")
        _words(code, RET)
        code.end()

    def unit(self, code: Code, name: str, wrapper: str | None, pointer: int, text: int) -> None:
        """Called with the callback in x0, the wrapper in x1 and what uses the id in x3."""
        code.begin(name)
        _words(code, PACIASP)
        code.frame(NEGATE_RA_STATE)
        _words(code, SAVE_PAIR)
        code.frame(FRAME_32)
        _words(code, SET_FRAME, 0xA90107E0)  # x0 and x1 to [sp, 16]
        _address(code, 1, MODULE_IDS, text)
        _address(code, 0, BSS, pointer)
        _words(code, 0xF9000001, 0xD63F0060, 0xA94107E0)  # [x0] = x1; blr x3; x0 and x1 again
        if wrapper is None:
            _words(code, 0xAA0003E2, 0xAA0103E0, 0xAA0203E1)  # x2 = x0; x0 = x1; x1 = x2
        else:
            _words(code, 0xAA0003E1)  # x1 = x0
        _words(code, LOAD_PAIR)
        code.frame(FRAME_GONE)
        _words(code, AUTIASP)
        code.frame(NEGATE_RA_STATE)
        if wrapper is not None:
            code.relocate(R_ADR_GOT_PAGE, wrapper)
            _words(code, ADRP)
            code.relocate(R_LD64_GOT_LO12_NC, wrapper)
            _words(code, LDR)
        code.jump(COMMON, _near)
        _words(code, B)
        code.end()

    def nothing(self, code: Code) -> None:
        code.begin(NOTHING)
        _words(code, BTI_C, RET)
        code.end()

    def lend(self, code: Code, name: str, wrapper: str, text: int | None) -> None:
        code.begin(name)
        if text is None:
            _words(code, BTI_C)
        else:
            lends, known, more = f"{name} lends", f"{name} known", f"{name} more"
            _words(code, PACIASP)
            code.frame(NEGATE_RA_STATE)
            _words(code, SAVE_PAIR)
            code.frame(FRAME_32)
            _words(code, SET_FRAME, 0xF9000BF3)  # x19 to [sp, 16]
            code.frame("9302")
            _address(code, 19, FIRST_ID, 0)
            code.label(more)
            _address(code, 1, LAST_ID, 0)
            _words(code, 0xEB01027F)  # cmp x19, x1
            _conditional(code, B_HS, lends)
            _words(code, 0xAA1303E0)  # x0 = x19
            _address(code, 1, MODULE_IDS, text)
            _branch(code, BL, "strcmp")
            code.jump(known, lambda word, distance: word | (distance >> 2 & 0x7FFFF) << 5)
            _words(code, CBZ_W0)
            _words(code, 0xAA1303E0)  # x0 = x19
            _branch(code, BL, "strlen")
            _words(code, 0x8B000273, 0x91000673)  # x19 = x19 + x0 + 1
            code.jump(more, _near)
            _words(code, B)
            code.label(known)
            _words(code, 0xF9400BF3, LOAD_PAIR)  # x19 from [sp, 16]
            code.frame("0a" + FRAME_GONE + "d3")  # as before, except for what follows
            _words(code, AUTIASP)
            code.frame(NEGATE_RA_STATE)
            _words(code, RET)
            code.label(lends)
            code.frame("0b")
            _words(code, 0xF9400BF3, LOAD_PAIR)
            code.frame(FRAME_GONE + "d3")
            _words(code, AUTIASP)
            code.frame(NEGATE_RA_STATE)
        _address(code, 1, TEXT, code.offset_of(NOTHING))
        code.relocate(R_ADR_GOT_PAGE, wrapper)
        _words(code, ADRP)
        code.relocate(R_LD64_GOT_LO12_NC, wrapper)
        _words(code, LDR)
        code.jump(COMMON, _near)
        _words(code, B)
        code.end()

    def constructor(self, code: Code, register: str, wrapper: str) -> None:
        code.begin(USE)
        _words(code, BTI_C)
        _address(code, 1, BSS, 0)
        _words(code, 0xF9000020, RET)  # [x1] = x0
        code.end()
        code.begin(CALLBACK)
        _words(code, BTI_C, RET)
        code.end()
        code.begin(CONSTRUCTOR)
        _words(code, BTI_C)
        _address(code, 3, TEXT, code.offset_of(USE))
        _address(code, 2, MODULE_IDS, 0)
        code.relocate(R_ADR_GOT_PAGE, wrapper)
        _words(code, ADRP | 1)
        code.relocate(R_LD64_GOT_LO12_NC, wrapper)
        _words(code, LDR | 1 << 5 | 1)
        _address(code, 0, TEXT, code.offset_of(CALLBACK))
        _branch(code, B, register)
        code.end()


def _words(code: Code, *instructions: int) -> None:
    for instruction in instructions:
        code.data += instruction.to_bytes(4, "little")


def _address(code: Code, register: int, section: str, offset: int) -> None:
    """The address of a place in a section, in a register."""
    code.relocate(R_ADR_PREL_PG_HI21, section, offset)
    _words(code, ADRP | register)
    code.relocate(R_ADD_ABS_LO12_NC, section, offset)
    _words(code, ADD | register << 5 | register)


def _branch(code: Code, instruction: int, symbol: str) -> None:
    code.relocate(R_CALL26 if instruction == BL else R_JUMP26, symbol)
    _words(code, instruction)


def _conditional(code: Code, instruction: int, label: str) -> None:
    code.jump(label, lambda word, distance: word | (distance >> 2 & 0x7FFFF) << 5)
    _words(code, instruction)


def _near(word: int, distance: int) -> int:
    return word | (distance >> 2 & 0x3FFFFFF)


def _count(code: Code, count: int) -> None:
    """A number in w6."""
    _words(code, MOVZ_W6 | (count & 0xFFFF) << 5, MOVK_W6_16 | count >> 16 << 5)
