"""Measures the size of entries after recompression.

An experiment runs in a thread of its own and has only one payload in memory.
Both the payload and what it would be are compressed by the same library, so a difference is one of
contents alone.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pylink.facts.picknumbers import EntryKind
from pylink.inputs.payload import LZ4, ZSTD
from pylink.size.cuts import ptx_without_functions, without_debug, without_functions
from pylink.size.model import NO_DEBUG, SMALLER_MODE, WITHOUT
from pylink.size.savings import Saving

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Levels of Zstandard that fatbinary uses: -compress-mode=default and size.
DEFAULT, SMALLEST = 5, 19
_DEFLATE = 6


@dataclass(frozen=True)
class Experiments:
    """The measurements of each entry."""

    thorough: bool = False
    without: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return self.thorough or self.without is not None

    def run(
        self, payload: bytes, codec: int, full: int, kind: int, *, deflate: bool
    ) -> dict[str, Saving]:
        """Return the saving of each experiment that saves bytes, by its name.

        Empty for a payload that cannot be decompressed, or if a package is missing.
        """
        try:
            data = _unpacked(payload, codec, full)
        except (ImportError, ValueError, RuntimeError, OverflowError):
            return {}
        outcomes = {}
        if self.thorough:
            compressed = _compress(data, ZSTD, SMALLEST)
            saving = _saving(payload, compressed, len(data), deflate=deflate)
            if saving.installed > 0:
                outcomes[SMALLER_MODE] = saving
        packer = _Packer(payload, data, codec)
        if self.thorough and kind == EntryKind.ELF:
            reduced = without_debug(data)
            if len(reduced) < len(data):
                outcomes[NO_DEBUG] = packer.saving(reduced, set(), deflate=deflate)
        if self.without is not None and kind in (EntryKind.ELF, EntryKind.PTX):
            remove_functions = without_functions if kind == EntryKind.ELF else ptx_without_functions
            reduced, names = remove_functions(data, self._matches)
            if names:
                outcomes[WITHOUT] = packer.saving(reduced, names, deflate=deflate)
        return outcomes

    def _matches(self, name: str) -> bool:
        from pylink.demangle.templates import describe

        assert self.without is not None
        return bool(self.without.search(name) or self.without.search(describe(name)[0]))


class _Packer:
    """Compresses variants of an entry with the codec and level of the entry, as far as known."""

    def __init__(self, payload: bytes, data: bytes, codec: int) -> None:
        self._data, self._codec, self._payload = data, codec, payload
        self._level = 0
        self._before: bytes | None = None
        self._exact = True

    def saving(self, reduced: bytes, functions: set[str], *, deflate: bool) -> Saving:
        if self._before is None:
            self._before = self._recompress()
        after = _compress(reduced, self._codec, self._level)
        saving = _saving(self._before, after, len(self._data) - len(reduced), deflate=deflate)
        saving.functions, saving.exact = functions, self._exact
        return saving

    def _recompress(self) -> bytes:
        """Compress the payload again, with the level that gives its present size."""
        if not self._codec:
            return self._data
        size = len(self._payload)
        levels = (DEFAULT, SMALLEST) if self._codec == ZSTD else (0,)
        for level in levels:
            compressed = _compress(self._data, self._codec, level)
            if len(compressed) == size:
                self._level = level
                return compressed
        self._level, self._exact = levels[0], False
        return _compress(self._data, self._codec, self._level)


def _saving(before: bytes, after: bytes, unpacked: int, *, deflate: bool) -> Saving:
    installed = _padded_size(len(before)) - _padded_size(len(after))
    if not deflate:
        return Saving(installed, 0, unpacked)
    packed = [len(zlib.compress(data, _DEFLATE)) for data in (before, after)]
    return Saving(installed, packed[0] - packed[1], unpacked)


def _padded_size(size: int) -> int:
    return size + -size % 8


def _unpacked(payload: bytes, codec: int, full: int) -> bytes:
    if codec == ZSTD:
        import zstandard

        data = zstandard.ZstdDecompressor().decompress(payload, max_output_size=full)
    elif codec == LZ4:
        from lz4 import block

        data = bytes(block.decompress(payload, uncompressed_size=full))
    else:
        return payload
    if len(data) != full:
        raise ValueError("it decompresses to another size")
    return data


def _compress(data: bytes, codec: int, level: int) -> bytes:
    if codec == ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(data)
    if codec == LZ4:
        from lz4 import block

        return bytes(block.compress(data, mode="high_compression", compression=3, store_size=False))
    return data
