"""Measures how much smaller entries get in another mode, or without debug data or functions.

An experiment runs in the thread that counts the entry. The present and the changed contents are
both compressed here, so their sizes differ by contents alone. Only the experiment with another mode
compares with the stored bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pylink.facts.fatbinentries import FLAG_LZ4, FLAG_ZSTD
from pylink.facts.picknumbers import EntryKind
from pylink.size.cuts import ptx_without_functions, without_debug, without_functions
from pylink.size.model import NO_DEBUG, SMALLER_MODE, WITHOUT
from pylink.size.recompress import DEFAULT_LEVEL, DEFLATE_LEVEL, padded_size
from pylink.size.savings import Saving

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Level of Zstandard that fatbinary uses for -compress-mode=size.
SMALLEST_LEVEL = 19
# Level of LZ4HC whose sizes are close to those of fatbinary.
_LZ4_LEVEL = 3


@dataclass(frozen=True)
class Experiments:
    """The experiments to run on each entry, which measure how much smaller it could be.

    `thorough` asks for compression in the smallest mode, and for entries without debug data.
    `without` asks for entries without the functions whose name matches.
    """

    thorough: bool = False
    without: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return self.thorough or self.without is not None

    def run(
        self, payload: bytes, codec: int, full: int, kind: int, *, deflate: bool
    ) -> dict[str, Saving]:
        """Return the saving of each experiment that has one, by the experiment's name.

        SMALLER_MODE has one if the entry takes fewer bytes, NO_DEBUG if a cubin gets smaller, and
        WITHOUT if functions were removed from a cubin or PTX. `payload` has the stored bytes,
        `codec` is FLAG_LZ4, FLAG_ZSTD or 0, `full` is the decompressed size, and `kind` an
        `EntryKind`. With `deflate` the saving of downloads is measured, too. Empty for a payload
        that cannot be decompressed, or if the package for that is missing.
        """
        try:
            data = _decompress(payload, codec, full)
        except (ImportError, ValueError, RuntimeError, OverflowError):
            return {}
        outcomes = {}
        if self.thorough:
            compressed = _compress(data, FLAG_ZSTD, SMALLEST_LEVEL)
            saving = _saving(payload, compressed, len(data), deflate=deflate)
            if saving.installed > 0:
                outcomes[SMALLER_MODE] = saving
        packer = _Packer(payload, data, codec)
        if self.thorough and kind == EntryKind.ELF:
            reduced = without_debug(data)
            if len(reduced) < len(data):
                outcomes[NO_DEBUG] = packer.saving(reduced, set(), deflate=deflate)
        if self.without is not None and kind in (EntryKind.ELF, EntryKind.PTX):
            remove_from = without_functions if kind == EntryKind.ELF else ptx_without_functions
            reduced, names = remove_from(data, self._matches)
            if names:
                outcomes[WITHOUT] = packer.saving(reduced, names, deflate=deflate)
        return outcomes

    def _matches(self, name: str) -> bool:
        """Return whether a mangled name, or its readable form, matches `without`."""
        from pylink.demangle.templates import describe

        assert self.without is not None
        return bool(self.without.search(name) or self.without.search(describe(name)[0]))


class _Packer:
    """Compresses variants of one payload with its codec, and with its level if that is known.

    `payload` are the stored bytes and `data` the decompressed ones.
    """

    def __init__(self, payload: bytes, data: bytes, codec: int) -> None:
        self._data, self._codec, self._payload = data, codec, payload
        self._level = 0
        self._before: bytes | None = None  # the contents, compressed like the variants
        self._exact = True  # False if no level gives the size of the payload

    def saving(self, reduced: bytes, functions: set[str], *, deflate: bool) -> Saving:
        """Return the saving if the contents become `reduced`, which lacks `functions`."""
        if self._before is None:
            self._before = self._recompress()
        after = _compress(reduced, self._codec, self._level)
        saving = _saving(self._before, after, len(self._data) - len(reduced), deflate=deflate)
        saving.functions, saving.exact = functions, self._exact
        return saving

    def _recompress(self) -> bytes:
        """Compress the payload again, at a level that gives its present size, else the default."""
        if not self._codec:
            return self._data
        size = len(self._payload)
        levels = (DEFAULT_LEVEL, SMALLEST_LEVEL) if self._codec == FLAG_ZSTD else (0,)
        for level in levels:
            compressed = _compress(self._data, self._codec, level)
            if len(compressed) == size:
                self._level = level
                return compressed
        self._level, self._exact = levels[0], False
        return _compress(self._data, self._codec, self._level)


def _saving(before: bytes, after: bytes, unpacked_saving: int, *, deflate: bool) -> Saving:
    """Return the saving if the stored payload `after` takes the place of `before`.

    `unpacked_saving` is the saving of decompressed bytes. The saving of downloads is measured with
    `deflate`, else 0.
    """
    installed = padded_size(len(before)) - padded_size(len(after))
    if not deflate:
        return Saving(installed, 0, unpacked_saving)
    deflated_sizes = [len(zlib.compress(data, DEFLATE_LEVEL)) for data in (before, after)]
    return Saving(installed, deflated_sizes[0] - deflated_sizes[1], unpacked_saving)


def _decompress(payload: bytes, codec: int, full: int) -> bytes:
    """Return the contents of a payload, as they are if it is not compressed.

    A compressed payload that does not become `full` bytes raises ValueError, or the error of the
    codec's package.
    """
    if codec == FLAG_ZSTD:
        import zstandard

        data = zstandard.ZstdDecompressor().decompress(payload, max_output_size=full)
    elif codec == FLAG_LZ4:
        from lz4 import block

        data = bytes(block.decompress(payload, uncompressed_size=full))
    else:
        return payload
    if len(data) != full:
        raise ValueError("it decompresses to another size")
    return data


def _compress(data: bytes, codec: int, level: int) -> bytes:
    """Return contents compressed by a codec: FLAG_LZ4, FLAG_ZSTD or 0 for none.

    `level` is that of Zstandard; LZ4 has one level here.
    """
    if codec == FLAG_ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(data)
    if codec == FLAG_LZ4:
        from lz4 import block

        return bytes(
            block.compress(data, mode="high_compression", compression=_LZ4_LEVEL, store_size=False)
        )
    return data
