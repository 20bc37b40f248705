"""Finds device code in a file: containers of fat binaries, and cubins outside of containers.

Files are read in windows, and only headers are decoded. Between containers there may be any bytes.
In sections that are not for fat binaries, a container's magic may be an ordinary constant, so an
entry must follow it.
"""

from __future__ import annotations

from pylink._native.marks import find_marks
from pylink.facts.elf import EM_CUDA, NO_BYTES, SHT_NULL, section_counts
from pylink.facts.fatbinentries import (
    CONTAINER,
    ENTRY,
    FATBIN_MAGIC,
    FATBIN_SECTIONS,
    REGISTER_PREFIX,
    container_header,
)
from pylink.facts.records import EHDR, SHDR, SYM
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.payload import is_compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class ByteSource(Protocol):
        """Bytes that are read piece by piece."""

        @property
        def size(self) -> int: ...

        def read(self, offset: int, size: int) -> bytes:
            """Return `size` bytes from an offset on; fewer at the end of the source."""


CONTAINER_MARK = container_header(0)[:8]  # without the size of the entries

# Least and largest number of bytes of a search window: small after a match, since the next match
# often follows directly, and growing without matches. So few bytes of payloads are searched, and
# most bytes are read at most once.
_LEAST_WINDOW, _MOST_WINDOW = 1 << 12, 1 << 18
# Bytes after a container in which the next one is looked for first.
_USUAL_GAP = 64

ELF_MARK = ELF_MAGIC + b"\x02\x01"  # start of a 64-bit little-endian ELF file
_MOST_SECTIONS = 1 << 20
# Types of sections without bytes in the file, such as those of global and shared memory.
_WITHOUT_BYTES = NO_BYTES | {SHT_NULL}


