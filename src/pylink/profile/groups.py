"""Combines names that differ only in numbers: `g*_m5.cubin` for 400 inputs."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

# Least number of similar names that are combined; fewer stay separate.
FEWEST_IN_GROUP = 3

NUMBERS = re.compile(r"([0-9]+)")


def skeleton(name: str) -> str:
    """Return the name with `*` for each number; names with equal skeletons may form one pattern."""
    return NUMBERS.sub("*", name)


def pattern(names: Sequence[str]) -> str:
    """Return the common pattern of names with equal skeletons, with `*` for numbers that differ."""
    pieces_by_place = zip(*(NUMBERS.split(name) for name in names), strict=True)
    return "".join(pieces[0] if len(set(pieces)) == 1 else "*" for pieces in pieces_by_place)


def group_rows(entries: Iterable[tuple[str, Hashable, int]]) -> list[list[int]]:
    """Group the rows of entries (name, key, row) by equal skeletons of names and equal keys.

    A group of fewer than FEWEST_IN_GROUP rows is divided into groups of one row.
    """
    members: dict[tuple[str, Hashable], list[int]] = {}
    for name, key, row in entries:
        members.setdefault((skeleton(name), key), []).append(row)
    groups: list[list[int]] = []
    for rows in members.values():
        if len(rows) >= FEWEST_IN_GROUP:
            groups.append(rows)
        else:
            groups += [[row] for row in rows]
    return groups


def title(names: Sequence[str]) -> str:
    """Return the title of a group: its only name, or a text such as `400 x g*_m5.cubin`."""
    return names[0] if len(names) == 1 else f"{len(names):,} x {pattern(names)}"
