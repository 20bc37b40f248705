"""Rewrites one file: its containers, and the object, archive or program around them."""

from __future__ import annotations

from pylink.facts.elf import EM_CUDA, ET_DYN, ET_EXEC
from pylink.facts.fatbinentries import FATBIN_MAGIC, FATBIN_SECTIONS, padding
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC
from pylink.inputs.kinds import MACHINE
from pylink.inspect.embedded import (
    ELF_MARK,
    Embedded,
    InMemory,
    find_device_code,
    sections_of,
)
from pylink.prune.archives import rewrite_members
from pylink.prune.entries import Changes, make_container, read_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf, replace_contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


E_TYPE = slice(16, 18)  # field of an ELF header


def containers_of(data: bytes) -> list[Embedded]:
    """Return the containers of a file that is not an archive, in order."""
    source = InMemory(data)
    return [code for code in find_device_code(source, sections_of(source)) if code.is_container]


def is_archive(data: bytes) -> bool:
    return data.startswith((MAGIC, THIN_MAGIC))


def is_host(data: bytes) -> bool:
    """Return whether a file is an ELF file for a host machine."""
    return data.startswith(ELF_MARK) and int.from_bytes(data[MACHINE], "little") != EM_CUDA


def is_finished(data: bytes) -> bool:
    """Return whether a file is a library or program, which the host linker made."""
    return is_host(data) and int.from_bytes(data[E_TYPE], "little") in (ET_EXEC, ET_DYN)


class Rewriter:
    """Applies changes to a file; containers are numbered in the order in which they are read."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._number = 0  # of the next container

    def rewrite(self, data: bytes, name: str) -> bytes:
        """Return the new bytes of a file or a member of an archive; NotPruned if impossible.

        Files that are not archives, fat binaries or host ELF files are returned as they are.
        """
        if is_archive(data):
            return rewrite_members(data, name, self.rewrite)
        if data.startswith(FATBIN_MAGIC):
            return self._rewrite_fatbin(data, name)
        if is_host(data):
            return (
                self._rewrite_finished(data, name)
                if is_finished(data)
                else self._rewrite_object(data, name)
            )
        return data

    def _containers(self, data: bytes, name: str) -> Iterator[tuple[Embedded, bytes]]:
        """Yield each container with its new bytes."""
        for code in containers_of(data):
            label = f"{name}: container {self._number}"
            entries = read_container(data, code.start, code.end, label)
            remaining = self._changes.apply(self._number, entries, label)
            self._number += 1
            yield (
                code,
                data[code.start : code.end] if remaining == entries else make_container(remaining),
            )

    def _rewrite_fatbin(self, data: bytes, name: str) -> bytes:
        """Replace the containers of a fat binary; bytes between them stay."""
        rewritten, copied_end = bytearray(), 0
        for code, replacement in self._containers(data, name):
            rewritten += data[copied_end : code.start] + replacement
            copied_end = code.end
        return bytes(rewritten + data[copied_end:])

    def _rewrite_object(self, data: bytes, name: str) -> bytes:
        """Replace the containers in sections of an object, and update references to them.

        NotPruned if a container that changes is outside of the sections for device code.
        """
        by_section: dict[int, list[tuple[Embedded, bytes]]] = {}
        elf = HostElf(data, name)
        for code, replacement in self._containers(data, name):
            number = self._find_section(elf, code)
            if number is None:
                if data[code.start : code.end] != replacement:
                    raise NotPruned(f"{name}: device code outside of sections for it")
                continue
            by_section.setdefault(number, []).append((code, replacement))
        new = {
            number: _pack_section(elf, number, pairs)
            for number, pairs in by_section.items()
            if any(data[code.start : code.end] != replacement for code, replacement in pairs)
        }
        return replace_contents(elf, new) if new else data

    @staticmethod
    def _find_section(elf: HostElf, code: Embedded) -> int | None:
        """Return the number of the section that has this container.

        None if no section for device code has it.
        """
        for number, section in enumerate(elf.sections):
            if section.name.decode("utf-8", "replace") in FATBIN_SECTIONS and (
                section.offset <= code.start and code.end <= section.offset + section.stored
            ):
                return number
        return None

    def _rewrite_finished(self, data: bytes, name: str) -> bytes:
        """Replace the containers of a library or program in place; zeros follow shorter ones.

        NotPruned if one does not fit in the place of the old one.
        """
        rewritten = bytearray(data)
        for code, replacement in self._containers(data, name):
            size = code.end - code.start
            if len(replacement) > size:
                raise NotPruned(f"{name}: the remaining entries do not fit into their container")
            rewritten[code.start : code.end] = replacement + bytes(size - len(replacement))
        return bytes(rewritten)


def _pack_section(
    elf: HostElf, number: int, pairs: list[tuple[Embedded, bytes]]
) -> tuple[bytes, dict[int, int]]:
    """Return the new contents of a section, and a map from old offsets in it to new ones.

    `pairs` are its containers with their new bytes. The map has the start of each container, and
    the start and end of the section.
    """
    section = elf.sections[number]
    old_bytes = elf.contents(section)
    data = bytearray()
    new_offsets = {}
    copied_end = 0
    for code, replacement in pairs:
        start = code.start - section.offset
        if old_bytes[copied_end:start].strip(b"\0"):
            raise NotPruned(f"{elf.name}: bytes between containers that are not zero")
        # Zeros align each container after another one; zeros in front of the first one stay.
        data += padding(len(data)) if data else old_bytes[:start]
        new_offsets[start] = len(data)
        data += replacement
        copied_end = code.end - section.offset
    if old_bytes[copied_end:].strip(b"\0"):
        raise NotPruned(f"{elf.name}: bytes after containers that are not zero")
    new_offsets[len(old_bytes)] = len(data)
    new_offsets.setdefault(0, 0)  # a symbol of the section itself stays at its start
    return bytes(data), new_offsets
