"""Removes bytes from payloads, so that compressing the rest shows how much they take.

The results are not valid programs: the cuts leave no holes, and offsets and sizes are not updated.
"""

from __future__ import annotations

import re
import struct

from pylink._native.elfheaders import Section, read_sections
from pylink.facts.elf import SHT_NOBITS, SHT_STRTAB, SHT_SYMTAB
from pylink.facts.records import SHDR, SYM
from pylink.facts.sizenumbers import MOST_DOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MERCURY_PREFIX, _RELOCATION_PREFIXES = b".nv.merc", (b".rela", b".rel")
_DEBUG_PREFIXES, _FRAMES_PREFIX = (b".debug", b".nv_debug"), b".debug_frame"
_TEXT_PREFIX = b".text."
_SHSTRNDX = 62  # offset of `e_shstrndx` in the ELF header
# A function of PTX from the start of its line up to its name, which precedes parameters and body.
_PTX_FUNCTION = re.compile(
    rb"^[^\n{}]*?\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?([\w$%.]+)", re.MULTILINE
)
# Comments and strings, whose braces do not count, and the signs that begin and end bodies.
_PTX_TOKEN = re.compile(rb"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[{};]", re.DOTALL)


def _without_ranges(data: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """Return the bytes outside of the (start, end) `ranges`, which may overlap."""
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
    name = name.removeprefix(_MERCURY_PREFIX)
    for prefix in _RELOCATION_PREFIXES:
        name = name.removeprefix(prefix)
    return name.startswith(_DEBUG_PREFIXES) and not name.startswith(_FRAMES_PREFIX)


def without_debug(cubin: bytes) -> bytes:
    """Return a cubin without debug sections, their headers, symbols and names.

    The cubin is returned unchanged if it has no debug sections, or invalid headers.
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
        ranges += _section_name_ranges(cubin, sections, removed)
    return _without_ranges(cubin, ranges)


def _list_functions(cubin: bytes) -> list[str]:
    """Return the mangled names of functions with code; none if the headers are invalid."""
    try:
        sections = read_sections(cubin).sections
    except ValueError:
        return []
    return [
        section.name[len(_TEXT_PREFIX) :].decode("utf-8", "surrogateescape")
        for section in sections
        if section.name.startswith(_TEXT_PREFIX)
    ]


def without_functions(cubin: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """Return a cubin without the functions whose mangled name matches, and their names.

    For each function, this removes the contents of sections with its name, and of sections whose
    sh_info is its code, such as relocations. It also removes the names of these sections, and the
    symbols in them or with its name, with the names of these symbols. Section headers remain.
    """
    functions = _list_functions(cubin)
    removed = {name for name in functions if matches(name)}
    if not removed:
        return cubin, removed
    sections = read_sections(cubin).sections
    removed_names = {name.encode("utf-8", "surrogateescape") for name in removed}
    all_names = {name.encode("utf-8", "surrogateescape") for name in functions}
    owners = [_find_owner(section.name, all_names) for section in sections]
    owned = {number for number, owner in enumerate(owners) if owner in removed_names}
    code_numbers = {number for number in owned if sections[number].name.startswith(_TEXT_PREFIX)}
    owned |= {
        number
        for number, section in enumerate(sections)
        if owners[number] is None
        and section.info in code_numbers
        and section.type not in (SHT_SYMTAB, SHT_STRTAB)
    }
    ranges = [
        (sections[number].offset, sections[number].offset + sections[number].stored)
        for number in owned
        if sections[number].type != SHT_NOBITS and sections[number].stored > 0
    ]
    ranges += _all_symbol_ranges(cubin, sections, owned, removed_names)
    ranges += _section_name_ranges(cubin, sections, owned)
    return _without_ranges(cubin, ranges), removed


def _section_name_ranges(
    cubin: bytes, sections: list[Section], owned: set[int]
) -> Iterable[tuple[int, int]]:
    """Yield the ranges of the names of sections, unless the name of an earlier section ends there.

    `owned` has the numbers of these sections. A name may be the end of another one.
    """
    (table_number,) = struct.unpack_from("<H", cubin, _SHSTRNDX)
    if table_number >= len(sections) or sections[table_number].stored < 0:
        return
    names = sections[table_number]
    first_users: dict[int, int] = {}  # first section with a name, by the name's end
    for index, section in enumerate(sections):
        (name_offset,) = struct.unpack_from("<I", cubin, section.header)
        start = names.offset + name_offset
        name_end = cubin.find(b"\0", start, names.offset + names.stored)
        if name_end >= 0 and first_users.setdefault(name_end, index) == index and index in owned:
            yield start, name_end + 1


def _find_owner(section_name: bytes, names: set[bytes]) -> bytes | None:
    """Return the function whose name the section name ends with, after a dot; None if none.

    `names` are the mangled names of all functions.
    """
    dot = section_name.find(b".")
    for _ in range(MOST_DOTS):
        if dot < 0:
            return None
        if section_name[dot + 1 :] in names:
            return section_name[dot + 1 :]
        dot = section_name.find(b".", dot + 1)
    return None


def _all_symbol_ranges(
    cubin: bytes, sections: list[Section], owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    """Yield the ranges of symbols in `owned` sections or with one of `names`, and of their names.

    `owned` has the numbers of the sections that are removed, `names` the mangled names of removed
    functions.
    """
    for table in sections:
        if table.type == SHT_SYMTAB and 0 < table.link < len(sections):
            yield from _symbol_ranges(cubin, table, sections[table.link], owned, names)


def _symbol_ranges(
    cubin: bytes, table: Section, strings: Section, owned: set[int], names: set[bytes]
) -> Iterable[tuple[int, int]]:
    """Yield the ranges of a table's symbols in `owned` sections or with one of `names`.

    The range of its name in the string table follows each, unless an earlier symbol uses it.
    """
    if table.stored < 0 or strings.stored < 0:
        return
    strings_end = strings.offset + strings.stored
    seen_ends: set[int] = set()  # ends of strings that earlier symbols use
    for position in range(table.offset, table.offset + table.stored - SYM.size + 1, SYM.size):
        name_offset, _, _, section_number, _, _ = SYM.unpack_from(cubin, position)
        name_start = strings.offset + name_offset
        name_end = cubin.find(b"\0", name_start, strings_end)
        name = cubin[name_start:name_end] if name_offset and 0 <= name_start < name_end else b""
        if section_number in owned or name in names:
            yield position, position + SYM.size
            if name and name_end not in seen_ends:
                yield name_start, name_end + 1
        seen_ends.add(name_end)


def ptx_without_functions(text: bytes, matches: Callable[[str], bool]) -> tuple[bytes, set[str]]:
    """Return PTX without the functions whose name matches, and their names.

    A function is removed from the start of its line to the end of its body.
    """
    ranges, removed, position = [], set(), 0
    while (match := _PTX_FUNCTION.search(text, position)) is not None:
        end = _end_of_body(text, match.end())
        name = match[1].decode("utf-8", "surrogateescape")
        # A declaration ends with a semicolon and has no body.
        if text[end - 1 : end] == b"}" and matches(name):
            ranges.append((match.start(), end))
            removed.add(name)
        position = end
    return _without_ranges(text, ranges), removed


def _end_of_body(text: bytes, start: int) -> int:
    """Return the offset after the closing brace, or after the semicolon of a declaration."""
    depth = 0
    for match in _PTX_TOKEN.finditer(text, start):
        token = match[0]
        if token == b"{":
            depth += 1
        elif token == b"}":
            depth -= 1
            if depth <= 0:
                return match.end()
        elif token == b";" and depth == 0:
            return match.end()
    return len(text)
