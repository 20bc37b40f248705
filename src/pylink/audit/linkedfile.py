"""The device code of a program or shared library, and the files that it needs.

`dynamicsegment.py` reads what the loader reads; section headers are needed for the ids of modules
and for fat binaries. Files are not trusted: damage is recorded in `LinkedFile.faults`, and the rest
of the file counts.
"""

from __future__ import annotations

from pylink._native.marks import find_marks
from pylink.audit.dynamicsegment import DynamicSegment
from pylink.audit.model import Container, Entry, LinkedFile, ids_in_names
from pylink.facts.elf import ET_DYN, ET_EXEC, PT_INTERP
from pylink.facts.fatbinentries import (
    CONTAINER,
    LINKED_SECTION,
    REGISTER_PREFIX,
    RELOCATABLE_SECTION,
    WRAPPER_PREFIX,
)
from pylink.facts.headers import EntryHeader, FileHeader, SegmentHeader
from pylink.facts.records import EHDR, PHDR
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.sharedlib import DEFINED, LENT, module_ids
from pylink.inspect.embedded import CONTAINER_MARK, ELF_MARK, entry_at, sections_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.inspect.embedded import ByteSource


_MOST_ID_BYTES = 1 << 24  # most bytes of module ids that are read; later ids are ignored
_SEARCH_WINDOW = 1 << 20  # bytes that are read at once to look for a container or a byte not 0


class NotLinked(Exception):
    """The file is not a program or shared library for 64-bit machines; the text says why."""


def read_header(source: ByteSource) -> tuple[int, int]:
    """Return e_type and e_machine of a 64-bit, little-endian ELF file, or raise NotLinked."""
    head = source.read(0, EHDR.size)
    if not head.startswith(ELF_MAGIC):
        raise NotLinked("it is not an ELF file")
    if not head.startswith(ELF_MARK):
        raise NotLinked("it is for a 32-bit or big-endian machine")
    if len(head) < EHDR.size:
        raise NotLinked("its ELF header is cut off")
    header = FileHeader._make(EHDR.unpack(head))
    return header.type, header.machine


def read_linked_file(source: ByteSource, path: str) -> LinkedFile:
    """Read a program or shared library; NotLinked for anything else."""
    kind, machine = read_header(source)
    if kind not in (ET_EXEC, ET_DYN):
        raise NotLinked("it is not a program or shared library")
    segments = list(_read_segments(source))
    file = LinkedFile(path, machine, kind == ET_EXEC)
    file.is_program |= any(segment.type == PT_INTERP for segment in segments)
    DynamicSegment(source, segments, file).read()
    _read_sections(source, file)
    if file.is_program:
        file.self_bound |= {
            name for name in file.answers if REGISTER_PREFIX + name not in file.undefined
        }
    return file


def _read_segments(source: ByteSource) -> Iterator[SegmentHeader]:
    """Yield the program headers that the file has in full; none if e_phentsize is wrong."""
    header = FileHeader._make(EHDR.unpack(source.read(0, EHDR.size)))
    if header.phentsize != PHDR.size:
        return
    rows = source.read(header.phoff, header.phnum * PHDR.size)
    rows_size = len(rows) - len(rows) % PHDR.size
    yield from map(SegmentHeader._make, PHDR.iter_unpack(rows[:rows_size]))


def _read_sections(source: ByteSource, file: LinkedFile) -> None:
    """Fill in fat binaries and module ids from sections; without such ids, those of symbols."""
    sections = sections_of(source)
    by_name = {section.name: section for section in sections}
    file.has_sections = bool(sections)
    id_texts: list[bytes] = []  # the texts of `__nv_module_id`
    if "__nv_module_id" in by_name:
        section = by_name["__nv_module_id"]
        text = source.read(section.start, min(section.end - section.start, _MOST_ID_BYTES))
        id_texts = [id_text for id_text in text.split(b"\0") if id_text]
    exported = ids_in_names(file.defined, REGISTER_PREFIX)
    undefined = ids_in_names(file.undefined, REGISTER_PREFIX)
    file.needs = set(ids_in_names(file.undefined, WRAPPER_PREFIX))
    file.calls = module_ids(id_texts)
    answers = [id_text[len(DEFINED) :] for id_text in id_texts if id_text.startswith(DEFINED)]
    # A library may lend modules: then the link of another file takes their code. Such a module is
    # registered here if the file has its host code.
    lent = {name.removeprefix(LENT) for name in answers if name.startswith(LENT)}
    answers = [name for name in answers if not name.startswith(LENT)]
    file.answers = list(dict.fromkeys([*answers, *(name for name in file.calls if name in lent)]))
    if not id_texts:
        # Symbols show the ids that other files see, even if there is no __nv_module_id.
        file.answers = exported
        wrapped = ids_in_names(file.defined, WRAPPER_PREFIX)
        file.calls = list(dict.fromkeys([*undefined, *wrapped]))
    symbol_ids = {*exported, *undefined, *file.answers}
    unregistered = [name for name in file.calls if name not in symbol_ids]
    if unregistered:
        file.add_fault(f"it names {len(unregistered)} modules that no symbol registers")
        file.calls = [name for name in file.calls if name in symbol_ids]
    # Calls of modules without a dynamic symbol stay inside the file.
    file.self_bound |= {name for name in file.answers if name not in {*exported, *undefined}}
    if LINKED_SECTION in by_name:
        section = by_name[LINKED_SECTION]
        file.images = _read_containers(source, section.start, section.end, file)
    if RELOCATABLE_SECTION in by_name:
        section = by_name[RELOCATABLE_SECTION]
        file.modules = _read_containers(source, section.start, section.end, file)
        file.module_count = len(file.modules)


def _read_containers(source: ByteSource, start: int, end: int, file: LinkedFile) -> list[Container]:
    """Return the fat binaries from `start` to `end`; bytes outside of them are skipped."""
    containers = []
    offset = start
    while offset + CONTAINER.size <= end:
        head = source.read(offset, CONTAINER.size)
        if not head.startswith(CONTAINER_MARK):
            window = source.read(offset, min(_SEARCH_WINDOW, end - offset))
            marks = find_marks(window, (CONTAINER_MARK,))
            if not marks:
                offset += max(1, len(window) - len(CONTAINER_MARK) + 1)
                continue
            offset += marks[0][0]
            head = source.read(offset, CONTAINER.size)
            if len(head) < CONTAINER.size:
                break
        first = offset + CONTAINER.size
        *_, size = CONTAINER.unpack(head)
        container_end = first + size
        if container_end > end:
            file.add_fault("a fat binary is cut off")
            container_end = end
        entries = tuple(_read_entries(source, first, container_end, file))
        containers.append(Container(offset, container_end, entries))
        offset = container_end
    return containers


def _read_entries(source: ByteSource, offset: int, end: int, file: LinkedFile) -> Iterator[Entry]:
    """Yield the entries between two offsets; zeros after the last one are not a fault."""
    while offset < end:
        fields = entry_at(source, offset, end)
        if fields is None:
            if any(source.read(offset, min(end - offset, _SEARCH_WINDOW))):
                file.add_fault("a fat binary is damaged")
            return
        entry = EntryHeader._make(fields)
        yield Entry(entry.kind, entry.sm, entry.flags, entry.size)
        offset += entry.header_size + entry.size
