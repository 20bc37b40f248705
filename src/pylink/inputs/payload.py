"""Payloads of fat binary entries: raw, an LZ4 block or a Zstandard frame.

The packages `lz4` and `zstandard` decompress. A link has native code call the C libraries that they
contain (`open_library`), where importing the packages would take longer than the rest of the link;
what those refuse, the packages have the words for.
"""

from __future__ import annotations

import os
from _imp import extension_suffixes

from pylink._native import inputfiles
from pylink.packages.sites import find_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pylink.diagnostics import Sink

# Bits of an entry's flags.
LZ4 = 0x2000
ZSTD = 0x8000

# What all payloads of one link may take when they are decompressed, unless an option says more: so
# many times the bytes of all inputs, or what no memory is short of. Zstandard at its highest level
# makes 304 cubins of this project's tests 3.4 to 7.3 times as small, and one of zeros alone 32,750
# times.
RATIO = 100
FLOOR = 1 << 28


def default_limit(size: int) -> int:
    """What the payloads in inputs of `size` bytes may take, unless an option says so; in bytes."""
    return max(FLOOR, RATIO * size)


# What native code decompresses with: src/_native/inputs/picks.pxd has the same numbers.
STORED = 0
LZ4_BLOCK = 1
ZSTD_FRAME = 2

# Where each package has the library: the folder in it and how the file's name begins.
LIBRARIES = {LZ4_BLOCK: ("lz4", "block", "_block"), ZSTD_FRAME: ("zstandard", "", "_cffi")}
_opened: set[tuple[int, Callable[[int, bytes], bool]]] = set()


def open_libraries(codecs: int) -> None:
    """Have native code decompress with what the packages contain, for these bits of codecs."""
    for codec in (LZ4_BLOCK, ZSTD_FRAME):
        if codecs & 1 << codec:
            open_library(codec)


def open_library(codec: int) -> bool:
    """Have native code decompress with the package's own library; False when it has none."""
    return find_codec(codec, inputfiles.use_codec)


def find_codec(codec: int, use: Callable[[int, bytes], bool]) -> bool:
    """The same for kernels that `use` a library of their own, each once."""
    key = codec, use
    if key not in _opened:
        package, folder, start = LIBRARIES[codec]
        for place in find_package(package):
            for suffix in extension_suffixes():
                path = os.path.join(place, folder, start + suffix)
                if use(codec, os.fsencode(path)):
                    _opened.add(key)
                    return True
    return key in _opened


def is_compressed(flags: int) -> bool:
    return bool(flags & (LZ4 | ZSTD))


class DamagedPayload(Exception):
    """A payload that cannot be decompressed, with the reason; `kind` is that of its diagnostic."""

    kind = "fatbin-format"


class LargePayload(DamagedPayload):
    """A payload that is more than a link may decompress."""

    kind = "fatbin-limit"


class Unpacker:
    """Decompresses the payloads of one link; `left` is how many bytes they may still take."""

    __slots__ = ("_lz4", "_sink", "_zstd", "left", "limit")

    def __init__(self, limit: int | None, size: int, sink: Sink) -> None:
        """`size` is that of all inputs, in bytes; it gives the limit where that is None."""
        self.limit = self.left = default_limit(size) if limit is None else limit
        self._sink = sink
        self._lz4: Callable[[memoryview, int], bytes] | None = None
        self._zstd: Callable[[memoryview, int], bytes] | None = None

    def reserve(self, flags: int, stated: int) -> None:
        """Count a payload that becomes `stated` bytes; DamagedPayload when it must not."""
        if not is_compressed(flags):
            return
        if flags & LZ4 and flags & ZSTD:
            raise self.refusal(stated, is_large=False)
        if stated > self.left:
            raise self.refusal(stated, is_large=True)
        self.left -= stated

    def refusal(self, stated: int, *, is_large: bool) -> DamagedPayload:
        """Why a payload is not decompressed: it `is_large`, or marked as of both kinds."""
        if not is_large:
            return DamagedPayload("it is marked as both LZ4 and Zstandard")
        return LargePayload(
            f"{stated} bytes when decompressed; --max-uncompressed-size allows {self.limit} in all"
        )

    def unpack(self, data: memoryview, flags: int, stated: int, file: str) -> bytes:
        """The payload of `stated` bytes that `data` holds; DamagedPayload when it does not.

        `stated` counts for compressed payloads alone. `file` is what a diagnostic names.
        """
        if not is_compressed(flags):
            return bytes(data)
        if flags & ZSTD:
            if self._zstd is None:
                self._zstd = _zstd_decoder(file, self._sink)
            payload = self._zstd(data, stated)
        else:
            if self._lz4 is None:
                self._lz4 = _lz4_decoder(file, self._sink)
            payload = self._lz4(data, stated)
        if len(payload) != stated:
            raise DamagedPayload(f"it decompresses to {len(payload)} bytes, not {stated}")
        return payload


def _zstd_decoder(file: str, sink: Sink) -> Callable[[memoryview, int], bytes]:
    try:
        import zstandard  # links without compressed inputs do not need it
    except ImportError:
        sink.fatal("package-missing", file=file, package="zstandard", codec="Zstandard")
    decompress = zstandard.ZstdDecompressor().decompress
    measure = zstandard.frame_content_size

    def decode(data: memoryview, stated: int) -> bytes:
        try:
            # The frame may give a size of its own, which the package would trust.
            size = measure(data)
            if size not in (-1, stated):
                raise DamagedPayload(f"it decompresses to {size} bytes, not {stated}")
            return decompress(data, max_output_size=stated)
        except zstandard.ZstdError as error:
            raise DamagedPayload(f"Zstandard: {error}") from None

    return decode


def _lz4_decoder(file: str, sink: Sink) -> Callable[[memoryview, int], bytes]:
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
