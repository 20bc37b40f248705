"""Whether an archive that -l found is one for the host, by nvlink's rule."""

from __future__ import annotations

import mmap

from pylink.files.reading import Incoming
from pylink.inputs.archiveformat import THIN_MAGIC, ArchiveError, is_thin, read_archive
from pylink.inputs.kinds import ELF_MAGIC, MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def is_for_host(file: str, machine: int, root: str = "") -> bool:
    """Whether nvlink would link the archive.

    It does when one of the members before the first that is no ELF file is of the host's
    `machine`. True as well for an ELF file that is no archive, and for what cannot be read: its
    reader says what is wrong. `root` is put in front of absolute names of members.
    """
    wanted = machine.to_bytes(2, "little")
    try:
        return any(header[MACHINE] == wanted for header in _headers(file, root))
    except (ArchiveError, OSError):
        return True


def thin_members(file: str) -> list[str]:
    """The files that a thin archive names; none for what is no thin archive."""
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


def _headers(file: str, root: str) -> Iterator[bytes]:
    """The first bytes of each member, up to one that is no ELF file."""
    with Incoming(file, pipes=False) as stream:
        if stream.size == 0:
            return
        opened = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with opened as data:
        if data[:4] == ELF_MAGIC:
            raise ArchiveError("it is no archive")
        if data[:2] != b"!<":
            return
        thin = is_thin(data, 0, len(data))
        for entry in read_archive(data, 0, len(data)):
            header = data[entry.offset : entry.offset + min(entry.size, 64)]
            if thin:
                from pylink.inputs.archivethin import member_file

                with Incoming(member_file(entry.name, file, root), pipes=False) as member:
                    header = member.read(64)
            if entry.inline or header[:4] != ELF_MAGIC:
                return
            yield header
