"""The tasks of a run, each of which makes one fragment of an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink.fleet.walk import Found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A part has room in any memory, and is what an interrupted run has to do again at most.
PART_FILES = 4096
PART_BYTES = 128 << 20


@dataclass(frozen=True)
class Part:
    """What one task of a run does: `files` are read, and `gone` are known to be no longer there."""

    run: int
    number: int
    files: tuple[Found, ...] = ()
    gone: tuple[Found, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.run:06d}-{self.number:06d}"


def parts(run: int, changed: Sequence[Found], gone: Sequence[Found]) -> Iterator[Part]:
    """The tasks of a run: what is changed in the order of paths, and first of all what is gone."""
    number = start = 0
    while start < len(changed):
        end, size = start, 0
        while (
            end < len(changed)
            and end - start < PART_FILES
            and (end == start or size + changed[end].stamp.size <= PART_BYTES)
        ):
            size += changed[end].stamp.size
            end += 1
        yield Part(run, number, tuple(changed[start:end]), () if number else tuple(gone))
        number, start = number + 1, end
    if gone and not changed:
        yield Part(run, 0, (), tuple(gone))
