"""Measures the size of a payload compressed in the default mode of `fatbinary`."""

from __future__ import annotations

from pylink._native import zstdframes
from pylink.facts.fatbinentries import FLAG_LZ4, FLAG_ZSTD, padding
from pylink.facts.picknumbers import Codec
from pylink.inputs.payload import load_codec

# Zstandard level of -compress-mode=default: it gives the same sizes as fatbinary.
DEFAULT_LEVEL = 5
# Level of deflate that wheels are built with.
DEFLATE_LEVEL = 6


def zstd_bytes(payload: bytes, flags: int, full: int, *, deflate: bool) -> tuple[int, int] | None:
    """Return the size of the payload as zstd, padded, and with `deflate` its size after deflate.

    The second size is 0 without `deflate`. `flags` are those of the entry, `full` is the
    decompressed size. None if the payload is zstd already or damaged, if a package is missing, or
    if the result does not decompress to the same bytes.
    """
    try:
        if flags & FLAG_LZ4:
            from lz4 import block

            payload = block.decompress(payload, uncompressed_size=full)
        if flags & FLAG_ZSTD or len(payload) != full:
            return None
        frame = _compress_checked(payload)
    except (ImportError, ValueError, RuntimeError, OverflowError):
        return None
    return None if frame is None else frame_bytes(frame, len(frame), deflate=deflate)


def frame_bytes(frame: bytes | None, size: int, *, deflate: bool) -> tuple[int, int]:
    """Return the padded size of a Zstandard frame, and with `deflate` that after deflate, else 0.

    `frame` has its bytes and may be None without `deflate`, `size` is their number.
    """
    padded = padded_size(size)
    if not deflate or frame is None:
        return padded, 0
    import zlib  # only archives need it

    return padded, len(zlib.compress(frame + bytes(padded - size), DEFLATE_LEVEL))


def padded_size(size: int) -> int:
    """Return the bytes that a payload takes in a container, with its padding."""
    return size + len(padding(size))


def _compress_checked(payload: bytes) -> bytes | None:
    """Return the payload as a Zstandard frame, by the native codec or else by the package.

    None if the frame does not decompress to the payload.
    """
    if load_codec(Codec.ZSTD_FRAME, zstdframes.open_library):
        frame = zstdframes.frame_of(payload, DEFAULT_LEVEL)
        if frame is not None:
            return frame
    import zstandard

    frame = zstandard.ZstdCompressor(level=DEFAULT_LEVEL).compress(payload)
    unpacked = zstandard.ZstdDecompressor().decompress(frame, max_output_size=len(payload))
    return frame if unpacked == payload else None
