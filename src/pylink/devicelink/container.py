"""Fat binaries of linked cubins, as fatbinary writes them for the device-link step.

One container, entries back to back. An entry is its header, a name, a copy of `.nv.compat`, and the
payload. The pieces are returned as they are, since a payload may be large.
"""

from __future__ import annotations

import struct

from pylink._native.elfheaders import read_sections
from pylink.devicelink.architectures import architecture_parts
from pylink.devicelink.compression import compress
from pylink.facts.fatbinentries import (
    CONTAINER,
    CUBIN_VERSION,
    ENTRY,
    ENTRY_MARK,
    FATBIN_MAGIC,
    FLAG_64_BIT,
    FLAG_COMPAT,
    FLAG_DEBUG,
    FLAG_LINUX,
    FLAG_SUFFIX,
    KIND_CUBIN,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pylink.devicelink.compression import Mode

    Compressed = tuple[int, bytes]

# From this SM number on the header of an entry has the attributes of `.nv.compat`.
FIRST_COMPAT = 100
COMPAT = b".nv.compat"
BLOCK = struct.Struct("<II")  # offset and size


class Container:
    """A fat binary: its pieces in order, and their size in bytes."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))


def make_container(
    cubins: Sequence[tuple[str, bytes]],
    mode: Mode,
    *,
    debug: bool = False,
    name: bytes = b"",
    run: Callable[[Callable[[bytes], Compressed], list[bytes]], Iterable[Compressed]] = map,
) -> Container:
    """The fat binary of pairs of an architecture, such as `sm_90a`, and its linked cubin.

    `name` is that of each entry. `debug` marks the entries as compiled with -G. `run` compresses:
    it is `map`, or its like with several threads. ValueError for what is not an architecture,
    and for a file that is not a cubin.
    """
    stored = run(lambda data: compress(data, mode), [data for _, data in cubins])
    pieces = []
    for (architecture, data), (flag, payload) in zip(cubins, stored, strict=True):
        pieces += _entry(architecture, data, flag, payload, debug=debug, name=name)
    size = sum(map(len, pieces))
    return Container([CONTAINER.pack(FATBIN_MAGIC, 1, CONTAINER.size, size), *pieces])


def _entry(
    architecture: str, data: bytes, codec: int, payload: bytes, *, debug: bool, name: bytes
) -> list[bytes]:
    """The pieces of one entry."""
    parts = architecture_parts(architecture, "sm_")
    if parts is None:
        raise ValueError(f"not an architecture: {architecture}")
    sm, letter = parts
    flags = FLAG_64_BIT | FLAG_LINUX | FLAG_SUFFIX[letter] | codec
    if debug:
        flags |= FLAG_DEBUG
    rest = _padded(name + b"\0") if name else b""
    block = 0
    compat = _compat(data) if sm >= FIRST_COMPAT else None
    if compat:
        flags |= FLAG_COMPAT
        block = ENTRY.size + len(rest)
        # The stated offset is that of a zero in front of the attributes, the size theirs alone.
        rest += _padded(BLOCK.pack(block + BLOCK.size, len(compat)) + b"\0" + compat)
    padding = bytes(-len(payload) % 8)
    header = ENTRY.pack(
        KIND_CUBIN,
        ENTRY_MARK,
        ENTRY.size + len(rest),
        len(payload) + len(padding),
        len(payload) if codec else 0,
        block,
        *CUBIN_VERSION,
        sm,
        ENTRY.size if name else 0,
        len(name),
        flags,
        0,
        len(data) if codec else 0,
    )
    return [header + rest, payload, padding]


def _compat(cubin: bytes) -> bytes | None:
    """The contents of `.nv.compat`, None without any."""
    for section in read_sections(cubin)[2]:
        if section.name == COMPAT:
            return cubin[section.offset : section.offset + section.stored]
    return None


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
