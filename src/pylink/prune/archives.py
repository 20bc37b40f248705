"""Rewrites members of archives, with their sizes and the symbol index."""

from __future__ import annotations

from typing import NamedTuple

from pylink.facts.archiveheaders import HEADER_SIZE, NAME_SIZE, SIZE_DIGITS, SIZE_OFFSET
from pylink.inputs.archiveformat import MAGIC, ArchiveError, is_thin, read_archive
from pylink.prune.errors import NotPruned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Fields of a member's header.
NAME_FIELD = slice(0, NAME_SIZE)
SIZE_FIELD = slice(SIZE_OFFSET, SIZE_OFFSET + SIZE_DIGITS)
# The size in bytes of the numbers in a symbol index of a GNU archive, by the name of the index.
INDEX_WIDTHS = {b"/": 4, b"/SYM64/": 8}
_BSD_INDEX = b"__.SYMDEF"


class Member(NamedTuple):
    """A file in an archive: the offsets of its header and of its contents, and its size."""

    name: str
    header: int
    offset: int
    size: int


def read_members(data: bytes, name: str) -> list[Member]:
    """Return the members of an archive; NotPruned for thin and damaged archives."""
    try:
        if is_thin(data, 0, len(data)):
            raise NotPruned(f"{name}: a thin archive contains no code; prune its members")
        return [
            Member(entry.name, entry.header, entry.offset, entry.size)
            for entry in read_archive(data, 0, len(data))
        ]
    except ArchiveError as error:
        raise NotPruned(f"{name}: archive is damaged: {error}") from None


def rewrite_members(data: bytes, name: str, rewrite: Callable[[bytes, str], bytes]) -> bytes:
    """Return the archive with each member replaced by `rewrite(bytes, name)`.

    `read_members` omits the members of the format itself: symbol indices and the table of long
    names. They are copied, and offsets in an index are updated.
    """
    archive = bytearray(MAGIC)
    headers: dict[int, int] = {}  # new offsets of headers, by old offset
    member_at = {member.header: member for member in read_members(data, name)}
    # Each symbol index: offset in the new archive, size of its numbers, size of its contents.
    indices: list[tuple[int, int, int]] = []
    position = len(MAGIC)
    while position < len(data):
        head = data[position : position + HEADER_SIZE]
        if len(head) < HEADER_SIZE:
            raise NotPruned(f"{name}: archive is damaged: the header at {position:#x} is cut short")
        size = int(head[SIZE_FIELD])
        body = position + HEADER_SIZE
        headers[position] = len(archive)
        if _BSD_INDEX in (head[: len(_BSD_INDEX)], data[body : body + len(_BSD_INDEX)]):
            raise NotPruned(f"{name}: its index is of a BSD; create it again with GNU ar")
        member = member_at.get(position)
        if member is not None:
            contents = data[member.offset : member.offset + member.size]
            contents = rewrite(contents, f"{name}:{member.name}")
            contents = data[body : member.offset] + contents  # a long name stands in front
        else:
            contents = data[body : body + size]
            width = INDEX_WIDTHS.get(head[NAME_FIELD].rstrip())
            if width:
                indices.append((len(archive) + HEADER_SIZE, width, size))
        archive += head[: SIZE_FIELD.start] + b"%-10d" % len(contents)
        archive += head[SIZE_FIELD.stop :] + contents
        if len(archive) % 2:  # members begin at even offsets
            archive += b"\n"
        position = body + size + size % 2
    for start, width, size in indices:
        _update_index(archive, start, width, size, headers, name)
    return bytes(archive)


def _update_index(
    data: bytearray, start: int, width: int, size: int, headers: dict[int, int], name: str
) -> None:
    """Write the new offsets of members' headers into a symbol index of `size` bytes.

    The index has the number of symbols, then for each the offset of its member's header, then the
    names. Each number has `width` bytes. `headers` maps old offsets to new ones.
    """
    count = int.from_bytes(data[start : start + width], "big")
    if width * (count + 1) > size:
        raise NotPruned(f"{name}: its index of symbols is damaged")
    for number in range(1, count + 1):
        position = start + width * number
        header = int.from_bytes(data[position : position + width], "big")
        if header not in headers:
            raise NotPruned(f"{name}: its index of symbols is damaged; run ranlib")
        data[position : position + width] = headers[header].to_bytes(width, "big")
