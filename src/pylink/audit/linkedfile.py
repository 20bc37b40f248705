"""What a program or shared library says of its device code and of the files that it needs.

The dynamic segment is read as the loader reads it, by program headers. Section headers are needed
for the ids of modules and for fat binaries. Nothing of a file is trusted: what does not hold is
noted in `faults`, and the rest counts.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pylink._native.ledger import find_marks
from pylink.facts.elf import EM_AARCH64, EM_X86_64, PT_LOAD
from pylink.facts.fatbinentries import CONTAINER
from pylink.facts.records import DYN, EHDR, PHDR, SYM
from pylink.inputs.sharedlib import DEFINED, LENT, module_ids
from pylink.inspect.embedded import CONTAINER_MARK, ELF_MARK, entry_at, sections_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.inspect.embedded import Source

REGISTER = b"__cudaRegisterLinkedBinary"
WRAPPER = b"__fatbinwrap"
MACHINES = {EM_X86_64: "x86-64", EM_AARCH64: "aarch64"}
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3

PT_DYNAMIC, PT_INTERP = 2, 3
_DT_NULL, _DT_NEEDED, _DT_PLTRELSZ, _DT_HASH, _DT_STRTAB, _DT_SYMTAB = 0, 1, 2, 4, 5, 6
_DT_RELA, _DT_RELASZ, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_SYMBOLIC = 7, 8, 10, 14, 15, 16
_DT_JMPREL, _DT_RUNPATH, _DT_FLAGS = 23, 29, 30
_DT_GNU_HASH, _DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFFB
_DF_SYMBOLIC, _DF_1_PIE = 2, 0x08000000

_RELOCATION_SYMBOL = struct.Struct("<12xI8x")
_STT_FUNC = 2

# Bytes of one table. The largest known libraries with device code have symbols of 40 MB.
_MOST_TABLE = 1 << 29
_MOST_IDS = 1 << 24
_SEARCH = 1 << 20
_CHAIN = 1 << 16
_IS_ODD = bytes(number & 1 for number in range(256))


class NotLinked(Exception):
    """A file that is not a program or shared library for 64-bit machines; the text says why."""


@dataclass(frozen=True)
class Entry:
    """A piece of device code in a container: kind, SM number, flags, and bytes in the file."""

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
    """A program or shared library.

    `calls` are ids of the modules whose host code it contains, in the order in which they
    register; `answers` are the ids of the modules of its image. A call for an id of `own` is bound
    to the file itself, whatever the loader finds elsewhere. `needs` are ids whose fat binaries its
    image refers to in other files. `images` are fat binaries that are registered, `modules` those
    of relocatable code. `faults` says what could not be read.
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
    own: set[bytes] = field(default_factory=set)
    calls: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    needs: set[bytes] = field(default_factory=set)
    images: list[Container] = field(default_factory=list)
    modules: list[Container] = field(default_factory=list)
    has_sections: bool = True
    module_count: int = -1
    faults: list[str] = field(default_factory=list)

    def add_fault(self, fault: str) -> None:
        """Note what could not be read, once."""
        if fault not in self.faults:
            self.faults.append(fault)

    @property
    def shown(self) -> str:
        """The path as messages have it: from the working directory on where it is below that."""
        return os.path.relpath(self.path) if self.path.startswith(_here()) else self.path

    @cached_property
    def defined_wrappers(self) -> set[bytes]:
        """The ids whose fat binaries other files find here."""
        return set(_ids(self.defined, WRAPPER))

    @property
    def has_device_code(self) -> bool:
        return bool(self.images or self.modules or self.calls or self.answers)


def _here() -> str:
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:
        return "\0"  # No path begins so.


def read_header(source: Source) -> tuple[int, int]:
    """e_type and e_machine of an ELF file; NotLinked for anything else, or for other machines'."""
    head = source.read(0, EHDR.size)
    if not head.startswith(b"\x7fELF"):
        raise NotLinked("it is not an ELF file")
    if not head.startswith(ELF_MARK):
        raise NotLinked("it is for a 32-bit or big-endian machine")
    if len(head) < EHDR.size:
        raise NotLinked("its ELF header is cut off")
    fields = EHDR.unpack(head)
    return fields[1], fields[2]


def read_linked_file(source: Source, path: str) -> LinkedFile:
    """Read a program or shared library; NotLinked for anything else."""
    kind, machine = read_header(source)
    if kind not in (ET_EXEC, ET_DYN):
        raise NotLinked("it is not a program or shared library")
    segments = list(_segments(source))
    file = LinkedFile(path, machine, kind == ET_EXEC)
    file.is_program |= any(segment[0] == PT_INTERP for segment in segments)
    _Dynamic(source, segments, file).read()
    _read_sections(source, file)
    if file.is_program:
        file.own |= {name for name in file.answers if REGISTER + name not in file.undefined}
    return file


