"""Counts payloads (contents of entries) in a few threads: reads, decompresses, counts and frees."""

from __future__ import annotations

import os

from pylink._native import ledger as native
from pylink._native.cores import count_cores
from pylink.facts.elf import ET_REL
from pylink.facts.fatbinentries import FLAG_LZ4, FLAG_ZSTD, FLAGS_OF_CODECS
from pylink.facts.picknumbers import Codec, EntryKind
from pylink.inputs.payload import load_codec
from pylink.size.model import CUBIN, LTOIR, NO_NUMBER, PTX, RELOCATABLE, UNREADABLE, Leaf, Sizes
from pylink.size.payload import Payload
from pylink.size.pool import Pool, Task
from pylink.size.recompress import DEFAULT_LEVEL, frame_bytes, zstd_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.size.experiments import Experiments
    from pylink.size.savings import Saving
    from pylink.size.sources import FileSource, Source

# Limit of the stored and of the decompressed bytes of one entry: native code counts in 32 bits. A
# larger entry is unreadable.
MOST_ENTRY_BYTES = (1 << 32) - 1
# Limit of the decompressed bytes of all entries in a command: MOST_BYTES plus MOST_TIMES the sizes
# of the files. Zstandard made cubins at most 7.3 times smaller, but zeros 32,750 times. Entries
# beyond it are unreadable.
MOST_BYTES, MOST_TIMES = 1 << 32, 100

# Codecs by the bits of an entry's flags, and names of modes by the same bits; 0 is not compressed.
_CODECS = {FLAG_LZ4: Codec.LZ4_BLOCK, FLAG_ZSTD: Codec.ZSTD_FRAME}
CODEC_NAMES = {0: "none", FLAG_LZ4: "lz4", FLAG_ZSTD: "zstd"}
# Kinds of leaves by kinds of entries.
_KINDS = {EntryKind.ELF: CUBIN, EntryKind.PTX: PTX, EntryKind.LTOIR: LTOIR}
# Limit of the stored and decompressed bytes of all unfinished batches, unless one entry has more.
_MOST_BYTES_IN_MEMORY = 96 << 20
_MOST_THREADS = 4
# Work of a batch, in bytes that are decompressed and counted: large enough to amortize the start of
# a task, small enough to balance threads. To compress a byte as zstd takes as long as counting
# _FRAME_WORK bytes.
_BATCH_WORK, _FRAME_WORK = 4 << 20, 8
_MOST_BATCH_ENTRIES = 256
# Limit of the unfinished batches for each thread, if their payloads are in memory already. Batches
# of a file have no limit.
_WAITING_BATCHES = 2


class _EntryResult:
    """The result of measuring one entry; most fields are those of `ledger.Measured`.

    `mark` is a symbol's name, or a part of it, that contains the source file's name; it may be
    empty. `same_as` is the number of the entry with equal contents, which is compressed instead of
    this one, or -1. `as_zstd` has the size of the payload as zstd, and its size as zstd and then
    deflate, which is 0 outside archives (None: not measured). `savings` are by experiment.
    """

    __slots__ = ("as_zstd", "elf_type", "fingerprints", "mark", "same_as", "savings")

    def __init__(
        self, elf_type: int, mark: bytes, fingerprints: tuple[bytes, bytes], same_as: int
    ) -> None:
        self.elf_type, self.mark = elf_type, mark
        self.fingerprints, self.same_as = fingerprints, same_as
        self.as_zstd: tuple[int, int] | None = None
        self.savings: dict[str, Saving] = {}


class _Batch:
    """Entries for one thread to count, in lists of equal length.

    The thread reads payloads that are not in memory yet from `file`. `cost` is the number of bytes
    that the entries take in memory, and `work` the stored and decompressed bytes, _FRAME_WORK times
    as many for those to compress. `packed` has the stored bytes of each entry (None if they are
    still in `file`) and the bits of its codec, for experiments. `deflate` is true for entries of an
    archive, whose size after deflate is measured, too. `task` counts the batch (None: not started).
    """

    __slots__ = (
        "cost", "deflate", "file", "leaves", "names", "packed", "payloads", "task", "work",
    )  # fmt: skip

    def __init__(self, file: FileSource | None, *, deflate: bool) -> None:
        self.file, self.deflate = file, deflate
        self.cost = self.work = 0
        self.leaves: list[Leaf] = []
        self.names: list[str] = []
        self.payloads: list[Payload] = []
        self.packed: list[tuple[bytes | None, int]] = []
        self.task: Task[list[_EntryResult | None]] | None = None

    def add(
        self, leaf: Leaf, name: str, payload: Payload, packed: tuple[bytes | None, int]
    ) -> None:
        """Add an entry; its payload is read later if it is in a file."""
        self.leaves.append(leaf)
        self.names.append(name)
        self.payloads.append(payload)
        self.packed.append(packed)

    def close(self) -> None:
        """Release the file, after all payloads of the batch were read."""
        if self.file is not None:
            self.file.close()


