"""Reads a result again and compares it with its input: only the planned entries may be missing.

This shares code with the writer only for reading files and containers, never for writing.
"""

from __future__ import annotations

from itertools import pairwise

from pylink.facts.archiveheaders import HEADER_SIZE
from pylink.facts.elf import SHT_NOBITS, SHT_NULL, SHT_RELA, SHT_SYMTAB, STT_SECTION
from pylink.facts.fatbinentries import FATBIN_MAGIC, FATBIN_SECTIONS
from pylink.facts.records import RELA, SYM
from pylink.inputs.archiveformat import MAGIC
from pylink.prune.archives import INDEX_WIDTHS, NAME_FIELD, SIZE_FIELD, read_members
from pylink.prune.entries import FatbinEntry, read_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf
from pylink.prune.rewriting import containers_of, is_archive, is_finished, is_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inspect.embedded import Embedded
    from pylink.prune.archives import Member

_FATBIN_SECTIONS = [name.encode() for name in FATBIN_SECTIONS]


def verify(old: bytes, new: bytes, dropped: frozenset[tuple[int, int]], name: str) -> int:
    """Compare two files, and return the number of payloads compared; NotPruned if they differ.

    Only the entries whose keys are in `dropped` (see `Changes`) may be missing from `new`, and
    entries may be compressed differently.
    """
    return _Comparison(dropped).compare(old, new, name)


class _Comparison:
    """Compares files, and counts the compared payloads.

    Containers are numbered as in `Changes`: in the order in which they are read.
    """

    def __init__(self, dropped: frozenset[tuple[int, int]]) -> None:
        self._dropped = dropped
        self._number = 0  # of the next container
        self.payload_count = 0

    def compare(self, old: bytes, new: bytes, name: str) -> int:
        """Compare a file, or a member of an archive; return the number of payloads so far."""
        if is_archive(old):
            self._compare_archives(old, new, name)
        elif is_host(old):
            self._compare_hosts(old, new, name)
        elif old.startswith(FATBIN_MAGIC):
            self._compare_outside(old, new, name, self._compare_containers(old, new, name))
        elif old != new:
            raise _mismatch(name, "bytes without device code changed")
        return self.payload_count

    def _compare_archives(self, old: bytes, new: bytes, name: str) -> None:
        """Compare the members of two archives, and their symbol indices."""
        before, after = read_members(old, name), read_members(new, name)
        if [member.name for member in before] != [member.name for member in after]:
            raise _mismatch(name, "the members changed")
        for member, new_member in zip(before, after, strict=True):
            self.compare(
                old[member.offset : member.offset + member.size],
                new[new_member.offset : new_member.offset + new_member.size],
                f"{name}:{member.name}",
            )
        if _read_index(old, before) != _read_index(new, after):
            raise _mismatch(name, "the index of symbols changed")

    def _compare_containers(
        self, old: bytes, new: bytes, name: str
    ) -> list[tuple[Embedded, Embedded]]:
        """Compare the entries of all containers; return the pairs of containers."""
        before, after = containers_of(old), containers_of(new)
        if len(before) != len(after):
            raise _mismatch(name, "containers are gone")
        pairs = list(zip(before, after, strict=True))
        for old_code, new_code in pairs:
            label = f"{name}: container {self._number}"
            entries = read_container(old, old_code.start, old_code.end, label)
            expected = [
                entry
                for index, entry in enumerate(entries)
                if (self._number, index) not in self._dropped
            ]
            self._number += 1
            new_entries = read_container(new, new_code.start, new_code.end, label)
            if len(expected) != len(new_entries):
                raise _mismatch(label, "the number of entries is wrong")
            for entry, new_entry in zip(expected, new_entries, strict=True):
                self._compare_entries(entry, new_entry, label)
        return pairs

    def _compare_entries(self, old: FatbinEntry, new: FatbinEntry, name: str) -> None:
        """Require equal headers, except for compression, and equal payloads."""
        self.payload_count += 1
        if old.identity != new.identity:
            raise _mismatch(name, "the header of an entry changed")
        before, after = old.payload(name), new.payload(name)
        # Stored payloads are padded with zeros to a multiple of 8.
        size = min(len(before), len(after))
        padding = before[size:] + after[size:]
        if before[:size] != after[:size] or len(padding) > 7 or padding.strip(b"\0"):
            raise _mismatch(name, "a payload changed")

    @staticmethod
    def _compare_outside(
        old: bytes, new: bytes, name: str, pairs: list[tuple[Embedded, Embedded]]
    ) -> None:
        """Require equal bytes before, between and after the containers in `pairs`."""
        ends = [(0, 0), *((old_code.end, new_code.end) for old_code, new_code in pairs)]
        starts = [
            *((old_code.start, new_code.start) for old_code, new_code in pairs),
            (len(old), len(new)),
        ]
        for (old_end, new_end), (old_start, new_start) in zip(ends, starts, strict=True):
            if old[old_end:old_start] != new[new_end:new_start]:
                raise _mismatch(name, "bytes outside of containers changed")

    def _compare_hosts(self, old: bytes, new: bytes, name: str) -> None:
        """Compare host ELF files: device code, and everything around it."""
        pairs = self._compare_containers(old, new, name)
        if is_finished(old):
            if len(old) != len(new) or any(
                old_code.start != new_code.start for old_code, new_code in pairs
            ):
                raise _mismatch(name, "containers moved")
            bounds = [
                (0, 0),
                *((old_code.start, old_code.end) for old_code, _ in pairs),
                (len(old), len(old)),
            ]
            for (_, end), (start, _) in pairwise(bounds):
                if old[end:start] != new[end:start]:
                    raise _mismatch(name, "bytes outside of containers changed")
            for old_code, new_code in pairs:
                if new[new_code.end : old_code.end].strip(b"\0"):
                    raise _mismatch(name, "bytes after a container are not zero")
            return
        _compare_objects(HostElf(old, name), HostElf(new, name), pairs)


