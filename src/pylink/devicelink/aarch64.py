"""The code that registers linked device code, for aarch64.

All code is position-independent. Functions that pointers can reach begin with a landing pad: BTI
or PACIASP. Return addresses are signed before they are stored (PAC).
"""

from __future__ import annotations

from pylink.devicelink.hostmachine import (
    BSS,
    CALLBACK,
    CALLBACK_LIST,
    COMMON,
    CONSTRUCTOR,
    CONTAINER_LIST,
    COUNT,
    EMPTY_CALLBACK,
    FIRST_ID,
    HANDLE,
    LAST_ID,
    MODULE_IDS,
    SEGMENT,
    TEXT,
    UNREGISTER,
    USE_ID,
    Layout,
    Machine,
)
from pylink.devicelink.machinecode import Code
from pylink.facts.elf import EM_AARCH64

# Types of relocations: R_AARCH64_ABS64 and so on in the ABI.
R_ABS64, R_PREL32 = 257, 261
R_ADR_PREL_PG_HI21, R_ADD_ABS_LO12_NC = 275, 277
R_JUMP26, R_CALL26 = 282, 283
R_ADR_GOT_PAGE, R_LD64_GOT_LO12_NC = 311, 312
# The type of the GNU property, and its bits.
AARCH64_FEATURE_1_AND, BTI, PAC = 0xC0000000, 1, 2

# Instructions: complete ones, then those to which the bits of their operands are added.
BTI_C, PACIASP, AUTIASP, RET = 0xD503245F, 0xD503233F, 0xD50323BF, 0xD65F03C0
SAVE_PAIR, LOAD_PAIR = 0xA9BE7BFD, 0xA8C27BFD  # x29 and x30, in 32 bytes of stack
SET_FRAME = 0x910003FD  # mov x29, sp
# Without further bits, ADRP and ADD set x0, LDR sets x0 from [x0], and branches go to themselves.
ADRP, ADD, LDR, B, BL = 0x90000000, 0x91000000, 0xF9400000, 0x14000000, 0x94000000
MOVZ_W6, MOVK_W6_16 = 0x52800006, 0x72A00006  # set w6; set its upper 16 bits
B_NE, B_HS, B_LO = 0x54000001, 0x54000002, 0x54000003
CBZ_W0 = 0x34000000
# Operations of DWARF, in hexadecimal. CFA is the stack pointer at the start of the function.
NEGATE_RA_STATE = "2d"  # from here on, a return address is signed, or a signed one is not
FRAME_32 = "0e209d049e03"  # CFA is sp + 32; x29 is stored at sp, x30 after it
FRAME_RELEASED = "0e00ddde"  # CFA is sp; x29 and x30 have the caller's values