class InMemory:
    """Bytes in memory as a ByteSource."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]


class Embedded:
    """A container, or a cubin outside of one: its start and end offset, and its section."""

    __slots__ = ("end", "is_container", "section", "start")

    def __init__(self, start: int, end: int, section: str, *, is_container: bool) -> None:
        self.start, self.end, self.section, self.is_container = start, end, section, is_container


class FileSection:
    """A section with bytes in the file: its name, start and end offset."""

    __slots__ = ("end", "name", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name, self.start, self.end = name, start, end


def lacks_registration(source: ByteSource) -> bool:
    """Return whether another file must register the device code of a library or program.

    It then has an undefined symbol of a function that registers a module.
    """
    section_of = {section.name: section for section in sections_of(source)}
    if not all(name in section_of for name in (".dynsym", ".dynstr")):
        return False
    symbols, strings = (
        source.read(section_of[name].start, section_of[name].end - section_of[name].start)
        for name in (".dynsym", ".dynstr")
    )
    offset = strings.find(REGISTER_PREFIX)
    name_offsets = set()
    while offset >= 0:
        name_offsets.add(offset)
        offset = strings.find(REGISTER_PREFIX, offset + 1)
    if not name_offsets:
        return False
    end = len(symbols) - len(symbols) % SYM.size
    return any(
        section == 0 and name in name_offsets
        for name, _, _, section, _, _ in SYM.iter_unpack(symbols[:end])
    )


class NoSections(ValueError):
    """A file has no section headers that can be read; the text says why."""


def read_section_headers(source: ByteSource, most: int) -> tuple[list[tuple[int, ...]], bytes]:
    """Return the section headers of an ELF file, as SHDR unpacks them, and the section names.

    NoSections if the headers are damaged, or if there are more than `most`. The native reader,
    `elfheaders.read_sections`, needs the whole file in memory, and omits addresses.
    """
    head = source.read(0, EHDR.size)
    if len(head) < EHDR.size or not head.startswith(ELF_MARK):
        raise NoSections("it is not a 64-bit little-endian ELF file")
    rows, names = _read_table(source, 0, head, most)
    headers = list(SHDR.iter_unpack(rows))
    if names >= len(headers):
        raise NoSections("its section headers run past the file")
    _, _, _, _, names_start, names_size, *_ = headers[names]
    return headers, source.read(names_start, names_size)


def _read_table(source: ByteSource, start: int, head: bytes, most: int) -> tuple[bytes, int]:
    """Return the section headers of an ELF file, and the number of the section with their names.

    The file starts at `start` in the source, with the ELF header `head`. NoSections if it does not
    have the section headers, or has more than `most`.
    """
    *_, shoff, _, _, _, _, shentsize, shnum, shstrndx = EHDR.unpack(head)
    first = source.read(start + shoff, SHDR.size) if shoff and shentsize == SHDR.size else b""
    if len(first) < SHDR.size:
        raise NoSections("it has no section headers")
    count, names = section_counts(shnum, shstrndx, SHDR.unpack(first))
    rows = source.read(start + shoff, count * SHDR.size) if count <= most else b""
    if not count or len(rows) < count * SHDR.size:
        raise NoSections("its section headers run past the file")
    return rows, names


def section_name(names: bytes, offset: int) -> bytes:
    """Return the name at an offset of the section names; empty if the name has no end."""
    return names[offset : max(offset, names.find(b"\0", offset))]


def sections_of(source: ByteSource) -> list[FileSection]:
    """Return the sections with bytes in the file, by offset; empty if the headers are damaged."""
    try:
        headers, names = read_section_headers(source, _MOST_SECTIONS)
    except NoSections:
        return []
    sections = []
    for name, kind, _, _, offset, size, *_ in headers:
        if kind not in _WITHOUT_BYTES and size and offset + size <= source.size:
            text = section_name(names, name).decode("utf-8", "surrogateescape")
            sections.append(FileSection(text, offset, offset + size))
    sections.sort(key=lambda section: (section.start, section.end))
    return sections


def _section_at(sections: list[FileSection], offset: int) -> str:
    """Return the name of the first section with the byte at `offset`; empty if there is none."""
    for section in sections:
        if section.start <= offset < section.end:
            return section.name
    return ""


def _end_of_cubin(source: ByteSource, start: int) -> int | None:
    """Return the end offset of a cubin that starts at `start`; None if there is no cubin."""
    head = source.read(start, EHDR.size)
    if len(head) < EHDR.size or not head.startswith(ELF_MARK):
        return None
    _, _, machine, _, _, phoff, shoff, _, ehsize, phentsize, phnum, *_ = EHDR.unpack(head)
    if machine != EM_CUDA or ehsize != EHDR.size:
        return None
    try:
        rows, _ = _read_table(source, start, head, _MOST_SECTIONS)
    except NoSections:
        return None
    end = max(shoff + len(rows), phoff + phentsize * phnum)  # relative to `start`
    for _, kind, _, _, offset, size, *_ in SHDR.iter_unpack(rows):
        if kind not in _WITHOUT_BYTES:
            end = max(end, offset + size)
    return start + end if end <= source.size - start else None


def find_device_code(source: ByteSource, sections: list[FileSection]) -> Iterator[Embedded]:
    """Yield containers, and cubins outside of these, in order of their offsets.

    `sections` are those of the file. A file that starts as a fat binary is searched only for
    containers; these need no entries.
    """
    is_fatbin = source.read(0, len(FATBIN_MAGIC)) == FATBIN_MAGIC
    marks = (CONTAINER_MARK,) if is_fatbin else (CONTAINER_MARK, ELF_MARK)

    def embedded_at(start: int, *, is_container: bool) -> Embedded | None:
        """Return the container or cubin at `start`; None if only its magic number is there."""
        name = _section_at(sections, start)
        if is_container:
            end = _end_of_container(source, start, is_expected=is_fatbin or name in FATBIN_SECTIONS)
        else:
            end = _end_of_cubin(source, start)
        return None if end is None else Embedded(start, end, name, is_container=is_container)

    position = 0  # offset of the next window
    last_end = 0  # end of the code that was found last
    window_size = _LEAST_WINDOW
    while position < source.size:
        window = source.read(position, window_size)
        window_size = min(4 * window_size, _MOST_WINDOW)
        for offset, mark in find_marks(window, marks):
            start, is_container = position + offset, not mark
            # A cubin at offset 0 is the file itself.
            if start < last_end or not (start or is_container):
                continue
            code = embedded_at(start, is_container=is_container)
            while code is not None:
                yield code
                last_end, window_size = code.end, _LEAST_WINDOW
                # Mostly the next container follows after a few zeros.
                head = source.read(last_end, _USUAL_GAP)
                rest = head.lstrip(b"\0")
                follows = rest.startswith(CONTAINER_MARK)
                start = last_end + len(head) - len(rest)
                code = embedded_at(start, is_container=True) if follows else None
        position = max(last_end, position + max(1, len(window) - len(CONTAINER_MARK) + 1))


def _end_of_container(source: ByteSource, start: int, *, is_expected: bool) -> int | None:
    """Return the end offset of a container, at most the file's end; None if it is not a container.

    If no container `is_expected` here, an entry must follow the header.
    """
    head = source.read(start, CONTAINER.size)
    if len(head) < CONTAINER.size:
        return None
    size: int = CONTAINER.unpack(head)[-1]
    first = start + CONTAINER.size
    if size > source.size - first:
        return source.size if is_expected else None
    if not is_expected and size and entry_at(source, first, first + size) is None:
        return None
    return first + size


def entry_at(source: ByteSource, offset: int, end: int) -> tuple[int, ...] | None:
    """Return the fields of an entry's header; None if it is not an entry, or runs past `end`."""
    head = source.read(offset, ENTRY.size)
    if end - offset < ENTRY.size or len(head) < ENTRY.size:
        return None
    fields = ENTRY.unpack(head)
    _, _, header, size, packed, _, _, _, _, _, _, flags, *_ = fields
    if header < ENTRY.size or header > end - offset or size > end - offset - header:
        return None
    return None if is_compressed(flags) and packed > size else fields
