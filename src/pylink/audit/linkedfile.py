"""The device code of a program or shared library, and the files that it needs.

The dynamic segment is read like the loader reads it, by program headers. Section headers are needed
for the ids of modules and for fat binaries. Files are not trusted: damage is recorded in `faults`,
and the rest of the file counts.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from functools import cached_property

from pylink._native.marks import find_marks
from pylink.facts.elf import ET_DYN, ET_EXEC, PT_DYNAMIC, PT_INTERP, PT_LOAD, STB_LOCAL, STT_FUNC
from pylink.facts.fatbinentries import CONTAINER, REGISTER_PREFIX, WRAPPER_PREFIX
from pylink.facts.headers import EntryHeader, FileHeader, SegmentHeader
from pylink.facts.records import DYN, EHDR, PHDR, SYM
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.sharedlib import DEFINED, LENT, module_ids
from pylink.inspect.embedded import CONTAINER_MARK, ELF_MARK, entry_at, sections_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.inspect.embedded import ByteSource


# Tags and flags of the dynamic segment.
_DT_NULL, _DT_NEEDED, _DT_PLTRELSZ, _DT_HASH, _DT_STRTAB, _DT_SYMTAB = 0, 1, 2, 4, 5, 6
_DT_RELA, _DT_RELASZ, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_SYMBOLIC = 7, 8, 10, 14, 15, 16
_DT_JMPREL, _DT_RUNPATH, _DT_FLAGS = 23, 29, 30
_DT_GNU_HASH, _DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFFB
_DF_SYMBOLIC, _DF_1_PIE = 2, 0x08000000

_RELOCATION_SYMBOL = struct.Struct("<12xI8x")  # of a RELA entry, only the number of its symbol

# Limits of bytes that are read: of one table, and of the module ids. The largest known libraries
# with device code have a symbol table of 40 MB.
_MOST_TABLE_BYTES = 1 << 29
_MOST_ID_BYTES = 1 << 24
# Bytes that are read at once: to search for a container, and of a chain of a hash table.
_SEARCH_WINDOW = 1 << 20
_CHAIN_WINDOW = 1 << 16
# Translates a byte to its lowest bit.
_LOWEST_BIT = bytes(number & 1 for number in range(256))


class NotLinked(Exception):
    """The file is not a program or shared library for 64-bit machines; the text says why."""


@dataclass(frozen=True)
class Entry:
    """A piece of device code in a container; `size` is the number of its bytes in the file.

    `kind` is one of EntryKind, `sm` the SM number, and `flags` are those of its header.
    """

    kind: int
    sm: int
    flags: int
    size: int


@dataclass(frozen=True)
class Container:
    """A fat binary in a file, from offset `start` to `end`."""

    start: int
    end: int
    entries: tuple[Entry, ...]


@dataclass(eq=False)
class LinkedFile:
    """A program or shared library; `machine` is its e_machine.

    * `needed`, `soname`, `rpath`, `runpath`: from the dynamic segment: names of libraries, its own
      name, and directories to search.
    * `is_symbolic`: its references use its own definitions (-Bsymbolic).
    * `defined`, `functions`, `undefined`: names of dynamic symbols; `functions` are defined ones.
    * `calls`: ids of the modules whose host code it contains, in the order in which they register.
    * `answers`: ids of the modules in its image.
    * `self_bound`: ids for which its calls always reach its own image.
    * `needs`: ids of modules whose fat binaries its image refers to in other files.
    * `images`: fat binaries that are registered.
    * `modules`: fat binaries of relocatable code.
    * `module_count`: number of these, -1 without a section for them.
    * `faults`: messages about parts that could not be read.
    """

    path: str
    machine: int
    is_program: bool
    needed: list[str] = field(default_factory=list)
    soname: str = ""
    rpath: list[str] = field(default_factory=list)
    runpath: list[str] = field(default_factory=list)
    is_symbolic: bool = False
    defined: set[bytes] = field(default_factory=set)
    functions: set[bytes] = field(default_factory=set)
    undefined: set[bytes] = field(default_factory=set)
    self_bound: set[bytes] = field(default_factory=set)
    calls: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    needs: set[bytes] = field(default_factory=set)
    images: list[Container] = field(default_factory=list)
    modules: list[Container] = field(default_factory=list)
    has_sections: bool = True
    module_count: int = -1
    faults: list[str] = field(default_factory=list)

    def add_fault(self, fault: str) -> None:
        """Record a fault; a repeated one counts once."""
        if fault not in self.faults:
            self.faults.append(fault)

    @property
    def display_path(self) -> str:
        """The path for messages: relative if the file is below the working directory."""
        return (
            os.path.relpath(self.path) if self.path.startswith(_working_directory()) else self.path
        )

    @cached_property
    def defined_wrappers(self) -> set[bytes]:
        """The ids of modules whose fat binaries this file exports."""
        return set(_ids_in_names(self.defined, WRAPPER_PREFIX))

    @property
    def has_device_code(self) -> bool:
        return bool(self.images or self.modules or self.calls or self.answers)


def _working_directory() -> str:
    """The working directory with a separator at its end."""
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:
        return "\0"  # no path begins with this


def read_header(source: ByteSource) -> tuple[int, int]:
    """e_type and e_machine of a 64-bit, little-endian ELF file; NotLinked for any other file."""
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
    _Dynamic(source, segments, file).read()
    _read_sections(source, file)
    if file.is_program:
        file.self_bound |= {
            name for name in file.answers if REGISTER_PREFIX + name not in file.undefined
        }
    return file


def _read_segments(source: ByteSource) -> Iterator[SegmentHeader]:
    """Yield the program headers that the file has in full."""
    header = FileHeader._make(EHDR.unpack(source.read(0, EHDR.size)))
    if header.phentsize != PHDR.size:
        return
    rows = source.read(header.phoff, header.phnum * PHDR.size)
    rows_size = len(rows) - len(rows) % PHDR.size
    yield from map(SegmentHeader._make, PHDR.iter_unpack(rows[:rows_size]))


class _Dynamic:
    """The reader of a file's dynamic segment."""

    def __init__(self, source: ByteSource, segments: list[SegmentHeader], file: LinkedFile) -> None:
        self._source = source
        self._segments = segments
        self._file = file
        self._values: dict[int, int] = {}  # by tag, except DT_NEEDED
        self._strings = b""  # contents of .dynstr

    def read(self) -> None:
        """Fill in the attributes of the file that the dynamic segment has."""
        file = self._file
        rows = b""
        for segment in self._segments:
            if segment.type == PT_DYNAMIC:
                rows = self._source.read(segment.offset, min(segment.filesz, _MOST_TABLE_BYTES))
        needed: list[int] = []  # offsets of names
        for tag, value in DYN.iter_unpack(rows[: len(rows) - len(rows) % DYN.size]):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                needed.append(value)
            else:
                self._values.setdefault(tag, value)
        if not rows:
            return
        get = self._values.get
        self._strings = self._read_table(get(_DT_STRTAB, 0), get(_DT_STRSZ, 0), "dynamic strings")
        file.needed = [text for text in map(self._string_at, needed) if text]
        file.soname = self._string_at(get(_DT_SONAME, -1))
        file.rpath = _split_paths(self._string_at(get(_DT_RPATH, -1)))
        file.runpath = _split_paths(self._string_at(get(_DT_RUNPATH, -1)))
        file.is_symbolic = _DT_SYMBOLIC in self._values or bool(get(_DT_FLAGS, 0) & _DF_SYMBOLIC)
        file.is_program |= bool(get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        symbols = self._read_symbols()
        registers = [name for name in symbols if name.startswith(REGISTER_PREFIX)]
        if any(name in file.defined for name in registers):
            relocated = self._relocated_symbols()
            file.self_bound = {
                name[len(REGISTER_PREFIX) :]
                for number, name in enumerate(symbols)
                if name in file.defined
                and name.startswith(REGISTER_PREFIX)
                and (file.is_symbolic or number not in relocated)
            }

    def _read_symbols(self) -> list[bytes]:
        """The names of the dynamic symbols by number; also fills in the name sets of the file."""
        file, strings = self._file, self._strings
        rows = self._read_table(
            self._values.get(_DT_SYMTAB, 0), self._count_symbols() * SYM.size, "dynamic symbols"
        )
        names = []
        for name, info, _, section, _, _ in SYM.iter_unpack(rows):
            end = strings.find(b"\0", name)
            text = strings[name:end] if end >= 0 else b""
            names.append(text)
            if not text or info >> 4 == STB_LOCAL:
                continue
            if section:
                file.defined.add(text)
                if info & 15 == STT_FUNC:
                    file.functions.add(text)
            else:
                file.undefined.add(text)
        return names

    def _count_symbols(self) -> int:
        """The number of dynamic symbols, from one of the hash tables.

        DT_HASH states it in its second word. DT_GNU_HASH has a header of four words, a bloom filter
        of words of 8 bytes, the first symbol of each bucket, and a word for each symbol from number
        `first` on. The last symbol is the end of the chain that begins last.
        """
        if _DT_HASH in self._values:
            head = self._read_table(self._values[_DT_HASH], 8, "hash table")
            return min(int.from_bytes(head[4:8], "little"), self._source.size // SYM.size)
        if _DT_GNU_HASH not in self._values:
            return 0
        start = self._values[_DT_GNU_HASH]
        head = self._read_table(start, 16, "hash table")
        if len(head) < 16:
            return 0
        first: int
        bucket_count, first, bloom_count, _ = struct.unpack("<IIII", head)
        bucket_start = start + 16 + 8 * bloom_count
        buckets = self._read_table(bucket_start, 4 * bucket_count, "hash table")
        last = max(
            (row[0] for row in struct.iter_unpack("<I", buckets[: len(buckets) & ~3])), default=0
        )
        if last < first:
            return first  # only undefined symbols
        chains = bucket_start + 4 * bucket_count
        while last < self._source.size // SYM.size:
            # The last word of a chain is odd.
            chain = self._read_address(chains + 4 * (last - first), _CHAIN_WINDOW)
            end = chain[::4].translate(_LOWEST_BIT).find(1)
            if end >= 0 or len(chain) < _CHAIN_WINDOW:
                return last + end + 1
            last += len(chain) // 4
        return self._source.size // SYM.size

    def _relocated_symbols(self) -> set[int]:
        """The numbers of the dynamic symbols that relocations name; the loader looks these up."""
        symbol_numbers: set[int] = set()
        values = self._values
        for start, size in ((_DT_RELA, _DT_RELASZ), (_DT_JMPREL, _DT_PLTRELSZ)):
            rows = self._read_table(values.get(start, 0), values.get(size, 0), "relocations")
            rows_size = len(rows) - len(rows) % _RELOCATION_SYMBOL.size
            symbol_numbers |= {row[0] for row in _RELOCATION_SYMBOL.iter_unpack(rows[:rows_size])}
        return symbol_numbers

    def _read_table(self, address: int, size: int, noun: str) -> bytes:
        """Like `_read_address`; adds a fault about the `noun` if bytes are missing."""
        rows = self._read_address(address, size)
        if len(rows) < size:
            self._file.add_fault(f"its {noun} are cut off")
        row_size = SYM.size if noun == "dynamic symbols" else 1
        return rows[: len(rows) - len(rows) % row_size]

    def _read_address(self, address: int, size: int) -> bytes:
        """Up to `size` bytes at an address of the loaded file; fewer if the segment ends."""
        if address and size:
            for segment in self._segments:
                offset = address - segment.vaddr
                if segment.type == PT_LOAD and 0 <= offset < segment.filesz:
                    available = min(size, segment.filesz - offset, _MOST_TABLE_BYTES)
                    return self._source.read(segment.offset + offset, available)
        return b""

    def _string_at(self, offset: int) -> str:
        """The dynamic string at an offset; empty for a negative offset or a damaged string."""
        end = self._strings.find(b"\0", offset) if offset >= 0 else -1
        return os.fsdecode(self._strings[offset:end]) if end >= 0 else ""


def _split_paths(text: str) -> list[str]:
    return [path for path in text.split(":") if path]


def _read_sections(source: ByteSource, file: LinkedFile) -> None:
    """Fill in ids and fat binaries from the sections; without sections, ids from symbols."""
    sections = sections_of(source)
    by_name = {section.name: section for section in sections}
    file.has_sections = bool(sections)
    id_texts: list[bytes] = []
    if "__nv_module_id" in by_name:
        section = by_name["__nv_module_id"]
        text = source.read(section.start, min(section.end - section.start, _MOST_ID_BYTES))
        id_texts = [id_text for id_text in text.split(b"\0") if id_text]
    exported = _ids_in_names(file.defined, REGISTER_PREFIX)
    undefined = _ids_in_names(file.undefined, REGISTER_PREFIX)
    file.needs = set(_ids_in_names(file.undefined, WRAPPER_PREFIX))
    file.calls = module_ids(id_texts)
    answers = [id_text[len(DEFINED) :] for id_text in id_texts if id_text.startswith(DEFINED)]
    # A module that may be lent is registered here if the file has its host code.
    lent = {name.removeprefix(LENT) for name in answers if name.startswith(LENT)}
    answers = [name for name in answers if not name.startswith(LENT)]
    file.answers = list(dict.fromkeys([*answers, *(name for name in file.calls if name in lent)]))
    if not id_texts:
        # Without __nv_module_id the symbols still show the ids that other files see.
        file.answers = exported
        wrapped = _ids_in_names(file.defined, WRAPPER_PREFIX)
        file.calls = list(dict.fromkeys([*undefined, *wrapped]))
    symbol_ids = {*exported, *undefined, *file.answers}
    unregistered = [name for name in file.calls if name not in symbol_ids]
    if unregistered:
        file.add_fault(f"it names {len(unregistered)} modules that no symbol registers")
        file.calls = [name for name in file.calls if name in symbol_ids]
    # A call inside the file needs no dynamic symbol.
    file.self_bound |= {name for name in file.answers if name not in {*exported, *undefined}}
    if ".nv_fatbin" in by_name:
        section = by_name[".nv_fatbin"]
        file.images = _read_containers(source, section.start, section.end, file)
    if "__nv_relfatbin" in by_name:
        section = by_name["__nv_relfatbin"]
        file.modules = _read_containers(source, section.start, section.end, file)
        file.module_count = len(file.modules)


def _ids_in_names(names: set[bytes], prefix: bytes) -> list[bytes]:
    """The ids in the names with this prefix, sorted."""
    return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))


def _read_containers(source: ByteSource, start: int, end: int, file: LinkedFile) -> list[Container]:
    """The fat binaries between two offsets; other bytes between them are skipped."""
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
