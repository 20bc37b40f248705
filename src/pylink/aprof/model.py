"""A report in memory: routines, the contexts of their calls, and their points."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# Metrics of costs: executed basic blocks, and microseconds.
BB_COUNT = "bb-count"
TIME_USEC = "time-usec"

VERSION = 4  # of the format, as written
ROOT = -1  # parent of a context that nothing calls

# Patterns of comments (lines with the tag c). One has the wall time of a routine's fastest call:
# name, size, cost in the unit of the report. The other has the unit of the routine's sizes.
WALL = re.compile(r'wall "([^"]*)" ([0-9]{1,20}) ([0-9]{1,20})')
UNIT = re.compile(r'size "([^"]*)" (.*)')
# Comment that names a routine which measured the program and is not part of it.
MEASURING = re.compile(r'measuring "([^"]*)"')


def wall_comment(name: str, size: int, cost: int) -> str:
    """Return the comment with the wall time of a routine's fastest call of `size`."""
    return f'wall "{name}" {size} {cost}'


def unit_comment(name: str, unit: str) -> str:
    """Return the comment with the unit of a routine's sizes."""
    return f'size "{name}" {unit}'


# Comment about a routine that works in another way (path) from some size on: name, size, path.
PATH = re.compile(r'path "([^"]*)" ([0-9]{1,20}) (.*)')


def path_comment(name: str, size: int, path: str) -> str:
    """Return the comment for a routine that works in another way, `path`, from `size` on."""
    return f'path "{name}" {size} {path}'


def measuring_comment(name: str) -> str:
    """Return the comment for a routine that measured the program."""
    return f'measuring "{name}"'


@dataclass(slots=True)
class Point:
    """The cost of all calls with one size of input.

    `rms` is the size (the read memory size of the format), `occ` the number of calls. `min`, `max`,
    `sum` and `sqr` (sum of squares) are of cumulative costs. `real` is `sum` without recursive
    calls. Values whose names begin with self are of the routine's own cost, without its callees.
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
    def of_calls(
        cls, rms: int, costs: Iterable[int], own_costs: Iterable[int] | None = None
    ) -> Point:
        """Return the point of calls of size `rms`, from the cumulative and the own cost of each.

        Own costs are those without callees (default: `costs`). ValueError without calls, and for
        two numbers of costs that differ.
        """
        cumulative = list(costs)
        self_costs = cumulative if own_costs is None else list(own_costs)
        if not cumulative or len(cumulative) != len(self_costs):
            raise ValueError("a point has at least one call, and both costs of each")
        return cls(
            rms,
            min(cumulative),
            max(cumulative),
            sum(cumulative),
            sum(cost * cost for cost in cumulative),
            len(cumulative),
            sum(cumulative),
            sum(self_costs),
            min(self_costs),
            max(self_costs),
            sum(cost * cost for cost in self_costs),
        )

    @property
    def mean(self) -> float:
        """The mean cumulative cost of a call; 0 without calls."""
        return self.sum / self.occ if self.occ else 0.0


@dataclass(slots=True)
class Routine:
    """A routine of the file `image`; `mangled` and `full` are other forms of its name."""

    id: int
    name: str
    image: str = ""
    mangled: str | None = None
    full: str | None = None
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Context:
    """A routine as called by one chain of callers: a node of the tree of calls.

    `routine` is the id of the routine. `parent` is the id of the context that calls it, or ROOT.
    """

    id: int
    routine: int
    parent: int = ROOT
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A report; routines, contexts, or both have points.

    A routine's own points are of all its calls. The points of its contexts are of the same calls,
    by caller.

    * `metric`: the unit of costs.
    * `total`, `command`, `application`: cost, command line and path of the measured program.
    * `modified`, `created`: times of the program and of the report (texts of the tags `e`, `t`).
    * `comments`: the texts of lines with the tag `c`, some of which have patterns such as `WALL`.
    * `input_metric`: what sizes are: `rms`, `drms` or `rvms`; None stands for `rms`.
    * `version`: the version of the format that was read; version 4 is always written.
    * `warnings`: oddities that a reader accepted.
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
        """Return the wall times in comments: by name of the routine, then by size."""
        walls: dict[str, dict[int, int]] = {}
        for comment in self.comments:
            match = WALL.fullmatch(comment)
            if match is not None:
                walls.setdefault(match[1], {})[int(match[2])] = int(match[3])
        return walls

    def measuring_routines(self) -> set[str]:
        """Return the names of routines of the profiler itself, not of the program."""
        matches = map(MEASURING.fullmatch, self.comments)
        return {match[1] for match in matches if match is not None}

    def paths(self) -> dict[str, tuple[int, str]]:
        """Return, by routine, the size from which it works in another way (path), and this path."""
        matches = map(PATH.fullmatch, self.comments)
        return {match[1]: (int(match[2]), match[3]) for match in matches if match is not None}

    def size_units(self) -> dict[str, str]:
        """Return the units of sizes that comments have, such as `bytes`, by name of the routine."""
        matches = map(UNIT.fullmatch, self.comments)
        return {match[1]: match[2] for match in matches if match is not None}

    def points(self) -> dict[int, list[Point]]:
        """Map the id of each routine to its points, sorted by size.

        A routine without points of its own has those of its contexts, joined if of equal size.
        """
        points_by_routine: dict[int, dict[int, Point]] = {
            routine.id: {} for routine in self.routines
        }
        owners = [(routine.id, routine.points) for routine in self.routines]
        with_own_points = {routine.id for routine in self.routines if routine.points}
        owners += [
            (context.routine, context.points)
            for context in self.contexts
            if context.routine not in with_own_points
        ]
        for routine, points in owners:
            by_size = points_by_routine.setdefault(routine, {})
            for point in points:
                earlier = by_size.get(point.rms)
                by_size[point.rms] = point if earlier is None else _join_points(earlier, point)
        return {
            routine: [sizes[size] for size in sorted(sizes)]
            for routine, sizes in points_by_routine.items()
        }


def _join_points(first: Point, other: Point) -> Point:
    """Return one point for the calls of two points, which have the same size."""
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
