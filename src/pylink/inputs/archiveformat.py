"""The format of archives: where the members of one lie, in every dialect that `ar` tools write.

An archive is a magic word and then, for each member, a header of 60 bytes of text and the contents,
padded to an even offset. Names longer than a header holds are elsewhere: with GNU (System V) in a
member `//`, with BSD in front of the contents. Thin archives hold names only; the contents are in
files beside them. The index of symbols comes first, in a member of its own, and is not used here:
it names symbols of the host alone, so one that is wrong or missing does no harm.

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
# MemberRow of archives.pyx: header, offset, size, place, name (offset and size), kind, inline.
ROW_SIZE = 48

# As many members as are looked at before it is clear that the others are wanted, too.
FEW = 16

# What is wrong with the archive, with where its header is, and with a member.
OF_ARCHIVE = {
    1: "the header at {header:#x} is cut short",
    2: "the header at {header:#x} does not end as a header does",
}
OF_MEMBER = {
    3: "its size {size} is not a decimal number",
    4: "its header says {value} bytes, and {limit} are left",
    5: "its name has {length} bytes, of {limit} in all",
    6: "its name begins with a slash and is not an offset",
    7: "its place {place} is not a decimal number",
    8: "it has a long name, and no member // comes before it",
    9: "its name is at {value} of the long names, which have {limit} bytes",
    10: "its name at {value} of the long names is empty",
}


class ArchiveError(ValueError):
    """What is wrong with an archive: the text says where, and `member` which one if it has a name.

    `member` is empty otherwise.
    """

    def __init__(self, reason: str, member: str = "") -> None:
        super().__init__(reason)
        self.member = member


class Entry:
    """One member: `size` bytes from `offset` on, its header at `header` of the archive.

    In a thin archive `size` is what the header says and `offset` means nothing: the contents are
    in the file `name`. There, `place` may say that `name` is itself an archive and the member is
    the one whose header stands at that offset in it; it is -1 otherwise. `inline` says that the
    name stands before the contents, as with BSD.
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
    """Whether the archive at `start`, `size` bytes long, is a thin one; ArchiveError if none."""
    magic = data[start : start + min(len(MAGIC), size)]
    if magic not in (MAGIC, THIN_MAGIC):
        raise ArchiveError("it does not begin as an archive does")
    return magic == THIN_MAGIC


def read_archive(data: Buffer, start: int, size: int) -> Iterator[Entry]:
    """The members of the archive at `start`, `size` bytes long; ArchiveError when it is damaged.

    Offsets of contents count from the beginning of `data`, those of headers from `start`. Nothing
    is copied, and of a large archive no more is read than was asked for.
    """
    is_thin(data, start, size)
    seen: tuple[int, int, int] | tuple[()] | None = ()
    most = FEW
    while seen is not None:
        rows, seen, fault = archives.list_members(data, start, size, most, seen)
        for at in range(0, len(rows), ROW_SIZE):
            yield _entry(data, rows[at : at + ROW_SIZE])
        if fault is not None:
            raise fault_of(data, start, fault)
        most = sys.maxsize


def list_all(data: bytes, start: int, size: int, most: int) -> bytes:
    """MemberRows of the archive at `start`, `size` bytes long, of its first `most` members.

    ArchiveError when it is damaged there.
    """
    is_thin(data, start, size)
    rows, _, fault = archives.list_members(data, start, size, most, ())
    if fault is not None:
        raise fault_of(data, start, fault)
    return rows


def _entry(data: Buffer, row: bytes) -> Entry:
    header, offset, size, place, name = memoryview(row)[:40].cast("q")
    length = int.from_bytes(row[40:44], "little")
    entry = Entry(data[name : name + length], header, offset, size, place)
    entry.inline = bool(row[45])
    return entry


def fault_of(data: Buffer, start: int, fault: tuple[int, int, int, int]) -> ArchiveError:
    """The words for what is wrong with an archive."""
    reason, header, value, limit = fault
    if reason in OF_ARCHIVE:
        return ArchiveError(OF_ARCHIVE[reason].format(header=header))
    text = data[start + header : start + header + 58]
    field = text[:16].rstrip(b" ")
    sentence = OF_MEMBER[reason].format(
        value=value,
        limit=limit,
        size=_shown(text[48:].strip(b" ")),
        length=_shown(field[3:]),
        place=_shown(field.partition(b":")[2]),
    )
    member = field if field[:1] == b"/" else field.removesuffix(b"/")
    return ArchiveError(f"{sentence} (header at {header:#x})", os.fsdecode(member))


def _shown(field: bytes) -> str:
    """Bytes of a header as diagnostics show them."""
    return "'" + field.decode("utf-8", "backslashreplace") + "'"
