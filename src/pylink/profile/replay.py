"""Measuring how the parts of a link grow: phases run again on the first inputs only.

A link that has ended still has its tables, and the tables of the first n inputs are prefixes of
them. So the phases run again on parts of the inputs, from few to all, which gives each step a cost
at each size; the larger ones, which forecasts rest on, are close together. All sizes take turns,
several times, so that a moment in which the machine is busy does not spoil one of them: of each,
the fastest run counts.

What a part finds in the caches is what ran before it. So parts run from small to large, and some
times each: run after a small part, the whole link took 5 to 15 % longer than as a part of a link
twice as large, which every forecast took for growth.

Where the first inputs use symbols of later ones, those are undefined, which every phase puts up
with. A part with any other error ends after layout.
"""

from __future__ import annotations

import copy
import os
import time

from pylink._native import elfread, inputfiles
from pylink.dedup.saving import ErrorCollector
from pylink.diagnostics.errors import LinkError
from pylink.files.buffer import OutputBuffer
from pylink.observer import Steps
from pylink.phases.finalize import finalize
from pylink.phases.layout import layout
from pylink.phases.merge import merge
from pylink.phases.relocate import relocate
from pylink.phases.results import Objects
from pylink.profile.collector import Recorder, profile_of
from pylink.profile.results import Results
from pylink.tables import extent
from pylink.terminal.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.init import Job
    from pylink.profile.model import Profile

# Parts smaller than this many inputs cost less than the clock can tell.
FEWEST_INPUTS = 2

# Sizes that a small link is divided into; a large one is halved until nothing is left.
SIZES = 8

# From this share of the link on, which forecasts rest on, three sizes are to a doubling.
LARGE = 0.125
CLOSE = 2 ** (1 / 3)

# Turns that there are in any case, and while costs are not settled and processor time is left.
FEWEST_TURNS, MOST_TURNS = 2, 16
SECONDS = 4.0
# Costs of a size are settled when those of the two best turns differ by no more than this.
SETTLED = 0.01

# How often a part runs within a turn, and one of so few inputs that the clock disturbs it.
REPETITIONS = 3
SMALL_PART, MOST_REPETITIONS = 15, 4
# Nanoseconds of processor time from which on a part runs once in a turn: it finds nothing of the
# run before it in the caches, and two turns of a link just below that take the `SECONDS`.
LONG_NS = 150_000_000


def parts_of(inputs: int) -> list[int]:
    """The numbers of inputs of the parts of a turn, the smallest first; the last one is all."""
    if inputs < FEWEST_INPUTS:
        return []
    ratio = min(2.0, max((inputs / FEWEST_INPUTS) ** (1 / SIZES), 1.01))
    sizes = {inputs}
    size = float(inputs)
    while size >= FEWEST_INPUTS:
        sizes.add(max(round(size), FEWEST_INPUTS))
        size /= ratio if size <= LARGE * inputs else min(ratio, CLOSE)
    return sorted(sizes)


def replay(results: Results, *, shows_progress: bool = False) -> list[Profile]:
    """The profiles of parts of a link that worked, the smallest first in each turn.

    On a quiet machine costs settle at once; on a busy one there are more turns.
    """
    profiles = []
    begun = time.process_time()
    parts = parts_of(len(results.objects.names))
    costs: dict[int, list[int]] = {size: [] for size in parts}
    with Progress("measuring growth", FEWEST_TURNS * len(parts), wanted=shows_progress) as progress:
        for turn in range(MOST_TURNS):
            if turn >= FEWEST_TURNS and (
                all(map(is_settled, costs.values())) or time.process_time() - begun > SECONDS
            ):
                break
            for size in parts:
                again = _run_some(results.objects, size, min(costs[size], default=0))
                profiles += again
                if again:
                    costs[size].append(min(_cost(profile) for profile in again))
                progress.advance(text=f"{size:,} inputs")
    return profiles


def _run_some(whole: Objects, size: int, known: int) -> list[Profile]:
    """The profiles of what a turn runs of a part, of which one run took `known` nanoseconds."""
    arena = arena_of(whole, size)
    repetitions = MOST_REPETITIONS if size <= SMALL_PART else REPETITIONS
    profiles: list[Profile] = []
    while len(profiles) < repetitions and (not profiles or known < LONG_NS):
        profile = run_part(whole, size, arena)
        if profile is None:
            break
        profiles.append(profile)
        known = _cost(profile)
    return profiles


def _cost(profile: Profile) -> int:
    return sum(phase.cpu_ns for phase in profile.phases)


def is_settled(costs: list[int]) -> bool:
    """Whether one more turn would find about the same."""
    least, *more = sorted(costs)[:2] or [0]
    return all(cost <= least * (1 + SETTLED) for cost in more)


def arena_of(whole: Objects, size: int) -> bytes:
    """The bytes of the first `size` inputs: kernels do some things once for an arena of a size."""
    if size == len(whole.names):
        return whole.arena
    files = whole.files.first(size)
    ends = map(sum, zip(files.column("offset"), files.column("size"), strict=True))
    return whole.arena[: max(ends)]


def run_part(whole: Objects, size: int, arena: bytes) -> Profile | None:
    """The profile of linking the first `size` inputs; None when that cannot be done at all."""
    record = Recorder()
    steps = Steps([record])
    try:
        return _run(record, part_of(whole, size, arena, steps), ErrorCollector())
    except LinkError:
        return None
    finally:
        steps.drop_observers()
        record.close(failed=False)


def part_of(whole: Objects, size: int, arena: bytes, steps: Steps) -> Objects:
    """The first `size` inputs, whose bytes are `arena`."""
    job: Job = copy.copy(whole.job)
    job.steps = steps
    last = whole.files[size - 1]
    return Objects(
        arena,
        whole.files.first(size),
        whole.sections.first(last.first_section + last.section_count),
        whole.symbols.first(last.first_symbol + last.symbol_count),
        job=job,
        names=whole.names[:size],
        source_numbers=whole.source_numbers[:size],
        references=whole.references,
        release=whole.release,
        libraries=None,
    ).seal()


def _run(record: Recorder, part: Objects, sink: ErrorCollector) -> Profile | None:
    record.seen["init"] = part.job
    record.resume()
    steps = part.job.steps
    extents = b"".join(extent(file.offset, file.size) for file in part.files)
    _read_again(part, steps)
    times = steps.times(len(part.names))
    elfread.parse(part.arena, extents, times)
    steps.end_step("parse", times)
    record.phase_ended("read", part)
    record.resume()
    merged = merge(sink, part)
    if merged is None:
        return None
    record.phase_ended("merge", merged)
    record.resume()
    placed = layout(sink, merged)
    record.phase_ended("layout", placed)
    final = None
    if not sink.failing:
        record.resume()
        with OutputBuffer(placed.size) as buffer:
            image = relocate(sink, placed, buffer)
            record.phase_ended("relocate", image)
            if image is not None:
                record.resume()
                final = finalize(sink, image)
                record.phase_ended("finalize", final)
    return profile_of(record, Results(part, merged, placed, final))


def _read_again(part: Objects, steps: Steps) -> None:
    """Read the files of the part, where each is an input as it stands."""
    inputs = part.job.inputs[: len(part.names)]
    if part.source_numbers or any(source.data is not None for source in inputs):
        return
    sizes = part.files.column("size")
    times = steps.times(len(inputs))
    _, extents, failed, _ = inputfiles.read_files(
        [os.fsencode(source.name) for source in inputs], sizes, [None] * len(inputs), times
    )
    if failed < 0:
        steps.end_step("read_files", (times, extents))
