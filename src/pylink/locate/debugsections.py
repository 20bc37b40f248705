"""The debug sections of a cubin, prepared for pyelftools."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from struct import unpack_from

from elftools.dwarf.dwarfinfo import DebugSectionDescriptor
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from pylink.facts.relocations import R_CUDA_32
from pylink.locate.filetables import check_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram
    from elftools.elf.elffile import ELFFile

# A sequence begins with these bytes and its address: an extended opcode with a length of 9 bytes,
# DW_LNE_set_address.
SET_ADDRESS = b"\0\x09\x02"
_ADDRESS_SIZE = 8
# First bytes of a unit in 64-bit DWARF; its length follows.
_WIDE_MARK = b"\xff\xff\xff\xff"


def contents_of(elf: ELFFile, name: str) -> bytes:
    """Return the bytes of the first section of this name; empty if missing."""
    section = elf.get_section_by_name(name)
    return b"" if section is None else section.data()


def read_units(dwarf: DWARFInfo, data: bytes) -> Iterator[tuple[int, LineProgram]]:
    """Yield the units of a section of line number programs, with their offsets."""
    offset = 0
    while offset < len(data):
        unit: Any = _LineUnit(data, offset)
        program = dwarf.line_program_for_CU(unit)
        if program is None or program.program_end_offset <= offset:
            return
        yield offset, program
        offset = program.program_end_offset


class _LineUnit:
    """A compilation unit for pyelftools' `line_program_for_CU`, with the attributes that it reads.

    It stands in for those of .debug_info: a cubin of -lineinfo has line programs but no units.
    """

    def __init__(self, data: bytes, offset: int) -> None:
        is_wide = data[offset : offset + 4] == _WIDE_MARK
        position = offset + (12 if is_wide else 4)
        (version,) = unpack_from("<H", data, position)
        if version >= 5:
            # The version is followed by two 1-byte sizes, the header length, five 1-byte numbers,
            # opcode_base (which counts itself) and opcode_base - 1 lengths of opcodes.
            position += 2 + 2 + (8 if is_wide else 4) + 5
            check_tables(data, position + data[position], is_wide=is_wide)
        self.structs = DWARFStructs(
            little_endian=True,
            dwarf_format=64 if is_wide else 32,
            address_size=_ADDRESS_SIZE,
            dwarf_version=version,
        )
        self.attributes = {"DW_AT_stmt_list": self}
        self.value = offset

    def get_top_DIE(self) -> _LineUnit:
        return self


def read_debug_data(elf: ELFFile, name: str) -> DWARFInfo:
    """Return the debug data with the line programs of section `name`; .debug_info is relocated.

    Only its R_CUDA_32 entries with an addend are applied: the addend is the value of the field.
    """
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
    dwarf.debug_line_sec = _describe_section(name, contents_of(elf, name))
    if dwarf.debug_info_sec is not None:
        data = bytearray(contents_of(elf, ".debug_info"))
        for relocation in _relocations(elf, ".debug_info"):
            offset, addend = relocation.offset, relocation.addend
            if relocation.type == R_CUDA_32 and addend and offset + 4 <= len(data):
                data[offset : offset + 4] = (addend & 0xFFFFFFFF).to_bytes(4, "little")
        dwarf.debug_info_sec = _describe_section(".debug_info", bytes(data))
    return dwarf


def _describe_section(name: str, data: bytes) -> DebugSectionDescriptor:
    """Return the contents of a section in the form that pyelftools wants, without address."""
    return DebugSectionDescriptor(BytesIO(data), name, 0, len(data), 0)


@dataclass(frozen=True, slots=True)
class _Relocation:
    """A relocation; `symbol` indexes the symbol table whose section index is `table`."""

    table: int
    offset: int
    type: int
    symbol: int
    addend: int


def _relocations(elf: ELFFile, name: str) -> Iterator[_Relocation]:
    """Yield the relocations of the section `name`; in a REL section their addend is 0."""
    for form in (f".rela{name}", f".rel{name}"):
        section = elf.get_section_by_name(form)
        if isinstance(section, RelocationSection):
            for relocation in section.iter_relocations():
                entry = relocation.entry
                yield _Relocation(
                    section["sh_link"],
                    entry["r_offset"],
                    entry["r_info_type"],
                    entry["r_info_sym"],
                    entry.get("r_addend", 0),
                )


def find_sequences(elf: ELFFile, name: str, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield, for each sequence of rows, the place of its code and that of the sequence itself.

    A sequence without a relocation of its start address is omitted. The places are
    three numbers: an offset in a section of code, the index of that section, and an offset in
    `data`, the contents of the line section `name`.
    """
    for relocation in _relocations(elf, name):
        start = relocation.offset - len(SET_ADDRESS)
        if start < 0 or data[start : relocation.offset] != SET_ADDRESS:
            continue
        table = elf.get_section(relocation.table)
        entry: Any = {}
        if isinstance(table, SymbolTableSection):
            entry = table.get_symbol(relocation.symbol).entry
        if isinstance(entry.get("st_shndx"), int):
            yield entry["st_value"] + relocation.addend, entry["st_shndx"], start
