"""Archives with other contents of their members: sizes and the index of symbols follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylink.inputs.archiveformat import MAGIC, ArchiveError, is_thin, read_archive
from pylink.prune.errors import NotPruned

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = 60
_SIZE = slice(48, 58)
# Indices of GNU archives, by the bytes of their numbers.
_INDICES = {b"/": 4, b"/SYM64/": 8}
_BSD_INDEX = b"__.SYMDEF"


def members(data: bytes, name: str) -> list[tuple[str, int, int, int]]:
    """Name, header, offset and size of each member; NotPruned for thin and damaged archives."""
    try:
        if is_thin(data, 0, len(data)):
            raise NotPruned(f"{name}: a thin archive contains no code; prune its members")
        return [
            (entry.name, entry.header, entry.offset, entry.size)
            for entry in read_archive(data, 0, len(data))
        ]
    except ArchiveError as error:
        raise NotPruned(f"{name}: archive is damaged: {error}") from None


def with_members(data: bytes, name: str, rewrite: Callable[[bytes, str], bytes]) -> bytes:
    """The archive with each member as `rewrite` makes it of its bytes and name.

    Members of the format itself, such as the index of symbols, stand between those that are read.
    """
    archive = bytearray(MAGIC)
    headers: dict[int, int] = {}  # by where they were
    member_of = {
        header: (label, offset, size) for label, header, offset, size in members(data, name)
    }
    indices: list[tuple[int, int, int]] = []
    at = len(MAGIC)
    while at < len(data):
        head = data[at : at + _HEADER]
        if len(head) < _HEADER:
            raise NotPruned(f"{name}: archive is damaged: the header at {at:#x} is cut short")
        size = int(head[_SIZE])
        body = at + _HEADER
        headers[at] = len(archive)
        if _BSD_INDEX in (head[: len(_BSD_INDEX)], data[body : body + len(_BSD_INDEX)]):
            raise NotPruned(f"{name}: its index is of a BSD; create it again with GNU ar")
        if at in member_of:
            label, offset, length = member_of[at]
            contents = rewrite(data[offset : offset + length], f"{name}:{label}")
            contents = data[body:offset] + contents
        else:
            contents = data[body : body + size]
            width = _INDICES.get(head[:16].rstrip())
            if width:
                indices.append((len(archive) + _HEADER, width, size))
        archive += head[: _SIZE.start] + b"%-10d" % len(contents) + head[_SIZE.stop :] + contents
        if len(archive) % 2:
            archive += b"\n"
        at = body + size + size % 2
    for place, width, size in indices:
        _move_index(archive, place, width, size, headers, name)
    return bytes(archive)


def _move_index(
    data: bytearray, place: int, width: int, size: int, headers: dict[int, int], name: str
) -> None:
    """Let the numbers of an index be those of the headers where they are now."""
    count = int.from_bytes(data[place : place + width], "big")
    if width * (count + 1) > size:
        raise NotPruned(f"{name}: its index of symbols is damaged")
    for number in range(1, count + 1):
        at = place + width * number
        header = int.from_bytes(data[at : at + width], "big")
        if header not in headers:
            raise NotPruned(f"{name}: its index of symbols is damaged; run ranlib")
        data[at : at + width] = headers[header].to_bytes(width, "big")
