"""Wheels and other zip files: members are inflated piece by piece, never to disk.

While a member is inflated, the positions in input and output are recorded, so that bytes of the
download can be assigned to entries. A zip file is damaged if members overlap or run past its end; a
member is damaged if its size or its checksum differs from the directory.
"""

from __future__ import annotations

import errno
import io
import stat
import struct
import zlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass

from pylink.size.marks import InflationMarks
from pylink.size.sources import ZIP_MAGICS, MemorySource, PartSource, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable


# Limits: the number of members of a zip file, the inflated bytes of one member with device code,
# and those of all members of a file. What exceeds a limit is unreadable.
MOST_ZIP_MEMBERS = 1 << 20
MOST_MEMBER_BYTES = 1 << 32
MOST_BYTES = 1 << 36

# Compressed bytes between two marks, each a count of inflated bytes. So the offset of an entry in
# the archive is known with an error of less than _STEP bytes. _BLOCK_SIZE bytes of a deflated
# member are read at once, and _READ_SIZE of a stored one.
_STEP = 512
_BLOCK_SIZE, _READ_SIZE = 1 << 13, 1 << 20
# Deflated members of up to _MOST_KEPT bytes stay in memory. Larger ones are inflated again when
# they are read, in stretches of at least _STRETCH_SIZE bytes. The _MOST_RECENT stretches read last
# stay in memory, since reads alternate between places some MB apart. _FEED_SIZE compressed bytes
# are read at once.
_MOST_KEPT = 16 << 20
_STRETCH_SIZE, _MOST_RECENT = 2 << 20, 6
_FEED_SIZE = 1 << 16
# The local header of a member: its magic, and the lengths of its name and its extra field.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
# Methods of compression.
_STORED, _DEFLATED = 0, 8
_RAW_DEFLATE = -15  # window bits of zlib: no header, window of 32 KiB
_ENCRYPTED = 1  # a bit of the flags of a member
_HEAD = 64  # bytes of a member that `accepts` gets


class DamagedZip(Exception):
    """An unreadable zip file or member; the text is the reason."""


@dataclass
class Member:
    """A member: `packed` bytes at the offset `start` of the archive, which become `size` bytes.

    `info` is its entry in the directory of the archive.
    """

    name: str
    start: int
    packed: int
    size: int
    info: zipfile.ZipInfo


class _SeekableSource(io.RawIOBase):
    """A source with the methods of a file that `zipfile` uses."""

    def __init__(self, source: Source) -> None:
        self._source, self._position = source, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        origin = (0, self._position, self._source.size)[whence]
        if origin + offset < 0:
            raise OSError(errno.EINVAL, "negative offset")
        self._position = origin + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        bytes_left = max(0, self._source.size - self._position)
        data = self._source.read(self._position, bytes_left if size < 0 else min(size, bytes_left))
        self._position += len(data)
        return data


def list_members(source: Source) -> list[Member]:
    """Return the members that are not directories, in the order of their bytes.

    DamagedZip if the zip file is damaged (see the head of this module) or has too many members.
    """
    import zipfile  # late: loading it takes as long as measuring 5 MB of a library

    try:
        with zipfile.ZipFile(_SeekableSource(source)) as archive:
            infos = archive.infolist()
    # zipfile raises NotImplementedError for a compression or a version that it does not know.
    except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, OSError) as error:
        raise DamagedZip(str(error) or "it is not a zip file") from None
    if len(infos) > MOST_ZIP_MEMBERS:
        raise DamagedZip(f"more than {MOST_ZIP_MEMBERS} members")
    members = []
    last_end = 0  # offset after the bytes of the member before
    for info in sorted(infos, key=lambda info: info.header_offset):
        start = _contents_start(source, info)
        if info.header_offset < last_end or start + info.compress_size > source.size:
            raise DamagedZip(f"the bytes of '{info.filename}' overlap others, or run past the file")
        last_end = start + info.compress_size
        if not info.is_dir():
            members.append(Member(info.filename, start, info.compress_size, info.file_size, info))
        elif info.compress_size:
            raise DamagedZip(f"the directory '{info.filename}' has contents")
    return members


