"""Payloads, each read, decompressed and counted by one of a few threads, and then forgotten."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink._native import ledger as native
from pylink._native.cores import count_cores
from pylink.diagnostics import Sink
from pylink.facts.elf import ET_REL
from pylink.inputs.choice import CHIP, ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX, FAMILY
from pylink.inputs.payload import (
    LZ4,
    LZ4_BLOCK,
    STORED,
    ZSTD,
    ZSTD_FRAME,
    DamagedPayload,
    Unpacker,
    find_codec,
)
from pylink.size.model import (
    CUBIN,
    LTOIR,
    NO_NUMBER,
    PTX,
    RELOCATABLE,
    RELOCATABLE_PTX,
    UNREADABLE,
    Leaf,
    Sizes,
)
from pylink.size.pool import Pool, Task
from pylink.size.recompress import Recompressor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylink.size.experiments import Experiments, Saving

MOST_ENTRY_BYTES = (1 << 32) - 1
# What all payloads of one command may become: so much, and so many times the bytes of its files.
# Zstandard made cubins 7 times as small at most, and zeros 32,750 times.
MOST_BYTES, MOST_TIMES = 1 << 32, 100

_CODECS = {LZ4: LZ4_BLOCK, ZSTD: ZSTD_FRAME}
CODEC_NAMES = {0: "none", LZ4: "lz4", ZSTD: "zstd"}
_KINDS = {ENTRY_ELF: CUBIN, ENTRY_PTX: PTX, ENTRY_LTOIR: LTOIR}
# Bytes of entries, packed and unpacked, that are in memory at once, unless one alone has more, and
# entries that wait for a thread, for each thread.
_AT_ONCE = 96 << 20
_WAITING = 4
_MOST_THREADS = 4

# A hash, the length of the file's name, and the name with signs of words alone.
_UNIT = re.compile(rb"_+(?:INTERNAL_+|GLOBAL__N__|nv_static_\d+__)[0-9a-f]{8}_(\d+)_(\w+)")


def target_of(kind: int, sm: int, flags: int) -> str:
    """`sm_90a`, `compute_100f` and the like."""
    suffix = "a" if flags & CHIP else "f" if flags & FAMILY else ""
    return f"{'sm' if kind == ENTRY_ELF else 'compute'}_{sm}{suffix}"


def unit_of(mark: bytes) -> str:
    """The source file that a symbol local to it names; empty if it names none."""
    match = _UNIT.match(mark)
    if match is None:
        return ""
    name = match[2][: int(match[1][:4])].decode("ascii", "replace")
    return re.sub(r"_(cu|cpp|cc|c|cxx|ptx|ii)$", r".\1", name)


@dataclass
class _EntryResult:
    """What a thread found of an entry: what `Ledger.measure` says, and what was compressed."""

    counted: tuple[int, bytes, bytes, bytes] | None
    again: tuple[int, int] | None
    savings: dict[str, Saving]


@dataclass
class _Running:
    """An entry that is being counted, and compressed again; `cost` are its bytes in memory."""

    task: Task[_EntryResult]
    leaf: Leaf
    name: str
    cost: int


class Counter:
    """Counts payloads into `sizes`; also a context manager, at whose end all are counted.

    With `recompress` cubins that are not zstd are made so to know their bytes.
    """

    def __init__(
        self, sizes: Sizes, *, recompress: bool = False, experiments: Experiments | None = None
    ) -> None:
        self._sizes, self._experiments = sizes, experiments
        self._again = Recompressor() if recompress else None
        self._threads = min(_MOST_THREADS, count_cores())
        self._pool = Pool(self._threads)
        self._running: list[_Running] = []
        self._left = MOST_BYTES
        self._in_memory = 0
        self.hints: dict[int, bytes] = {}

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.finish()
        finally:
            self._pool.close()

    @property
    def thorough(self) -> bool:
        """Whether to look for more than sums, whatever time that takes."""
        return self._experiments is not None and self._experiments.thorough

    def allow(self, size: int) -> None:
        """A file of `size` bytes will be read: its payloads may become a hundred times as much."""
        self._left += MOST_TIMES * size

    def finish(self) -> None:
        """Wait for all that is being counted."""
        while self._running:
            self._take()

    def count(
        self, leaf: Leaf, name: str, kind: int, flags: int, read: Callable[[], bytes], full: int
    ) -> None:
        """Count the payload of `leaf`, which becomes `full` bytes; `name` is for messages."""
        codec = flags & (LZ4 | ZSTD)
        payload_bytes = leaf.installed - leaf.header
        if codec == LZ4 | ZSTD:
            return self.refuse(leaf, name, "it is marked as both LZ4 and Zstandard")
        if max(full, payload_bytes) > MOST_ENTRY_BYTES or full > self._left:
            limit = min(self._left, MOST_ENTRY_BYTES)
            return self.refuse(leaf, name, f"{full} bytes when decompressed, of {limit}")
        self._left -= full
        self._describe(leaf, kind, codec, full)
        leaf.number = self._sizes.numbers
        self._sizes.numbers += 1
        cost = payload_bytes + full
        while self._running and self._in_memory + cost > _AT_ONCE:
            self._take()
        payload = packed = read()
        number = _CODECS.get(codec, STORED)
        if number and not find_codec(number, native.use_codec):
            try:
                payload = Unpacker(full, 0, Sink()).unpack(memoryview(payload), flags, full, name)
            except DamagedPayload as error:
                return self.refuse(leaf, name, str(error))
            number = STORED
        while len(self._running) >= self._threads * _WAITING:
            self._take()
        again = self._again if kind == ENTRY_ELF and codec != ZSTD and leaf.header else None
        deflate = leaf.download is not None
        shared = payload_bytes, (leaf.download or 0) - leaf.header_download

        def work() -> _EntryResult:
            ledger = self._sizes.ledger
            counted = ledger.measure(payload, number, full, kind, leaf.number, shared)
            result = _EntryResult(counted, None, {})
            if again is not None:
                result.again = again.zstd_bytes(packed, codec, full, deflate=deflate)
            if self._experiments and leaf.header:
                result.savings = self._experiments.run(packed, codec, full, kind, deflate=deflate)
            return result

        self._in_memory += cost
        self._running.append(_Running(self._pool.submit(work), leaf, name, cost))
        return None

    def count_whole(self, leaf: Leaf, name: str, kind: int, flags: int, full: int) -> None:
        """Count a payload as one piece, of the size that its entry states.

        Compilers scramble LTO-IR by a key in its entry: only nvJitLink decompresses that.
        """
        codec = flags & (LZ4 | ZSTD)
        if codec == LZ4 | ZSTD:
            self.refuse(leaf, name, "it is marked as both LZ4 and Zstandard")
        elif full > min(self._left, MOST_ENTRY_BYTES):
            limit = min(self._left, MOST_ENTRY_BYTES)
            self.refuse(leaf, name, f"{full} bytes when decompressed, of {limit}")
        else:
            self._left -= full
            self._describe(leaf, kind, codec, full)

    def _describe(self, leaf: Leaf, kind: int, codec: int, full: int) -> None:
        leaf.kind = _KINDS.get(kind, f"kind {kind}")
        leaf.codec, leaf.unpacked = CODEC_NAMES[codec], full

    def refuse(self, leaf: Leaf, name: str, reason: str) -> None:
        """It stays a row with its bytes, and the reason is said."""
        leaf.kind, leaf.unpacked, leaf.number = UNREADABLE, leaf.installed, NO_NUMBER
        leaf.header = leaf.header_download = 0
        self._sizes.unreadable.append((name, reason))
        file = self._sizes.files[leaf.file]
        file.reason = file.reason or reason

    def _take(self) -> None:
        running = self._running.pop(0)
        leaf, name = running.leaf, running.name
        result = running.task.result()
        if result.again is not None:
            leaf.as_zstd, leaf.as_zstd_download = result.again
        leaf.savings = result.savings
        self._in_memory -= running.cost
        if result.counted is None:
            self.refuse(leaf, name, "its payload is damaged")
            return
        kind, mark, *fingerprints = result.counted
        leaf.fingerprints = fingerprints[0], fingerprints[1]
        if leaf.kind == CUBIN and kind == ET_REL:
            leaf.kind = RELOCATABLE
        self.hints[id(leaf)] = mark


def name_units(leaves: list[Leaf], hints: dict[int, bytes]) -> None:
    """Units of a container's entries that name none, if all that say something agree."""
    units = {unit for leaf in leaves if (unit := unit_of(hints.get(id(leaf), b"")))}
    named = units.pop() if len(units) == 1 else ""
    for leaf in leaves:
        if named and leaf.unit.startswith("container "):
            leaf.unit = named


def mark_relocatable(leaves: list[Leaf], section: str) -> None:
    """PTX is relocatable where the cubins beside it are, or the section is that of such code."""
    if section == "__nv_relfatbin" or any(leaf.kind == RELOCATABLE for leaf in leaves):
        for leaf in leaves:
            if leaf.kind == PTX:
                leaf.kind = RELOCATABLE_PTX