class AArch64(Machine):
    """64-bit Arm."""

    elf_machine = EM_AARCH64
    instruction_size = 4
    code_align = 4
    fatbin_align = 256  # for this machine's assembler, `.align 8` is 2 to the 8
    absolute_type = R_ABS64
    relative_type = R_PREL32
    gnu_property = (AARCH64_FEATURE_1_AND, BTI | PAC)
    return_register = 30
    initial_frame = "0c1f00"  # CFA is sp (register 31) + 0

    def emit_unregister(self, code: Code) -> None:
        code.begin(UNREGISTER)
        _emit(code, BTI_C)
        _emit_address(code, 0, BSS, HANDLE)
        _emit(code, LDR)  # x0 = [x0]
        _emit_branch(code, B, "__cudaUnregisterFatBinary")
        code.end()

    def emit_common(self, code: Code, layout: Layout) -> None:
        """Emit the common function, which registers all units (objects with device code).

        Each unit's function calls it with the unit's wrapper in x0 and the callback in x1.
        """
        code.begin(COMMON)
        _emit_address(code, 2, BSS, COUNT)
        _emit(code, 0xB9400043)  # w3 = [x2]
        _emit_address(code, 4, BSS, layout.offset(CONTAINER_LIST))
        _emit(code, 0xF9400405, 0xF8237885)  # x5 = [x0, 8]; [x4, 8 x3] = x5
        _emit_address(code, 5, BSS, layout.offset(CALLBACK_LIST))
        _emit(code, 0xF82378A1, 0x11000463, 0xB9000043)  # [x5, 8 x3] = x1; ++w3; [x2] = w3
        _emit_count(code, layout.count)
        _emit(code, 0x6B06007F)  # cmp w3, w6
        _emit_conditional(code, B_NE, "return")
        _emit(code, 0xF823789F, PACIASP)  # [x4, 8 x3] = 0
        code.frame(NEGATE_RA_STATE)
        _emit(code, SAVE_PAIR)
        code.frame(FRAME_32)
        _emit(code, SET_FRAME, 0xA90153F3)  # x19 and x20 to [sp, 16]
        code.frame("93029401")  # x19 is stored at CFA - 16, x20 at CFA - 8
        _emit_address(code, 0, SEGMENT, 0)
        _emit_branch(code, BL, "__cudaRegisterFatBinary")
        _emit_address(code, 19, BSS, HANDLE)
        _emit(code, 0xF9000260)  # [x19] = x0
        _emit_address(code, 0, TEXT, code.offset_of(UNREGISTER))
        _emit_branch(code, BL, "atexit")
        _emit(code, 0x52800014)  # w20 = 0
        code.label("next")
        _emit(code, 0xF9400260)  # x0 = [x19]
        _emit_address(code, 1, BSS, layout.offset(CALLBACK_LIST))
        _emit(code, 0xF8747821, 0xD63F0020, 0x11000694)  # x1 = [x1, 8 x20]; blr x1; ++w20
        _emit_count(code, layout.count)
        _emit(code, 0x6B06029F)  # cmp w20, w6
        _emit_conditional(code, B_LO, "next")
        _emit(code, 0xF9400260, 0xA94153F3, LOAD_PAIR)  # x0 = [x19]; x19 and x20 from [sp, 16]
        code.frame(FRAME_RELEASED + "d3d4")  # x19 and x20 have the caller's values
        _emit(code, AUTIASP)
        code.frame(NEGATE_RA_STATE)
        _emit_branch(code, B, "__cudaRegisterFatBinaryEnd")
        code.label("return")
        _emit(code, RET)
        code.end()

    def emit_unit(
        self, code: Code, name: str, wrapper: str | None, id_pointer: int, id_offset: int
    ) -> None:
        """Emit the function that a unit's constructor calls; see `Machine`.

        It gets the callback in x0, the wrapper in x1, and in x3 the function that uses the id.
        `id_offset` is the offset of the id in the section of module ids, `id_pointer` the offset of
        the pointer to the id in `.bss`.
        """
        code.begin(name)
        _emit(code, PACIASP)
        code.frame(NEGATE_RA_STATE)
        _emit(code, SAVE_PAIR)
        code.frame(FRAME_32)
        _emit(code, SET_FRAME, 0xA90107E0)  # x0 and x1 to [sp, 16]
        _emit_address(code, 1, MODULE_IDS, id_offset)
        _emit_address(code, 0, BSS, id_pointer)
        _emit(code, 0xF9000001, 0xD63F0060, 0xA94107E0)  # [x0] = x1; blr x3; x0 and x1 again
        if wrapper is None:
            _emit(code, 0xAA0003E2, 0xAA0103E0, 0xAA0203E1)  # x2 = x0; x0 = x1; x1 = x2
        else:
            _emit(code, 0xAA0003E1)  # x1 = x0
        _emit(code, LOAD_PAIR)
        code.frame(FRAME_RELEASED)
        _emit(code, AUTIASP)
        code.frame(NEGATE_RA_STATE)
        if wrapper is not None:
            code.relocate(R_ADR_GOT_PAGE, wrapper)
            _emit(code, ADRP)
            code.relocate(R_LD64_GOT_LO12_NC, wrapper)
            _emit(code, LDR)
        code.jump(COMMON, _encode_branch)
        _emit(code, B)
        code.end()

    def emit_empty_callback(self, code: Code) -> None:
        code.begin(EMPTY_CALLBACK)
        _emit(code, BTI_C, RET)
        code.end()

    def emit_lender(self, code: Code, name: str, wrapper: str, id_offset: int | None) -> None:
        """Emit a constructor for a unit whose code is in a shared library; see `Machine`.

        With `id_offset` the constructor compares the id with each text among the module ids of the
        program or library that contains it. If one is equal, it returns.
        """
        code.begin(name)
        if id_offset is None:
            _emit(code, BTI_C)
        else:
            lends, is_linked, next_id = f"{name} lends", f"{name} known", f"{name} next"
            _emit(code, PACIASP)
            code.frame(NEGATE_RA_STATE)
            _emit(code, SAVE_PAIR)
            code.frame(FRAME_32)
            _emit(code, SET_FRAME, 0xF9000BF3)  # x19 to [sp, 16]
            code.frame("9302")  # x19 is stored at CFA - 16
            _emit_address(code, 19, FIRST_ID, 0)
            code.label(next_id)
            _emit_address(code, 1, LAST_ID, 0)
            _emit(code, 0xEB01027F)  # cmp x19, x1
            _emit_conditional(code, B_HS, lends)
            _emit(code, 0xAA1303E0)  # x0 = x19
            _emit_address(code, 1, MODULE_IDS, id_offset)
            _emit_branch(code, BL, "strcmp")
            _emit_conditional(code, CBZ_W0, is_linked)
            _emit(code, 0xAA1303E0)  # x0 = x19
            _emit_branch(code, BL, "strlen")
            _emit(code, 0x8B000273, 0x91000673)  # x19 = x19 + x0 + 1
            code.jump(next_id, _encode_branch)
            _emit(code, B)
            code.label(is_linked)
            _emit(code, 0xF9400BF3, LOAD_PAIR)  # x19 from [sp, 16]
            # Remember the frame's state for the label `lends`. From here on, x19, x29
            # and x30 have the caller's values.
            code.frame("0a" + FRAME_RELEASED + "d3")
            _emit(code, AUTIASP)
            code.frame(NEGATE_RA_STATE)
            _emit(code, RET)
            code.label(lends)
            code.frame("0b")  # the remembered state
            _emit(code, 0xF9400BF3, LOAD_PAIR)
            code.frame(FRAME_RELEASED + "d3")
            _emit(code, AUTIASP)
            code.frame(NEGATE_RA_STATE)
        _emit_address(code, 1, TEXT, code.offset_of(EMPTY_CALLBACK))
        code.relocate(R_ADR_GOT_PAGE, wrapper)
        _emit(code, ADRP)
        code.relocate(R_LD64_GOT_LO12_NC, wrapper)
        _emit(code, LDR)
        code.jump(COMMON, _encode_branch)
        _emit(code, B)
        code.end()

    def emit_constructor(self, code: Code, register: str, wrapper: str) -> None:
        """Emit the constructor, an empty callback, and a function that stores its argument.

        See `Machine`.
        """
        code.begin(USE_ID)
        _emit(code, BTI_C)
        _emit_address(code, 1, BSS, 0)
        _emit(code, 0xF9000020, RET)  # [x1] = x0
        code.end()
        code.begin(CALLBACK)
        _emit(code, BTI_C, RET)
        code.end()
        code.begin(CONSTRUCTOR)
        _emit(code, BTI_C)
        _emit_address(code, 3, TEXT, code.offset_of(USE_ID))
        _emit_address(code, 2, MODULE_IDS, 0)
        code.relocate(R_ADR_GOT_PAGE, wrapper)
        _emit(code, ADRP | 1)  # x1, which LDR then reads and sets
        code.relocate(R_LD64_GOT_LO12_NC, wrapper)
        _emit(code, LDR | 1 << 5 | 1)
        _emit_address(code, 0, TEXT, code.offset_of(CALLBACK))
        _emit_branch(code, B, register)
        code.end()


