"""Measures the size of a payload compressed in the default mode of `fatbinary`."""

from __future__ import annotations

from pylink._native import zstdframes
from pylink.facts.picknumbers import Codec
from pylink.inputs.payload import LZ4, ZSTD, load_codec

# Zstandard level of -compress-mode=default: it gives the same sizes as fatbinary.
LEVEL = 5
# Level of deflate in wheels.
_DEFLATE = 6


def zstd_bytes(payload: bytes, flags: int, full: int, *, deflate: bool) -> tuple[int, int] | None:
    """Return the size of the payload as zstd, padded to 8, and its size after deflate or 0.

    None if a package is missing, the payload is damaged, or the result does not decompress to the
    same bytes.
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
    """Return the size of a frame padded to 8, and with `deflate` its size after deflate, else 0."""
    padding = -size % 8
    if not deflate or frame is None:
        return size + padding, 0
    import zlib  # only archives need it

    return size + padding, len(zlib.compress(frame + bytes(padding), _DEFLATE))


def _make_frame(payload: bytes) -> bytes | None:
    """Compress the payload natively, or else by the package; None unless that can be undone."""
    if load_codec(Codec.ZSTD_FRAME, zstdframes.use_codec):
        frame = zstdframes.frame_of(payload, LEVEL)
        if frame is not None:
            return frame
    import zstandard

    frame = zstandard.ZstdCompressor(level=LEVEL).compress(payload)
    unpacked = zstandard.ZstdDecompressor().decompress(frame, max_output_size=len(payload))
    return frame if unpacked == payload else None
