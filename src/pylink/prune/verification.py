"""A result is read again and compared with its input: what was to go is gone, all else is there.

This shares the reading of containers with what wrote the result, and nothing that wrote it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pylink.facts.elf import SHT_NOBITS, SHT_NULL
from pylink.facts.fatbinentries import FATBIN_MAGIC
from pylink.inspect.embedded import FATBIN_SECTIONS
from pylink.prune.archives import members
from pylink.prune.entries import Entry, read_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import SHT_RELA, SHT_SYMTAB, HostElf
from pylink.prune.rewriting import containers_of, is_archive, is_finished, is_host

if TYPE_CHECKING:
    from pylink.inspect.embedded import Embedded

_NAMES = [name.encode() for name in FATBIN_SECTIONS]


def verify(old: bytes, new: bytes, dropped: frozenset[tuple[int, int]], name: str) -> int:
    """How many payloads were compared; NotPruned where anything else than planned has changed."""
    return _Comparison(dropped).compare(old, new, name)


class _Comparison:
    def __init__(self, dropped: frozenset[tuple[int, int]]) -> None:
        self._dropped = dropped
        self._number = 0
        self.payloads = 0

    def compare(self, old: bytes, new: bytes, name: str) -> int:
        if is_archive(old):
            self._archives(old, new, name)
        elif is_host(old):
            self._hosts(old, new, name)
        elif old.startswith(FATBIN_MAGIC):
            self._outside(old, new, name, self._containers(old, new, name))
        elif old != new:
            raise _wrong(name, "bytes without device code changed")
        return self.payloads

    def _archives(self, old: bytes, new: bytes, name: str) -> None:
        before, after = members(old, name), members(new, name)
        if [member[0] for member in before] != [member[0] for member in after]:
            raise _wrong(name, "the members changed")
        for (label, _, start, size), (_, _, at, length) in zip(before, after, strict=True):
            self.compare(old[start : start + size], new[at : at + length], f"{name}:{label}")
        if _indexed(old, before) != _indexed(new, after):
            raise _wrong(name, "the index of symbols changed")

    def _containers(self, old: bytes, new: bytes, name: str) -> list[tuple[Embedded, Embedded]]:
        """Pairs of containers; their entries have been compared."""
        before, after = containers_of(old), containers_of(new)
        if len(before) != len(after):
            raise _wrong(name, "containers are gone")
        pairs = list(zip(before, after, strict=True))
        for was, now in pairs:
            label = f"{name}: container {self._number}"
            entries = read_container(old, was.start, was.end, label)
            entries_kept = [
                entry
                for index, entry in enumerate(entries)
                if (self._number, index) not in self._dropped
            ]
            self._number += 1
            container = read_container(new, now.start, now.end, label)
            if len(entries_kept) != len(container):
                raise _wrong(label, "the number of entries is wrong")
            for entry, other in zip(entries_kept, container, strict=True):
                self._entries(entry, other, label)
        return pairs

    def _entries(self, old: Entry, new: Entry, name: str) -> None:
        self.payloads += 1
        if old.identity != new.identity:
            raise _wrong(name, "the header of an entry changed")
        before, after = old.payload(name), new.payload(name)
        # What is stored ends with zeros up to a multiple of 8.
        shorter = min(len(before), len(after))
        rest = before[shorter:] + after[shorter:]
        if before[:shorter] != after[:shorter] or len(rest) > 7 or rest.strip(b"\0"):
            raise _wrong(name, "a payload changed")

    @staticmethod
    def _outside(old: bytes, new: bytes, name: str, pairs: list[tuple[Embedded, Embedded]]) -> None:
        """Bytes between containers are the same."""
        ends = [(0, 0), *((was.end, now.end) for was, now in pairs)]
        starts = [*((was.start, now.start) for was, now in pairs), (len(old), len(new))]
        for (a, b), (c, d) in zip(ends, starts, strict=True):
            if old[a:c] != new[b:d]:
                raise _wrong(name, "bytes outside of containers changed")

    def _hosts(self, old: bytes, new: bytes, name: str) -> None:
        pairs = self._containers(old, new, name)
        if is_finished(old):
            if len(old) != len(new) or any(was.start != now.start for was, now in pairs):
                raise _wrong(name, "containers moved")
            places = [(0, 0), *((was.start, was.end) for was, _ in pairs), (len(old), len(old))]
            for (_, end), (start, _) in pairwise(places):
                if old[end:start] != new[end:start]:
                    raise _wrong(name, "bytes outside of containers changed")
            for was, now in pairs:
                if new[now.end : was.end].strip(b"\0"):
                    raise _wrong(name, "bytes after a container are not zero")
            return
        _compare_objects(HostElf(old, name), HostElf(new, name), pairs)


def _compare_objects(old: HostElf, new: HostElf, pairs: list[tuple[Embedded, Embedded]]) -> None:
    """All sections but those of device code are the same; what refers to containers still does."""
    if len(old.sections) != len(new.sections) or old.header[:6] != new.header[:6]:
        raise _wrong(old.name, "the headers changed")
    moved: dict[int, dict[int, int]] = {}
    for number, (was, now) in enumerate(zip(old.sections, new.sections, strict=True)):
        if was.fields[:4] != now.fields[:4] or was.fields[6:] != now.fields[6:]:
            raise _wrong(old.name, f"section {number} changed")
        if was.name in _NAMES:
            moved[number] = {
                a.start - was.offset: b.start - now.offset
                for a, b in pairs
                if was.offset <= a.start < was.offset + was.stored
            } | {was.size: now.size}
        elif was.kind in (SHT_SYMTAB, SHT_RELA):
            continue
        elif was.size != now.size or old.contents(was) != new.contents(now):
            raise _wrong(old.name, f"section {number} changed")
        if was.kind not in (SHT_NULL, SHT_NOBITS) and now.offset % max(1, now.fields[8]):
            raise _wrong(old.name, f"section {number} is not aligned")
    for was, now in zip(old.sections, new.sections, strict=True):
        if was.kind == SHT_SYMTAB:
            _compare_symbols(old, old.contents(was), new.contents(now), moved)
        elif was.kind == SHT_RELA:
            _compare_relocations(old, new, old.sections.index(was), moved)


def _compare_symbols(
    old: HostElf, before: bytes, after: bytes, moved: dict[int, dict[int, int]]
) -> None:
    """Symbols are the same, except for the value of those in sections that changed."""
    if len(before) != len(after):
        raise _wrong(old.name, "symbols changed")
    for at in range(0, len(before), 24):
        section = int.from_bytes(before[at + 6 : at + 8], "little")
        value, now = (int.from_bytes(data[at + 8 : at + 16], "little") for data in (before, after))
        if (
            before[at : at + 8] != after[at : at + 8]
            or before[at + 16 : at + 24] != after[at + 16 : at + 24]
            or now != moved.get(section, {}).get(value, value)
        ):
            raise _wrong(old.name, "a symbol changed")


def _compare_relocations(
    old: HostElf, new: HostElf, number: int, moved: dict[int, dict[int, int]]
) -> None:
    table = old.sections[number]
    before, after = old.contents(table), new.contents(new.sections[number])
    link = table.fields[6]
    symbols = (
        list(old.symbols(old.sections[link]))
        if link < len(old.sections) and old.sections[link].kind == SHT_SYMTAB
        else []
    )
    if len(before) != len(after):
        raise _wrong(old.name, "relocations changed")
    for at in range(0, len(before) - 23, 24):
        if before[at : at + 16] != after[at : at + 16]:
            raise _wrong(old.name, "a relocation changed")
        symbol = int.from_bytes(before[at + 12 : at + 16], "little")
        addend, now = (
            int.from_bytes(data[at + 16 : at + 24], "little", signed=True)
            for data in (before, after)
        )
        section = symbols[symbol][1] if symbol < len(symbols) and symbols[symbol][3] == 3 else 0
        if now != moved.get(section, {}).get(addend, addend):
            raise _wrong(old.name, "an addend changed")


def _indexed(data: bytes, rows: list[tuple[str, int, int, int]]) -> list[tuple[bytes, int]]:
    """Symbols of the index with the number of the member that each names."""
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


def _wrong(name: str, reason: str) -> NotPruned:
    return NotPruned(f"{name}: the result is not as planned: {reason}; nothing was written")
