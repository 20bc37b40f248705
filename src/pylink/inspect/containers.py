"""Finds cubins, PTX and LTO-IR in files with device code.

Host objects and executables have fat binaries in sections, archives have files, fat binaries have
entries. All of them are found, whatever a link would choose.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pylink._native.elfheaders import read_sections
from pylink._native.fatbin import find_entries
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.facts.elf import EM_CUDA
from pylink.facts.fatbinentries import FATBIN_MAGIC, is_scrambled, pack_entry
from pylink.facts.inputkinds import FATBIN
from pylink.facts.objectformats import sm_of_cubin
from pylink.facts.picknumbers import EntryKind
from pylink.files.reading import read_incoming
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC, ArchiveError, is_thin, read_archive
from pylink.inputs.archivethin import member_file
from pylink.inputs.filehints import machine_name
from pylink.inputs.hostmachine import this_machine
from pylink.inputs.kinds import ELF_MAGIC, MACHINE
from pylink.inputs.payload import DamagedPayload, Unpacker, default_limit
from pylink.inspect.embedded import FileSection, InMemory, find_device_code, sections_of
from pylink.rowformats import ENTRY
from pylink.tables import extent

ARCHIVE_MAGICS = (MAGIC, THIN_MAGIC)
CUBIN_KINDS = (EntryKind.ELF,)
ALL_KINDS = (EntryKind.ELF, EntryKind.PTX, EntryKind.LTOIR)
KINDS = {EntryKind.ELF: "cubin", EntryKind.PTX: "PTX", EntryKind.LTOIR: "LTO-IR"}

# Limit of nested archives; a thin archive may name itself.
MAX_DEPTH = 16

# Limits for one file with its archives: few headers can cause endless work.
MOST_MEMBERS = 1 << 20
MOST_BYTES = 1 << 34


class UnreadableFile(Exception):
    """A file cannot be unpacked; the text says why."""


@dataclass(frozen=True)
class Part:
    """One cubin, PTX text or LTO-IR module of a file.

    `data` is empty for PTX and LTO-IR unless `Allowance.unpacks` has them. For scrambled LTO-IR,
    which only nvJitLink can read, it is a fat binary with the entry. `arch` is the SM number in the
    entry of a fat binary, 0 for a cubin outside of these. `size` is the number of bytes after
    decompression, `packed` that in the file, with the header of an entry. `machine` is the ELF
    machine of the host code around it, 0 without any.
    """

    name: str
    kind: str
    arch: int
    size: int
    data: bytes
    packed: int
    machine: int = 0

    def __str__(self) -> str:
        prefix = "sm" if self.kind == "cubin" else "compute"
        # A cubin file has the architecture in its header.
        arch = self.arch or sm_of_cubin(self.data)
        description = f"{self.name}: {self.kind} for {prefix}_{arch}, {self.size} bytes"
        if self.machine in (0, this_machine()):
            return description
        return f"{description}, in host code for {machine_name(self.machine)}"


class Allowance:
    """The remaining limits for one file: members, their bytes, decompressed payloads.

    `unpacks` are the kinds of entries whose data is unpacked.
    """

    def __init__(self, *, unpacks: tuple[int, ...] = CUBIN_KINDS) -> None:
        self.unpacks = unpacks
        self.members_left = MOST_MEMBERS
        self.bytes_left = MOST_BYTES
        self.unpacker = Unpacker(MOST_BYTES, 0, Sink())

    def count_member(self, name: str, size: int) -> None:
        """Count a member of `size` bytes; UnreadableFile above a limit."""
        self.members_left -= 1
        self.bytes_left -= size
        if self.members_left < 0:
            raise UnreadableFile(f"{name}: more than {MOST_MEMBERS} members in all")
        if self.bytes_left < 0:
            raise UnreadableFile(f"{name}: more than {MOST_BYTES} bytes in its members")


def is_known(head: bytes) -> bool:
    """Return whether a file with this head may contain device code."""
    return head.startswith((ELF_MAGIC, FATBIN_MAGIC, *ARCHIVE_MAGICS))


def parts(
    name: str, data: bytes, depth: int = 0, allowance: Allowance | None = None
) -> Iterator[Part]:
    """Yield the device code in a file; unknown files count as cubins, which the reader refuses.

    `depth` is the number of archives around the file, and `allowance` is shared with these.
    """
    allowance = allowance or Allowance()
    if data.startswith(ARCHIVE_MAGICS):
        yield from _parts_of_archive(name, data, depth, allowance)
    elif data.startswith(FATBIN_MAGIC):
        yield from _parts_of_fatbin(name, data, allowance)
    elif data.startswith(ELF_MAGIC) and int.from_bytes(data[MACHINE], "little") != EM_CUDA:
        yield from _parts_of_host_file(name, data, allowance)
    else:
        yield _make_cubin(name, data)


def _make_cubin(name: str, data: bytes) -> Part:
    """Return the part for a cubin that is not an entry of a fat binary."""
    return Part(name, "cubin", 0, len(data), data, len(data))


def _parts_of_archive(name: str, data: bytes, depth: int, allowance: Allowance) -> Iterator[Part]:
    """Yield the device code in the members of an archive."""
    if depth == MAX_DEPTH:
        raise UnreadableFile(f"{name}: more than {MAX_DEPTH} archives in each other")
    try:
        is_thin_archive = is_thin(data, 0, len(data))
        for entry in read_archive(data, 0, len(data)):
            if is_thin_archive:
                contents = read_incoming(
                    member_file(entry.name, name), pipes=False, is_wanted=is_known
                )
            else:
                contents = data[entry.offset : entry.offset + entry.size]
            allowance.count_member(name, len(contents))
            if is_known(contents):
                yield from parts(f"{name}:{entry.name}", contents, depth + 1, allowance)
    except ArchiveError as error:
        raise UnreadableFile(f"{name}: archive is damaged: {error}") from error
    except OSError as error:
        raise UnreadableFile(f"{name}: {error.filename}: {os.strerror(error.errno or 0)}") from None


def _parts_of_host_file(name: str, data: bytes, allowance: Allowance) -> Iterator[Part]:
    """Yield the device code in a host ELF file, wherever it is in the file."""
    try:
        read_sections(data)
    except ValueError as error:
        raise UnreadableFile(f"{name}: {error}") from error
    machine = int.from_bytes(data[MACHINE], "little")
    for part in _embedded_parts(name, data, sections_of(InMemory(data)), allowance):
        yield replace(part, machine=machine)


def _parts_of_fatbin(name: str, data: bytes, allowance: Allowance) -> Iterator[Part]:
    """Yield the entries of a fat binary, whose containers may have other bytes between them."""
    yield from _embedded_parts(name, data, [], allowance)


def _embedded_parts(
    name: str, data: bytes, sections: list[FileSection], allowance: Allowance
) -> Iterator[Part]:
    """Yield the entries of containers in a file, and the cubins outside of these.

    `sections` are those of the file; in one for fat binaries, a container needs no entry.
    """
    for code in find_device_code(InMemory(data), sections):
        contents = data[code.start : code.end]
        allowance.count_member(name, len(contents))
        if code.is_container:
            yield from _parts_of_container(name, contents, allowance)
        else:
            yield _make_cubin(name, contents)


def _parts_of_container(name: str, data: bytes, allowance: Allowance) -> Iterator[Part]:
    """Yield the entries of one container."""
    entries, _, faults = find_entries([data], b"", extent(0, len(data)), bytes([FATBIN]))
    if faults:
        raise UnreadableFile(f"{name}: fat binary is damaged")
    unpacker, limit = allowance.unpacker, default_limit(len(data))
    # Sizes in bytes: `head` of the header, `size` of the stored payload with padding, `packed`
    # without padding. `full_size` is the decompressed size. If an entry is not compressed, `packed`
    # is `size`, and `full_size` is 0.
    for _, _, index, kind, arch, head, flags, offset, size, packed, full_size in ENTRY.iter_unpack(
        entries
    ):
        contents = b""
        part_size = full_size or size
        stored = memoryview(data)[offset : offset + head + size]
        if kind in allowance.unpacks and is_scrambled(stored):
            contents = pack_entry(stored)
        elif kind in allowance.unpacks:
            view = stored[head : head + packed]
            try:
                if full_size > limit:
                    raise DamagedPayload(f"{full_size} bytes when decompressed, of {limit}")
                unpacker.reserve(flags, full_size)
                contents = unpacker.unpack(view, flags, full_size, name)
            except (DamagedPayload, LinkError) as error:
                raise UnreadableFile(f"{name}: entry {index} is damaged: {error}") from error
            part_size = len(contents) if kind == EntryKind.ELF else part_size
        yield Part(name, KINDS.get(kind, f"kind {kind}"), arch, part_size, contents, head + size)
