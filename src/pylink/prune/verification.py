"""Reads a result again and compares it with its input: only the planned entries may be missing.

This shares code with the writer only for reading containers, never for writing.
"""

from __future__ import annotations

from itertools import pairwise

from pylink.facts.elf import SHT_NOBITS, SHT_NULL, SHT_RELA, SHT_SYMTAB, STT_SECTION
from pylink.facts.fatbinentries import FATBIN_MAGIC
from pylink.facts.records import RELA, SYM
from pylink.inspect.embedded import FATBIN_SECTIONS
from pylink.prune.archives import members
from pylink.prune.entries import FatbinEntry, read_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf
from pylink.prune.rewriting import containers_of, is_archive, is_finished, is_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inspect.embedded import Embedded

_NAMES = [name.encode() for name in FATBIN_SECTIONS]


def verify(old: bytes, new: bytes, dropped: frozenset[tuple[int, int]], name: str) -> int:
    """Compare and return the number of payloads; NotPruned at any change that was not planned."""
    return _Comparison(dropped).compare(old, new, name)


class _Comparison:
    def __init__(self, dropped: frozenset[tuple[int, int]]) -> None:
        self._dropped = dropped
        self._number = 0
        self.payloads = 0

    def compare(self, old: bytes, new: bytes, name: str) -> int:
        if is_archive(old):
            self._compare_archives(old, new, name)
        elif is_host(old):
            self._compare_hosts(old, new, name)
        elif old.startswith(FATBIN_MAGIC):
            self._compare_outside(old, new, name, self._compare_containers(old, new, name))
        elif old != new:
            raise _mismatch(name, "bytes without device code changed")
        return self.payloads

    def _compare_archives(self, old: bytes, new: bytes, name: str) -> None:
        before, after = members(old, name), members(new, name)
        if [member[0] for member in before] != [member[0] for member in after]:
            raise _mismatch(name, "the members changed")
        for (label, _, start, size), (_, _, at, length) in zip(before, after, strict=True):
            self.compare(old[start : start + size], new[at : at + length], f"{name}:{label}")
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
        for old_place, new_place in pairs:
            label = f"{name}: container {self._number}"
            entries = read_container(old, old_place.start, old_place.end, label)
            entries_kept = [
                entry
                for index, entry in enumerate(entries)
                if (self._number, index) not in self._dropped
            ]
            self._number += 1
            container = read_container(new, new_place.start, new_place.end, label)
            if len(entries_kept) != len(container):
                raise _mismatch(label, "the number of entries is wrong")
            for entry, other in zip(entries_kept, container, strict=True):
                self._compare_entries(entry, other, label)
        return pairs

    def _compare_entries(self, old: FatbinEntry, new: FatbinEntry, name: str) -> None:
        self.payloads += 1
        if old.identity != new.identity:
            raise _mismatch(name, "the header of an entry changed")
        before, after = old.payload(name), new.payload(name)
        # Stored payloads are padded with zeros to a multiple of 8.
        shorter = min(len(before), len(after))
        padding = before[shorter:] + after[shorter:]
        if before[:shorter] != after[:shorter] or len(padding) > 7 or padding.strip(b"\0"):
            raise _mismatch(name, "a payload changed")

    @staticmethod
    def _compare_outside(
        old: bytes, new: bytes, name: str, pairs: list[tuple[Embedded, Embedded]]
    ) -> None:
        """Require equal bytes between containers."""
        ends = [(0, 0), *((old_place.end, new_place.end) for old_place, new_place in pairs)]
        starts = [
            *((old_place.start, new_place.start) for old_place, new_place in pairs),
            (len(old), len(new)),
        ]
        for (a, b), (c, d) in zip(ends, starts, strict=True):
            if old[a:c] != new[b:d]:
                raise _mismatch(name, "bytes outside of containers changed")

    def _compare_hosts(self, old: bytes, new: bytes, name: str) -> None:
        pairs = self._compare_containers(old, new, name)
        if is_finished(old):
            if len(old) != len(new) or any(
                old_place.start != new_place.start for old_place, new_place in pairs
            ):
                raise _mismatch(name, "containers moved")
            places = [
                (0, 0),
                *((old_place.start, old_place.end) for old_place, _ in pairs),
                (len(old), len(old)),
            ]
            for (_, end), (start, _) in pairwise(places):
                if old[end:start] != new[end:start]:
                    raise _mismatch(name, "bytes outside of containers changed")
            for old_place, new_place in pairs:
                if new[new_place.end : old_place.end].strip(b"\0"):
                    raise _mismatch(name, "bytes after a container are not zero")
            return
        _compare_objects(HostElf(old, name), HostElf(new, name), pairs)


