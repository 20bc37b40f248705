"""Reads the entries of fat binaries, and writes containers of the entries that remain."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.devicelink.compression import ALWAYS, NEVER, SMALLEST_LEVEL, Mode, compress
from pylink.diagnostics import Sink
from pylink.facts.fatbinentries import (
    CONTAINER,
    ENTRY,
    FLAG_LZ4,
    FLAG_ZSTD,
    FLAGS_OF_CODECS,
    container_header,
    is_scrambled,
    padding,
    suffix_of,
)
from pylink.facts.headers import EntryHeader
from pylink.facts.picknumbers import EntryKind
from pylink.inputs.payload import DamagedPayload, Unpacker
from pylink.prune.errors import NotPruned

_TARGET_PREFIXES = {EntryKind.ELF: "sm", EntryKind.PTX: "compute", EntryKind.LTOIR: "lto"}
# Limit of the decompressed bytes of one entry, as in `pylink size`.
_MAX_BYTES = 1 << 32

# Modes of -compress-mode, which here apply to entries of any size.
MODES = {
    "default": ALWAYS,
    "balance": ALWAYS,
    "size": Mode(FLAG_ZSTD, SMALLEST_LEVEL, -1),
    "speed": Mode(FLAG_LZ4, 0, -1),
    "none": NEVER,
}
# Modes that apply even if an entry grows, and those that use Zstandard.
_GROWING_MODES = ("speed", "none")
ZSTANDARD_MODES = ("default", "balance", "size")


@dataclass(frozen=True)
class FatbinEntry:
    """One entry: its full header, and the stored bytes after it with their padding."""

    header: bytes
    stored: bytes

    @property
    def fields(self) -> EntryHeader:
        return EntryHeader._make(ENTRY.unpack_from(self.header))

    @property
    def flags(self) -> int:
        return self.fields.flags

    @property
    def target(self) -> str:
        """The target, such as `sm_90a`, `compute_80`, `lto_90`; `kind 4 of 75` for another kind."""
        fields = self.fields
        kind, sm, flags = fields.kind, fields.sm, fields.flags
        suffix = suffix_of(flags)
        prefix = _TARGET_PREFIXES.get(kind)
        return f"{prefix}_{sm}{suffix}" if prefix else f"kind {kind} of {sm}{suffix}"

    @property
    def is_scrambled(self) -> bool:
        """Whether only nvJitLink can decompress it: LTO-IR with a key in its header."""
        return is_scrambled(self.header)

    @property
    def identity(self) -> tuple[object, ...]:
        """All of the header except the sizes of the payload and the flags of its codec."""
        others = self.fields._replace(
            size=0, packed_size=0, full_size=0, flags=self.flags & ~FLAGS_OF_CODECS
        )
        return (*others, self.header[ENTRY.size :])

    def payload(self, name: str) -> bytes:
        """Return the decompressed payload; NotPruned if that fails.

        A payload that is scrambled or not compressed is returned as stored, with its padding.
        """
        packed_size, full_size = self.fields.packed_size, self.fields.full_size
        if not self.flags & FLAGS_OF_CODECS or self.is_scrambled:
            return self.stored
        if full_size > _MAX_BYTES:
            raise NotPruned(f"{name}: {full_size} bytes when decompressed, of {_MAX_BYTES}")
        unpacker = Unpacker(full_size, 0, Sink())
        try:
            unpacker.reserve(self.flags, full_size)
            compressed = memoryview(self.stored)[:packed_size]
            return unpacker.unpack(compressed, self.flags, full_size, name)
        except DamagedPayload as error:
            raise NotPruned(f"{name}: {error}") from None


def read_container(data: bytes, start: int, end: int, name: str) -> list[FatbinEntry]:
    """Return the entries of a container from `start` to `end`; NotPruned if it is damaged."""
    position = start + CONTAINER.size
    if not data.startswith(container_header(end - position), start):
        raise NotPruned(f"{name}: its header does not fit the file")
    entries: list[FatbinEntry] = []
    while position < end:
        label = f"{name}, entry {len(entries)}"
        if end - position < ENTRY.size:
            raise NotPruned(f"{label}: it is cut short")
        fields = EntryHeader._make(ENTRY.unpack_from(data, position))
        header, size = fields.header_size, fields.size
        if header < ENTRY.size or header > end - position or size > end - position - header:
            raise NotPruned(f"{label}: its header does not fit the container")
        if fields.flags & FLAGS_OF_CODECS and fields.packed_size > size:
            raise NotPruned(f"{label}: its header does not fit its payload")
        payload_start = position + header
        entries.append(
            FatbinEntry(data[position:payload_start], data[payload_start : payload_start + size])
        )
        position = payload_start + size
    return entries


def recompress(entry: FatbinEntry, mode_name: str, name: str) -> FatbinEntry:
    """Return the entry in another mode of compression.

    It stays unchanged if it is scrambled, or if a mode that uses Zstandard does not make it
    smaller.
    """
    if entry.is_scrambled:
        return entry
    mode = MODES[mode_name]
    payload = entry.payload(name)
    codec_flag, packed = compress(payload, mode)
    stored = packed + padding(len(packed))
    if mode_name not in _GROWING_MODES and len(stored) >= len(entry.stored):
        return entry
    fields = entry.fields._replace(
        size=len(stored),
        packed_size=len(packed) if codec_flag else 0,
        flags=entry.flags & ~FLAGS_OF_CODECS | codec_flag,
        full_size=len(payload) if codec_flag else 0,
    )
    return FatbinEntry(ENTRY.pack(*fields) + entry.header[ENTRY.size :], stored)


def make_container(entries: list[FatbinEntry]) -> bytes:
    """Return a container of these entries, which may be none."""
    body = b"".join(entry.header + entry.stored for entry in entries)
    return container_header(len(body)) + body


@dataclass(frozen=True)
class Changes:
    """Changes of entries. A key is (number of the container in the file, number of the entry).

    `dropped` has the keys of the entries to remove. `mode` is the name of the mode in which all
    remaining entries are compressed again, empty for none; `modes` has other modes of single
    entries. `sizes` has the bytes of each entry, header included, when the plan was made: they show
    that a file changed since.
    """

    dropped: frozenset[tuple[int, int]]
    mode: str = ""
    modes: dict[tuple[int, int], str] = field(default_factory=dict)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)

    def mode_of(self, key: tuple[int, int]) -> str:
        """Return the mode for an entry; empty if it stays as it is."""
        return self.modes.get(key, self.mode)

    def apply(self, number: int, entries: list[FatbinEntry], name: str) -> list[FatbinEntry]:
        """Apply the changes to the entries of container `number`; return the remaining ones."""
        remaining = []
        for index, entry in enumerate(entries):
            key = number, index
            if self.sizes and self.sizes.get(key) != len(entry.header) + len(entry.stored):
                raise NotPruned(f"{name}, entry {index}: it changed while it was read")
            if key in self.dropped:
                continue
            mode = self.mode_of(key)
            remaining.append(recompress(entry, mode, f"{name}, entry {index}") if mode else entry)
        return remaining
