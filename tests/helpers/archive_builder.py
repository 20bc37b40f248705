"""Builds archives in every dialect, also damaged ones."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from helpers.cubin_builder import Cubin

MAGIC = b"!<arch>\n"
THIN = b"!<thin>\n"
Members = Sequence[tuple[str, bytes]]


def header(name: bytes, size: int | bytes, end: bytes = b"`\n") -> bytes:
    """Return the header of a member, 60 bytes; `size` as bytes is written unchanged."""
    count = size if isinstance(size, bytes) else b"%d" % size
    return b"%-16s%-12d%-6d%-6d%-8s%-10s%s" % (name, 0, 0, 0, b"644", count, end)


def member(name: bytes, data: bytes) -> bytes:
    """Return a member: header and contents, padded to an even size."""
    return header(name, len(data)) + data + b"\n" * (len(data) % 2)


def gnu(members: Members, *, index: bytes | None = None, wide: bool = False) -> bytes:
    """Return an archive as GNU ar writes it.

    `index` is an index of symbols, with `wide` one of 64 bits.
    """
    names = [name.encode() for name, _ in members]
    table = b"".join(name + b"/\n" for name in names if _is_long(name))
    parts = [MAGIC]
    if index is not None:
        parts.append(member(b"/SYM64/" if wide else b"/", index))
    if table:
        parts.append(member(b"//", table))
    for name, data in members:
        text = name.encode()
        field = b"/%d" % table.index(text + b"/\n") if _is_long(text) else text + b"/"
        parts.append(member(field, data))
    return b"".join(parts)


def _is_long(name: bytes) -> bool:
    """Return whether a name needs a long form."""
    return len(name) > 15 or b"/" in name


def bsd(members: Members, *, index: bool = False) -> bytes:
    """Return an archive as the BSDs and macOS write it, with long names before the contents."""
    parts = [MAGIC]
    if index:
        parts.append(member(b"__.SYMDEF", struct.pack("<II", 0, 0)))
    for name, data in members:
        text = name.encode()
        text += bytes(-len(text) % 4)
        parts.append(member(b"#1/%d" % len(text), text + data))
    return b"".join(parts)


def thin(names: Sequence[str], sizes: Sequence[int] | None = None) -> bytes:
    """Return a thin archive of these files; an item FILE:OFFSET is a member of an archive."""
    table = b"".join(name.partition(":")[0].encode() + b"/\n" for name in names)
    parts = [THIN, member(b"//", table)]
    offset = 0
    for number, name in enumerate(names):
        file, colon, place = name.partition(":")
        size = sizes[number] if sizes else 0
        parts.append(header(b"/%d%s%s" % (offset, colon.encode(), place.encode()), size))
        offset += len(file.encode()) + 2
    return b"".join(parts)


def device(defines: Sequence[str] = (), calls: Sequence[str] = (), kernel: str = "") -> bytes:
    """Return a cubin that defines functions, and whose kernel or first function calls others."""
    cubin = Cubin()
    functions = [cubin.function(name) for name in defines]
    if kernel:
        functions.insert(0, cubin.function(kernel, kernel=True))
    for name in calls:
        cubin.call(functions[0], cubin.external(name))
    return cubin.build()


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files by name, and create their folders."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
