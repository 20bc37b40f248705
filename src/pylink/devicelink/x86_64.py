"""The code that registers linked device code, for x86-64.

All code is position-independent. Functions that pointers can reach begin with ENDBR64.
"""

from __future__ import annotations

import struct

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
    UNREGISTER,
    USE_ID,
    Layout,
    Machine,
)
from pylink.devicelink.machinecode import Code
from pylink.facts.elf import EM_X86_64

# Types of relocations: the ABI's R_X86_64_64, R_X86_64_PC32 and so on. Below them, the type of a
# GNU property, and two of its bits.
R_64, R_PC32, R_PLT32, R_REX_GOTPCRELX = 1, 2, 4, 42
X86_FEATURE_1_AND, IBT, SHSTK = 0xC0000002, 1, 2

# Bytes of instructions, in hexadecimal.
ENDBR64 = "f30f1efa"
# Instructions without their last 4 bytes: a field with the distance from the instruction's end to
# the memory that it addresses.
LEA_RAX, LEA_RCX, LEA_RDX, LEA_RDI = "488d05", "488d0d", "488d15", "488d3d"
LEA_RBX, LEA_RSI = "488d1d", "488d35"
LOAD_EAX, LOAD_RDI, LOAD_RSI = "8b05", "488b3d", "488b35"
STORE_EAX, STORE_RAX, STORE_RDI = "8905", "488905", "48893d"
# Calls and jumps: a field of 4 bytes follows, with the distance from its end to the target.
CALL, JUMP, JE, JNE, JB, JAE = "e8", "e9", "0f84", "0f85", "0f82", "0f83"
CMP_EAX, CMP_EBX = "3d", "81fb"  # a number of 4 bytes follows
RET = "c3"
FIELD = bytes(4)  # space for the distance from the end of this field to a target


