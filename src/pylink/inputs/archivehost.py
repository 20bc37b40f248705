"""Whether an archive that -l found is one for the host, by nvlink's rule."""

from __future__ import annotations

import mmap

from pylink.inputs.archiveformat import ArchiveError, is_thin, read_archive
from pylink.inputs.incoming import Incoming
from pylink.inputs.kinds import ELF_MAGIC, MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def is_for_host(file: str, machine: int) -> bool:
    """Whether nvlink would link the archive.

    It does when one of the members before the first that is no ELF file is of the host's
    `machine`. True as well for an ELF file that is no archive, and for what cannot be read: its
    reader says what is wrong.
    """
    wanted = machine.to_bytes(2, "little")
    try:
        return any(header[MACHINE] == wanted for header in _headers(file))
    except (ArchiveError, OSError):
        return True


def _headers(file: str) -> Iterator[bytes]:
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
                from pylink.inputs.archivethin import member_file  # noqa: PLC0415 -- few are thin

                with Incoming(member_file(entry.name, file), pipes=False) as member:
                    header = member.read(64)
            if entry.inline or header[:4] != ELF_MAGIC:
                return
            yield header
