"""The code that registers linked device code, for x86-64.

All code is position-independent, and begins with ENDBR64 where it can be reached by a pointer.
"""

from __future__ import annotations

import struct

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
    UNREGISTER,
    USE,
    Layout,
    Machine,
)
from pylink.devicelink.machinecode import Code

EM_X86_64 = 62
R_64, R_PC32, R_PLT32, R_REX_GOTPCRELX = 1, 2, 4, 42
X86_FEATURE_1_AND, IBT, SHSTK = 0xC0000002, 1, 2

ENDBR64 = "f30f1efa"
# Ways to address memory by the place of the instruction; its field of 4 bytes comes last.
LEA_RAX, LEA_RCX, LEA_RDX, LEA_RDI = "488d05", "488d0d", "488d15", "488d3d"
LEA_RBX, LEA_RSI = "488d1d", "488d35"
LOAD_EAX, LOAD_RDI, LOAD_RSI = "8b05", "488b3d", "488b35"
STORE_EAX, STORE_RAX, STORE_RDI = "8905", "488905", "48893d"
CALL, JUMP, JE, JNE, JB, JAE = "e8", "e9", "0f84", "0f85", "0f82", "0f83"
CMP_EAX, CMP_EBX = "3d", "81fb"
RET = "c3"
FIELD = bytes(4)


