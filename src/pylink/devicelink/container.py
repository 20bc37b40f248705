"""Fat binaries of linked cubins, as fatbinary writes them for the device-link step.

A container is a header and entries without gaps. An entry is its header, the payload, and between
them, if it has them, a name and a copy of `.nv.compat`. Containers and entries are kept as lists of
byte strings, the pieces, which are not joined, since a payload may be large.
"""

from __future__ import annotations

import struct

from pylink._native.elfheaders import find_section
from pylink.devicelink.architectures import architecture_parts
from pylink.devicelink.compression import compress
from pylink.facts.fatbinentries import (
    CUBIN_VERSION,
    ENTRY,
    ENTRY_MARK,
    FLAG_64_BIT,
    FLAG_COMPATIBLE,
    FLAG_DEBUG,
    FLAG_LINUX,
    FLAG_SUFFIX,
    container_header,
    padding,
)
from pylink.facts.picknumbers import EntryKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.devicelink.compression import Mode

# From this SM number on, an entry has a copy of the section `.nv.compat` of its cubin.
FIRST_COMPAT_SM = 100
COMPAT = b".nv.compat"
COMPAT_BLOCK = struct.Struct("<II")  # in front of the copy: its offset and size


class Container:
    """A fat binary: its bytes as `pieces`, in order, and their total size in bytes."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))


class EntryForm:
    """The common properties of all entries of a container.

    `mode` says how entries are compressed. `name` is the name of each entry. `debug` marks the
    entries as compiled with -G.
    """

    __slots__ = ("debug", "mode", "name")

    def __init__(self, mode: Mode, *, debug: bool = False, name: bytes = b"") -> None:
        self.mode = mode
        self.debug = debug
        self.name = name


def make_container(entries: Iterable[list[bytes]]) -> Container:
    """Return the fat binary of entries from `make_entry`."""
    pieces = [piece for entry in entries for piece in entry]
    size = sum(map(len, pieces))
    return Container([container_header(size), *pieces])


def make_entry(architecture: str, data: bytes, form: EntryForm) -> list[bytes]:
    """Return the pieces of one entry: a linked cubin for an architecture, such as `sm_90a`.

    ValueError if `architecture` is not the name of one or, from sm_100 on, `data` has a damaged
    table of sections.
    """
    codec_flag, payload = compress(data, form.mode)
    parts = architecture_parts(architecture, "sm_")
    if parts is None:
        raise ValueError(f"not an architecture: {architecture}")
    sm, letter = parts
    flags = FLAG_64_BIT | FLAG_LINUX | FLAG_SUFFIX[letter] | codec_flag
    if form.debug:
        flags |= FLAG_DEBUG
    after_header = _pad(form.name + b"\0") if form.name else b""
    block_offset = 0  # of COMPAT_BLOCK in the entry; 0 without it
    compat = _find_compat(data) if sm >= FIRST_COMPAT_SM else None
    if compat:
        flags |= FLAG_COMPATIBLE
        block_offset = ENTRY.size + len(after_header)
        # The offset is that of a zero byte in front of the copy; the size excludes it.
        block = COMPAT_BLOCK.pack(block_offset + COMPAT_BLOCK.size, len(compat))
        after_header += _pad(block + b"\0" + compat)
    zeros = padding(len(payload))
    header = ENTRY.pack(
        EntryKind.ELF,
        ENTRY_MARK,
        ENTRY.size + len(after_header),
        len(payload) + len(zeros),
        len(payload) if codec_flag else 0,
        block_offset,
        *CUBIN_VERSION,
        sm,
        ENTRY.size if form.name else 0,
        len(form.name),
        flags,
        0,
        len(data) if codec_flag else 0,
    )
    return [header + after_header, payload, zeros]


def _find_compat(cubin: bytes) -> bytes | None:
    """Return the contents of `.nv.compat`; None without that section."""
    section = find_section(cubin, COMPAT)
    if section is None:
        return None
    offset, size = section
    return cubin[offset : offset + size]


def _pad(data: bytes) -> bytes:
    """Return `data` with zeros up to a multiple of 8 bytes."""
    return data + padding(len(data))
