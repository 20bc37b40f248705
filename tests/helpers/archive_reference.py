"""A naive reference of the native function that lists the members of an archive.

Written from the description of the format at the head of `pylink.inputs.archiveformat`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

from pylink.inputs.archiveformat import ArchiveError

HEADER_SIZE = 60
HEADER_END = b"`\n"
INDEXES = (b"/", b"/SYM64/")
LONG_NAMES = b"//"

# Name, offset of the header, offset and size of the contents, PLACE (of a member of a member, as
# in `/OFFSET:PLACE`) or -1, whether the name is in front of the contents.
Row = tuple[str, int, int, int, int, bool]


def members(data: bytes, start: int, size: int) -> Iterator[Row]:
    """Yield the members in order; ArchiveError at the first damage, after the members before it."""
    magic = data[start : start + min(8, size)]
    if magic not in (b"!<arch>\n", b"!<thin>\n"):
        raise ArchiveError("it does not begin as an archive does")
    end = start + size
    thin = magic == b"!<thin>\n"
    long_names: bytes | None = None
    at = start + 8
    while at < end:
        position = at - start
        if end - at < HEADER_SIZE:
            if data[at:end].strip(b"\n\0"):
                raise ArchiveError(f"the header at {position:#x} is cut short")
            break
        field = data[at : at + 16].rstrip(b" ")
        count = data[at + 48 : at + 58].strip(b" ")
        offset = at + HEADER_SIZE
        if data[at + 58 : offset] != HEADER_END:
            raise ArchiveError(f"the header at {position:#x} does not end as a header does")
        if not (count.isascii() and count.isdigit()):
            _fail(f"its size {_field_text(count)} is not a decimal number", field, position)
        size = int(count)
        external = thin and field not in INDEXES and field != LONG_NAMES
        if not external and size > end - offset:
            _fail(f"its header says {size} bytes, and {end - offset} are left", field, position)
        if field == LONG_NAMES:
            long_names = data[offset : offset + size]
        elif field not in INDEXES:
            if field[:1] == b"/":
                name, place = _long_name(field, long_names, position)
                yield os.fsdecode(name), position, offset, size, place, False
            elif field[:3] == b"#1/":
                length = _name_length(field, size, position)
                name = data[offset : min(offset + length, end)].rstrip(b"\0")
                yield os.fsdecode(name), position, offset + length, size - length, -1, True
            else:
                yield os.fsdecode(field.removesuffix(b"/")), position, offset, size, -1, False
        at = offset if external else offset + size + (size & 1)


def _name_length(field: bytes, size: int, at: int) -> int:
    """Return N of a name `#1/N`: the bytes of the name in front of the contents."""
    digits = field[3:]
    if not (digits.isascii() and digits.isdigit()) or int(digits) > size:
        _fail(f"its name has {_field_text(digits)} bytes, of {size} in all", field, at)
    return int(digits)


def _long_name(field: bytes, long_names: bytes | None, at: int) -> tuple[bytes, int]:
    """Return the long name at OFFSET of a name `/OFFSET` or `/OFFSET:PLACE`, and PLACE or -1."""
    digits, colon, place = field[1:].partition(b":")
    if not (digits.isascii() and digits.isdigit()):
        _fail("its name begins with a slash and is not an offset", field, at)
    if colon and not (place.isascii() and place.isdigit()):
        _fail(f"its place {_field_text(place)} is not a decimal number", field, at)
    offset = int(digits)
    if long_names is None:
        _fail("it has a long name, and no member // comes before it", field, at)
    if offset >= len(long_names):
        _fail(
            f"its name is at {offset} of the long names, which have {len(long_names)} bytes",
            field,
            at,
        )
    # GNU ends each name with a slash and a line feed, others with a line feed or a NUL.
    end = long_names.find(b"\n", offset)
    name = long_names[offset : end if end >= 0 else len(long_names)]
    name = name.partition(b"\0")[0]
    if name[-1:] == b"/":
        name = name[:-1]
    if not name:
        _fail(f"its name at {offset} of the long names is empty", field, at)
    return name, int(place) if colon else -1


def _field_text(field: bytes) -> str:
    """Return the text of a header's field as diagnostics show it."""
    return "'" + field.decode("utf-8", "backslashreplace") + "'"


def _fail(reason: str, field: bytes, at: int) -> NoReturn:
    """Raise ArchiveError about the header at `at`, whose name field is `field`."""
    member = field if field[:1] == b"/" else field.removesuffix(b"/")
    raise ArchiveError(f"{reason} (header at {at:#x})", os.fsdecode(member))
