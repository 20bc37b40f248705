"""Measures the size of a payload compressed in the default mode of `fatbinary`."""

from __future__ import annotations

from pylink._native import zstdframes
from pylink.facts.picknumbers import Codec
from pylink.inputs.payload import LZ4, ZSTD, load_codec

# Zstandard level of -compress-mode=default, by equal sizes of what the two make.
LEVEL = 5
# Level of deflate in wheels.
_DEFLATE = 6


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
        frame = _make_frame(payload)
    except (ImportError, ValueError, RuntimeError, OverflowError):
        return None
    return None if frame is None else frame_bytes(frame, len(frame), deflate=deflate)


def frame_bytes(frame: bytes | None, size: int, *, deflate: bool) -> tuple[int, int]:
    """Bytes that a frame of `size` bytes takes, padded to 8, and when it is deflated, if asked."""
    padding = -size % 8
    if not deflate or frame is None:
        return size + padding, 0
    import zlib  # which files outside of archives do without

    return size + padding, len(zlib.compress(frame + bytes(padding), _DEFLATE))


def _make_frame(payload: bytes) -> bytes | None:
    """A frame that becomes the payload again, by the library of the package or the package."""
    if load_codec(Codec.ZSTD_FRAME, zstdframes.use_codec):
        frame = zstdframes.frame_of(payload, LEVEL)
        if frame is not None:
            return frame
    import zstandard

    frame = zstandard.ZstdCompressor(level=LEVEL).compress(payload)
    again = zstandard.ZstdDecompressor().decompress(frame, max_output_size=len(payload))
    return frame if again == payload else None
