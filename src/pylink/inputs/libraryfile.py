"""Reading a shared library of -l: as much of its file as says what device code it has.

Such a file may be written by another process at any time, so it is read, never mapped: a page that
is gone would be a signal. Libraries of the host may have gigabytes, of which symbols are a small
part. They are read to their places in memory that is otherwise left empty, and takes no room.
"""

from __future__ import annotations

import mmap
import os
import stat
from struct import Struct

from pylink._native import elfheaders
from pylink.diagnostics.errors import reason_of
from pylink.facts.elf import E_SHOFF, SHT_DYNAMIC, SHT_DYNSYM, SHT_NOBITS, SHT_RELA
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.sharedlib import read_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.elfheaders import Section
    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Library

# Offset of the section headers, their number, and which has their names; then offset and size of a
# section, in its header.
_TABLE = Struct("<40xQ12xHH")
_PLACE = Struct("<24xQQ24x")

# Bytes that are read at most. The largest libraries with device code have symbols of 40 MB.
_LIMIT = 1 << 30
_STEP = 1 << 20


def probe(path: str, sink: Sink) -> tuple[Library | None, bytes]:
    """What the library in a file says, and its header; (None, b"") for any other file.

    The header says that there are no sections. What cannot be read is fatal.
    """
    try:
        # A pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None, b""  # Gone since it was found.
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size < _TABLE.size:
            return None, b""
        with _Parts(descriptor, status.st_size) as parts:
            return parts.probe(path, sink)
    except OSError as error:
        sink.fatal("cannot-read-file", file=path, reason=reason_of(error))
    finally:
        os.close(descriptor)


class _Parts:
    """Memory as large as a file, with those parts of it that were read."""

    __slots__ = ("_data", "_descriptor", "_left")

    def __init__(self, descriptor: int, size: int) -> None:
        # Empty memory needs no reserve in the system; the number is that of Linux.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        self._data = mmap.mmap(-1, size, flags=flags)
        self._descriptor = descriptor
        self._left = _LIMIT

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self._data.close()

    def probe(self, path: str, sink: Sink) -> tuple[Library | None, bytes]:
        """As the function of this name."""
        try:
            sections = self._sections()
        except ValueError:
            return None, b""
        if not any(
            section.type != SHT_NOBITS and section.name in (b"__nv_relfatbin", b".nv_fatbin")
            for section in sections
        ):
            return None, b""
        data = self._data
        for section in sections:
            if section.type == SHT_DYNSYM or section.name == b"__nv_module_id":
                self._fill(section.offset, section.size)
            if section.type == SHT_DYNSYM and section.link < len(sections):
                self._fill(sections[section.link].offset, sections[section.link].size)
        library = read_library(data, 0, len(data), path, sink)
        if library is not None and library.closed:
            # The file that answers the calls of the library itself.
            for section in sections:
                if section.type in (SHT_RELA, SHT_DYNAMIC):
                    self._fill(section.offset, section.size)
            library = read_library(data, 0, len(data), path, sink)
        header = bytearray(data[: _TABLE.size])
        header[E_SHOFF] = bytes(8)
        return library, bytes(header)

    def _sections(self) -> list[Section]:
        """The section headers; ValueError for another file."""
        self._fill(0, _TABLE.size)
        if self._data[:4] != ELF_MAGIC:
            raise ValueError
        start, count, names = _TABLE.unpack_from(self._data)
        self._fill(start, _PLACE.size)
        count = count or self._place(start)[1]
        self._fill(start, _PLACE.size * count)
        self._fill(*self._place(start + _PLACE.size * names))
        return elfheaders.read_sections(self._data)[2]

    def _place(self, header: int) -> tuple[int, int]:
        """Offset and size of the section with this header; nothing for one outside the file."""
        if header > len(self._data) - _PLACE.size:
            return 0, 0
        offset, size = _PLACE.unpack_from(self._data, header)
        return offset, size

    def _fill(self, start: int, size: int) -> None:
        """Read `size` bytes to their place, as far as the file has them."""
        end = min(start + size, len(self._data))
        self._left -= max(end - start, 0)
        if self._left < 0:
            raise OSError(0, "its sections are too large")
        while start < end:
            chunk = os.pread(self._descriptor, min(end - start, _STEP), start)
            if not chunk:
                raise OSError(0, "it became shorter while it was read")
            self._data[start : start + len(chunk)] = chunk
            start += len(chunk)
