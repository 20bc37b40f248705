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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap
    from typing import NoReturn

    Buffer = bytes | mmap

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
HEADER_SIZE = 60
HEADER_END = b"`\n"

# Indexes of symbols of GNU, the second with 64-bit offsets. That of BSD is a member like any other.
_INDEXES = (b"/", b"/SYM64/")
_LONG_NAMES = b"//"


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
    is copied.
    """
    end = start + size
    thin = is_thin(data, start, size)
    long_names: bytes | None = None
    at = start + len(MAGIC)
    while at < end:
        where = at - start
        if end - at < HEADER_SIZE:
            if data[at:end].strip(b"\n\0"):
                raise ArchiveError(f"the header at {where:#x} is cut short")
            break
        field = data[at : at + 16].rstrip(b" ")
        count = data[at + 48 : at + 58].strip(b" ")
        offset = at + HEADER_SIZE
        if data[at + 58 : offset] != HEADER_END:
            raise ArchiveError(f"the header at {where:#x} does not end as a header does")
        if not (count.isascii() and count.isdigit()):
            _fail(f"its size {_shown(count)} is no decimal number", field, where)
        size = int(count)
        external = thin and field not in _INDEXES and field != _LONG_NAMES
        if not external and size > end - offset:
            _fail(f"its header says {size} bytes, and {end - offset} are left", field, where)
        if field == _LONG_NAMES:
            long_names = data[offset : offset + size]
        elif field not in _INDEXES:
            if field[:1] == b"/":
                name, place = _long_name(field, long_names, where)
                yield Entry(name, where, offset, size, place)
            elif field[:3] == b"#1/":
                length = _name_length(field, size, where)
                name = data[offset : offset + length].rstrip(b"\0")
                entry = Entry(name, where, offset + length, size - length)
                entry.inline = True
                yield entry
            else:
                # GNU ends a name with a slash, so that it can end in blanks; BSD does not.
                yield Entry(field.removesuffix(b"/"), where, offset, size)
        at = offset if external else offset + size + (size & 1)


def _name_length(field: bytes, size: int, at: int) -> int:
    """N of `#1/N`, the bytes of the name in front of the contents."""
    digits = field[3:]
    if not (digits.isascii() and digits.isdigit()) or int(digits) > size:
        _fail(f"its name has {_shown(digits)} bytes, of {size} in all", field, at)
    return int(digits)


def _long_name(field: bytes, long_names: bytes | None, at: int) -> tuple[bytes, int]:
    """The name that `/OFFSET` stands for, and the PLACE of `/OFFSET:PLACE`."""
    digits, colon, place = field[1:].partition(b":")
    if not (digits.isascii() and digits.isdigit()):
        _fail("its name begins with a slash and is no offset", field, at)
    if colon and not (place.isascii() and place.isdigit()):
        _fail(f"its place {_shown(place)} is no decimal number", field, at)
    offset = int(digits)
    if long_names is None:
        _fail("it has a long name, and no member // comes before it", field, at)
    if offset >= len(long_names):
        _fail(
            f"its name is at {offset} of the long names, which have {len(long_names)} bytes",
            field,
            at,
        )
    # GNU ends each with a slash and a line feed, others with a line feed or a NUL alone.
    end = long_names.find(b"\n", offset)
    name = long_names[offset : end if end >= 0 else len(long_names)]
    name = name.partition(b"\0")[0]
    if name[-1:] == b"/":
        name = name[:-1]
    if not name:
        _fail(f"its name at {offset} of the long names is empty", field, at)
    return name, int(place) if colon else -1


def _shown(field: bytes) -> str:
    """Bytes of a header as diagnostics show them."""
    return "'" + field.decode("utf-8", "backslashreplace") + "'"


def _fail(reason: str, field: bytes, at: int) -> NoReturn:
    member = field if field[:1] == b"/" else field.removesuffix(b"/")
    raise ArchiveError(f"{reason} (header at {at:#x})", os.fsdecode(member))
