"""Builds fat binaries and host objects byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import lz4.block
import zstandard
from helpers.cubin_builder import EHDR, SHDR

MAGIC = 0xBA55ED50
PTX, ELF, LTOIR = 1, 2, 8  # kinds of entries
# Flags of an entry by its compression, and numbers in its header by its kind.
MODES = {"none": 0, "lz4": 0x2000, "zstd": 0x8000}
VERSIONS = {PTX: (0, 9), ELF: (8, 1), LTOIR: (65, 1)}
HEADER = struct.Struct("<HHIQIIHHIIIQQQ")
# A section of host objects, without which nvlink does not look for device code.
SEGMENT = (".nvFatBinSegment", struct.pack("<IIQQ", 0x466243B1, 1, 0, 0))


def compress(payload: bytes, mode: str) -> bytes:
    """Return the payload, compressed as a mode of MODES says."""
    if mode == "lz4":
        return bytes(lz4.block.compress(payload, store_size=False))
    if mode == "zstd":
        return zstandard.ZstdCompressor().compress(payload)
    return payload


def entry(
    payload: bytes,
    sm: int,
    *,
    kind: int = ELF,
    mode: str = "none",
    flags: int = 0x11,
    stated: int | None = None,
    stored: bytes | None = None,
    size: int | None = None,
    header: int = 64,
) -> bytes:
    """Return one entry.

    To make a damaged one, `stated` replaces the uncompressed size, `stored` the compressed payload,
    `size` the size of the payload, and `header` that of the header.
    """
    data = compress(payload, mode) if stored is None else stored
    padded = data + bytes(-len(data) % 8)
    compressed = mode != "none"
    minor, major = VERSIONS[kind]
    return (
        HEADER.pack(
            kind,
            0x101,
            header,
            len(padded) if size is None else size,
            len(data) if compressed else 0,
            0,
            minor,
            major,
            sm,
            0,
            0,
            flags | MODES[mode],
            0,
            (len(payload) if stated is None else stated) if compressed else 0,
        )
        + padded
    )


def container(*entries: bytes, size: int | None = None) -> bytes:
    """Return a fat binary of these entries; `size` replaces that of its header."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body) if size is None else size) + body


def host_object(sections: Sequence[tuple[str, bytes]], machine: int = 62) -> bytes:
    """Return a relocatable host ELF file with these sections."""
    names = b"\0"
    table = [bytes(64)]
    body = b""
    for name, data in [*sections, (".shstrtab", b"")]:
        if name == ".shstrtab":
            data = names + b".shstrtab\0"  # noqa: PLW2901 -- its own name comes last
        offset = 64 + len(body)
        kind = 3 if name == ".shstrtab" else 1
        table.append(SHDR.pack(len(names), kind, 2, 0, offset, len(data), 0, 0, 8, 0))
        names += name.encode() + b"\0"
        body += data + bytes(-len(data) % 8)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = EHDR.pack(
        ident, 1, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(table), len(table) - 1,
    )  # fmt: skip
    return header + body + b"".join(table)
