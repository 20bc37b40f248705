"""What an executable tells the driver of its kernels and functions, out of `.nv.info` sections."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from emulator.cubin import Cubin
from emulator.errors import BadImage

PARAM_CBANK = 0x0A
FRAME_SIZE = 0x11
MIN_STACK_SIZE = 0x12
KPARAM_INFO = 0x17
CBANK_PARAM_SIZE = 0x19
MAX_STACK_SIZE = 0x23
REGCOUNT = 0x2F
NUM_BARRIERS = 0x4C

UNKNOWN_STACK = 0xFFFFFFFF  # with recursion or unknown callees

_PER_FUNCTION = {
    FRAME_SIZE: "frame_size",
    MIN_STACK_SIZE: "min_stack",
    MAX_STACK_SIZE: "max_stack",
    REGCOUNT: "registers",
}


@dataclass(frozen=True)
class Parameter:
    """One EIATTR_KPARAM_INFO: its place in the parameters and its size, in bytes."""

    ordinal: int
    offset: int
    size: int


@dataclass
class FunctionInfo:
    """What `.nv.info` says of one function or kernel; None where there is no record."""

    registers: int | None = None
    frame_size: int | None = None
    min_stack: int | None = None
    max_stack: int | None = None
    barriers: int | None = None
    parameter_offset: int | None = None  # in constant bank 0
    parameter_size: int | None = None
    parameter_room: int | None = None  # as EIATTR_PARAM_CBANK has it
    parameters: list[Parameter] = field(default_factory=list)


def read_info(cubin: Cubin) -> dict[str, FunctionInfo]:
    """The records of all functions, by name; BadImage for one of a symbol that is not there."""
    found: dict[str, FunctionInfo] = {}
    for section in cubin.sections:
        if section.name == ".nv.info":
            for record in cubin.attributes(section):
                if record.number in _PER_FUNCTION:
                    index, value = record.words()
                    if index >= len(cubin.symbols):
                        raise BadImage(
                            f".nv.info: attribute of symbol {index}, of which there is none"
                        )
                    info = found.setdefault(cubin.symbols[index].name, FunctionInfo())
                    setattr(info, _PER_FUNCTION[record.number], value)
        elif section.name.startswith(".nv.info."):
            info = found.setdefault(section.name.removeprefix(".nv.info."), FunctionInfo())
            _read_own(cubin, section.name, info)
    return found


def _read_own(cubin: Cubin, section: str, info: FunctionInfo) -> None:
    for record in cubin.attributes(cubin.by_name[section]):
        if record.number == PARAM_CBANK:
            place = record.words()[1]
            info.parameter_offset, info.parameter_room = place & 0xFFFF, place >> 16
        elif record.number == CBANK_PARAM_SIZE:
            info.parameter_size = struct.unpack("<H", record.value)[0]
        elif record.number == KPARAM_INFO:
            _, ordinal, offset = struct.unpack_from("<IHH", record.value)
            size = struct.unpack_from("<I", record.value, 8)[0] >> 18
            info.parameters.append(Parameter(ordinal, offset, size))
        elif record.number == NUM_BARRIERS:
            info.barriers = record.value[0]
