"""Reads from a shared library of -l only the parts that describe its device code.

Another process may write such a file at any time, so it is read, never mapped: access to a page
that is gone would raise a signal. Host libraries may have gigabytes, of which symbols are a small
part. These parts are read into an anonymous mapping as large as the file, whose other pages take no
memory.
"""

from __future__ import annotations

import mmap
import os
import stat

from pylink._native import elfheaders
from pylink.diagnostics.errors import reason_of
from pylink.facts.elf import (
    E_SHOFF,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_RELA,
    section_counts,
)
from pylink.facts.fatbinentries import FATBIN_SECTIONS
from pylink.facts.records import EHDR, SHDR
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inputs.sharedlib import read_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.elfheaders import Section
    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Library

# Limit of bytes to read, and bytes to read at a time. The largest libraries with device code have
# symbols of 40 MB.
_READ_LIMIT = 1 << 30
_READ_SIZE = 1 << 20
_FATBIN_SECTIONS = [name.encode() for name in FATBIN_SECTIONS]


def probe(path: str, sink: Sink) -> tuple[Library | None, bytes]:
    """Return a library's description and its ELF header; the former is None for any other file.

    Only what describes its device code is read. The header is changed to have no sections, and may
    be empty without a description. A read error is a fatal diagnostic.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None, b""  # removed since it was found
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size < EHDR.size:
            return None, b""
        with _PartialFile(descriptor, status.st_size) as parts:
            return parts.probe(path, sink)
    except OSError as error:
        sink.fatal("cannot-read-file", file=path, reason=reason_of(error))
    finally:
        os.close(descriptor)


class _PartialFile:
    """Memory as large as a file, with the parts of it that were read.

    `_budget` is the number of bytes that may still be read.
    """

    __slots__ = ("_budget", "_data", "_descriptor")

    def __init__(self, descriptor: int, size: int) -> None:
        # Memory that stays empty needs no reserve; the number is MAP_NORESERVE of Linux.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        self._data = mmap.mmap(-1, size, flags=flags)
        self._descriptor = descriptor
        self._budget = _READ_LIMIT

    def __enter__(self) -> _PartialFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._data.close()

    def probe(self, path: str, sink: Sink) -> tuple[Library | None, bytes]:
        """Return what the function `probe` returns, of a regular file."""
        try:
            sections = self._sections()
        except ValueError:
            return None, b""
        if not any(
            section.type != SHT_NOBITS and section.name in _FATBIN_SECTIONS for section in sections
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
            # Relocations tell which calls of registration functions stay in the library.
            for section in sections:
                if section.type in (SHT_RELA, SHT_DYNAMIC):
                    self._fill(section.offset, section.size)
            library = read_library(data, 0, len(data), path, sink)
        header = bytearray(data[: EHDR.size])
        header[E_SHOFF] = bytes(8)
        return library, bytes(header)

    def _sections(self) -> list[Section]:
        """Read the section headers and names; ValueError if it is not an ELF file.

        Here they are only located. The native reader finds them again, and checks them.
        """
        self._fill(0, EHDR.size)
        if self._data[:4] != ELF_MAGIC:
            raise ValueError
        *_, start, _, _, _, _, _, shnum, shstrndx = EHDR.unpack_from(self._data)
        self._fill(start, SHDR.size)
        count, names = section_counts(shnum, shstrndx, self._header(start))
        self._fill(start, SHDR.size * count)
        _, _, _, _, offset, size, *_ = self._header(start + SHDR.size * names)
        self._fill(offset, size)
        return elfheaders.read_sections(self._data).sections

    def _header(self, offset: int) -> tuple[int, ...]:
        """Return the section header at an offset, one of zeros if it is outside of the file."""
        if offset > len(self._data) - SHDR.size:
            return SHDR.unpack(bytes(SHDR.size))
        return SHDR.unpack_from(self._data, offset)

    def _fill(self, start: int, size: int) -> None:
        """Read `size` bytes at `start`, up to the end of the file."""
        end = min(start + size, len(self._data))
        self._budget -= max(end - start, 0)
        if self._budget < 0:
            raise OSError(0, "its sections are too large")
        while start < end:
            chunk = os.pread(self._descriptor, min(end - start, _READ_SIZE), start)
            if not chunk:
                raise OSError(0, "it became shorter while it was read")
            self._data[start : start + len(chunk)] = chunk
            start += len(chunk)
