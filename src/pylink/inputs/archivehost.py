"""Checks whether an archive that -l found has objects for this host, by nvlink's rule."""

from __future__ import annotations

import mmap

from pylink.files.reading import HEAD_SIZE, Incoming
from pylink.inputs.archiveformat import THIN_MAGIC, ArchiveError, is_thin, read_archive
from pylink.inputs.kinds import ELF_MAGIC, MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink


ELF_HEADER_SIZE = 64


def is_for_host(file: str, machine: int, root: str = "") -> bool:
    """Return whether nvlink would link the archive, for a host with the ELF machine `machine`.

    nvlink looks at the members in front of the first one that is not an ELF file. One of them must
    be for this machine. Also True for an ELF file that is not an archive, and for a file that is
    damaged or cannot be read: its reader reports the error. `root` is prepended to absolute names
    of members.
    """
    number = machine.to_bytes(2, "little")
    try:
        return any(header[MACHINE] == number for _, header in _headers(file, root))
    except (ArchiveError, OSError):
        return True


def report_skipped(file: str, library: str, machine: int, sink: Sink, root: str = "") -> None:
    """Report, as nvlink does, that -l skips a file: it is not an archive for `machine`.

    `library` is the value of -l. Hints say what kind of file it is. An archive without members
    stands for a library that is now part of another one, such as -lpthread, a part of glibc. It is
    reported only if pylink runs in nvlink's place.
    """
    from pylink.diagnostics.record import note
    from pylink.inputs.filehints import file_kind_hints, machine_name

    machines: list[int] = []
    ends: list[str] = []
    try:
        for _, header in _headers(file, root, ends):
            number = int.from_bytes(header[MACHINE], "little")
            machines += [number] * (number not in machines)
        with open(file, "rb") as stream:
            head = stream.read(HEAD_SIZE)
    except (ArchiveError, OSError):
        machines, head = [], b""
    if machines:
        names = ", ".join(map(machine_name, machines))
        hints = [note("host-machines-differ", machines=names, machine=machine_name(machine))]
    elif ends:
        hints = [note("member-ends", member=ends[0])]
    elif head[:2] == b"!<":
        if not sink.policy.in_nvlinks_place:
            return
        hints = [note("input-is", format="an archive without members")]
    else:
        hints = file_kind_hints(head)
    sink.report("library-skipped", file=file, library=library, hints=hints)


def thin_members(file: str) -> list[str]:
    """Return the files that a thin archive names; empty for any other or unreadable file."""
    from pylink.inputs.archivethin import member_file

    try:
        with open(file, "rb") as stream:
            if stream.read(len(THIN_MAGIC)) != THIN_MAGIC:
                return []
            data = THIN_MAGIC + stream.read()
        entries = read_archive(data, 0, len(data))
        return list(dict.fromkeys(member_file(entry.name, file) for entry in entries))
    except (ArchiveError, OSError, ValueError):
        return []


def _headers(file: str, root: str, ends: list[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the first bytes of each member before the first that is not an ELF file.

    The name of that first other member, if there is one, is added to `ends`. ArchiveError for a
    damaged archive and for an ELF file; any other file has no members.
    """
    with Incoming(file, pipes=False) as stream:
        if stream.size == 0:
            return
        opened = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with opened as data:
        if data[:4] == ELF_MAGIC:
            raise ArchiveError("it is not an archive")
        if data[:2] != b"!<":
            return
        thin = is_thin(data, 0, len(data))
        for entry in read_archive(data, 0, len(data)):
            header = data[entry.offset : entry.offset + min(entry.size, ELF_HEADER_SIZE)]
            if thin:
                from pylink.inputs.archivethin import member_file

                with Incoming(member_file(entry.name, file, root), pipes=False) as member:
                    header = member.read(ELF_HEADER_SIZE)
            if entry.inline or header[:4] != ELF_MAGIC:
                if ends is not None:
                    ends.append(entry.name)
                return
            yield entry.name, header
