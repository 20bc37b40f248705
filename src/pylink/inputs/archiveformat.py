"""The format of archives: locates their members, in every dialect that `ar` tools write.

An archive starts with a magic word. Each member has a header of 60 bytes of text and the contents,
padded to an even offset. Names that do not fit into a header are stored elsewhere: in a member `//`
(GNU, System V) or in front of the contents (BSD). Thin archives have only names; the contents are
in files beside them. The symbol index, a member in front of the others, is not used: it names host
symbols only, so a wrong or missing index does no harm.

Sources: ar(5) of FreeBSD, the System V gABI (chapter "Archive File"), the documentation of GNU ar
(thin archives); names of the form `/OFFSET:PLACE` by experiment.
"""

from __future__ import annotations

import os
import sys

from pylink._native import archives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    Buffer = bytes | mmap

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
# Bytes of a MemberRow of archives.pyx.
ROW_SIZE = 48

# Number of members that `read_archive` reads at first, since its caller may need no more.
FIRST_MEMBERS = 16


class ArchiveError(ValueError):
    """A damaged archive: the text says where, and `member` has the member's name, or is empty."""

    def __init__(self, reason: str, member: str = "") -> None:
        super().__init__(reason)
        self.member = member


class ArchiveMember:
    """One member: `size` bytes from `offset` on, with its header at `header` in the archive.

    In a thin archive `size` is from the header and `offset` is unused: the contents are in the file
    `name`. If that file is itself an archive, `place` is the offset of the member's header in it,
    else -1. `inline` says that the name is stored in front of the contents (BSD).
    """

    __slots__ = ("header", "inline", "name", "offset", "place", "size")

    def __init__(self, name: bytes, header: int, offset: int, size: int, place: int = -1) -> None:
        self.name = os.fsdecode(name)
        self.inline = False
        self.header = header
        self.offset = offset
        self.size = size
        self.place = place


def is_thin(data: Buffer, start: int, size: int) -> bool:
    """Return whether the `size` bytes at `start` are a thin archive; ArchiveError if no archive."""
    magic = data[start : start + min(len(MAGIC), size)]
    if magic not in (MAGIC, THIN_MAGIC):
        raise ArchiveError("it does not begin as an archive does")
    return magic == THIN_MAGIC


def read_archive(data: Buffer, start: int, size: int) -> Iterator[ArchiveMember]:
    """Yield the members of the archive at `start`, `size` bytes long; ArchiveError on damage.

    Offsets of contents are relative to `data`, offsets of headers to `start`. Nothing is copied.
    The headers after the first FIRST_MEMBERS are read only if the caller asks for more members.
    """
    is_thin(data, start, size)  # raises ArchiveError for other files
    state: archives.WalkState | tuple[()] | None = ()
    limit = FIRST_MEMBERS
    while state is not None:
        rows, state, fault = archives.list_members(data, start, size, limit, state)
        for start_of_row in range(0, len(rows), ROW_SIZE):
            yield _member(data, rows[start_of_row : start_of_row + ROW_SIZE])
        if fault is not None:
            from pylink.inputs.archivefaults import describe_fault

            raise ArchiveError(*describe_fault(data, start, fault))
        limit = sys.maxsize


def list_member_rows(data: bytes, start: int, size: int, max_members: int) -> bytes:
    """Return the MemberRows of the first `max_members` members of an archive.

    The archive has `size` bytes and begins at `start`. ArchiveError if it is damaged up to them.
    """
    is_thin(data, start, size)  # raises ArchiveError for other files
    rows, _, fault = archives.list_members(data, start, size, max_members, ())
    if fault is not None:
        from pylink.inputs.archivefaults import describe_fault

        raise ArchiveError(*describe_fault(data, start, fault))
    return rows


def _member(data: Buffer, row: bytes) -> ArchiveMember:
    """Make an ArchiveMember of a MemberRow, whose first five fields are numbers of 8 bytes."""
    header, offset, size, place, name = memoryview(row)[:40].cast("q")
    length = int.from_bytes(row[40:44], "little")
    entry = ArchiveMember(data[name : name + length], header, offset, size, place)
    entry.inline = bool(row[45])
    return entry
