"""What a payload would take in the mode that `fatbinary` calls default: measured, not estimated."""

from __future__ import annotations

import zlib
from threading import Lock

from pylink._native import ledger as native
from pylink.inputs.payload import LZ4, ZSTD, ZSTD_FRAME, find_codec
from pylink.size.pool import Task

# Zstandard level of -compress-mode=default, by equal sizes of what the two make.
LEVEL = 5
# Level of deflate in wheels.
_DEFLATE = 6


class Recompressor:
    """Compresses payloads again, and those that are equal once; for several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks: dict[object, Task[tuple[int, int] | None]] = {}

    def zstd_bytes(
        self, payload: bytes, flags: int, full: int, *, deflate: bool
    ) -> tuple[int, int] | None:
        """See `zstd_bytes`. One in four of libcurand's stored cubins is there twice."""
        import xxhash  # loaded where something is compressed

        key = xxhash.xxh3_128_digest(payload), flags, full, deflate
        task: Task[tuple[int, int] | None] = Task()
        with self._lock:
            shared_task = self._tasks.setdefault(key, task)
        if shared_task is task:
            task.run(lambda: zstd_bytes(payload, flags, full, deflate=deflate))
        return shared_task.result()


def zstd_bytes(payload: bytes, flags: int, full: int, *, deflate: bool) -> tuple[int, int] | None:
    """Bytes of the payload as zstd, padded to 8, and of that when it is deflated (0: not asked).

    None where a package is missing, the payload is damaged, or what was made does not decompress to
    the same bytes.
    """
    try:
        if flags & LZ4:
            from lz4 import block

            payload = block.decompress(payload, uncompressed_size=full)
        if flags & ZSTD or len(payload) != full:
            return None
        frame_bytes = _make_frame(payload)
    except (ImportError, ValueError, RuntimeError, OverflowError):
        return None
    if frame_bytes is None:
        return None
    frame_bytes += bytes(-len(frame_bytes) % 8)
    return len(frame_bytes), len(zlib.compress(frame_bytes, _DEFLATE)) if deflate else 0


def _make_frame(payload: bytes) -> bytes | None:
    """A frame that becomes the payload again, by the library of the package or the package."""
    if find_codec(ZSTD_FRAME, native.use_codec):
        frame = native.frame_of(payload, LEVEL)
        if frame is not None:
            return frame
    import zstandard

    frame = zstandard.ZstdCompressor(level=LEVEL).compress(payload)
    again = zstandard.ZstdDecompressor().decompress(frame, max_output_size=len(payload))
    return frame if again == payload else None
