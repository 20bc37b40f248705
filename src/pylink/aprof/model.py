"""A report in memory: routines, the contexts that they were called in, and their points."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

BB_COUNT = "bb-count"
TIME_USEC = "time-usec"

VERSION = 4
ROOT = -1

# Comments that say how long the fastest call of a routine took on the wall (name, size, cost in the
# unit of the report), and what its sizes count.
WALL = re.compile(r'wall "([^"]*)" ([0-9]{1,20}) ([0-9]{1,20})')
UNIT = re.compile(r'size "([^"]*)" (.*)')
# The comment that names a routine which is not part of the program, but measured it.
MEASURING = re.compile(r'measuring "([^"]*)"')


def wall_comment(name: str, size: int, cost: int) -> str:
    """The comment for a routine that took `cost` on the wall in its fastest call of `size`."""
    return f'wall "{name}" {size} {cost}'


def unit_comment(name: str, unit: str) -> str:
    """The comment that says what the sizes of a routine count."""
    return f'size "{name}" {unit}'


# Comments that tell from what size on a routine does its work another way: name, size, which.
PATH = re.compile(r'path "([^"]*)" ([0-9]{1,20}) (.*)')


def path_comment(name: str, size: int, path: str) -> str:
    """The comment for a routine that goes another way from some size on."""
    return f'path "{name}" {size} {path}'


def measuring_comment(name: str) -> str:
    """The comment for a routine that measured the program."""
    return f'measuring "{name}"'


@dataclass(slots=True)
class Point:
    """What all calls with one size of input cost.

    `rms` is the size (the read memory size of the format), `occ` the number of calls; `min`,
    `max`, `sum` and `sqr` (sum of squares) are of cumulative costs. `real` is `sum` without the
    calls below one of the same routine. The others are of the routine's own cost, without what
    it called.
    """

    rms: int
    min: int
    max: int
    sum: int
    sqr: int
    occ: int
    real: int
    self_sum: int
    self_min: int
    self_max: int
    self_sqr: int

    @classmethod
    def of_calls(cls, rms: int, costs: Iterable[int], own: Iterable[int] | None = None) -> Point:
        """The point of calls with these cumulative costs and own costs (None: the same)."""
        every = list(costs)
        selves = every if own is None else list(own)
        if not every or len(every) != len(selves):
            raise ValueError("a point has at least one call, and both costs of each")
        return cls(
            rms,
            min(every),
            max(every),
            sum(every),
            sum(cost * cost for cost in every),
            len(every),
            sum(every),
            sum(selves),
            min(selves),
            max(selves),
            sum(cost * cost for cost in selves),
        )

    @property
    def mean(self) -> float:
        """The cumulative cost of one call."""
        return self.sum / self.occ if self.occ else 0.0


@dataclass(slots=True)
class Routine:
    """A routine: `image` is the file that it is in, `mangled` and `full` are other names."""

    id: int
    name: str
    image: str = ""
    mangled: str | None = None
    full: str | None = None
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Context:
    """One way to call a routine: a node of the tree of calls; the `parent` of the top is -1."""

    id: int
    routine: int
    parent: int = ROOT
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A report; points are with the routines, with contexts, or with both.

    A routine's own points are of all its calls; those of its contexts are the same calls again, by
    where they came from.

    `metric` says what costs are, `total` is the cost of the whole program, `command` the command
    line, `application` the program, `modified` and `created` are what stands after `e` and `t`.
    `input_metric` is `rms`, `drms` or `rvms`. `warnings` are what a reader found odd and accepted.
    """

    metric: str = TIME_USEC
    command: str | None = None
    application: str | None = None
    total: int | None = None
    modified: str | None = None
    created: str | None = None
    comments: list[str] = field(default_factory=list)
    input_metric: str | None = None
    version: int = VERSION
    routines: list[Routine] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list, compare=False)

    def walls(self) -> dict[str, dict[int, int]]:
        """By routine and size, the wall time that comments tell of its fastest call."""
        walls: dict[str, dict[int, int]] = {}
        for comment in self.comments:
            match = WALL.fullmatch(comment)
            if match is not None:
                walls.setdefault(match[1], {})[int(match[2])] = int(match[3])
        return walls

    def measuring(self) -> set[str]:
        """The routines that measured the program."""
        matches = map(MEASURING.fullmatch, self.comments)
        return {each[1] for each in matches if each is not None}

    def paths(self) -> dict[str, tuple[int, str]]:
        """By routine, the size from which on it goes another way, and which."""
        matches = map(PATH.fullmatch, self.comments)
        return {each[1]: (int(each[2]), each[3]) for each in matches if each is not None}

    def size_units(self) -> dict[str, str]:
        """By routine, what comments say that its sizes count, such as `bytes`."""
        matches = map(UNIT.fullmatch, self.comments)
        return {each[1]: each[2] for each in matches if each is not None}

    def points(self) -> dict[int, list[Point]]:
        """By id of a routine, all its points by size.

        A routine without points of its own has those of its contexts, equal sizes joined.
        """
        points_of: dict[int, dict[int, Point]] = {routine.id: {} for routine in self.routines}
        owners = [(routine.id, routine.points) for routine in self.routines]
        measured = {routine.id for routine in self.routines if routine.points}
        owners += [
            (context.routine, context.points)
            for context in self.contexts
            if context.routine not in measured
        ]
        for routine, points in owners:
            by_size = points_of.setdefault(routine, {})
            for point in points:
                earlier = by_size.get(point.rms)
                by_size[point.rms] = point if earlier is None else _joined(earlier, point)
        return {
            routine: [sizes[size] for size in sorted(sizes)] for routine, sizes in points_of.items()
        }


def _joined(first: Point, other: Point) -> Point:
    return Point(
        first.rms,
        min(first.min, other.min),
        max(first.max, other.max),
        first.sum + other.sum,
        first.sqr + other.sqr,
        first.occ + other.occ,
        first.real + other.real,
        first.self_sum + other.self_sum,
        min(first.self_min, other.self_min),
        max(first.self_max, other.self_max),
        first.self_sqr + other.self_sqr,
    )
