"""A link as a program for aprof: its routines, their callers, and their cost by input size.

The link calls its phases, and these their steps, most of which are native. Reading and parsing
call a routine per input, folding up to three (STAGES) per pair. Runs on parts of the inputs are
below the routine `replay`, whose `link` is all phases from reading to finalizing, without work that
a link does once. So a routine has points of many sizes, and those of the link and of its parts are
separate. Costs are whole microseconds, at least one, since aprof has no zero costs. They are
processor time of all threads: the larger inputs and outputs are, the more threads work on them, so
wall time would seem to fall as sizes double. Comments have the wall time of each routine's largest
size.
"""

from __future__ import annotations

import sys
import time

from pylink.aprof.model import (
    TIME_USEC,
    Context,
    Point,
    Report,
    Routine,
    measuring_comment,
    path_comment,
    unit_comment,
    wall_comment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylink.profile.model import Profile
    from pylink.profile.phase import Step

# The program whose routines these are, and names of routines.
IMAGE = "pylink"
LINK, REPLAY = "link", "replay"
READ_FILE, PARSE_FILE = "read_file", "parse_file"
STAGES = ("compare_primary", "compare_headers", "compare_targets")

# By step: the least size in bytes at which it works in another way, so that its costs jump, and a
# name for that way.
PATHS = {"parse": (4 << 20, "more threads")}

# One call: size, inclusive and exclusive processor time, wall time; times in nanoseconds.
Call = tuple[int, int, int, int]


class _Calls:
    """The routines and contexts in order of their first call, with the calls of each context.

    A context is a routine with the chain of its callers. `contexts` are by the id of the calling
    context (-1: none) and the routine's name, `calls` by the id of the context.
    """

    def __init__(self) -> None:
        self.routines: dict[str, Routine] = {}
        self.contexts: dict[tuple[int, str], Context] = {}
        self.calls: dict[int, list[Call]] = {}

    def enter(self, parent: int, name: str) -> int:
        """Return the context of the routine `name` below context `parent`; create it if needed."""
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

    def add(self, context: int, size: int, cost: int, wall: int, children: int = 0) -> None:
        """Add a call; times are in ns, and `children` is the cost of the routines it called."""
        self.calls[context].append((size, cost, max(cost - children, 0), wall))

    def walls(self) -> list[str]:
        """Return a comment for each routine with the least wall time at its largest size."""
        names = {routine.id: name for name, routine in self.routines.items()}
        least_walls: dict[str, tuple[int, int]] = {}
        for context in self.contexts.values():
            for size, _, _, wall in self.calls[context.id]:
                name = names[context.routine]
                size_and_wall = least_walls.get(name, (-1, 0))
                if size > size_and_wall[0] or (
                    size == size_and_wall[0] and wall < size_and_wall[1]
                ):
                    least_walls[name] = size, wall
        return [
            wall_comment(name, size, _microseconds(wall))
            for name, (size, wall) in least_walls.items()
        ]

    def units(self, profile: Profile) -> list[str]:
        """Return a comment for each routine with the unit of its sizes."""
        units = {step.name: step.unit for phase in profile.phases for step in phase.steps}
        units |= {phase.tag: phase.unit for phase in profile.phases}
        units |= dict.fromkeys((LINK, READ_FILE, PARSE_FILE, STAGES[0]), "bytes")
        units |= {REPLAY: "parts", STAGES[1]: "section headers", STAGES[2]: "relocation targets"}
        return [unit_comment(name, units[name]) for name in self.routines if name in units]

    def finish(self) -> None:
        """Combine the calls into points, one for each distinct size."""
        for context in self.contexts.values():
            by_size: dict[int, list[Call]] = {}
            for call in self.calls[context.id]:
                size, _, _, _ = call
                by_size.setdefault(size, []).append(call)
            for size in sorted(by_size):
                calls = by_size[size]
                costs = [max(_microseconds(cost), 1) for _, cost, _, _ in calls]
                self_costs = [_microseconds(self_cost) for _, _, self_cost, _ in calls]
                capped_self_costs = [min(pair) for pair in zip(self_costs, costs, strict=True)]
                context.points.append(Point.of_calls(size, costs, capped_self_costs))


def aprof_report(profile: Profile, parts: Iterable[Profile] = ()) -> Report:
    """Create the report of a link and of its parts (`pylink.profile.replay`)."""
    calls = _Calls()
    link_call = calls.enter(-1, LINK)
    _add_link(calls, profile, link_call, profile.cost.cpu_ns, profile.wall_ns)
    parts_list = list(parts)
    if parts_list:
        replay_context = calls.enter(-1, REPLAY)
        link_context = calls.enter(replay_context, LINK)
        part_costs = [_add_part(calls, part, link_context) for part in parts_list]
        cost, wall = sum(cost for cost, _ in part_costs), sum(wall for _, wall in part_costs)
        calls.add(replay_context, len(parts_list), cost, wall, cost)
    calls.finish()
    contexts = list(calls.contexts.values())
    routines = list(calls.routines.values())
    self_total = sum(point.self_sum for context in contexts for point in context.points)
    total = sum(
        point.sum for context in contexts if context.parent == -1 for point in context.points
    )
    return Report(
        metric=TIME_USEC,
        command=" ".join(sys.argv) or IMAGE,
        application=IMAGE,
        # Each call is rounded, so the exclusive costs may add up to a little more.
        total=max(total, self_total),
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(profile.created)),
        comments=[
            f"{len(profile.names)} inputs of {profile.input_bytes} bytes for {profile.arch}",
            *calls.walls(),
            *calls.units(profile),
            *(path_comment(name, *path) for name, path in PATHS.items() if name in calls.routines),
            *([measuring_comment(REPLAY)] if parts_list else []),
        ],
        routines=routines,
        contexts=contexts,
    )


