"""The tasks of a run, each of which makes one fragment of an index."""

from __future__ import annotations

import bisect
import itertools
from array import array
from dataclasses import dataclass

from pylink.fleet.walk import Files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Limits of the files that one task reads: they fit into memory, and little is read again after an
# interruption.
PART_FILES = 4096
PART_BYTES = 128 << 20

# A file with more bytes is read only up to its head, unless that shows that it may have code.
LARGE_FILE = 1 << 20

NO_FILES = Files.of(())


@dataclass(frozen=True, slots=True)
class Part:
    """One task of a run, which makes a fragment: `files` are read, and `gone` were removed."""

    run: int
    number: int
    files: Files
    gone: Files = NO_FILES

    @property
    def name(self) -> str:
        return f"{self.run:06d}-{self.number:06d}"


def parts(run: int, changed: Files, gone: Files) -> Iterator[Part]:
    """Yield the tasks of a run, in order of changed paths; the first has the removed files."""
    ends = array("q", itertools.accumulate(changed.sizes, initial=0))
    number = start = 0
    while start < changed.rows:
        # A part takes files up to the limits; a larger file is a part of its own.
        last = bisect.bisect_right(ends, ends[start] + PART_BYTES) - 1
        end = min(max(last, start + 1), start + PART_FILES)
        yield Part(run, number, changed.part(start, end), NO_FILES if number else gone)
        number, start = number + 1, end
    if gone.rows and not changed.rows:
        yield Part(run, 0, NO_FILES, gone)
