"""Combines names that differ only in numbers: `g*_m5.cubin` for 400 inputs."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

# This many similar names become one part; fewer stay separate.
FEWEST_IN_GROUP = 3

NUMBERS = re.compile(r"([0-9]+)")


def skeleton(name: str) -> str:
    """The name with `*` for each number; names with equal skeletons may form one pattern."""
    return NUMBERS.sub("*", name)


def pattern(names: Sequence[str]) -> str:
    """The common pattern of names with one skeleton, with `*` for numbers that differ."""
    columns = zip(*(NUMBERS.split(name) for name in names), strict=True)
    return "".join(parts[0] if len(set(parts)) == 1 else "*" for parts in columns)


def group_rows(entries: Iterable[tuple[str, Hashable, int]]) -> list[list[int]]:
    """Group the rows of entries (name, key, row) with equal skeleton and key, if three or more.

    Every other row is a group of its own.
    """
    members: dict[tuple[str, Hashable], list[int]] = {}
    for name, key, row in entries:
        members.setdefault((skeleton(name), key), []).append(row)
    result: list[list[int]] = []
    for rows in members.values():
        if len(rows) >= FEWEST_IN_GROUP:
            result.append(rows)
        else:
            result += [[row] for row in rows]
    return result


def title(names: Sequence[str]) -> str:
    """The title of a group: its only name, or such as `400 x g*_m5.cubin`."""
    return names[0] if len(names) == 1 else f"{len(names):,} x {pattern(names)}"