def _contents_start(source: Source, info: zipfile.ZipInfo) -> int:
    """Return the offset of a member's bytes, after its local header."""
    header = source.read(info.header_offset, _LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        raise DamagedZip(f"the header of '{info.filename}' runs past the file")
    magic, name_size, extra_size = _LOCAL_HEADER.unpack(header)
    if magic != ZIP_MAGICS[0]:
        raise DamagedZip(f"there is no header of '{info.filename}' where the directory says")
    return int(info.header_offset) + _LOCAL_HEADER.size + int(name_size) + int(extra_size)


def is_link(member: Member) -> bool:
    """Return whether a member is a symbolic link, whose contents are the path of its target."""
    return stat.S_ISLNK(member.info.external_attr >> 16)


def open_member(source: Source, member: Member, accepts: Callable[[bytes], bool]) -> Source | None:
    """Return the contents of a member, or None if `accepts` returns False for its first bytes.

    The member is read and checked completely in both cases. DamagedZip if it is damaged.
    """
    info = member.info
    if info.flag_bits & _ENCRYPTED:
        raise DamagedZip("it is encrypted")
    if info.compress_type == _STORED:
        return _open_stored(source, member, accepts)
    if info.compress_type != _DEFLATED:
        raise DamagedZip(f"it is compressed by method {info.compress_type}")
    try:
        return _open_deflated(source, member, accepts)
    except zlib.error as error:
        raise DamagedZip(f"it cannot be inflated: {error}") from None


def _open_deflated(
    source: Source, member: Member, accepts: Callable[[bytes], bool]
) -> Source | None:
    """Return the contents of a deflated member, or None if `accepts` refuses its first bytes."""
    marks = InflationMarks(_STEP, member.packed)
    buffer: bytearray | Inflated | None = None  # set if the member is accepted
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    total = checksum = bytes_in = 0
    while bytes_in < member.packed and not inflater.eof:
        block = source.read(member.start + bytes_in, min(_BLOCK_SIZE, member.packed - bytes_in))
        if not block:
            raise DamagedZip("it runs past the file")
        pieces = []
        # No block makes more than 9 MB: a deflated byte makes at most 1032 bytes.
        for start in range(0, len(block), _STEP):
            piece = inflater.decompress(block[start : start + _STEP])
            pieces.append(piece)
            total += len(piece)
            marks.bytes_out.append(total)
            if total > member.size:
                raise DamagedZip(f"it has more than the {member.size} bytes that are stated")
            if isinstance(buffer, Inflated) and total >= buffer.next_start:
                buffer.begin_stretch(inflater, total, bytes_in + min(start + _STEP, len(block)))
        contents = b"".join(pieces)
        checksum = zlib.crc32(contents, checksum)
        if not bytes_in and accepts(contents[:_HEAD]):
            buffer = _create_buffer(source, member, marks)
        if isinstance(buffer, bytearray):
            buffer += contents
        bytes_in += len(block)
    if total != member.size or checksum != member.info.CRC:
        raise DamagedZip(f"{total} bytes of {member.size} were read, or their sum is wrong")
    return MemorySource(buffer, marks) if isinstance(buffer, bytearray) else buffer


def _create_buffer(source: Source, member: Member, marks: InflationMarks) -> bytearray | Inflated:
    """Return what holds a member: a buffer for its bytes, or a source that inflates it again."""
    if member.size > MOST_MEMBER_BYTES:
        raise DamagedZip(f"it has more than {MOST_MEMBER_BYTES} bytes")
    return Inflated(source, member, marks) if member.size > _MOST_KEPT else bytearray()


class Inflated(Source):
    """A member that is inflated again when it is read, a stretch at a time.

    During the first pass, the state of the inflater is kept at the start of each stretch. The
    stretches that were read last stay in memory.
    """

    in_archive = True

    def __init__(self, source: Source, member: Member, marks: InflationMarks) -> None:
        self._source, self._member, self._marks = source, member, marks
        self.size = member.size
        # By stretch: `_starts` has its offset in the member, `_states` the inflater at its start
        # with the number of compressed bytes before it. `_recent` has the bytes of the stretches
        # read last, the one read longest ago first.
        self._starts = array("Q", [0])
        self._states = [(zlib.decompressobj(_RAW_DEFLATE), 0)]
        self._recent: dict[int, bytes] = {}

    @property
    def next_start(self) -> int:
        """The least offset in the member at which `begin_stretch` may start a new stretch."""
        return self._starts[-1] + _STRETCH_SIZE

    def begin_stretch(self, inflater: zlib._Decompress, bytes_out: int, bytes_in: int) -> None:
        """Start a stretch at these offsets in the member and in its compressed bytes."""
        self._starts.append(bytes_out)
        self._states.append((inflater.copy(), bytes_in))

    def read(self, offset: int, size: int) -> bytes:
        end = min(offset + size, self.size)
        parts = []
        number = bisect_right(self._starts, offset) - 1
        while offset < end:
            start, stretch = self._starts[number], self._bytes_of_stretch(number)
            part = stretch[offset - start : end - start]
            parts.append(part)
            offset += len(part)
            number += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def bytes_before(self, offset: int) -> int:
        return self._marks.bytes_before(offset)

    def _bytes_of_stretch(self, number: int) -> bytes:
        """Return the bytes of a stretch; OSError if the file has changed."""
        stretch = self._recent.pop(number, None)
        if stretch is None:
            stretch = self._inflate(number)
            if len(self._recent) == _MOST_RECENT:
                del self._recent[next(iter(self._recent))]
        self._recent[number] = stretch
        return stretch

    def _inflate(self, number: int) -> bytes:
        """Inflate a stretch from the state at its start."""
        state, bytes_in = self._states[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self.size
        bytes_left = end - self._starts[number]
        inflater = state.copy()
        parts = []
        try:
            while bytes_left:
                data = inflater.unconsumed_tail
                if not data:
                    size = min(_FEED_SIZE, self._member.packed - bytes_in)
                    data = self._source.read(self._member.start + bytes_in, size)
                    bytes_in += len(data)
                part = inflater.decompress(data, bytes_left)
                if not part and not data:
                    break
                parts.append(part)
                bytes_left -= len(part)
        except zlib.error:
            bytes_left = -1
        if bytes_left:
            raise OSError(errno.EIO, "the file changed while it was read")
        return b"".join(parts)


def _open_stored(source: Source, member: Member, accepts: Callable[[bytes], bool]) -> Source | None:
    """Return the contents of a stored member, or None if `accepts` refuses its first bytes."""
    if member.packed != member.size:
        raise DamagedZip(f"{member.packed} bytes are stored, and {member.size} are stated")
    checksum = 0
    for offset in range(0, member.size, _READ_SIZE):
        piece = source.read(member.start + offset, min(_READ_SIZE, member.size - offset))
        checksum = zlib.crc32(piece, checksum)
    if checksum != member.info.CRC:
        raise DamagedZip("its checksum is wrong")
    if not accepts(source.read(member.start, min(_HEAD, member.size))):
        return None
    return PartSource(source, member.start, member.size, stored=True)
