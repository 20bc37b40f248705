"""Reads fat binaries by the fields of their headers."""

from __future__ import annotations

import struct

import lz4.block
import zstandard
from helpers.compare import compare

from pylink.facts.fatbinentries import CONTAINER, ENTRY, FLAG_LZ4, FLAG_ZSTD

Entries = list[tuple[bytes, bytes]]


def split(data: bytes) -> Entries:
    """Return the header and the decompressed payload of each entry."""
    entries = []
    offset = CONTAINER.size
    while offset < len(data):
        fields = ENTRY.unpack_from(data, offset)
        header, size, stored, flags, full = (fields[at] for at in (2, 3, 4, 11, 13))
        start = offset + header
        payload = data[start : start + (stored or size)]
        if flags & FLAG_ZSTD:
            payload = zstandard.ZstdDecompressor().decompress(payload)
        elif flags & FLAG_LZ4:
            payload = lz4.block.decompress(payload, uncompressed_size=full)
        entries.append((data[offset:start], _without_padding(payload)))
        offset = start + size
    return entries


def _without_padding(cubin: bytes) -> bytes:
    """Return a cubin without the zeros after it that make an entry's size a multiple of 8.

    Its last part is the table of segments or, without one, the table of sections.
    """
    if not cubin.startswith(b"\x7fELF"):
        return cubin
    segments, sections = struct.unpack_from("<QQ", cubin, 32)
    ends = [
        start + size * count
        for start, (size, count) in (
            (segments, struct.unpack_from("<HH", cubin, 54)),
            (sections, struct.unpack_from("<HH", cubin, 58)),
        )
    ]
    padding = cubin[max(ends) :]
    return cubin[: max(ends)] if len(padding) < 8 and not any(padding) else cubin


def without_sizes(entries: Entries) -> Entries:
    """Return the entries without the fields with sizes of stored payloads."""
    return [(header[:8] + header[20:], payload) for header, payload in entries]


def differences(actual: bytes, expected: bytes) -> list[str]:
    """Return differences of two fat binaries, without tool notes and sizes that these change."""
    actual_entries, expected_entries = split(actual), split(expected)
    if len(actual_entries) != len(expected_entries):
        return [f"{len(actual_entries)} entries, not {len(expected_entries)}"]
    lines = []
    for number, (actual_entry, other) in enumerate(
        zip(actual_entries, expected_entries, strict=True)
    ):
        if _fixed(actual_entry[0]) != _fixed(other[0]):
            lines.append(f"header {number}: {actual_entry[0].hex()}, not {other[0].hex()}")
        lines += [f"entry {number}: {line}" for line in compare(actual_entry[1], other[1])]
    return lines


def _fixed(header: bytes) -> bytes:
    """Return a header without the sizes of the payload."""
    return header[:8] + header[20:56] + header[64:]
