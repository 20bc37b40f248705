"""Compression of the entries of a fat binary: the modes of `-compress-mode`, and the codecs.

The thresholds were measured on fatbinary 13.0 and 13.5 with cubins of growing size: see
docs/format-notes/device-link.md.
"""

from __future__ import annotations

from pylink.facts.fatbinentries import FLAG_LZ4, FLAG_ZSTD
from pylink.facts.picknumbers import Codec
from pylink.inputs.payload import load_codec

# The modes `default`, `balance` and `speed` compress cubins of more bytes than this.
COMPRESSION_THRESHOLD = 10_000_000

DEFAULT_LEVEL = 5  # of Zstandard
SMALLEST_LEVEL = 19  # of Zstandard, for the smallest result
# The level of LZ4HC whose sizes are close to those of fatbinary; no level writes the same bytes.
LZ4_LEVEL = 3


class Mode:
    """A mode: the flag of its codec in an entry (0: none), the level of Zstandard, the threshold.

    Entries of more than `threshold` bytes are compressed; with -1 all are.
    """

    __slots__ = ("flag", "level", "threshold")

    def __init__(self, flag: int, level: int, threshold: int) -> None:
        self.flag = flag
        self.level = level
        self.threshold = threshold

    @property
    def is_fast(self) -> bool:
        """Whether the codec compresses about as fast as links run."""
        return self.level <= DEFAULT_LEVEL


NEVER = Mode(0, 0, 0)
ALWAYS = Mode(FLAG_ZSTD, DEFAULT_LEVEL, -1)
MODES = {
    "default": Mode(FLAG_ZSTD, DEFAULT_LEVEL, COMPRESSION_THRESHOLD),
    "balance": Mode(FLAG_ZSTD, DEFAULT_LEVEL, COMPRESSION_THRESHOLD),
    "speed": Mode(FLAG_LZ4, 0, COMPRESSION_THRESHOLD),
    "size": Mode(FLAG_ZSTD, SMALLEST_LEVEL, -1),
    "none": NEVER,
}


def choose_mode(name: str, *, debug: bool, compress_all: bool = False) -> Mode:
    """Return the mode with this name.

    With `debug` (-G) or `compress_all` it compresses entries of any size, at the level of its name.
    `none` never compresses.
    """
    mode = MODES[name]
    if mode is NEVER or not (debug or compress_all):
        return mode
    return Mode(mode.flag, mode.level, -1)


def compress(data: bytes, mode: Mode) -> tuple[int, bytes]:
    """Return the flag of the codec and the stored bytes; flag 0 for data that is not compressed.

    Zstandard frames equal those of fatbinary if the package zstandard has libzstd 1.5.7: one
    thread, the size of the contents in the header, no checksum. LZ4 blocks differ from those of
    fatbinary. Data that grows is stored compressed, too.
    """
    if mode.flag == 0 or len(data) <= mode.threshold:
        return 0, data
    if mode.flag == FLAG_LZ4:
        import lz4.block

        return FLAG_LZ4, bytes(
            lz4.block.compress(
                data, mode="high_compression", compression=LZ4_LEVEL, store_size=False
            )
        )
    from pylink._native import zstdframes  # small steps do not need it

    if load_codec(Codec.ZSTD_FRAME, zstdframes.open_library):
        frame = zstdframes.frame_of(data, mode.level, checked=False)
        if frame is not None:
            return FLAG_ZSTD, frame
    import zstandard  # takes 15 ms, more than a small step

    return FLAG_ZSTD, zstandard.ZstdCompressor(level=mode.level).compress(data)
