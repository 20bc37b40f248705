"""Confirms equal digests: reads the sections again and compares them byte by byte.

The first of all sections with equal family (such as `.text`), size and digest is compared with each
of the others. Pairs whose first sections are in one file are in one task, so it is read only once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass

from pylink.fleet.contents import read_contents
from pylink.fleet.walk import Files, Stamp, TreeFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylink.fleet.database import Database
    from pylink.fleet.engine import Engine

# A task ends once it has TASK_PAIRS pairs of sections and the first section of the next pair is in
# another file. It caches the cubins of the last KEPT_FILES files.
TASK_PAIRS = 1 << 16
KEPT_FILES = 256

_PAIRS = """
WITH places AS (
    SELECT raw_root, raw_path, entry, number, "offset", stored, family, digest,
           row_number() OVER (PARTITION BY family, digest, stored ORDER BY object, number) AS place,
           first_value(object) OVER (PARTITION BY family, digest, stored
                                     ORDER BY object, number) AS first_object, object
    FROM {s}.sections JOIN {s}.objects USING (object) JOIN {s}.files USING (file)
    WHERE stored > 0)
SELECT a.raw_root, a.raw_path, a.entry, a."offset", a.number,
       b.raw_root, b.raw_path, b.entry, b."offset", b.number, b.stored
FROM places AS a JOIN places AS b
  ON a.family = b.family AND a.digest = b.digest AND a.stored = b.stored
WHERE a.place = 1 AND b.place > 1
ORDER BY a.raw_root, a.raw_path, a.entry, b.raw_root, b.raw_path, b.entry, b.number"""


@dataclass(frozen=True, slots=True, order=True)
class SectionPlace:
    """A section: its file, and its offset and number in object number `entry` of the file."""

    root: bytes
    path: bytes
    entry: int
    offset: int
    number: int

    @property
    def file(self) -> tuple[bytes, bytes]:
        return self.root, self.path


@dataclass(frozen=True)
class Pair:
    """Two sections of `size` bytes to compare."""

    first: SectionPlace
    second: SectionPlace
    size: int


@dataclass
class Confirmation:
    """The number of compared pairs, and the second section of each pair that differs.

    `bytes` is the sum of the sizes of the pairs' second sections. `missing` are sections that their
    files do not have any more; their pairs do not count.
    """

    compared: int
    bytes: int
    different: list[SectionPlace]
    missing: list[SectionPlace]


def confirm(database: Database, engine: Engine, schema: str = "main") -> Confirmation:
    """Compare each section with the first of equal digest, in the index with tables in `schema`."""
    total = Confirmation(0, 0, [], [])
    rows = database.stream(_PAIRS.format(s=schema))
    pairs = (Pair(SectionPlace(*row[:5]), SectionPlace(*row[5:10]), row[10]) for row in rows)
    for result in engine.map(_compare_pairs, _split_pairs(pairs)):
        total.compared += result.compared
        total.bytes += result.bytes
        total.different += result.different
        total.missing += result.missing
    total.different.sort()
    total.missing = sorted(set(total.missing))
    return total


def _split_pairs(pairs: Iterable[Pair]) -> Iterator[tuple[Pair, ...]]:
    """Split pairs into tasks; pairs whose first sections are in one file stay together."""
    task: list[Pair] = []
    for pair in pairs:
        if len(task) >= TASK_PAIRS and pair.first.file != task[-1].first.file:
            yield tuple(task)
            task = []
        task.append(pair)
    if task:
        yield tuple(task)


def _compare_pairs(pairs: tuple[Pair, ...]) -> Confirmation:
    """Compare the two sections of each pair byte by byte, and return the result for all pairs."""
    result = Confirmation(0, 0, [], [])
    objects = ObjectCache()
    for pair in pairs:
        first = objects.read_section(pair.first, pair.size)
        second = objects.read_section(pair.second, pair.size)
        if first is None or second is None:
            result.missing += [pair.first] if first is None else [pair.second]
            continue
        result.compared += 1
        result.bytes += pair.size
        if first != second:  # bytes compare by memcmp
            result.different.append(pair.second)
    return result


class ObjectCache:
    """A cache of the cubins in files: those of the files that were used last."""

    def __init__(self) -> None:
        self._recent: OrderedDict[tuple[bytes, bytes], dict[int, bytes]] = OrderedDict()

    def read_section(self, place: SectionPlace, size: int) -> bytes | None:
        """Return the bytes of a section; None if its file does not have them any more."""
        cubin = self._read_file(place.root, place.path).get(place.entry, b"")
        section = cubin[place.offset : place.offset + size]
        return section if len(section) == size else None

    def _read_file(self, root: bytes, path: bytes) -> dict[int, bytes]:
        """Return the cubins of a file by their numbers, cached or read."""
        cubins = self._recent.get((root, path))
        if cubins is None:
            cubins = self._recent[root, path] = read_file(root, path)
            if len(self._recent) > KEPT_FILES:
                self._recent.popitem(last=False)
        self._recent.move_to_end((root, path))
        return cubins


def read_file(root: bytes, path: bytes) -> dict[int, bytes]:
    """Read the cubins of a file, by their numbers in it; empty if it cannot be read."""
    try:
        stamp = Stamp.of(os.stat(os.path.join(root, path)))
    except OSError:
        return {}
    cubins = {}
    for batch in read_contents([0], Files.of([TreeFile(root, path, stamp)]), {}):
        extents = memoryview(batch.extents).cast("Q")
        for row, source in enumerate(batch.cubins):
            offset, size = extents[2 * row], extents[2 * row + 1]
            cubins[source.entry] = batch.arena[offset : offset + size]
    return cubins
