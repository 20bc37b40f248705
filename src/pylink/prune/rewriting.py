"""One file pruned: whatever holds the containers is written around what stays of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylink.facts.elf import EM_CUDA, ET_DYN, ET_EXEC
from pylink.facts.fatbinentries import FATBIN_MAGIC
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC
from pylink.inspect.embedded import (
    ELF_MARK,
    FATBIN_SECTIONS,
    Embedded,
    InMemory,
    find_device_code,
    sections_of,
)
from pylink.prune.archives import with_members
from pylink.prune.entries import Changes, read_container, write_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf, with_contents

if TYPE_CHECKING:
    from collections.abc import Iterator


def containers_of(data: bytes) -> list[Embedded]:
    """The containers of anything but an archive, in order."""
    source = InMemory(data)
    return [code for code in find_device_code(source, sections_of(source)) if code.is_container]


def is_archive(data: bytes) -> bool:
    return data.startswith((MAGIC, THIN_MAGIC))


def is_host(data: bytes) -> bool:
    return data.startswith(ELF_MARK) and int.from_bytes(data[18:20], "little") != EM_CUDA


def is_finished(data: bytes) -> bool:
    """Whether it is a library or program."""
    return is_host(data) and int.from_bytes(data[16:18], "little") in (ET_EXEC, ET_DYN)


class Rewriter:
    """Writes a file with changes; containers have numbers in the order in which they are met."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._number = 0

    def rewrite(self, data: bytes, name: str) -> bytes:
        """All of a file, or a member of an archive; NotPruned where that cannot be done."""
        if is_archive(data):
            return with_members(data, name, self.rewrite)
        if data.startswith(FATBIN_MAGIC):
            return self._fatbin(data, name)
        if is_host(data):
            return self._finished(data, name) if is_finished(data) else self._object(data, name)
        return data

    def _containers(self, data: bytes, name: str) -> Iterator[tuple[Embedded, bytes]]:
        """Each container, and what stays of it."""
        for code in containers_of(data):
            label = f"{name}: container {self._number}"
            entries = read_container(data, code.start, code.end, label)
            entries_kept = self._changes.apply(self._number, entries, label)
            self._number += 1
            yield (
                code,
                data[code.start : code.end]
                if entries_kept == entries
                else write_container(entries_kept),
            )

    def _fatbin(self, data: bytes, name: str) -> bytes:
        rewritten, done = bytearray(), 0
        for code, stays in self._containers(data, name):
            rewritten += data[done : code.start] + stays
            done = code.end
        return bytes(rewritten + data[done:])

    def _object(self, data: bytes, name: str) -> bytes:
        """An object: sections of device code shrink, and references to containers follow."""
        by_section: dict[int, list[tuple[Embedded, bytes]]] = {}
        elf = HostElf(data, name)
        for code, stays in self._containers(data, name):
            number = self._section(elf, code)
            if number is None:
                if data[code.start : code.end] != stays:
                    raise NotPruned(f"{name}: device code outside of sections for it")
                continue
            by_section.setdefault(number, []).append((code, stays))
        new = {
            number: _packed(elf, number, pairs)
            for number, pairs in by_section.items()
            if any(data[code.start : code.end] != stays for code, stays in pairs)
        }
        return with_contents(elf, new) if new else data

    @staticmethod
    def _section(elf: HostElf, code: Embedded) -> int | None:
        for number, section in enumerate(elf.sections):
            if section.name.decode("utf-8", "replace") in FATBIN_SECTIONS and (
                section.offset <= code.start and code.end <= section.offset + section.stored
            ):
                return number
        return None

    def _finished(self, data: bytes, name: str) -> bytes:
        """A library or program: entries move to the front, zeros follow, and nothing else moves."""
        rewritten = bytearray(data)
        for code, stays in self._containers(data, name):
            room = code.end - code.start
            if len(stays) > room:
                raise NotPruned(f"{name}: what stays of a container does not fit into it")
            rewritten[code.start : code.end] = stays + bytes(room - len(stays))
        return bytes(rewritten)


def _packed(
    elf: HostElf, number: int, pairs: list[tuple[Embedded, bytes]]
) -> tuple[bytes, dict[int, int]]:
    """The contents of a section, and where the containers were and are."""
    section = elf.sections[number]
    old = elf.contents(section)
    data = bytearray()
    places = {}
    done = 0
    for code, stays in pairs:
        start = code.start - section.offset
        if old[done:start].strip(b"\0"):
            raise NotPruned(f"{elf.name}: bytes between containers that are not zero")
        # Containers were aligned to 8, or more in front of the first.
        data += bytes(-len(data) % 8) if data else old[:start]
        places[start] = len(data)
        data += stays
        done = code.end - section.offset
    if old[done:].strip(b"\0"):
        raise NotPruned(f"{elf.name}: bytes after containers that are not zero")
    places[len(old)] = len(data)
    places.setdefault(0, 0)
    return bytes(data), places