def _compare_objects(old: HostElf, new: HostElf, pairs: list[tuple[Embedded, Embedded]]) -> None:
    """Require equal sections outside of device code, and references to the same containers."""
    if len(old.sections) != len(new.sections) or old.header._replace(
        shoff=0
    ) != new.header._replace(shoff=0):
        raise _mismatch(old.name, "the headers changed")
    moved: dict[int, dict[int, int]] = {}
    for number, (old_section, new_section) in enumerate(
        zip(old.sections, new.sections, strict=True)
    ):
        if old_section.header._replace(offset=0, size=0) != new_section.header._replace(
            offset=0, size=0
        ):
            raise _mismatch(old.name, f"section {number} changed")
        if old_section.name in _NAMES:
            moved[number] = {
                a.start - old_section.offset: b.start - new_section.offset
                for a, b in pairs
                if old_section.offset <= a.start < old_section.offset + old_section.stored
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
    """Require equal symbols, except for the values of those in changed sections."""
    if len(before) != len(after):
        raise _mismatch(old.name, "symbols changed")
    for row_offset in range(0, len(before), SYM.size):
        section = int.from_bytes(before[row_offset + 6 : row_offset + 8], "little")
        value, new_value = (
            int.from_bytes(data[row_offset + 8 : row_offset + 16], "little")
            for data in (before, after)
        )
        if (
            before[row_offset : row_offset + 8] != after[row_offset : row_offset + 8]
            or before[row_offset + 16 : row_offset + 24] != after[row_offset + 16 : row_offset + 24]
            or new_value != moved.get(section, {}).get(value, value)
        ):
            raise _mismatch(old.name, "a symbol changed")


def _compare_relocations(
    old: HostElf, new: HostElf, number: int, moved: dict[int, dict[int, int]]
) -> None:
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
        if before[row_offset : row_offset + 16] != after[row_offset : row_offset + 16]:
            raise _mismatch(old.name, "a relocation changed")
        symbol = int.from_bytes(before[row_offset + 12 : row_offset + 16], "little")
        addend, new_addend = (
            int.from_bytes(data[row_offset + 16 : row_offset + 24], "little", signed=True)
            for data in (before, after)
        )
        places: dict[int, int] = {}
        if symbol < len(symbols) and symbols[symbol].kind == STT_SECTION:
            places = moved.get(symbols[symbol].section, places)
        if new_addend != places.get(addend, addend):
            raise _mismatch(old.name, "an addend changed")


def _read_index(data: bytes, rows: list[tuple[str, int, int, int]]) -> list[tuple[bytes, int]]:
    """Symbols of the archive's index, each with the number of its member."""
    numbers = {header: number for number, (_, header, _, _) in enumerate(rows)}
    head = data[8:68]
    width = {b"/": 4, b"/SYM64/": 8}.get(head[:16].rstrip())
    if width is None:
        return []
    body = data[68 : 68 + int(head[48:58])]
    count = int.from_bytes(body[:width], "big")
    names = body[width * (count + 1) :].split(b"\0")
    places = [int.from_bytes(body[width * n : width * (n + 1)], "big") for n in range(1, count + 1)]
    return [(name, numbers.get(place, -1)) for name, place in zip(names, places, strict=False)]


def _mismatch(name: str, reason: str) -> NotPruned:
    return NotPruned(f"{name}: the result is not as planned: {reason}; nothing was written")
