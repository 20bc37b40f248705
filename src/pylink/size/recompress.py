"""What a payload would take in the mode that `fatbinary` calls default: measured, not estimated."""

from __future__ import annotations

import zlib

from pylink.inputs.payload import LZ4, ZSTD

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
        import zstandard

        if flags & LZ4:
            from lz4 import block

            payload = block.decompress(payload, uncompressed_size=full)
    except (ImportError, ValueError, RuntimeError, OverflowError):
        return None
    if flags & ZSTD or len(payload) != full:
        return None
    made = zstandard.ZstdCompressor(level=LEVEL).compress(payload)
    if zstandard.ZstdDecompressor().decompress(made, max_output_size=full) != payload:
        return None
    made += bytes(-len(made) % 8)
    return len(made), len(zlib.compress(made, _DEFLATE)) if deflate else 0