class X86_64(Machine):
    """64-bit x86."""

    elf_machine = EM_X86_64
    instruction_size = 1
    code_align = 16
    fatbin_align = 8
    absolute_type = R_64
    relative_type = R_PC32
    gnu_property = (X86_FEATURE_1_AND, IBT | SHSTK)
    return_register = 16
    initial_frame = "0c07089001"  # CFA is rsp + 8; the return address is stored at CFA - 8

    def emit_unregister(self, code: Code) -> None:
        code.begin(UNREGISTER)
        _emit(code, ENDBR64)
        _emit_address(code, LOAD_RDI, BSS, HANDLE)
        _emit_call(code, JUMP, "__cudaUnregisterFatBinary")
        code.end()

    def emit_common(self, code: Code, layout: Layout) -> None:
        """Emit the common function, which registers all units (objects with device code).

        It is called once for each unit, with the unit's wrapper in rdi and a callback in rsi. The
        last of these calls registers everything.
        """
        code.begin(COMMON)
        _emit_address(code, LOAD_EAX, BSS, COUNT)
        _emit_address(code, LEA_RDX, BSS, layout.offset(CONTAINER_LIST))
        _emit(code, "488b4f08", "48890cc2")  # rcx = [rdi + 8]; [rdx + 8 rax] = rcx
        _emit_address(code, LEA_RCX, BSS, layout.offset(CALLBACK_LIST))
        _emit(code, "488934c1", "ffc0")  # [rcx + 8 rax] = rsi; ++eax
        _emit_address(code, STORE_EAX, BSS, COUNT)
        _emit_compare(code, CMP_EAX, layout.count)
        _emit_jump(code, JNE, "return")
        _emit(code, "48c704c200000000", "53")  # [rdx + 8 rax] = 0; push rbx
        code.frame("0e108302")  # CFA is rsp + 16; rbx is stored at CFA - 16
        _emit_address(code, LEA_RDI, SEGMENT, 0)
        _emit_call(code, CALL, "__cudaRegisterFatBinary")
        _emit_address(code, STORE_RAX, BSS, HANDLE)
        _emit_jump(code, LEA_RDI, UNREGISTER)
        _emit_call(code, CALL, "atexit")
        _emit(code, "31db")  # ebx = 0
        code.label("next")
        _emit_address(code, LOAD_RDI, BSS, HANDLE)
        _emit_address(code, LEA_RCX, BSS, layout.offset(CALLBACK_LIST))
        _emit(code, "ff14d9", "ffc3")  # call [rcx + 8 rbx]; ++ebx
        _emit_compare(code, CMP_EBX, layout.count)
        _emit_jump(code, JB, "next")
        _emit_address(code, LOAD_RDI, BSS, HANDLE)
        _emit(code, "5b")  # pop rbx
        code.frame("0e08c3")  # CFA is rsp + 8; rbx has the caller's value
        _emit_call(code, JUMP, "__cudaRegisterFatBinaryEnd")
        code.label("return")
        _emit(code, RET)
        code.end()

    def emit_unit(
        self, code: Code, name: str, wrapper: str | None, id_pointer: int, id_offset: int
    ) -> None:
        """Emit the function that a unit's constructor calls; see `Machine`.

        It gets the callback in rdi, the wrapper in rsi, and in rcx the function that uses the id.
        `id_offset` is the offset of the id in the section of module ids. `id_pointer` is the offset
        in `.bss` of the pointer to the id.
        """
        code.begin(name)
        _emit(code, ENDBR64, "57")  # push rdi
        code.frame("0e10")  # CFA is rsp + 16
        if wrapper is None:
            _emit(code, "56", "4883ec08")  # push rsi; rsp -= 8
            code.frame("0e20")
        _emit_address(code, LEA_RAX, MODULE_IDS, id_offset)
        _emit_address(code, STORE_RAX, BSS, id_pointer)
        _emit_address(code, LEA_RDI, BSS, id_pointer)
        _emit(code, "ffd1")  # call rcx
        if wrapper is None:
            _emit(code, "4883c408", "5f")  # rsp += 8; pop rdi
            code.frame("0e10")
        _emit(code, "5e")  # pop rsi
        code.frame("0e08")
        if wrapper is not None:
            _emit(code, LOAD_RDI)
            code.relocate(R_REX_GOTPCRELX, wrapper, -4)
            code.data += FIELD
        _emit_jump(code, JUMP, COMMON)
        code.end()

    def emit_empty_callback(self, code: Code) -> None:
        code.begin(EMPTY_CALLBACK)
        _emit(code, ENDBR64, RET)
        code.end()

    def emit_lender(self, code: Code, name: str, wrapper: str, id_offset: int | None) -> None:
        """Emit a constructor for a unit whose code is in a shared library; see `Machine`.

        With `id_offset` it compares the id with each text among the module ids of the linked file.
        If one is equal, it returns. Otherwise it calls the common function.
        """
        code.begin(name)
        _emit(code, ENDBR64)
        if id_offset is not None:
            lends, is_linked, next_id = f"{name} lends", f"{name} known", f"{name} next"
            _emit(code, "53")  # push rbx
            code.frame("0e108302")  # CFA is rsp + 16; rbx is stored at CFA - 16
            _emit_address(code, LEA_RBX, FIRST_ID, 0)
            code.label(next_id)
            _emit_address(code, LEA_RAX, LAST_ID, 0)
            _emit(code, "4839c3")  # cmp rbx, rax
            _emit_jump(code, JAE, lends)
            _emit(code, "4889df")  # rdi = rbx
            _emit_address(code, LEA_RSI, MODULE_IDS, id_offset)
            _emit_call(code, CALL, "strcmp")
            _emit(code, "85c0")  # test eax, eax
            _emit_jump(code, JE, is_linked)
            _emit(code, "4889df")  # rdi = rbx
            _emit_call(code, CALL, "strlen")
            _emit(code, "488d5c0301")  # rbx = rbx + rax + 1
            _emit_jump(code, JUMP, next_id)
            code.label(is_linked)
            _emit(code, "5b")  # pop rbx
            # Remember the frame's state for the label `lends`. From here on, rbx has the caller's
            # value, and CFA is rsp + 8.
            code.frame("0ac30e08")
            _emit(code, RET)
            code.label(lends)
            code.frame("0b")  # the remembered state
            _emit(code, "5b")  # pop rbx
            code.frame("0e08c3")
        _emit_jump(code, LEA_RSI, EMPTY_CALLBACK)
        _emit(code, LOAD_RDI)
        code.relocate(R_REX_GOTPCRELX, wrapper, -4)
        code.data += FIELD
        _emit_jump(code, JUMP, COMMON)
        code.end()

    def emit_constructor(self, code: Code, register: str, wrapper: str) -> None:
        """Emit three functions: one that uses the id, an empty callback, and the constructor.

        The first only stores its argument, the address of a pointer to the id. See `Machine`.
        """
        code.begin(USE_ID)
        _emit(code, ENDBR64)
        _emit_address(code, STORE_RDI, BSS, 0)
        _emit(code, RET)
        code.end()
        code.begin(CALLBACK)
        _emit(code, ENDBR64, RET)
        code.end()
        code.begin(CONSTRUCTOR)
        _emit(code, ENDBR64)
        _emit_jump(code, LEA_RCX, USE_ID)
        _emit_address(code, LEA_RDX, MODULE_IDS, 0)
        _emit(code, LOAD_RSI)
        code.relocate(R_REX_GOTPCRELX, wrapper, -4)
        code.data += FIELD
        _emit_jump(code, LEA_RDI, CALLBACK)
        _emit_call(code, JUMP, register)
        code.end()


def _emit(code: Code, *instructions: str) -> None:
    """Append each of the `instructions`, whose bytes are given in hexadecimal."""
    for instruction in instructions:
        code.data += bytes.fromhex(instruction)


def _emit_address(code: Code, instruction: str, section: str, offset: int) -> None:
    """Emit an instruction that addresses an offset in a section, or from the symbol `section`."""
    _emit(code, instruction)
    code.relocate(R_PC32, section, offset - 4)
    code.data += FIELD


def _emit_call(code: Code, instruction: str, symbol: str) -> None:
    """Emit CALL or JUMP to a symbol, which may be in another file."""
    _emit(code, instruction)
    code.relocate(R_PLT32, symbol, -4)
    code.data += FIELD


def _emit_jump(code: Code, instruction: str, label: str) -> None:
    """Emit a jump to a label, or another instruction that addresses one."""
    _emit(code, instruction)
    code.jump(label, lambda word, distance: (distance - 4) & 0xFFFFFFFF)
    code.data += FIELD


def _emit_compare(code: Code, instruction: str, count: int) -> None:
    """Emit CMP_EAX or CMP_EBX, which compares the register with the number `count`."""
    _emit(code, instruction)
    code.data += struct.pack("<I", count)
