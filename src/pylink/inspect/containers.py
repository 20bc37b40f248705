"""What files with device code hold: cubins, and what is compiled only later.

Host objects and executables have fat binaries in sections, archives have files, fat binaries have
entries. Independent of what a link would choose: everything is shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from pylink._native.elfheaders import read_sections
from pylink._native.fatbin import find_entries
from pylink.diagnostics import Sink
from pylink.errors import LinkError
from pylink.facts.elf import EM_CUDA
from pylink.facts.objectformats import sm_of_cubin
from pylink.inputs.archiveformat import ArchiveError, is_thin, read_archive
from pylink.inputs.archivethin import member_file
from pylink.inputs.choice import ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX
from pylink.inputs.entries import CONTAINER, FATBIN_MAGIC
from pylink.inputs.found import ENTRY
from pylink.inputs.incoming import read_incoming
from pylink.inputs.kinds import ELF_MAGIC, FATBIN
from pylink.inputs.payload import DEFAULT_LIMIT, DamagedPayload, Unpacker
from pylink.tables import extent

ARCHIVE_MAGICS = (b"!<arch>\n", b"!<thin>\n")
FATBIN_NAMES = (b".nv_fatbin", b"__nv_relfatbin")
KINDS = {ENTRY_ELF: "cubin", ENTRY_PTX: "PTX", ENTRY_LTOIR: "LTO-IR"}

# Archives in archives; a thin one may name itself.
DEEPEST = 16

# What one file may hold, with all that its archives name: few headers can ask for endless work.
MOST_MEMBERS = 1 << 20
MOST_BYTES = 1 << 34


class UnreadableFile(Exception):
    """A file that cannot be taken apart; the text says why."""


@dataclass(frozen=True)
class Part:
    """One piece of device code: `data` of a cubin, empty for what is compiled only later.

    `arch` is what the entry of a fat binary is for, 0 for a file.
    """

    name: str
    kind: str
    arch: int
    size: int
    data: bytes

    def __str__(self) -> str:
        prefix = "sm" if self.kind == "cubin" else "compute"
        # A cubin that is a file says itself what it is for.
        arch = self.arch or sm_of_cubin(self.data)
        return f"{self.name}: {self.kind} for {prefix}_{arch}, {self.size} bytes"


class Allowance:
    """How much may still be taken out of one file: members, their bytes, decompressed payloads."""

    def __init__(self) -> None:
        self.members = MOST_MEMBERS
        self.bytes = MOST_BYTES
        self.unpacker = Unpacker(MOST_BYTES, Sink())

    def take(self, name: str, size: int) -> None:
        """Count a member of `size` bytes; UnreadableFile when that is too much."""
        self.members -= 1
        self.bytes -= size
        if self.members < 0:
            raise UnreadableFile(f"{name}: more than {MOST_MEMBERS} members in all")
        if self.bytes < 0:
            raise UnreadableFile(f"{name}: more than {MOST_BYTES} bytes in its members")


def is_known(head: bytes) -> bool:
    """Whether a file that begins so may hold cubins."""
    return head.startswith((ELF_MAGIC, FATBIN_MAGIC, *ARCHIVE_MAGICS))


def parts(
    name: str, data: bytes, depth: int = 0, allowance: Allowance | None = None
) -> Iterator[Part]:
    """Everything in a file of any kind; what is not known is a cubin, for its reader to refuse."""
    allowance = allowance or Allowance()
    if data[: len(ARCHIVE_MAGICS[0])] in ARCHIVE_MAGICS:
        yield from _of_archive(name, data, depth, allowance)
    elif data.startswith(FATBIN_MAGIC):
        yield from _of_containers(name, data, allowance)
    elif data.startswith(ELF_MAGIC) and int.from_bytes(data[18:20], "little") != EM_CUDA:
        found = [
            one
            for contents in _sections(name, data, allowance)
            for one in _of_containers(name, contents, allowance)
        ]
        yield from found or [_file(name, data)]
    else:
        yield _file(name, data)


def _file(name: str, data: bytes) -> Part:
    return Part(name, "cubin", 0, len(data), data)


def _of_archive(name: str, data: bytes, depth: int, allowance: Allowance) -> Iterator[Part]:
    if depth == DEEPEST:
        raise UnreadableFile(f"{name}: more than {DEEPEST} archives in each other")
    try:
        thin = is_thin(data, 0, len(data))
        for entry in read_archive(data, 0, len(data)):
            if thin:
                contents = read_incoming(
                    member_file(entry.name, name), pipes=False, wanted=is_known
                )
            else:
                contents = data[entry.offset : entry.offset + entry.size]
            allowance.take(name, len(contents))
            if is_known(contents):
                yield from parts(f"{name}:{entry.name}", contents, depth + 1, allowance)
    except ArchiveError as error:
        raise UnreadableFile(f"{name}: archive is damaged: {error}") from error
    except OSError as error:
        raise UnreadableFile(f"{name}: {error.filename}: {os.strerror(error.errno or 0)}") from None


def _sections(name: str, data: bytes, allowance: Allowance) -> Iterator[bytes]:
    """Contents of the sections of a host's ELF file that hold fat binaries."""
    try:
        _, _, sections = read_sections(data)
    except ValueError as error:
        raise UnreadableFile(f"{name}: {error}") from error
    for section in sections:
        if section.name in FATBIN_NAMES:
            allowance.take(name, section.size)
            yield data[section.offset : section.offset + section.size]


def _of_containers(name: str, data: bytes, allowance: Allowance) -> Iterator[Part]:
    """The entries of fat binaries that stand one after the other."""
    at = 0
    while len(data) - at >= CONTAINER.size and data.startswith(FATBIN_MAGIC, at):
        _, _, head, size = CONTAINER.unpack_from(data, at)
        end = min(len(data), at + head + size)
        yield from _of_container(name, data[at:end], allowance)
        at = end + -end % 8


def _of_container(name: str, data: bytes, allowance: Allowance) -> Iterator[Part]:
    entries, _, faults = find_entries([data], b"", extent(0, len(data)), bytes([FATBIN]))
    if faults:
        raise UnreadableFile(f"{name}: fat binary is damaged")
    unpacker = allowance.unpacker
    for _, _, index, kind, arch, head, flags, offset, size, packed, full in ENTRY.iter_unpack(
        entries
    ):
        contents = b""
        stated = full or size
        if kind == ENTRY_ELF:
            view = memoryview(data)[offset + head : offset + head + packed]
            try:
                if full > DEFAULT_LIMIT:
                    raise DamagedPayload(f"{full} bytes when decompressed, of {DEFAULT_LIMIT}")
                unpacker.reserve(flags, full)
                contents = unpacker.unpack(view, flags, full, name)
            except (DamagedPayload, LinkError) as error:
                raise UnreadableFile(f"{name}: entry {index} is damaged: {error}") from error
            stated = len(contents)
        yield Part(name, KINDS.get(kind, f"kind {kind}"), arch, stated, contents)