class Counter:
    """Adds the bytes of payloads, by part and function, to `sizes`, in several threads.

    As a context manager, it waits for all threads at the end.

    With `recompress`, stored and LZ4 cubins in containers are compressed as zstd to measure that.
    `experiments` are run on each entry of a container.
    """

    def __init__(
        self, sizes: Sizes, *, recompress: bool = False, experiments: Experiments | None = None
    ) -> None:
        self._sizes, self._experiments = sizes, experiments
        self._recompress = recompress
        if recompress:
            load_codec(Codec.ZSTD_FRAME, native.open_library)
        self._thread_count = min(_MOST_THREADS, count_cores())
        self._pool = Pool(self._thread_count)
        self._batch: _Batch | None = None
        self._running: list[_Batch] = []  # in the order of their start
        self._bytes_allowed = MOST_BYTES  # that may still be decompressed
        self._in_memory = 0  # bytes of all batches that are not finished
        # Entries that were not compressed, since another one has equal contents; each with the
        # number of that one, whose size as zstd it gets at the end. `_originals` has, by number,
        # the entries that were compressed.
        self._repeated: list[tuple[Leaf, int]] = []
        self._originals: dict[int, Leaf] = {}
        # By id() of a leaf: `mark` of its result, which contains the name of the source file.
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
        """Whether slow measurements were requested, too."""
        return self._experiments is not None and self._experiments.thorough

    def allow(self, size: int) -> None:
        """Raise the limit of decompressed bytes for a file of `size` bytes."""
        self._bytes_allowed += MOST_TIMES * size

    def finish(self) -> None:
        """Wait until all payloads are counted; then give equal entries the same size as zstd."""
        self.submit()
        while self._running:
            self._finish_first_batch()
        for leaf, number in self._repeated:
            original = self._originals.get(number)
            if original is not None:
                leaf.as_zstd, leaf.as_zstd_download = original.as_zstd, original.as_zstd_download
        self._repeated.clear()

    def count(
        self,
        leaf: Leaf,
        name: str,
        kind: int,
        flags: int,
        payload_range: tuple[Source, int, int],
        full: int,
    ) -> None:
        """Count the payload of `leaf`, `full` bytes when decompressed; `name` is for messages.

        `kind` is an EntryKind, and `flags` are those of the entry. `payload_range` is the source of
        the payload, its offset there, and its stored size.
        """
        codec = flags & FLAGS_OF_CODECS
        payload_bytes = leaf.installed - leaf.header
        if not self._admit(leaf, name, kind, codec, full, payload_bytes):
            return
        number = leaf.number = self._sizes.entry_count
        self._sizes.entry_count += 1
        source, offset, size = payload_range
        native_codec = _CODECS.get(codec, Codec.STORED)
        is_native = not native_codec or load_codec(native_codec, native.open_library)
        # The thread that counts a payload in a file reads it, if neither an experiment nor a Python
        # codec needs its bytes.
        file_place = source.place_of(offset) if is_native and not self._experiments else None
        file = file_place[0] if file_place else None
        batch = self._batch_with_room(file, leaf, payload_bytes + full)
        payload_data = stored_data = None
        if file_place is not None:
            offset = file_place[1]
        else:
            payload_data = stored_data = source.read(offset, size)
            if not is_native:
                contents = _decompress_by_package(stored_data, flags, full, name)
                if isinstance(contents, str):
                    self.count_unreadable(leaf, name, contents)
                    return
                payload_data, native_codec = contents, Codec.STORED
            size = len(payload_data)
        is_recompressed = (
            self._recompress and kind == EntryKind.ELF and codec != FLAG_ZSTD and leaf.header > 0
        )
        download = (leaf.download or 0) - leaf.header_download
        payload = Payload(
            payload_data,
            offset,
            size,
            full,
            native_codec,
            kind,
            number,
            payload_bytes,
            download,
            is_recompressed,
        )
        batch.add(leaf, name, payload, (stored_data, codec))
        batch.cost += payload_bytes + full
        self._in_memory += payload_bytes + full
        batch.work += (full + size) * (_FRAME_WORK if is_recompressed else 1)
        is_full = batch.work >= _BATCH_WORK or len(batch.leaves) == _MOST_BATCH_ENTRIES
        if is_full or self._experiments:
            self.submit()

    def _batch_with_room(self, file: FileSource | None, leaf: Leaf, cost: int) -> _Batch:
        """Return the batch for a leaf of `file`, once `cost` more bytes fit into memory.

        `file` is None for a payload that is in memory.
        """
        deflate = leaf.download is not None
        batch = self._batch
        if batch and (batch.file is not file or batch.deflate != deflate):
            self.submit()
        if self._in_memory + cost > _MOST_BYTES_IN_MEMORY:
            self.submit()
            while self._running and self._in_memory + cost > _MOST_BYTES_IN_MEMORY:
                self._finish_first_batch()
        if self._batch is None:
            self._batch = _Batch(file, deflate=deflate)
            if file is not None:
                file.hold()
        return self._batch

    def submit(self) -> None:
        """Give the current batch to a thread."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        if not batch.leaves:  # the only entry was refused
            batch.close()
            return
        while batch.file is None and len(self._running) >= self._thread_count * _WAITING_BATCHES:
            self._finish_first_batch()
        batch.task = self._pool.submit(lambda: self._count_batch(batch))
        self._running.append(batch)

    def _count_batch(self, batch: _Batch) -> list[_EntryResult | None]:
        """Measure the payloads of a batch, in a thread of the pool; None for a damaged one."""
        file = batch.file
        try:
            measured = self._sizes.ledger.measure(
                batch.payloads,
                -1 if file is None else file.descriptor,
                DEFAULT_LEVEL,
                keep_frames=batch.deflate,
            )
        except EOFError:
            assert file is not None
            raise file.short_read() from None
        except OSError as error:
            assert file is not None
            raise OSError(error.errno, os.strerror(error.errno or 0), file.path) from None
        return [
            None if row is None else self._make_result(batch, number, row)
            for number, row in enumerate(measured)
        ]

    def _make_result(self, batch: _Batch, number: int, measured: native.Measured) -> _EntryResult:
        """Return the result of entry `number` of a batch, with the slow measurements requested."""
        payload, (packed, codec) = batch.payloads[number], batch.packed[number]
        result = _EntryResult(
            measured.elf_type, measured.unit, (measured.exact, measured.like), measured.same_as
        )
        if payload.is_recompressed and measured.same_as < 0:
            if measured.frame_size:
                result.as_zstd = frame_bytes(
                    measured.frame, measured.frame_size, deflate=batch.deflate
                )
            else:  # there is no native codec: the Python package may have one
                data = payload.data
                if data is None and batch.file is not None:
                    data = batch.file.read_apart(payload.offset, payload.packed)
                flags = FLAG_LZ4 if payload.codec == Codec.LZ4_BLOCK else 0
                result.as_zstd = zstd_bytes(data or b"", flags, payload.full, deflate=batch.deflate)
        if self._experiments and batch.leaves[number].header and packed is not None:
            result.savings = self._experiments.run(
                packed, codec, payload.full, payload.kind, deflate=batch.deflate
            )
        return result

    def count_whole(self, leaf: Leaf, name: str, kind: int, flags: int, full: int) -> None:
        """Count a payload as one piece, of the size that its entry states.

        This is for LTO-IR that a compiler has scrambled by a key in its entry: only nvJitLink can
        decompress it.
        """
        codec = flags & FLAGS_OF_CODECS
        self._admit(leaf, name, kind, codec, full, 0)

    def _admit(
        self, leaf: Leaf, name: str, kind: int, codec: int, full: int, payload_bytes: int
    ) -> bool:
        """Give a leaf its kind, codec and decompressed size `full`; return whether they are valid.

        `payload_bytes` is its stored size. A leaf with both codecs, or with more bytes than a
        limit, is counted as unreadable.
        """
        if codec == FLAGS_OF_CODECS:
            self.count_unreadable(leaf, name, "it is marked as both LZ4 and Zstandard")
            return False
        if max(full, payload_bytes) > MOST_ENTRY_BYTES or full > self._bytes_allowed:
            limit = min(self._bytes_allowed, MOST_ENTRY_BYTES)
            self.count_unreadable(leaf, name, f"{full} bytes when decompressed, of {limit}")
            return False
        self._bytes_allowed -= full
        leaf.kind = _KINDS.get(kind, f"kind {kind}")
        leaf.codec, leaf.unpacked = CODEC_NAMES[codec], full
        return True

    def count_unreadable(self, leaf: Leaf, name: str, reason: str) -> None:
        """Count a leaf as unreadable, with its bytes in the file, and record the reason."""
        leaf.kind, leaf.unpacked, leaf.number = UNREADABLE, leaf.installed, NO_NUMBER
        leaf.header = leaf.header_download = 0
        self._sizes.unreadable.append((name, reason))
        file = self._sizes.files[leaf.file]
        file.reason = file.reason or reason

    def _finish_first_batch(self) -> None:
        """Wait for the first running batch, and give its results to its leaves."""
        batch = self._running.pop(0)
        assert batch.task is not None
        try:
            results = batch.task.result()
        finally:
            batch.close()
            self._in_memory -= batch.cost
        for leaf, name, result in zip(batch.leaves, batch.names, results, strict=True):
            if result is None:
                self.count_unreadable(leaf, name, "its payload is damaged")
                continue
            if result.same_as >= 0:
                self._repeated.append((leaf, result.same_as))
            elif result.as_zstd is not None:
                leaf.as_zstd, leaf.as_zstd_download = result.as_zstd
                self._originals[leaf.number] = leaf
            leaf.savings = result.savings
            leaf.fingerprints = result.fingerprints
            if leaf.kind == CUBIN and result.elf_type == ET_REL:
                leaf.kind = RELOCATABLE
            self.hints[id(leaf)] = result.mark


def _decompress_by_package(stored: bytes, flags: int, full: int, name: str) -> bytes | str:
    """Return the contents of a payload, decompressed by Python packages, or the error as a str."""
    from pylink.diagnostics import Sink
    from pylink.inputs.payload import DamagedPayload, Unpacker

    try:
        return Unpacker(full, 0, Sink()).unpack(memoryview(stored), flags, full, name)
    except DamagedPayload as error:
        return str(error)
