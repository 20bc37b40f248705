"""Measures how the cost of phases grows, by running them again on the first inputs only.

The tables of the first n inputs are prefixes of the tables of a finished link. So the phases can
run again on parts of the inputs, from few to all. This gives the cost of each step at each size.
The larger sizes, which decide forecasts, are close together. A turn measures all sizes, one after
the other. There are several turns, and the fastest run of each size counts, so that a short
disturbance does no harm.

The caches hold the data of the previous run. So parts run from small to large, several times each.
When a whole link ran after a small part, it took 5 to 15 % longer than when it ran as a part of a
link twice as large. Forecasts took this for growth.

If the first inputs use symbols of later ones, these are undefined, which every phase tolerates.
A part with any other error ends after layout, or has no profile if merge ends the link.
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
from pylink.profile.results import PhaseResults
from pylink.tables import extent
from pylink.terminal.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.init import Job
    from pylink.profile.model import Profile

# Least number of inputs in a part of a link: smaller parts cost less than the clock can resolve.
LEAST_INPUTS = 2

# Steps in size from the smallest part to a small link; LARGE_RATIO adds more. A larger link, for
# which such a step would be more than a doubling, is halved repeatedly.
SIZE_COUNT = 8

# Least ratio of the size of a part to the next smaller one.
LEAST_RATIO = 1.01

# Parts above this share of the link have three or more sizes per doubling: they decide forecasts.
LARGE_SHARE = 0.125
LARGE_RATIO = 2 ** (1 / 3)

# Each turn measures all sizes. There are LEAST_TURNS turns, and more while costs are not settled,
# up to MAX_TURNS in all, and until MAX_SECONDS of processor time are spent.
LEAST_TURNS, MAX_TURNS = 2, 16
MAX_SECONDS = 4.0
# The costs of a size are settled if the two best turns differ by no more than this share.
SETTLED_SHARE = 0.01

# Runs of a part in a turn; a part of few inputs has more, since the clock disturbs it.
REPETITIONS = 3
SMALL_PART_INPUTS, SMALL_PART_REPETITIONS = 15, 4
# A part with at least so many nanoseconds of processor time runs once in a turn: the caches hold
# nothing of the run before it. The parts of a link of 0.15 s add up to 4.5 links; with three runs
# each, two turns take `MAX_SECONDS`.
LONG_PART_NS = 150_000_000


def part_sizes(inputs: int) -> list[int]:
    """Return the sizes of the parts of a turn, as numbers of inputs, smallest first.

    The last part has all inputs. The list is empty for fewer than LEAST_INPUTS inputs.
    """
    if inputs < LEAST_INPUTS:
        return []
    ratio = min(2.0, max((inputs / LEAST_INPUTS) ** (1 / SIZE_COUNT), LEAST_RATIO))
    sizes = {inputs}
    size = float(inputs)
    while size >= LEAST_INPUTS:
        sizes.add(max(round(size), LEAST_INPUTS))
        size /= ratio if size <= LARGE_SHARE * inputs else min(ratio, LARGE_RATIO)
    return sorted(sizes)


def replay(results: PhaseResults, *, shows_progress: bool = False) -> list[Profile]:
    """Link parts of a successful link again; return their profiles, smallest first in each turn.

    Each turn links all parts. On a quiet machine costs settle at once; a busy machine needs more
    turns.
    """
    profiles = []
    start = time.process_time()
    sizes = part_sizes(len(results.objects.names))
    costs: dict[int, list[int]] = {size: [] for size in sizes}
    with Progress("measuring growth", LEAST_TURNS * len(sizes), enabled=shows_progress) as progress:
        for turn in range(MAX_TURNS):
            if turn >= LEAST_TURNS and (
                all(map(is_settled, costs.values())) or time.process_time() - start > MAX_SECONDS
            ):
                break
            for size in sizes:
                part_profiles = _run_repeatedly(results.objects, size, min(costs[size], default=0))
                profiles += part_profiles
                if part_profiles:
                    costs[size].append(min(_cpu_ns(profile) for profile in part_profiles))
                progress.advance(text=f"{size:,} inputs")
    return profiles


def _run_repeatedly(objects: Objects, size: int, last_ns: int) -> list[Profile]:
    """Return the profiles of a part's runs in one turn.

    The part has `size` inputs; `last_ns` is the processor time of an earlier run, or 0. The list
    is empty if the part cannot be linked.
    """
    arena = arena_of_first(objects, size)
    repetitions = SMALL_PART_REPETITIONS if size <= SMALL_PART_INPUTS else REPETITIONS
    profiles: list[Profile] = []
    while len(profiles) < repetitions and (not profiles or last_ns < LONG_PART_NS):
        profile = _run_part(objects, size, arena)
        if profile is None:
            break
        profiles.append(profile)
        last_ns = _cpu_ns(profile)
    return profiles


def _cpu_ns(profile: Profile) -> int:
    """Return the processor time of all phases."""
    return sum(phase.cpu_ns for phase in profile.phases)


def is_settled(costs: list[int]) -> bool:
    """Return whether measuring a size once more would probably give the same least cost.

    `costs` has the least processor time of a size in each turn so far.
    """
    least, *second_least = sorted(costs)[:2] or [0]
    return all(cost <= least * (1 + SETTLED_SHARE) for cost in second_least)


def arena_of_first(objects: Objects, size: int) -> bytes:
    """Return an arena, the buffer with all input bytes, of only the first `size` inputs.

    Some costs depend on its size.
    """
    if size == len(objects.names):
        return objects.arena
    files = objects.files.first(size)
    ends = map(sum, zip(files.column("offset"), files.column("size"), strict=True))
    return objects.arena[: max(ends)]


def _run_part(objects: Objects, size: int, arena: bytes) -> Profile | None:
    """Return the profile of linking the first `size` inputs; None if that is impossible."""
    record = Recorder()
    steps = Steps([record])
    try:
        return _run_phases(record, _first_inputs(objects, size, arena, steps), ErrorCollector())
    except LinkError:
        return None
    finally:
        steps.drop_observers()
        record.close(failed=False)


def _first_inputs(objects: Objects, size: int, arena: bytes, steps: Steps) -> Objects:
    """Return the objects of the first `size` inputs, whose bytes are `arena`."""
    job: Job = copy.copy(objects.job)
    job.steps = steps
    last_file = objects.files[size - 1]
    return Objects(
        arena,
        objects.files.first(size),
        objects.sections.first(last_file.first_section + last_file.section_count),
        objects.symbols.first(last_file.first_symbol + last_file.symbol_count),
        job=job,
        names=objects.names[:size],
        source_numbers=objects.source_numbers[:size],
        references=objects.references,
        release=objects.release,
        libraries=None,
    ).seal()


def _run_phases(record: Recorder, part: Objects, sink: ErrorCollector) -> Profile | None:
    """Run the phases from reading to finalizing; None if merging reports an error."""
    record.results_by_tag["init"] = part.job
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
    return profile_of(record, PhaseResults(part, placed, final))


def _read_again(part: Objects, steps: Steps) -> None:
    """Read the files of the part again, if all of them are plain cubins."""
    inputs = part.job.inputs[: len(part.names)]
    if part.source_numbers or any(source.data is not None for source in inputs):
        return
    sizes = part.files.column("size")
    times = steps.times(len(inputs))
    _, extents, failed_file, _ = inputfiles.read_files(
        [os.fsencode(source.name) for source in inputs], sizes, [None] * len(inputs), times
    )
    if failed_file < 0:
        steps.end_step("read_files", (times, extents))
