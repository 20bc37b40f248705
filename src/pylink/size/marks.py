"""Maps the bytes of an inflated member to those of its archive."""

from __future__ import annotations

from array import array
from bisect import bisect_right


class InflationMarks:
    """Counts of a deflated member's inflated bytes, taken after each `step` bytes of the archive.

    Such a count is a mark: `bytes_out[i]` is the number of inflated bytes after i steps. Between
    two marks, bytes are assumed to be spread evenly. The member takes `packed` bytes of the
    archive.
    """

    def __init__(self, step: int, packed: int) -> None:
        self._step, self._packed = step, packed
        self.bytes_out = array("Q", [0])

    def bytes_before(self, offset: int) -> int:
        """Return the number of the member's archive bytes before an offset of inflated bytes."""
        index = bisect_right(self.bytes_out, offset) - 1
        if index + 1 == len(self.bytes_out):
            return self._packed
        bytes_out, bytes_in = self.bytes_out[index], self._step * index
        is_last = index + 2 == len(self.bytes_out)
        step = self._packed - bytes_in if is_last else self._step
        return bytes_in + step * (offset - bytes_out) // (self.bytes_out[index + 1] - bytes_out)