def _segments(source: Source) -> Iterator[tuple[int, ...]]:
    head = EHDR.unpack(source.read(0, EHDR.size))
    start, width, count = head[5], head[9], head[10]
    if width != PHDR.size:
        return
    rows = source.read(start, count * width)
    yield from PHDR.iter_unpack(rows[: len(rows) - len(rows) % width])


class _Dynamic:
    """The reader of a file's dynamic segment."""

    def __init__(self, source: Source, segments: list[tuple[int, ...]], file: LinkedFile) -> None:
        self._source = source
        self._segments = segments
        self._file = file
        self._values: dict[int, int] = {}
        self._strings = b""

    def read(self) -> None:
        """Fill what the dynamic segment says into the file."""
        file = self._file
        rows = b""
        for kind, _, offset, _, _, size, *_ in self._segments:
            if kind == PT_DYNAMIC:
                rows = self._source.read(offset, min(size, _MOST_TABLE))
        needed: list[int] = []
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
        self._strings = self._table(get(_DT_STRTAB, 0), get(_DT_STRSZ, 0), "dynamic strings")
        file.needed = [text for text in map(self._text, needed) if text]
        file.soname = self._text(get(_DT_SONAME, -1))
        file.rpath = _paths(self._text(get(_DT_RPATH, -1)))
        file.runpath = _paths(self._text(get(_DT_RUNPATH, -1)))
        file.is_symbolic = _DT_SYMBOLIC in self._values or bool(get(_DT_FLAGS, 0) & _DF_SYMBOLIC)
        file.is_program |= bool(get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        symbols = self._symbols()
        registers = [name for name in symbols if name.startswith(REGISTER)]
        if any(name in file.defined for name in registers):
            relocated = self._relocated()
            file.own = {
                name[len(REGISTER) :]
                for number, name in enumerate(symbols)
                if name in file.defined
                and name.startswith(REGISTER)
                and (file.is_symbolic or number not in relocated)
            }

    def _symbols(self) -> list[bytes]:
        """The names of the dynamic symbols by number; fills those of the file."""
        file, strings = self._file, self._strings
        rows = self._table(
            self._values.get(_DT_SYMTAB, 0), self._count() * SYM.size, "dynamic symbols"
        )
        names = []
        for name, info, _, section, _, _ in SYM.iter_unpack(rows):
            end = strings.find(b"\0", name)
            text = strings[name:end] if end >= 0 else b""
            names.append(text)
            if not text or not info >> 4:
                continue
            if section:
                file.defined.add(text)
                if info & 15 == _STT_FUNC:
                    file.functions.add(text)
            else:
                file.undefined.add(text)
        return names

    def _count(self) -> int:
        """How many dynamic symbols there are, by one of the hash tables."""
        if _DT_HASH in self._values:
            head = self._table(self._values[_DT_HASH], 8, "hash table")
            return min(int.from_bytes(head[4:8], "little"), self._source.size // SYM.size)
        if _DT_GNU_HASH not in self._values:
            return 0
        place = self._values[_DT_GNU_HASH]
        head = self._table(place, 16, "hash table")
        if len(head) < 16:
            return 0
        first: int
        n_buckets, first, n_bloom, _ = struct.unpack("<IIII", head)
        buckets = self._table(place + 16 + 8 * n_bloom, 4 * n_buckets, "hash table")
        last = max(
            (row[0] for row in struct.iter_unpack("<I", buckets[: len(buckets) & ~3])), default=0
        )
        if last < first:
            return first  # Only undefined symbols.
        chains = place + 16 + 8 * n_bloom + 4 * n_buckets
        while last < self._source.size // SYM.size:
            # The last word of a chain is odd.
            chain = self._bytes(chains + 4 * (last - first), _CHAIN)
            end = chain[::4].translate(_IS_ODD).find(1)
            if end >= 0 or len(chain) < _CHAIN:
                return last + end + 1
            last += len(chain) // 4
        return self._source.size // SYM.size

    def _relocated(self) -> set[int]:
        """The numbers of the dynamic symbols that relocations name, which the loader looks up."""
        places: set[int] = set()
        for start, size in ((_DT_RELA, _DT_RELASZ), (_DT_JMPREL, _DT_PLTRELSZ)):
            rows = self._table(self._values.get(start, 0), self._values.get(size, 0), "relocations")
            whole = len(rows) - len(rows) % _RELOCATION_SYMBOL.size
            places |= {row[0] for row in _RELOCATION_SYMBOL.iter_unpack(rows[:whole])}
        return places

    def _table(self, address: int, size: int, noun: str) -> bytes:
        """The same as `_bytes`, with a fault where the file does not have them all."""
        rows = self._bytes(address, size)
        if len(rows) < size:
            self._file.add_fault(f"its {noun} are cut off")
        width = SYM.size if noun == "dynamic symbols" else 1
        return rows[: len(rows) - len(rows) % width]

    def _bytes(self, address: int, size: int) -> bytes:
        """The bytes at an address of the loaded file, as many as the file has there."""
        if address and size:
            for kind, _, offset, start, _, stored, *_ in self._segments:
                if kind == PT_LOAD and start <= address < start + stored:
                    within = address - start
                    wanted = min(size, stored - within, _MOST_TABLE)
                    return self._source.read(offset + within, wanted)
        return b""

    def _text(self, offset: int) -> str:
        end = self._strings.find(b"\0", offset) if offset >= 0 else -1
        return os.fsdecode(self._strings[offset:end]) if end >= 0 else ""


def _paths(text: str) -> list[str]:
    return [path for path in text.split(":") if path]


def _read_sections(source: Source, file: LinkedFile) -> None:
    """Fill in ids and fat binaries, which are in sections; without them, what symbols tell."""
    sections = sections_of(source)
    places = {section.name: section for section in sections}
    file.has_sections = bool(sections)
    listed: list[bytes] = []
    if "__nv_module_id" in places:
        places_of_ids = places["__nv_module_id"]
        text = source.read(
            places_of_ids.start, min(places_of_ids.end - places_of_ids.start, _MOST_IDS)
        )
        listed = [word for word in text.split(b"\0") if word]
    exported = _ids(file.defined, REGISTER)
    wanted = _ids(file.undefined, REGISTER)
    file.needs = set(_ids(file.undefined, WRAPPER))
    file.calls = module_ids(listed)
    answers = [word[len(DEFINED) :] for word in listed if word.startswith(DEFINED)]
    # A module that may be lent is registered here if it is here.
    lent = {name.removeprefix(LENT) for name in answers if name.startswith(LENT)}
    answers = [name for name in answers if not name.startswith(LENT)]
    file.answers = list(dict.fromkeys([*answers, *(name for name in file.calls if name in lent)]))
    if not listed:
        # Without that section, symbols still show what other files see.
        file.answers = exported
        file.calls = list(dict.fromkeys([*wanted, *_ids(file.defined, WRAPPER)]))
    known = {*exported, *wanted, *file.answers}
    false = [name for name in file.calls if name not in known]
    if false:
        file.add_fault(f"it names {len(false)} modules that no symbol registers")
        file.calls = [name for name in file.calls if name in known]
    # A call inside the file needs no dynamic symbol.
    file.own |= {name for name in file.answers if name not in {*exported, *wanted}}
    if ".nv_fatbin" in places:
        places_of_ids = places[".nv_fatbin"]
        file.images = _containers(source, places_of_ids.start, places_of_ids.end, file)
    if "__nv_relfatbin" in places:
        places_of_ids = places["__nv_relfatbin"]
        file.modules = _containers(source, places_of_ids.start, places_of_ids.end, file)
        file.module_count = len(file.modules)


def _ids(names: set[bytes], prefix: bytes) -> list[bytes]:
    """The ids in the names that begin so, in a fixed order."""
    return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))


