"""Wheels and other zip files: the members, inflated piece by piece, never to disk.

While a member is inflated, it is noted how far input and output have come: so bytes of the download
belong to the entry that they hold. A zip file is damaged where members overlap or run past it, and
a member is where it is not as large as the directory says or its sum is wrong.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink.size.sources import MemorySource, PartSource, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

# Members of one file, bytes of one member with device code, which is in memory as a whole, and of
# all members together.
MOST_MEMBERS = 1 << 20
MOST_MEMBER_BYTES = 1 << 32
MOST_BYTES = 1 << 36

# Input that is inflated at once. Where an entry begins is known to as many bytes of the download.
_STEP = 512
_OUTPUT = 1 << 24
_LOCAL = struct.Struct("<4s22xHH")


class DamagedZip(Exception):
    """A zip file, or a member, that cannot be read; the text says why."""


@dataclass
class Member:
    """One member: where its bytes lie in the archive, and what the directory says of it."""

    name: str
    start: int
    packed: int
    size: int
    info: zipfile.ZipInfo


class _Reader(io.RawIOBase):
    """A source as the file that `zipfile` wants."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, self._source.size)[whence]
        if base + offset < 0:
            raise OSError(22, "negative offset")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._source.size - self._at)
        data = self._source.read(self._at, left if size < 0 else min(size, left))
        self._at += len(data)
        return data


def list_members(source: Source) -> list[Member]:
    """The files in it, without folders, in the order of their bytes; DamagedZip if that fails."""
    try:
        with zipfile.ZipFile(_Reader(source)) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, OSError) as error:
        raise DamagedZip(str(error) or "it is not a zip file") from None
    if len(infos) > MOST_MEMBERS:
        raise DamagedZip(f"more than {MOST_MEMBERS} members")
    members = []
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        start = _start(source, info)
        if info.header_offset < end or start + info.compress_size > source.size:
            raise DamagedZip(f"the bytes of '{info.filename}' overlap others, or run past the file")
        end = start + info.compress_size
        if not info.is_dir():
            members.append(Member(info.filename, start, info.compress_size, info.file_size, info))
        elif info.compress_size:
            raise DamagedZip(f"the folder '{info.filename}' has contents")
    return members


def _start(source: Source, info: zipfile.ZipInfo) -> int:
    header = source.read(info.header_offset, _LOCAL.size)
    if len(header) < _LOCAL.size:
        raise DamagedZip(f"the header of '{info.filename}' runs past the file")
    magic, name, extra = _LOCAL.unpack(header)
    if magic != MAGICS[0]:
        raise DamagedZip(f"there is no header of '{info.filename}' where the directory says")
    return int(info.header_offset) + _LOCAL.size + int(name) + int(extra)


def is_link(member: Member) -> bool:
    """Whether a member is a symbolic link, whose contents are a path; none is followed."""
    return stat.S_ISLNK(member.info.external_attr >> 16)


def open_member(source: Source, member: Member, wanted: Callable[[bytes], bool]) -> Source | None:
    """The contents of a member, None if it is not `wanted` by how it begins.

    All of it is read and checked either way. DamagedZip says what is wrong with it.
    """
    info = member.info
    if info.flag_bits & 1:
        raise DamagedZip("it is encrypted")
    if info.compress_type == zipfile.ZIP_STORED:
        return _open_stored(source, member, wanted)
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise DamagedZip(f"it is compressed by method {info.compress_type}")
    kept: bytearray | None = None
    made, taken = array("Q", [0]), array("Q", [0])
    total = check = 0
    first = True
    for piece, place in _inflate(source, member):
        check = zlib.crc32(piece, check)
        if first and piece:
            first = False
            if wanted(piece[:64]):
                if member.size > MOST_MEMBER_BYTES:
                    raise DamagedZip(f"it has more than {MOST_MEMBER_BYTES} bytes")
                kept = bytearray()
        if kept is not None:
            kept += piece
        if piece:
            total += len(piece)
            if total > member.size:
                raise DamagedZip(f"it has more than the {member.size} bytes that are stated")
            made.append(total)
            taken.append(place)
    if total != member.size or check != info.CRC:
        raise DamagedZip(f"{total} bytes of {member.size} were read, or their sum is wrong")
    if kept is None:
        return None
    taken[-1] = member.packed
    return MemorySource(kept, (made, taken))  # type: ignore[arg-type]


def _inflate(source: Source, member: Member) -> Iterator[tuple[bytes, int]]:
    """Pieces of the contents, each with the bytes of the archive that it took so far."""
    inflater = zlib.decompressobj(-15)
    at = 0
    try:
        while at < member.packed and not inflater.eof:
            block = source.read(member.start + at, min(1 << 20, member.packed - at))
            if not block:
                raise DamagedZip("it runs past the file")
            for start in range(0, len(block), _STEP):
                data = block[start : start + _STEP]
                place = at + start + len(data)
                while data and not inflater.eof:
                    yield inflater.decompress(data, _OUTPUT), place
                    data = inflater.unconsumed_tail
            at += len(block)
        yield inflater.flush(), member.packed
    except zlib.error as error:
        raise DamagedZip(f"it cannot be inflated: {error}") from None


def _open_stored(source: Source, member: Member, wanted: Callable[[bytes], bool]) -> Source | None:
    if member.packed != member.size:
        raise DamagedZip(f"{member.packed} bytes are stored, and {member.size} are stated")
    check = 0
    for at in range(0, member.size, _OUTPUT):
        piece = source.read(member.start + at, min(_OUTPUT, member.size - at))
        check = zlib.crc32(piece, check)
    if check != member.info.CRC:
        raise DamagedZip("its sum is wrong")
    if not wanted(source.read(member.start, min(64, member.size))):
        return None
    return PartSource(source, member.start, member.size, stored=True)
