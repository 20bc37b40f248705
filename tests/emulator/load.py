"""Loading an executable cubin: places for code and data, relocations, and what a driver supplies.

    loaded = Loaded(image, "90a")
    loaded.instruction(loaded.kernels["_Z1kPi"])

`.text.*` follow each other from CODE_BASE on. `.nv.global*` and `.nv.constant*` get places in
global memory, of which constant banks are views. Shared and local memory belong to a launch, not
to a module. Functions that the driver supplies are addresses in a window of their own (`hooks`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from emulator import relocations
from emulator.attributes import FunctionInfo, read_info
from emulator.banks import LAYOUTS, Layout
from emulator.cubin import ET_EXEC, SHT_REL, SHT_RELA, Cubin, Relocation, Section, Symbol
from emulator.decode import SIZE, Decoder, Instruction
from emulator.errors import BadImage, Fault, Unsupported
from emulator.memory import CODE_BASE, HOOK_BASE, GlobalMemory

STT_OBJECT, STT_FUNC = 1, 2
STB_WEAK = 2
STO_CUDA_ENTRY = 0x10
SHN_UNDEF = 0

_CONSTANT = re.compile(r"\.nv\.constant(\d+)(?:\.(.+))?$")
_IGNORED = (".debug", ".nv_debug", ".rela.debug", ".rel.debug", ".nv.merc", ".rela.nv_debug")
_GLOBAL = (".nv.global", ".nv.global.init")


@dataclass(frozen=True)
class Text:
    """The code of one section, from `start` up to `end`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Bank:
    """One constant bank: where its bytes are in global memory, and for which kernel, or None."""

    number: int
    kernel: str | None
    address: int
    size: int