def _add_part(calls: _Calls, part: Profile, link_context: int) -> tuple[int, int]:
    """Add the calls of a part; return its processor and wall nanoseconds."""
    cost = sum(phase.cpu_ns for phase in part.phases)
    wall = sum(phase.wall_ns for phase in part.phases)
    _add_link(calls, part, link_context, cost, wall)
    return cost, wall


def _add_link(calls: _Calls, profile: Profile, link_context: int, cost: int, wall: int) -> None:
    """Add a link, or a part of it, as a call of `link_context`, and the calls of its phases."""
    phase_ns = sum(phase.cpu_ns for phase in profile.phases)
    calls.add(link_context, profile.input_bytes or profile.opened_bytes, cost, wall, phase_ns)
    for phase in profile.phases:
        phase_context = calls.enter(link_context, phase.tag)
        steps_ns = sum(step.cpu_ns for step in phase.steps)
        calls.add(phase_context, phase.size, phase.cpu_ns, phase.wall_ns, steps_ns)
        for step in phase.steps:
            step_context = calls.enter(phase_context, step.name)
            children_ns = _add_calls_below(calls, profile, step_context, step)
            calls.add(step_context, step.size, step.cpu_ns, step.wall_ns, children_ns)


def _add_calls_below(calls: _Calls, profile: Profile, context: int, step: Step) -> int:
    """Add the calls of a step for single inputs or pairs; return their total time.

    For some calls only the wall time is known, which may include other work of the processor. If
    the sum exceeds the step's time, it is scaled down to that.
    """
    calls_below = list(_calls_below(profile, step.name))
    spent_ns = sum(cost for _, _, cost, _ in calls_below)
    attributed_ns = min(spent_ns, step.cpu_ns)
    for name, size, cost, wall in calls_below:
        calls.add(calls.enter(context, name), size, cost * attributed_ns // (spent_ns or 1), wall)
    return attributed_ns


def _calls_below(profile: Profile, step: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield routine, size, cost and wall time (both in ns) of each call of a step."""
    if step == "read_files":
        for file in profile.files:
            if file.read_start_ns:
                yield READ_FILE, file.size, file.read_cpu_ns, file.read_ns
    elif step == "parse":
        for file in profile.files:
            if file.parse_start_ns:
                yield PARSE_FILE, file.size, file.parse_ns, file.parse_ns
    elif step == "fold_mercury":
        for pair in profile.pairs:
            stats, candidate = pair.stats, pair.candidate
            sizes = (stats.bytes_compared, len(candidate.headers), len(candidate.targets))
            for name, size, cost in zip(STAGES, sizes, stats.stage_ns, strict=True):
                if cost:  # 0 if an earlier stage has rejected the pair
                    yield name, size, cost, cost


def _microseconds(nanoseconds: int) -> int:
    """Return the nearest number of whole microseconds."""
    return (nanoseconds + 500) // 1000
