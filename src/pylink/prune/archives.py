"""Rewrites members of archives, with their sizes and the symbol index."""

from __future__ import annotations

from pylink.inputs.archiveformat import MAGIC, ArchiveError, is_thin, read_archive
from pylink.prune.errors import NotPruned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = 60
_SIZE = slice(48, 58)
# Symbol indices of GNU archives: the size of their numbers in bytes, by name.
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


def rewrite_members(data: bytes, name: str, rewrite: Callable[[bytes, str], bytes]) -> bytes:
    """Return the archive with each member replaced by `rewrite(bytes, name)`.

    Members of the format itself, such as the symbol index, stand between the members that are read.
    """
    archive = bytearray(MAGIC)
    headers: dict[int, int] = {}  # new offsets of headers, by old offset
    member_of = {
        header: (label, offset, size) for label, header, offset, size in members(data, name)
    }
    indices: list[tuple[int, int, int]] = []
    offset_ = len(MAGIC)
    while offset_ < len(data):
        head = data[offset_ : offset_ + _HEADER]
        if len(head) < _HEADER:
            raise NotPruned(f"{name}: archive is damaged: the header at {offset_:#x} is cut short")
        size = int(head[_SIZE])
        body = offset_ + _HEADER
        headers[offset_] = len(archive)
        if _BSD_INDEX in (head[: len(_BSD_INDEX)], data[body : body + len(_BSD_INDEX)]):
            raise NotPruned(f"{name}: its index is of a BSD; create it again with GNU ar")
        if offset_ in member_of:
            label, offset, length = member_of[offset_]
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
        offset_ = body + size + size % 2
    for place, width, size in indices:
        _move_index(archive, place, width, size, headers, name)
    return bytes(archive)


def _move_index(
    data: bytearray, start: int, width: int, size: int, headers: dict[int, int], name: str
) -> None:
    """Write the new offsets of headers into a symbol index."""
    count = int.from_bytes(data[start : start + width], "big")
    if width * (count + 1) > size:
        raise NotPruned(f"{name}: its index of symbols is damaged")
    for number in range(1, count + 1):
        position = start + width * number
        header = int.from_bytes(data[position : position + width], "big")
        if header not in headers:
            raise NotPruned(f"{name}: its index of symbols is damaged; run ranlib")
        data[position : position + width] = headers[header].to_bytes(width, "big")
