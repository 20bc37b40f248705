"""Names that differ in their numbers alone, as one name: `g*_m5.cubin` for 400 inputs."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

# This many similar names become one part; fewer stay separate.
FEWEST_IN_GROUP = 3

NUMBERS = re.compile(r"([0-9]+)")


def skeleton(name: str) -> str:
    """The name without its numbers: names with the same may be of one pattern."""
    return NUMBERS.sub("*", name)


def pattern(names: Sequence[str]) -> str:
    """What names of one skeleton have in common, with `*` for numbers that differ."""
    columns = zip(*(NUMBERS.split(name) for name in names), strict=True)
    return "".join(parts[0] if len(set(parts)) == 1 else "*" for parts in columns)


def groups(named: Iterable[tuple[str, Hashable, int]]) -> list[list[int]]:
    """The rows of (name, what is equal, row) that are one part: alike by both, three or more.

    Each of the others is a group by itself.
    """
    members: dict[tuple[str, Hashable], list[int]] = {}
    for name, equal, row in named:
        members.setdefault((skeleton(name), equal), []).append(row)
    result: list[list[int]] = []
    for rows in members.values():
        if len(rows) >= FEWEST_IN_GROUP:
            result.append(rows)
        else:
            result += [[row] for row in rows]
    return result


def title(names: Sequence[str]) -> str:
    """A name for one or for all of them, such as `400 x g*_m5.cubin`."""
    return names[0] if len(names) == 1 else f"{len(names):,} x {pattern(names)}"
