"""A link as aprof sees a program: its routines, who called them, and their cost by input size.

The link calls its phases and they their steps, which are kernels mostly. Reading and parsing call
a routine per input, and folding three per pair of objects. What ran again on parts of the inputs
is called by `part` instead of `link`, so a routine has points of many sizes and the two do not mix.
Costs are whole microseconds, at least one: a routine of aprof costs something.
"""

from __future__ import annotations

import sys
import time

from pylink.aprof.model import TIME_USEC, Context, Point, Report, Routine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.profile.model import Profile

IMAGE = "pylink"
LINK, PART = "link", "part"
READ_FILE, PARSE_FILE = "read_file", "parse_file"
STAGES = ("compare_primary", "compare_headers", "compare_targets")

# One call: size, cumulative and own nanoseconds.
Call = tuple[int, int, int]


class _Calls:
    """Routines and contexts in order of their first call, with the calls of each context."""

    def __init__(self) -> None:
        self.routines: dict[str, Routine] = {}
        self.contexts: dict[tuple[int, str], Context] = {}
        self.calls: dict[int, list[Call]] = {}

    def enter(self, parent: int, name: str) -> int:
        """The context of the routine `name` below another."""
        routine = self.routines.get(name)
        if routine is None:
            routine = Routine(len(self.routines), name, IMAGE)
            self.routines[name] = routine
        context = self.contexts.get((parent, name))
        if context is None:
            context = Context(len(self.contexts), routine.id, parent)
            self.contexts[parent, name] = context
            self.calls[context.id] = []
        return context.id

    def add(self, context: int, size: int, cost: int, children: int = 0) -> None:
        self.calls[context].append((size, cost, max(cost - children, 0)))

    def finish(self) -> None:
        """Make points of the calls, one for each distinct size."""
        for context in self.contexts.values():
            by_size: dict[int, list[Call]] = {}
            for call in self.calls[context.id]:
                by_size.setdefault(call[0], []).append(call)
            for size in sorted(by_size):
                calls = by_size[size]
                costs = [max(_microseconds(cost), 1) for _, cost, _ in calls]
                own = [_microseconds(cost) for _, _, cost in calls]
                selves = [min(pair) for pair in zip(own, costs, strict=True)]
                context.points.append(Point.of_calls(size, costs, selves))


def aprof_report(profile: Profile, parts: Iterable[Profile] = ()) -> Report:
    """The report of a link and of its parts, see `pylink.profile.replay`."""
    calls = _Calls()
    _add_link(calls, profile, LINK)
    for part in parts:
        _add_link(calls, part, PART)
    calls.finish()
    contexts = list(calls.contexts.values())
    return Report(
        metric=TIME_USEC,
        command=" ".join(sys.argv) or IMAGE,
        application=IMAGE,
        total=sum(point.self_sum for context in contexts for point in context.points),
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(profile.created)),
        comments=[f"{len(profile.names)} inputs of {profile.input_bytes} bytes for {profile.arch}"],
        routines=list(calls.routines.values()),
        contexts=contexts,
    )


def _add_link(calls: _Calls, profile: Profile, name: str) -> None:
    below = sum(phase.wall_ns for phase in profile.phases)
    top = calls.enter(-1, name)
    size = profile.input_bytes or profile.opened_bytes
    calls.add(top, size, below if name == PART else profile.wall_ns, below)
    for phase in profile.phases:
        place = calls.enter(top, phase.tag)
        steps = sum(step.wall_ns for step in phase.steps)
        calls.add(place, phase.size, phase.wall_ns, steps)
        for step in phase.steps:
            inner = calls.enter(place, step.name)
            calls.add(inner, step.size, step.wall_ns, _below(calls, profile, inner, step.name))


def _below(calls: _Calls, profile: Profile, place: int, step: str) -> int:
    """Add what a step calls for single inputs or pairs; their time in the thread of the step."""
    inside = 0
    if step == "read_files":
        context = calls.enter(place, READ_FILE)
        for file in profile.files:
            if file.read_start_ns:
                calls.add(context, file.size, file.read_ns)
                inside += 0 if file.lane else file.read_ns
    elif step == "parse":
        context = calls.enter(place, PARSE_FILE)
        for file in profile.files:
            if file.parse_start_ns:
                calls.add(context, file.size, file.parse_ns)
                inside += file.parse_ns
    elif step == "fold_mercury" and profile.pairs:
        contexts = [calls.enter(place, name) for name in STAGES]
        for pair in profile.pairs:
            stats, candidate = pair.stats, pair.candidate
            sizes = (stats.bytes_compared, len(candidate.headers), len(candidate.targets))
            for context, size, cost in zip(contexts, sizes, stats.stage_ns, strict=True):
                if cost:  # a pair that an earlier stage rejects does not come here
                    calls.add(context, size, cost)
                    inside += cost
    return inside


def _microseconds(nanoseconds: int) -> int:
    return (nanoseconds + 500) // 1000