class X86_64(Machine):
    """The machine of most hosts."""

    number = EM_X86_64
    instruction = 1
    code_align = 16
    container_align = 8
    absolute = R_64
    relative = R_PC32
    property = (X86_FEATURE_1_AND, IBT | SHSTK)
    return_register = 16
    initial_frame = "0c07089001"  # CFA is rsp + 8; the return address is below it

    def unregister(self, code: Code) -> None:
        code.begin(UNREGISTER)
        _plain(code, ENDBR64)
        _at(code, LOAD_RDI, BSS, HANDLE)
        _call(code, JUMP, "__cudaUnregisterFatBinary")
        code.end()

    def common(self, code: Code, layout: Layout) -> None:
        """Called with the wrapper in rdi and the callback in rsi."""
        code.begin(COMMON)
        _at(code, LOAD_EAX, BSS, COUNT)
        _at(code, LEA_RDX, BSS, layout.offset(LIST))
        _plain(code, "488b4f08", "48890cc2")  # rcx = [rdi + 8]; [rdx + 8 rax] = rcx
        _at(code, LEA_RCX, BSS, layout.offset(CALLBACKS))
        _plain(code, "488934c1", "ffc0")  # [rcx + 8 rax] = rsi; ++eax
        _at(code, STORE_EAX, BSS, COUNT)
        _compare(code, CMP_EAX, layout.count)
        _jump(code, JNE, "return")
        _plain(code, "48c704c200000000", "53")  # [rdx + 8 rax] = 0; push rbx
        code.frame("0e108302")
        _at(code, LEA_RDI, SEGMENT, 0)
        _call(code, CALL, "__cudaRegisterFatBinary")
        _at(code, STORE_RAX, BSS, HANDLE)
        _jump(code, LEA_RDI, UNREGISTER)
        _call(code, CALL, "atexit")
        _plain(code, "31db")  # ebx = 0
        code.label("next")
        _at(code, LOAD_RDI, BSS, HANDLE)
        _at(code, LEA_RCX, BSS, layout.offset(CALLBACKS))
        _plain(code, "ff14d9", "ffc3")  # call [rcx + 8 rbx]; ++ebx
        _compare(code, CMP_EBX, layout.count)
        _jump(code, JB, "next")
        _at(code, LOAD_RDI, BSS, HANDLE)
        _plain(code, "5b")  # pop rbx
        code.frame("0e08c3")
        _call(code, JUMP, "__cudaRegisterFatBinaryEnd")
        code.label("return")
        _plain(code, "c3")
        code.end()

    def unit(self, code: Code, name: str, wrapper: str | None, pointer: int, text: int) -> None:
        """Called with the callback in rdi, the wrapper in rsi and what uses the id in rcx."""
        code.begin(name)
        _plain(code, ENDBR64, "57")  # push rdi
        code.frame("0e10")
        if wrapper is None:
            _plain(code, "56", "4883ec08")  # push rsi; rsp -= 8
            code.frame("0e20")
        _at(code, LEA_RAX, MODULE_IDS, text)
        _at(code, STORE_RAX, BSS, pointer)
        _at(code, LEA_RDI, BSS, pointer)
        _plain(code, "ffd1")  # call rcx
        if wrapper is None:
            _plain(code, "4883c408", "5f")  # rsp += 8; pop rdi
            code.frame("0e10")
        _plain(code, "5e")  # pop rsi
        code.frame("0e08")
        if wrapper is not None:
            _plain(code, LOAD_RDI)
            code.relocate(R_REX_GOTPCRELX, wrapper, -4)
            code.data += FIELD
        _jump(code, JUMP, COMMON)
        code.end()

    def nothing(self, code: Code) -> None:
        code.begin(NOTHING)
        _plain(code, ENDBR64, RET)
        code.end()

    def lend(self, code: Code, name: str, wrapper: str, text: int | None) -> None:
        code.begin(name)
        _plain(code, ENDBR64)
        if text is not None:
            lends, known, more = f"{name} lends", f"{name} known", f"{name} more"
            _plain(code, "53")  # push rbx
            code.frame("0e108302")
            _at(code, LEA_RBX, FIRST_ID, 0)
            code.label(more)
            _at(code, LEA_RAX, LAST_ID, 0)
            _plain(code, "4839c3")  # cmp rbx, rax
            _jump(code, JAE, lends)
            _plain(code, "4889df")  # rdi = rbx
            _at(code, LEA_RSI, MODULE_IDS, text)
            _call(code, CALL, "strcmp")
            _plain(code, "85c0")  # test eax, eax
            _jump(code, JE, known)
            _plain(code, "4889df")  # rdi = rbx
            _call(code, CALL, "strlen")
            _plain(code, "488d5c0301")  # rbx = rbx + rax + 1
            _jump(code, JUMP, more)
            code.label(known)
            _plain(code, "5b")  # pop rbx
            code.frame("0ac30e08")  # as before, except for what follows
            _plain(code, RET)
            code.label(lends)
            code.frame("0b")
            _plain(code, "5b")  # pop rbx
            code.frame("0e08c3")
        _jump(code, LEA_RSI, NOTHING)
        _plain(code, LOAD_RDI)
        code.relocate(R_REX_GOTPCRELX, wrapper, -4)
        code.data += FIELD
        _jump(code, JUMP, COMMON)
        code.end()

    def constructor(self, code: Code, register: str, wrapper: str) -> None:
        code.begin(USE)
        _plain(code, ENDBR64)
        _at(code, STORE_RDI, BSS, 0)
        _plain(code, RET)
        code.end()
        code.begin(CALLBACK)
        _plain(code, ENDBR64, RET)
        code.end()
        code.begin(CONSTRUCTOR)
        _plain(code, ENDBR64)
        _jump(code, LEA_RCX, USE)
        _at(code, LEA_RDX, MODULE_IDS, 0)
        _plain(code, LOAD_RSI)
        code.relocate(R_REX_GOTPCRELX, wrapper, -4)
        code.data += FIELD
        _jump(code, LEA_RDI, CALLBACK)
        _call(code, JUMP, register)
        code.end()


def _plain(code: Code, *instructions: str) -> None:
    for instruction in instructions:
        code.data += bytes.fromhex(instruction)


def _at(code: Code, instruction: str, section: str, offset: int) -> None:
    """An instruction that addresses a place in a section."""
    _plain(code, instruction)
    code.relocate(R_PC32, section, offset - 4)
    code.data += FIELD


def _call(code: Code, instruction: str, symbol: str) -> None:
    _plain(code, instruction)
    code.relocate(R_PLT32, symbol, -4)
    code.data += FIELD


def _jump(code: Code, instruction: str, label: str) -> None:
    _plain(code, instruction)
    code.jump(label, lambda word, distance: (distance - 4) & 0xFFFFFFFF)
    code.data += FIELD


def _compare(code: Code, instruction: str, count: int) -> None:
    _plain(code, instruction)
    code.data += struct.pack("<I", count)