def _compare_objects(old: HostElf, new: HostElf, pairs: list[tuple[Embedded, Embedded]]) -> None:
    """Require equal sections outside of device code, and references to the same containers."""
    if len(old.sections) != len(new.sections) or old.header._replace(
        shoff=0
    ) != new.header._replace(shoff=0):
        raise _mismatch(old.name, "the headers changed")
    moved: dict[int, dict[int, int]] = {}  # new offsets by section number and old offset
    for number, (old_section, new_section) in enumerate(
        zip(old.sections, new.sections, strict=True)
    ):
        if old_section.header._replace(offset=0, size=0) != new_section.header._replace(
            offset=0, size=0
        ):
            raise _mismatch(old.name, f"section {number} changed")
        if old_section.name in _FATBIN_SECTIONS:
            moved[number] = {
                old_code.start - old_section.offset: new_code.start - new_section.offset
                for old_code, new_code in pairs
                if old_section.offset <= old_code.start < old_section.offset + old_section.stored
            } | {old_section.size: new_section.size}
        elif old_section.kind in (SHT_SYMTAB, SHT_RELA):
            continue
        elif old_section.size != new_section.size or old.contents(old_section) != new.contents(
            new_section
        ):
            raise _mismatch(old.name, f"section {number} changed")
        if old_section.kind not in (SHT_NULL, SHT_NOBITS) and new_section.offset % max(
            1, new_section.header.addralign
        ):
            raise _mismatch(old.name, f"section {number} is not aligned")
    for old_section, new_section in zip(old.sections, new.sections, strict=True):
        if old_section.kind == SHT_SYMTAB:
            _compare_symbols(old, old.contents(old_section), new.contents(new_section), moved)
        elif old_section.kind == SHT_RELA:
            _compare_relocations(old, new, old.sections.index(old_section), moved)


def _compare_symbols(
    old: HostElf, before: bytes, after: bytes, moved: dict[int, dict[int, int]]
) -> None:
    """Require equal symbols, except that values in changed sections are the new offsets.

    `moved` has these by section number and old offset.
    """
    if len(before) != len(after):
        raise _mismatch(old.name, "symbols changed")
    rows_size = len(before) - len(before) % SYM.size
    if before[rows_size:] != after[rows_size:]:
        raise _mismatch(old.name, "symbols changed")
    for row_offset in range(0, rows_size, SYM.size):
        *head, section, value, size = SYM.unpack_from(before, row_offset)
        *new_head, new_section, new_value, new_size = SYM.unpack_from(after, row_offset)
        if (head, section, size) != (new_head, new_section, new_size) or new_value != moved.get(
            section, {}
        ).get(value, value):
            raise _mismatch(old.name, "a symbol changed")


def _compare_relocations(
    old: HostElf, new: HostElf, number: int, moved: dict[int, dict[int, int]]
) -> None:
    """Require equal relocations in section `number`; addends in changed sections are new offsets.

    `moved` has these by section number and old offset.
    """
    table = old.sections[number]
    before, after = old.contents(table), new.contents(new.sections[number])
    link = table.header.link
    symbols = (
        list(old.symbols(old.sections[link]))
        if link < len(old.sections) and old.sections[link].kind == SHT_SYMTAB
        else []
    )
    if len(before) != len(after):
        raise _mismatch(old.name, "relocations changed")
    for row_offset in range(0, len(before) - RELA.size + 1, RELA.size):
        *head, symbol, addend = RELA.unpack_from(before, row_offset)
        *new_head, new_symbol, new_addend = RELA.unpack_from(after, row_offset)
        if (head, symbol) != (new_head, new_symbol):
            raise _mismatch(old.name, "a relocation changed")
        new_offsets: dict[int, int] = {}
        if symbol < len(symbols) and symbols[symbol].kind == STT_SECTION:
            new_offsets = moved.get(symbols[symbol].section, new_offsets)
        if new_addend != new_offsets.get(addend, addend):
            raise _mismatch(old.name, "an addend changed")


def _read_index(data: bytes, members: list[Member]) -> list[tuple[bytes, int]]:
    """Return the symbols of an archive's index, each with the number of its member.

    The result is empty if the archive does not begin with an index. The number is -1 if no member
    is at the offset in the index.
    """
    number_of = {member.header: number for number, member in enumerate(members)}
    body_start = len(MAGIC) + HEADER_SIZE
    head = data[len(MAGIC) : body_start]
    width = INDEX_WIDTHS.get(head[NAME_FIELD].rstrip())
    if width is None:
        return []
    body = data[body_start : body_start + int(head[SIZE_FIELD])]
    count = int.from_bytes(body[:width], "big")
    names = body[width * (count + 1) :].split(b"\0")
    headers = [
        int.from_bytes(body[width * n : width * (n + 1)], "big") for n in range(1, count + 1)
    ]
    return [(name, number_of.get(header, -1)) for name, header in zip(names, headers, strict=False)]


def _mismatch(name: str, reason: str) -> NotPruned:
    """Make the exception for a change that was not planned."""
    return NotPruned(f"{name}: the result is not as planned: {reason}; nothing was written")
