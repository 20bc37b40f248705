"""Fat binaries taken apart into entries, and put together from those that stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.devicelink.compression import ALWAYS, NEVER, Mode, compress
from pylink.diagnostics import Sink
from pylink.facts.fatbinentries import CONTAINER, ENTRY, FATBIN_MAGIC, FLAG_LZ4, FLAG_ZSTD
from pylink.inputs.choice import ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX, FLAG_CHIP, FLAG_FAMILY
from pylink.inputs.payload import DamagedPayload, Unpacker
from pylink.prune.errors import NotPruned

_CODECS = FLAG_LZ4 | FLAG_ZSTD
_WORDS = {ENTRY_ELF: "sm", ENTRY_PTX: "compute", ENTRY_LTOIR: "lto"}
# As `pylink size` has them: bytes of one entry when it is decompressed.
_MOST_BYTES = 1 << 32

# Modes of -compress-mode for all entries, whatever their size.
MODES = {
    "default": ALWAYS,
    "balance": ALWAYS,
    "size": Mode(FLAG_ZSTD, 19, -1),
    "speed": Mode(FLAG_LZ4, 0, -1),
    "none": NEVER,
}
# Modes for which an entry changes even if it grows.
_EXACT = ("speed", "none")
ZSTANDARD = ("default", "balance", "size")


@dataclass(frozen=True)
class Entry:
    """One entry: its header with all that is in it, and the bytes stored after."""

    header: bytes
    stored: bytes

    @property
    def fields(self) -> tuple[int, ...]:
        return ENTRY.unpack_from(self.header)

    @property
    def flags(self) -> int:
        return self.fields[11]

    @property
    def target(self) -> str:
        """`sm_90a`, `compute_80`, `lto_90`, or `kind 4 of 75`."""
        kind, sm, flags = self.fields[0], self.fields[8], self.flags
        suffix = "a" if flags & FLAG_CHIP else "f" if flags & FLAG_FAMILY else ""
        word = _WORDS.get(kind)
        return f"{word}_{sm}{suffix}" if word else f"kind {kind} of {sm}{suffix}"

    @property
    def is_scrambled(self) -> bool:
        """Whether only nvJitLink can decompress it: LTO-IR with a key in its header."""
        return self.fields[0] == ENTRY_LTOIR and self.fields[12] != 0

    @property
    def identity(self) -> tuple[object, ...]:
        """All that an entry says of itself but how it is compressed."""
        kind, mark, header, _, _, *rest, flags, last, _ = self.fields
        return (kind, mark, header, *rest, flags & ~_CODECS, last, self.header[ENTRY.size :])

    def payload(self, name: str) -> bytes:
        """The payload, decompressed, or as stored with its padding; NotPruned if that fails."""
        packed, full = self.fields[4], self.fields[13]
        if not self.flags & _CODECS or self.is_scrambled:
            return self.stored
        if full > _MOST_BYTES:
            raise NotPruned(f"{name}: {full} bytes when decompressed, of {_MOST_BYTES}")
        unpacker = Unpacker(full, 0, Sink())
        try:
            unpacker.reserve(self.flags, full)
            return unpacker.unpack(memoryview(self.stored)[:packed], self.flags, full, name)
        except DamagedPayload as error:
            raise NotPruned(f"{name}: {error}") from None


def read_container(data: bytes, start: int, end: int, name: str) -> list[Entry]:
    """The entries between the header of a container and its end; NotPruned for damaged ones."""
    magic, version, header, size = CONTAINER.unpack_from(data, start)
    at = start + CONTAINER.size
    if (magic, version, header) != (FATBIN_MAGIC, 1, CONTAINER.size) or at + size != end:
        raise NotPruned(f"{name}: its header does not fit the file")
    entries: list[Entry] = []
    while at < end:
        where = f"{name}, entry {len(entries)}"
        if end - at < ENTRY.size:
            raise NotPruned(f"{where}: it is cut short")
        fields = ENTRY.unpack_from(data, at)
        header, size, packed, flags = fields[2], fields[3], fields[4], fields[11]
        if header < ENTRY.size or header > end - at or size > end - at - header:
            raise NotPruned(f"{where}: its header does not fit the container")
        if flags & _CODECS and packed > size:
            raise NotPruned(f"{where}: its header does not fit its payload")
        place = at + header
        entries.append(Entry(data[at:place], data[place : place + size]))
        at = place + size
    return entries


def compressed(entry: Entry, mode_name: str, name: str) -> Entry:
    """The entry in another mode of compression, or as it is where that does not make it smaller."""
    if entry.is_scrambled:
        return entry
    mode = MODES[mode_name]
    payload = entry.payload(name)
    flag, compressed_bytes = compress(payload, mode)
    padding = bytes(-len(compressed_bytes) % 8)
    if mode_name not in _EXACT and len(compressed_bytes) + len(padding) >= len(entry.stored):
        return entry
    fields = list(entry.fields)
    fields[3] = len(compressed_bytes) + len(padding)
    fields[4] = len(compressed_bytes) if flag else 0
    fields[11] = entry.flags & ~_CODECS | flag
    fields[13] = len(payload) if flag else 0
    return Entry(ENTRY.pack(*fields) + entry.header[ENTRY.size :], compressed_bytes + padding)


def write_container(entries: list[Entry]) -> bytes:
    """A container of these entries, of none, too."""
    body = b"".join(entry.header + entry.stored for entry in entries)
    return CONTAINER.pack(FATBIN_MAGIC, 1, CONTAINER.size, len(body)) + body


@dataclass(frozen=True)
class Changes:
    """What happens to entries, each known by the number of its container in the file and its own.

    `mode` is that of all entries that stay, and `modes` those of some. `sizes` are the
    bytes of each entry by which the plan was made.
    """

    dropped: frozenset[tuple[int, int]]
    mode: str = ""
    modes: dict[tuple[int, int], str] = field(default_factory=dict)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)

    def mode_of(self, key: tuple[int, int]) -> str:
        return self.modes.get(key, self.mode)

    def apply(self, number: int, entries: list[Entry], name: str) -> list[Entry]:
        """The entries of container `number` that stay."""
        entries_kept = []
        for index, entry in enumerate(entries):
            key = number, index
            if self.sizes and self.sizes.get(key) != len(entry.header) + len(entry.stored):
                raise NotPruned(f"{name}, entry {index}: it changed while it was read")
            if key in self.dropped:
                continue
            mode = self.mode_of(key)
            entries_kept.append(
                compressed(entry, mode, f"{name}, entry {index}") if mode else entry
            )
        return entries_kept
