"""The tasks of a run, each of which makes one fragment of an index."""

from __future__ import annotations

import bisect
import itertools
from array import array
from typing import TYPE_CHECKING, NamedTuple

from pylink.fleet.walk import Files

if TYPE_CHECKING:
    from collections.abc import Iterator

# A part has room in any memory, and is what an interrupted run has to do again at most.
PART_FILES = 4096
PART_BYTES = 128 << 20

# Larger files are opened twice, the first time for their beginning.
SNIFFED = 1 << 20

NO_FILES = Files.of(())


class Part(NamedTuple):
    """What one task of a run does: `files` are read, and `gone` are known to be no longer there."""

    run: int
    number: int
    files: Files
    gone: Files = NO_FILES

    @property
    def name(self) -> str:
        return f"{self.run:06d}-{self.number:06d}"


def parts(run: int, changed: Files, gone: Files) -> Iterator[Part]:
    """The tasks of a run: what is changed in the order of paths, and first of all what is gone."""
    ends = array("q", itertools.accumulate(changed.sizes, initial=0))
    number = start = 0
    while start < changed.rows:
        # As many as have no more bytes; one that has more is a part of its own.
        most = bisect.bisect_right(ends, ends[start] + PART_BYTES) - 1
        end = min(max(most, start + 1), start + PART_FILES)
        yield Part(run, number, changed.part(start, end), NO_FILES if number else gone)
        number, start = number + 1, end
    if gone.rows and not changed.rows:
        yield Part(run, 0, NO_FILES, gone)