def _containers(source: Source, start: int, end: int, file: LinkedFile) -> list[Container]:
    """The fat binaries from one offset to another, with anything between them."""
    containers = []
    at = start
    while at + CONTAINER.size <= end:
        head = source.read(at, CONTAINER.size)
        if not head.startswith(CONTAINER_MARK):
            window = source.read(at, min(_SEARCH, end - at))
            places = find_marks(window, (CONTAINER_MARK,))
            if not places:
                at += max(1, len(window) - len(CONTAINER_MARK) + 1)
                continue
            at += places[0][0]
            head = source.read(at, CONTAINER.size)
            if len(head) < CONTAINER.size:
                break
        first = at + CONTAINER.size
        last = first + CONTAINER.unpack(head)[3]
        if last > end:
            file.add_fault("a fat binary is cut off")
            last = end
        containers.append(Container(at, last, tuple(_entries(source, first, last, file))))
        at = last
    return containers


def _entries(source: Source, at: int, end: int, file: LinkedFile) -> Iterator[Entry]:
    while at < end:
        fields = entry_at(source, at, end)
        if fields is None:
            if any(source.read(at, min(end - at, _SEARCH))):
                file.add_fault("a fat binary is damaged")
            return
        kind, _, head, size = fields[:4]
        yield Entry(kind, fields[8], fields[11], size)
        at += head + size
