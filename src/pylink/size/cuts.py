"""Payloads without some of their bytes, to measure by compression what these take.

The results are not programs: what is cut out leaves no hole, and nothing that counts bytes follows.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from pylink._native.elfheaders import Section, read_sections
from pylink.facts.elf import SHT_NOBITS
from pylink.facts.records import SYM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHT_SYMTAB, SHT_STRTAB = 2, 3
_HEADER = struct.calcsize("<IIQQQQIIQQ")  # of a section
_MERCURY, _RELOCATIONS = b".nv.merc", (b".rela", b".rel")
_DEBUG, _FRAMES = (b".debug", b".nv_debug"), b".debug_frame"
_TEXT = b".text."
# A function of PTX from the beginning of its line on; its name comes before parameters or a body.
_PTX_FUNCTION = re.compile(
    rb"^[^\n{}]*?\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?([\w$%.]+)", re.MULTILINE
)
_PTX_MARK = re.compile(rb"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[{};]", re.DOTALL)


def without_ranges(data: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The bytes outside of some ranges, which may overlap."""
    pieces, at = [], 0
    for start, end in sorted(ranges):
        if start > at:
            pieces.append(data[at:start])
        at = max(at, end)
    pieces.append(data[at:])
    return b"".join(pieces)


def is_debug(name: bytes) -> bool:
    """Whether a section is there because of -lineinfo or -G.

    Relocations and Mercury twins of such sections are. Frames are not: compilers always write them.
    """
    name = name.removeprefix(_MERCURY)
    for prefix in _RELOCATIONS:
        name = name.removeprefix(prefix)
    return name.startswith(_DEBUG) and not name.startswith(_FRAMES)


def without_debug(cubin: bytes) -> bytes:
    """A cubin without debug sections, their headers, symbols and names.

    As it is where it has none, or its headers do not hold.
    """
    try:
        _, _, sections = read_sections(cubin)
    except ValueError:
        return cubin
    gone = {number for number, section in enumerate(sections) if is_debug(section.name)}
    ranges = []
    for number in gone:
        section = sections[number]
        ranges.append((section.header, section.header + _HEADER))
        if section.type != SHT_NOBITS and section.stored > 0:
            ranges.append((section.offset, section.offset + section.stored))
    if gone:
        ranges += _all_symbol_ranges(cubin, sections, gone, set())
        ranges += _section_names(cubin, sections, gone)
    return without_ranges(cubin, ranges)


def functions_of(cubin: bytes) -> list[str]:
    """Mangled names of the functions with code."""
    try:
        _, _, sections = read_sections(cubin)
    except ValueError:
        return []
    return [
        section.name[len(_TEXT) :].decode("utf-8", "surrogateescape")
        for section in sections
        if section.name.startswith(_TEXT)
    ]


def without_functions(cubin: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """A cubin without what belongs to functions whose mangled name matches, and these names.

    That is their sections, symbols and names, by the rules of `pylink size`.
    """
    functions = functions_of(cubin)
    gone = {name for name in functions if matches(name)}
    if not gone:
        return cubin, gone
    _, _, sections = read_sections(cubin)
    names = {name.encode("utf-8", "surrogateescape") for name in gone}
    everybody = {name.encode("utf-8", "surrogateescape") for name in functions}
    owners = [_owner(section.name, everybody) for section in sections]
    owned = {number for number, owner in enumerate(owners) if owner in names}
    texts = {n for n in owned if sections[n].name.startswith(_TEXT)}
    owned |= {
        number
        for number, section in enumerate(sections)
        if owners[number] is None
        and section.info in texts
        and section.type not in (SHT_SYMTAB, SHT_STRTAB)
    }
    ranges = [
        (sections[number].offset, sections[number].offset + sections[number].stored)
        for number in owned
        if sections[number].type != SHT_NOBITS and sections[number].stored > 0
    ]
    ranges += _all_symbol_ranges(cubin, sections, owned, names)
    ranges += _section_names(cubin, sections, owned)
    return without_ranges(cubin, ranges), gone


def _section_names(
    cubin: bytes, sections: list[Section], owned: set[int]
) -> Iterable[tuple[int, int]]:
    """The names of sections, where no other section's name shares them."""
    (number,) = struct.unpack_from("<H", cubin, 62)
    if number >= len(sections) or sections[number].stored < 0:
        return
    table = sections[number]
    taken: dict[int, int] = {}  # where strings end, and the first section that has each
    for index, section in enumerate(sections):
        (name,) = struct.unpack_from("<I", cubin, section.header)
        start = table.offset + name
        stop = cubin.find(b"\0", start, table.offset + table.stored)
        if stop >= 0 and taken.setdefault(stop, index) == index and index in owned:
            yield start, stop + 1


def _owner(section: bytes, names: set[bytes]) -> bytes | None:
    """Which of the functions a section is named after."""
    at = section.find(b".")
    for _ in range(16):
        if at < 0:
            return None
        if section[at + 1 :] in names:
            return section[at + 1 :]
        at = section.find(b".", at + 1)
    return None


def _all_symbol_ranges(
    cubin: bytes, sections: list[Section], owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    """Symbols in sections that are owned, or of these names, and the bytes of their own names."""
    for table in sections:
        if table.type == SHT_SYMTAB and 0 < table.link < len(sections):
            yield from _symbol_ranges(cubin, table, sections[table.link], owned, names)


def _symbol_ranges(
    cubin: bytes, table: Section, strings: Section, owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    if table.stored < 0 or strings.stored < 0:
        return
    end = strings.offset + strings.stored
    taken: set[int] = set()
    for at in range(table.offset, table.offset + table.stored - SYM.size + 1, SYM.size):
        name, _, _, section, _, _ = SYM.unpack_from(cubin, at)
        start = strings.offset + name
        stop = cubin.find(b"\0", start, end)
        text = cubin[start:stop] if name and 0 <= start < stop else b""
        if section in owned or text in names:
            yield at, at + SYM.size
            if text and stop not in taken:
                yield start, stop + 1
        taken.add(stop)


def ptx_without_functions(text: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """PTX without the functions whose name matches, from their line to the end of the body."""
    ranges, gone, at = [], set(), 0
    while (match := _PTX_FUNCTION.search(text, at)) is not None:
        end = _end_of_body(text, match.end())
        name = match[1].decode("utf-8", "surrogateescape")
        # A declaration ends with a semicolon and has no body.
        if text[end - 1 : end] == b"}" and matches(name):
            ranges.append((match.start(), end))
            gone.add(name)
        at = end
    return without_ranges(text, ranges), gone


def _end_of_body(text: bytes, at: int) -> int:
    depth = 0
    for match in _PTX_MARK.finditer(text, at):
        sign = match[0]
        if sign == b"{":
            depth += 1
        elif sign == b"}":
            depth -= 1
            if depth <= 0:
                return match.end()
        elif sign == b";" and depth == 0:
            return match.end()
    return len(text)