def _emit(code: Code, *instructions: int) -> None:
    """Append instructions, each as its 32-bit number."""
    for instruction in instructions:
        code.data += instruction.to_bytes(4, "little")


def _emit_address(code: Code, register: int, section: str, offset: int) -> None:
    """Emit instructions that load the address of an offset in a section into a register."""
    code.relocate(R_ADR_PREL_PG_HI21, section, offset)
    _emit(code, ADRP | register)
    code.relocate(R_ADD_ABS_LO12_NC, section, offset)
    _emit(code, ADD | register << 5 | register)


def _emit_branch(code: Code, instruction: int, symbol: str) -> None:
    """Emit B or BL to a symbol."""
    code.relocate(R_CALL26 if instruction == BL else R_JUMP26, symbol)
    _emit(code, instruction)


def _emit_conditional(code: Code, instruction: int, label: str) -> None:
    """Emit a conditional branch to a label; bits 5 to 23 have the distance in instructions."""
    code.jump(label, lambda word, distance: word | (distance >> 2 & 0x7FFFF) << 5)
    _emit(code, instruction)


def _encode_branch(word: int, distance: int) -> int:
    """Return the instruction `word`, a B, with its distance, which is given in bytes.

    Bits 0 to 25 have the distance in instructions.
    """
    return word | (distance >> 2 & 0x3FFFFFF)


def _emit_count(code: Code, count: int) -> None:
    """Emit instructions that load a number into w6."""
    _emit(code, MOVZ_W6 | (count & 0xFFFF) << 5, MOVK_W6_16 | count >> 16 << 5)
