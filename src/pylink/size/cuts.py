"""Removes bytes from payloads, so that compressing the rest shows how much they take.

The results are not valid programs: the cuts leave no holes, and offsets and sizes are not updated.
"""

from __future__ import annotations

import re
import struct

from pylink._native.elfheaders import Section, read_sections
from pylink.facts.elf import SHT_NOBITS, SHT_STRTAB, SHT_SYMTAB
from pylink.facts.records import SHDR, SYM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MERCURY, _RELOCATIONS = b".nv.merc", (b".rela", b".rel")
_DEBUG, _FRAMES = (b".debug", b".nv_debug"), b".debug_frame"
_TEXT = b".text."
# A function of PTX from the start of its line up to its name, which precedes parameters and body.
_PTX_FUNCTION = re.compile(
    rb"^[^\n{}]*?\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?([\w$%.]+)", re.MULTILINE
)
_PTX_MARK = re.compile(rb"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[{};]", re.DOTALL)


def without_ranges(data: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The bytes outside of some ranges, which may overlap."""
    pieces, position = [], 0
    for start, end in sorted(ranges):
        if start > position:
            pieces.append(data[position:start])
        position = max(position, end)
    pieces.append(data[position:])
    return b"".join(pieces)


def is_debug(name: bytes) -> bool:
    """Return whether a section exists because of -lineinfo or -G.

    This includes relocations and Mercury twins of such sections, but not frames, which compilers
    always write.
    """
    name = name.removeprefix(_MERCURY)
    for prefix in _RELOCATIONS:
        name = name.removeprefix(prefix)
    return name.startswith(_DEBUG) and not name.startswith(_FRAMES)


def without_debug(cubin: bytes) -> bytes:
    """Return a cubin without debug sections, their headers, symbols and names.

    It is unchanged if it has no debug sections, or invalid headers.
    """
    try:
        sections = read_sections(cubin).sections
    except ValueError:
        return cubin
    removed = {number for number, section in enumerate(sections) if is_debug(section.name)}
    ranges = []
    for number in removed:
        section = sections[number]
        ranges.append((section.header, section.header + SHDR.size))
        if section.type != SHT_NOBITS and section.stored > 0:
            ranges.append((section.offset, section.offset + section.stored))
    if removed:
        ranges += _all_symbol_ranges(cubin, sections, removed, set())
        ranges += _section_names(cubin, sections, removed)
    return without_ranges(cubin, ranges)


def functions_of(cubin: bytes) -> list[str]:
    """The mangled names of functions with code."""
    try:
        sections = read_sections(cubin).sections
    except ValueError:
        return []
    return [
        section.name[len(_TEXT) :].decode("utf-8", "surrogateescape")
        for section in sections
        if section.name.startswith(_TEXT)
    ]


def without_functions(cubin: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """Return a cubin without the functions whose mangled name matches, and their names.

    Their sections, symbols and names are removed, by the rules of `pylink size`.
    """
    functions = functions_of(cubin)
    removed = {name for name in functions if matches(name)}
    if not removed:
        return cubin, removed
    sections = read_sections(cubin).sections
    names = {name.encode("utf-8", "surrogateescape") for name in removed}
    all_names = {name.encode("utf-8", "surrogateescape") for name in functions}
    owners = [_owner(section.name, all_names) for section in sections]
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
    return without_ranges(cubin, ranges), removed


def _section_names(
    cubin: bytes, sections: list[Section], owned: set[int]
) -> Iterable[tuple[int, int]]:
    """Yield the ranges of section names that no other section shares."""
    (number,) = struct.unpack_from("<H", cubin, 62)
    if number >= len(sections) or sections[number].stored < 0:
        return
    table = sections[number]
    first_users: dict[int, int] = {}  # the first section of each string, by the string's end
    for index, section in enumerate(sections):
        (name,) = struct.unpack_from("<I", cubin, section.header)
        start = table.offset + name
        stop = cubin.find(b"\0", start, table.offset + table.stored)
        if stop >= 0 and first_users.setdefault(stop, index) == index and index in owned:
            yield start, stop + 1


def _owner(section: bytes, names: set[bytes]) -> bytes | None:
    """The function that a section is named after; None if its name has none of them."""
    dot = section.find(b".")
    for _ in range(16):
        if dot < 0:
            return None
        if section[dot + 1 :] in names:
            return section[dot + 1 :]
        dot = section.find(b".", dot + 1)
    return None


def _all_symbol_ranges(
    cubin: bytes, sections: list[Section], owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    """Yield ranges of symbols in owned sections or with these names, and of their names."""
    for table in sections:
        if table.type == SHT_SYMTAB and 0 < table.link < len(sections):
            yield from _symbol_ranges(cubin, table, sections[table.link], owned, names)


def _symbol_ranges(
    cubin: bytes, table: Section, strings: Section, owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    if table.stored < 0 or strings.stored < 0:
        return
    end = strings.offset + strings.stored
    seen_ends: set[int] = set()
    for position in range(table.offset, table.offset + table.stored - SYM.size + 1, SYM.size):
        name, _, _, section, _, _ = SYM.unpack_from(cubin, position)
        start = strings.offset + name
        stop = cubin.find(b"\0", start, end)
        text = cubin[start:stop] if name and 0 <= start < stop else b""
        if section in owned or text in names:
            yield position, position + SYM.size
            if text and stop not in seen_ends:
                yield start, stop + 1
        seen_ends.add(stop)


def ptx_without_functions(text: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """Return PTX without functions whose name matches, from their line to the end of the body."""
    ranges, removed, position = [], set(), 0
    while (match := _PTX_FUNCTION.search(text, position)) is not None:
        end = _end_of_body(text, match.end())
        name = match[1].decode("utf-8", "surrogateescape")
        # A declaration ends with a semicolon and has no body.
        if text[end - 1 : end] == b"}" and matches(name):
            ranges.append((match.start(), end))
            removed.add(name)
        position = end
    return without_ranges(text, ranges), removed


def _end_of_body(text: bytes, start: int) -> int:
    depth = 0
    for match in _PTX_MARK.finditer(text, start):
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
