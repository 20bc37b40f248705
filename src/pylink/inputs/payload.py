"""Payloads of fat binary entries: raw, an LZ4 block or a Zstandard frame.

The packages `lz4` and `zstandard` decompress. For a link, native code calls the C libraries in them
(`open_library`), since importing the packages would take longer than the rest of the link. Payloads
that fail are decompressed again by the packages, for their error messages.
"""

from __future__ import annotations

import os
from _imp import extension_suffixes

from pylink._native import payloads
from pylink.facts.fatbinentries import FLAG_ZSTD, FLAGS_OF_CODECS
from pylink.facts.picknumbers import Codec
from pylink.packages.sites import find_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pylink.diagnostics import Sink

# Default limit of the decompressed payloads of one link: a multiple of the bytes of all inputs, and
# at least LEAST_LIMIT. Zstandard at its highest level makes a cubin of zeros 32,750 times smaller,
# but 304 cubins of this project's tests 3.4 to 7.3 times, so no real code comes near this multiple.
SIZE_RATIO = 100
LEAST_LIMIT = 1 << 28


def default_limit(size: int) -> int:
    """Return the default limit, in bytes, of decompressed payloads for inputs of `size` bytes."""
    return max(LEAST_LIMIT, SIZE_RATIO * size)


# By codec: package, directory in it, and prefix of the library's file name.
LIBRARIES = {
    Codec.LZ4_BLOCK: ("lz4", "block", "_block"),
    Codec.ZSTD_FRAME: ("zstandard", "", "_cffi"),
}
# Codecs whose library was found, with the function that uses it.
_opened: set[tuple[int, Callable[[int, bytes], bool]]] = set()


def open_libraries(codecs: int) -> None:
    """Load the library of each codec whose bit, 1 << codec, is in `codecs`, into native code."""
    for codec in (Codec.LZ4_BLOCK, Codec.ZSTD_FRAME):
        if codecs & 1 << codec:
            open_library(codec)


def open_library(codec: int) -> bool:
    """Load the library of a codec's package into native code; False if it was not found."""
    return load_codec(codec, payloads.open_library)


def load_codec(codec: int, use: Callable[[int, bytes], bool]) -> bool:
    """Let `use(codec, path)` load the library of a codec's package; False if no file can be loaded.

    `use` returns whether it can use the library at `path`. Once it could, it is not called again.
    """
    key = codec, use
    if key not in _opened:
        package, directory, prefix = LIBRARIES[codec]
        for place in find_package(package):
            for suffix in extension_suffixes():
                path = os.path.join(place, directory, prefix + suffix)
                if use(codec, os.fsencode(path)):
                    _opened.add(key)
                    return True
    return key in _opened


def is_compressed(flags: int) -> bool:
    """Return whether an entry with these flags has a compressed payload."""
    return bool(flags & FLAGS_OF_CODECS)


class DamagedPayload(Exception):
    """A payload cannot be decompressed; `kind` is the kind of its diagnostic."""

    kind = "fatbin-format"


class LargePayload(DamagedPayload):
    """A payload exceeds the limit of decompressed bytes."""

    kind = "fatbin-limit"


class Unpacker:
    """Decompresses the payloads of one link; `remaining` is the rest of the limit, in bytes."""

    __slots__ = ("_lz4", "_sink", "_zstd", "limit", "remaining")

    def __init__(self, limit: int | None, size: int, sink: Sink) -> None:
        """Limit what is unpacked to `limit` bytes (default: from `size`, bytes of all inputs)."""
        self.limit = self.remaining = default_limit(size) if limit is None else limit
        self._sink = sink
        self._lz4: Callable[[memoryview, int], bytes] | None = None
        self._zstd: Callable[[memoryview, int], bytes] | None = None

    def reserve(self, flags: int, stated_size: int) -> None:
        """Count a payload of `stated_size` decompressed bytes; DamagedPayload if it is refused.

        It is refused if it exceeds the rest of the limit, or is marked with both codecs. A payload
        that is not compressed does not count.
        """
        if not is_compressed(flags):
            return
        if flags & FLAGS_OF_CODECS == FLAGS_OF_CODECS:
            raise self.refusal(stated_size, is_large=False)
        if stated_size > self.remaining:
            raise self.refusal(stated_size, is_large=True)
        self.remaining -= stated_size

    def refusal(self, stated_size: int, *, is_large: bool) -> DamagedPayload:
        """Make the error of a payload that exceeds the limit (`is_large`) or has both codecs."""
        if not is_large:
            return DamagedPayload("it is marked as both LZ4 and Zstandard")
        return LargePayload(
            f"{stated_size} bytes when decompressed; "
            f"--max-uncompressed-size allows {self.limit} in all"
        )

    def unpack(self, data: memoryview, flags: int, stated_size: int, file: str) -> bytes:
        """Decompress `data` to a payload of `stated_size` bytes; DamagedPayload on failure.

        `stated_size` is ignored for a payload that is not compressed. `file` is for diagnostics.
        """
        if not is_compressed(flags):
            return bytes(data)
        if flags & FLAG_ZSTD:
            if self._zstd is None:
                self._zstd = _zstd_decoder(file, self._sink)
            payload = self._zstd(data, stated_size)
        else:
            if self._lz4 is None:
                self._lz4 = _lz4_decoder(file, self._sink)
            payload = self._lz4(data, stated_size)
        if len(payload) != stated_size:
            raise DamagedPayload(f"it decompresses to {len(payload)} bytes, not {stated_size}")
        return payload


def _zstd_decoder(file: str, sink: Sink) -> Callable[[memoryview, int], bytes]:
    """Return a function that decompresses a Zstandard frame to a stated number of bytes."""
    try:
        import zstandard  # links without compressed inputs do not need it
    except ImportError:
        sink.fatal("package-missing", file=file, package="zstandard", codec="Zstandard")
    decompress = zstandard.ZstdDecompressor().decompress
    measure = zstandard.frame_content_size

    def decode(data: memoryview, stated: int) -> bytes:
        try:
            # The frame may state another size, which the package would trust.
            size = measure(data)
            if size not in (-1, stated):
                raise DamagedPayload(f"it decompresses to {size} bytes, not {stated}")
            return decompress(data, max_output_size=stated)
        except zstandard.ZstdError as error:
            raise DamagedPayload(f"Zstandard: {error}") from None

    return decode


def _lz4_decoder(file: str, sink: Sink) -> Callable[[memoryview, int], bytes]:
    """Return a function that decompresses an LZ4 block to a stated number of bytes."""
    try:
        from lz4 import block  # links without compressed inputs do not need it
    except ImportError:
        sink.fatal("package-missing", file=file, package="lz4", codec="LZ4")

    def decode(data: memoryview, stated: int) -> bytes:
        try:
            payload: bytes = block.decompress(data, uncompressed_size=stated)
        except (block.LZ4BlockError, ValueError, OverflowError) as error:
            raise DamagedPayload(f"LZ4: {error}") from None
        return payload

    return decode