class Loaded:
    """One executable in memory. `arch` is as in -arch=sm_90a, without the sm_."""

    def __init__(self, image: bytes, arch: str, *, memory: int = 1 << 20) -> None:
        self.cubin = Cubin(image)
        if self.cubin.type != ET_EXEC:
            raise BadImage(f"ELF type {self.cubin.type} is not executable")
        self.arch = arch
        self.number = int(arch.rstrip("af"))
        if self.number not in LAYOUTS:
            raise Unsupported(f"constant bank 0 of sm_{arch}")
        self.layout: Layout = LAYOUTS[self.number]
        self.decoder = Decoder.of(arch)
        needed = sum(section.size for section in self.cubin.sections if _is_data(section))
        self.memory = GlobalMemory(memory + needed + 512 * len(self.cubin.sections))
        self.texts: list[Text] = []
        self.banks: list[Bank] = []
        self.hooks: dict[int, str] = {}
        self.applied: Counter[str] = Counter()  # relocations, by name
        self._places: dict[int, int] = {}
        self.code = bytearray()
        self._place_sections()
        self._relocate()

    @cached_property
    def info(self) -> dict[str, FunctionInfo]:
        """Attributes of each kernel and function, by name."""
        return read_info(self.cubin)

    @cached_property
    def functions(self) -> dict[str, int]:
        """Addresses of functions with code, by name."""
        return {
            symbol.name: self._places[symbol.section] + symbol.value
            for symbol in self.cubin.symbols
            if symbol.type == STT_FUNC and symbol.section in self._places
        }

    @cached_property
    def kernels(self) -> dict[str, int]:
        """Addresses of kernels, by name."""
        return {
            symbol.name: self.functions[symbol.name]
            for symbol in self.cubin.symbols
            if symbol.type == STT_FUNC and symbol.other & STO_CUDA_ENTRY and symbol.section
        }

    @cached_property
    def variables(self) -> dict[str, tuple[int, int]]:
        """Address and size of each global and constant variable, by name."""
        return {
            symbol.name: (self._places[symbol.section] + symbol.value, symbol.size)
            for symbol in self.cubin.symbols
            if symbol.type == STT_OBJECT and symbol.section in self._places
        }

    @cached_property
    def instructions(self) -> dict[int, Instruction]:
        """All instructions, by address."""
        return {
            instruction.address: instruction
            for instruction in self.decoder.decode(bytes(self.code), CODE_BASE)
        }

    def instruction(self, address: int) -> Instruction:
        """The instruction at an address; Fault where there is no code."""
        offset = address - CODE_BASE
        if offset % SIZE or not 0 <= offset < len(self.code):
            raise Fault(f"jump to {address:#x}, where there is no code")
        encoding = int.from_bytes(self.code[offset : offset + SIZE], "little")
        return self.decoder.instruction(encoding, address)

    def text_of(self, address: int) -> Text:
        """The section that an address of code is in; Fault where there is no code."""
        for text in self.texts:
            if text.start <= address < text.end:
                return text
        raise Fault(f"jump to {address:#x}, where there is no code")

    def banks_of(self, kernel: str) -> dict[int, Bank]:
        """The constant banks that a kernel sees, by number; bank 0 is what the file has of it."""
        return {bank.number: bank for bank in self.banks if bank.kernel in (None, kernel)}

    def shared_size(self, kernel: str) -> int:
        """Bytes of static shared memory of a kernel, with what the system keeps."""
        section = self.cubin.by_name.get(f".nv.shared.{kernel}")
        return max(section.size if section else 0, self.layout.shared_start)

    def _place_sections(self) -> None:
        for section in self.cubin.sections:
            if section.name.startswith(".text."):
                start = CODE_BASE + len(self.code)
                self._places[section.index] = start
                name = section.name.removeprefix(".text.")
                self.texts.append(Text(name, start, start + section.size))
                self.code += section.data
            elif section.name in _GLOBAL:
                self._places[section.index] = self.memory.place(
                    section.data, max(section.alignment, 256)
                )
            elif match := _CONSTANT.match(section.name):
                address = self.memory.place(section.data)
                self._places[section.index] = address
                self.banks.append(Bank(int(match[1]), match[2], address, section.size))

    def _relocate(self) -> None:
        for section in self.cubin.sections:
            if section.type not in (SHT_REL, SHT_RELA) or section.name.startswith(_IGNORED):
                continue
            for relocation in self.cubin.relocations(section):
                self._apply(relocation)

    def _apply(self, relocation: Relocation) -> None:
        if relocation.type in relocations.MARKS:
            return
        target = self.cubin.sections[relocation.section]
        where = f"{target.name}+{relocation.offset:#x}"
        kind = relocations.KINDS.get(relocation.type)
        if kind is None:
            raise Unsupported(f"relocation of type {relocation.type} at {where}")
        if target.index not in self._places:
            raise Unsupported(f"relocation of section {target.name}")
        if relocation.offset + kind.size > target.size:
            raise BadImage(f"relocation at {where} lies outside its section")
        field = self._field(target, relocation.offset, kind.size)
        addend = relocation.addend
        if addend is None:
            addend = relocations.stored_value(kind, field)
        value = self._value(relocation.symbol, where) + addend & 0xFFFFFFFFFFFFFFFF
        patched = relocations.patch(kind, field, value).to_bytes(kind.size, "little")
        place = self._places[target.index] + relocation.offset
        if target.name.startswith(".text."):
            offset = place - CODE_BASE
            self.code[offset : offset + kind.size] = patched
        else:
            self.memory.write(place, patched)
        self.applied[kind.name] += 1

    def _field(self, target: Section, offset: int, size: int) -> int:
        place = self._places[target.index] + offset
        if target.name.startswith(".text."):
            data = bytes(self.code[place - CODE_BASE : place - CODE_BASE + size])
        else:
            data = self.memory.read(place, size)
        return int.from_bytes(data, "little")

    def _value(self, symbol: Symbol, where: str) -> int:
        if symbol.section == SHN_UNDEF:
            if not symbol.name:
                return 0
            return self._hook(symbol.name)
        if symbol.section not in self._places:
            home = self.cubin.sections[symbol.section].name
            raise Unsupported(f"relocation at {where} of '{symbol.name}' in {home}")
        return self._places[symbol.section] + symbol.value

    def _hook(self, name: str) -> int:
        for address, known in self.hooks.items():
            if known == name:
                return address
        address = HOOK_BASE + SIZE * (1 + len(self.hooks))
        self.hooks[address] = name
        return address


def _is_data(section: Section) -> bool:
    return section.name in _GLOBAL or _CONSTANT.match(section.name) is not None
