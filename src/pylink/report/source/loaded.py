"""Gives the functions of a cubin addresses, as if it were loaded.

Reports contain cubins with such addresses, and metrics with a value for each instruction refer to
them. `ncu` shows no instructions of a function at address 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pylink.facts.elf import SHF_EXECINSTR, STT_FUNC, STT_SECTION, round_up
from pylink.facts.records import REL_INFO, RELA_INFO, SYM
from pylink.inspect.image import Image, Section, is_rel, is_relocations
from pylink.locate import LINE_SECTIONS
from pylink.report.model import Source

# The address of the first function. Any address but 0 works; this one cannot be a file offset.
BASE = 0x7F00_0000_0000
_ALIGNMENT = 0x100  # of functions
_ST_VALUE = 8  # offset of `st_value` in a symbol
_ADDRESS_SIZE = 8
# The level of the instruction format, as in the newest reports of Nsight Compute.
_SASS_LEVEL = 8


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cubin with addresses, as the `source` of a report, and {function name: its address}."""

    source: Source
    addresses: dict[str, int]


def load_with_addresses(cubin: bytes) -> Loaded:
    """Return a copy of a linked cubin in which functions have addresses. Raises MalformedCubin."""
    image = Image(cubin)
    starts = {}
    address = BASE
    for section in image.sections:
        if section.flags & SHF_EXECINSTR and not section.mercury:
            starts[section.index] = address
            address += round_up(section.size, _ALIGNMENT)
    loaded = bytearray(cubin)
    addresses, values = {}, {}  # of functions by name, of symbols by number
    symtab = image.section(".symtab")
    if symtab is not None:
        for number, name in enumerate(image.symbols):
            symbol_offset = symtab.offset + number * SYM.size
            _, info, _, section_number, value, _ = SYM.unpack_from(cubin, symbol_offset)
            start = starts.get(image.section_of_symbol(symtab, number, section_number))
            symbol_type = info & 15
            if start is None or symbol_type not in (STT_SECTION, STT_FUNC):
                continue
            struct.pack_into("<Q", loaded, symbol_offset + _ST_VALUE, start + value)
            values[number] = start + value
            if symbol_type == STT_FUNC:
                addresses[name] = start + value
    _relocate_lines(image, loaded, values)
    major, minor = divmod(image.sm, 10)
    source = Source(binary=bytes(loaded), sass_level=_SASS_LEVEL, sm_revision=major << 16 | minor)
    return Loaded(source, addresses)


def code_sections(image: Image) -> list[tuple[int, Section]]:
    """Return the code sections of a cubin with addresses, as pairs (address, section)."""
    symtab = image.section(".symtab")
    if symtab is None:
        return []
    starts: dict[int, int] = {}
    symbols = image.entries(symtab, SYM.format)
    for number, (_, _, _, section_number, value, _) in enumerate(symbols):
        index = image.section_of_symbol(symtab, number, section_number)
        if index < len(image.sections) and image.sections[index].flags & SHF_EXECINSTR:
            starts[index] = min(value, starts.get(index, value))
    return [(start, image.sections[index]) for index, start in starts.items()]


def _relocate_lines(image: Image, loaded: bytearray, values: dict[int, int]) -> None:
    """Write addresses into the line tables, as a loader does; without them, `ncu` finds no lines.

    `loaded` is the cubin to change, `values` has the addresses of symbols by number. Each
    relocation concerns a 64-bit address, the operand of DW_LNE_set_address.
    """
    for table in filter(None, map(image.section, LINE_SECTIONS)):
        for relocations in image.sections:
            if relocations.info != table.index or not is_relocations(relocations):
                continue
            record = REL_INFO if is_rel(relocations) else RELA_INFO
            for offset, info, *addend in image.entries(relocations, record.format):
                value = values.get(info >> 32)
                if value is None or offset > table.file_size - _ADDRESS_SIZE:
                    continue
                position = table.offset + offset
                (stored,) = struct.unpack_from("<Q", loaded, position)
                field = value + (addend[0] if addend else stored)
                struct.pack_into("<Q", loaded, position, field & 0xFFFF_FFFF_FFFF_FFFF)
