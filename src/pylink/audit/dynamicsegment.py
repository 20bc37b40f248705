"""Reads the dynamic segment of a program or shared library like the loader, by program headers.

Its tables give the names of needed libraries and of dynamic symbols. Damage is recorded in
`LinkedFile.faults`, and the rest of the segment is used.
"""

from __future__ import annotations

import os
import struct

from pylink.facts import dynamictags as tags
from pylink.facts.elf import PT_DYNAMIC, PT_LOAD, STB_LOCAL, STT_FUNC
from pylink.facts.fatbinentries import REGISTER_PREFIX
from pylink.facts.records import DYN, SYM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.audit.model import LinkedFile
    from pylink.facts.headers import SegmentHeader
    from pylink.inspect.embedded import ByteSource

_RELOCATION_SYMBOL = struct.Struct("<12xI8x")  # of a RELA entry, only the number of its symbol

# Limit of the bytes that are read of one table. The largest known libraries with device code have a
# symbol table of 40 MB.
_MOST_TABLE_BYTES = 1 << 29
_CHAIN_WINDOW = 1 << 16  # bytes that are read at once of a chain of a hash table
# Table for bytes.translate: it translates each byte to its lowest bit.
_LOWEST_BIT = bytes(number & 1 for number in range(256))


class DynamicSegment:
    """The reader of a file's dynamic segment."""

    def __init__(self, source: ByteSource, segments: list[SegmentHeader], file: LinkedFile) -> None:
        self._source = source
        self._segments = segments
        self._file = file
        self._values: dict[int, int] = {}  # by tag: its first value; without DT_NEEDED
        self._strings = b""  # contents of .dynstr

    def read(self) -> None:
        """Fill in the attributes of the LinkedFile that come from the dynamic segment."""
        file = self._file
        rows = b""
        for segment in self._segments:
            if segment.type == PT_DYNAMIC:
                rows = self._source.read(segment.offset, min(segment.filesz, _MOST_TABLE_BYTES))
        needed: list[int] = []  # offsets of names
        for tag, value in DYN.iter_unpack(rows[: len(rows) - len(rows) % DYN.size]):
            if tag == tags.DT_NULL:
                break
            if tag == tags.DT_NEEDED:
                needed.append(value)
            else:
                self._values.setdefault(tag, value)
        if not rows:
            return
        get = self._values.get
        self._strings = self._read_table(
            get(tags.DT_STRTAB, 0), get(tags.DT_STRSZ, 0), "dynamic strings"
        )
        file.needed = [text for text in map(self._string_at, needed) if text]
        file.soname = self._string_at(get(tags.DT_SONAME, -1))
        file.rpath = _split_paths(self._string_at(get(tags.DT_RPATH, -1)))
        file.runpath = _split_paths(self._string_at(get(tags.DT_RUNPATH, -1)))
        file.is_symbolic = tags.DT_SYMBOLIC in self._values or bool(
            get(tags.DT_FLAGS, 0) & tags.DF_SYMBOLIC
        )
        file.is_program |= bool(get(tags.DT_FLAGS_1, 0) & tags.DF_1_PIE)
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
        """Return the names of the dynamic symbols by number.

        Also fills in the name sets of the file.
        """
        file, strings = self._file, self._strings
        rows = self._read_table(
            self._values.get(tags.DT_SYMTAB, 0), self._count_symbols() * SYM.size, "dynamic symbols"
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
        """Return the number of dynamic symbols, from one of the hash tables; 0 without one.

        DT_HASH states it in its second word. DT_GNU_HASH has a header of four words, a bloom filter
        of words of 8 bytes, the first symbol of each bucket, and a word for each symbol from number
        `first` on. The last symbol is at the end of the chain that begins last.
        """
        if tags.DT_HASH in self._values:
            head = self._read_table(self._values[tags.DT_HASH], 8, "hash table")
            return min(int.from_bytes(head[4:8], "little"), self._source.size // SYM.size)
        if tags.DT_GNU_HASH not in self._values:
            return 0
        start = self._values[tags.DT_GNU_HASH]
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
        """Return the numbers of the dynamic symbols that relocations name.

        The loader looks up these symbols by name, so it may bind them to another file.
        """
        symbol_numbers: set[int] = set()
        values = self._values
        for start, size in ((tags.DT_RELA, tags.DT_RELASZ), (tags.DT_JMPREL, tags.DT_PLTRELSZ)):
            rows = self._read_table(values.get(start, 0), values.get(size, 0), "relocations")
            rows_size = len(rows) - len(rows) % _RELOCATION_SYMBOL.size
            symbol_numbers |= {row[0] for row in _RELOCATION_SYMBOL.iter_unpack(rows[:rows_size])}
        return symbol_numbers

    def _read_table(self, address: int, size: int, noun: str) -> bytes:
        """Return the `size` bytes of a table, or those that the file has, by `_read_address`.

        If bytes are missing, the file gets a fault that calls the table `noun`, and of dynamic
        symbols only whole rows are returned.
        """
        rows = self._read_address(address, size)
        if len(rows) < size:
            self._file.add_fault(f"its {noun} are cut off")
        row_size = SYM.size if noun == "dynamic symbols" else 1
        return rows[: len(rows) - len(rows) % row_size]

    def _read_address(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes at an address of the loaded file: those that a segment has."""
        if address and size:
            for segment in self._segments:
                offset = address - segment.vaddr
                if segment.type == PT_LOAD and 0 <= offset < segment.filesz:
                    available = min(size, segment.filesz - offset, _MOST_TABLE_BYTES)
                    return self._source.read(segment.offset + offset, available)
        return b""

    def _string_at(self, offset: int) -> str:
        """Return the dynamic string at an offset.

        It is empty for a negative offset or a damaged string.
        """
        end = self._strings.find(b"\0", offset) if offset >= 0 else -1
        return os.fsdecode(self._strings[offset:end]) if end >= 0 else ""


def _split_paths(text: str) -> list[str]:
    """Return the directories in a text in which colons separate them."""
    return [path for path in text.split(":") if path]
