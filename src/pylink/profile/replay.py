"""Measuring how the parts of a link grow: phases run again on the first inputs only.

A link that has ended still has its tables, and the tables of the first n inputs are prefixes of
them. So the phases run again on all inputs, on 0.7, 0.5, 0.35 and 0.25 of them, then an eighth and
so on, which gives each step a cost at each size, close together where it matters. All sizes take
turns, several times, so that a moment in which the machine is busy does not spoil one of them: of
each, the fastest run counts. That takes at least twelve times as long as the link, and more memory.

Where the first inputs use symbols of later ones, those are undefined, which every phase puts up
with. A part with any other error ends after layout.
"""

from __future__ import annotations

import copy
import os
import time

from pylink._native import elfread, inputfiles
from pylink.dedup.saving import Lenient
from pylink.errors import LinkError
from pylink.outputs.draft import Draft
from pylink.phases.finalize import finalize
from pylink.phases.layout import layout
from pylink.phases.merge import merge
from pylink.phases.relocate import relocate
from pylink.phases.results import Objects
from pylink.profile.collect import Recorder, profile_of
from pylink.profile.results import Results
from pylink.tables import extent
from pylink.watch.observers import Steps
from pylink.watch.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.init import Job
    from pylink.profile.model import Profile

# Parts smaller than this many inputs cost less than the clock can tell.
FEWEST_INPUTS = 2

# Sizes that a small link is divided into; a large one is halved until nothing is left.
SIZES = 8

# From this share of the link on, sizes lie half as far apart, and each runs twice in a turn.
LARGE = 0.25

# Turns that there are in any case, and while costs are not settled and processor time is left.
FEWEST_TURNS, MOST_TURNS = 2, 8
SECONDS = 4.0
# Costs of a size are settled when the least two differ by no more than this.
SETTLED = 0.01

# Parts of fewer inputs than this repeat within a turn, up to so many times: the clock disturbs
# short ones most.
LONG_PART = 60
MOST_REPETITIONS = 4


def parts_of(inputs: int) -> list[tuple[int, int]]:
    """(inputs, repetitions) of each part of a turn, the largest first.

    The first is the whole link, which runs again because the memory was new and the code was not
    loaded when it ran first.
    """
    if inputs < FEWEST_INPUTS:
        return []
    ratio = min(2.0, max((inputs / FEWEST_INPUTS) ** (1 / SIZES), 1.01))
    sizes = {inputs}
    size = float(inputs)
    while size >= FEWEST_INPUTS:
        sizes.add(max(round(size), FEWEST_INPUTS))
        size /= ratio if size <= LARGE * inputs else min(ratio, 2**0.5)
    return [
        (size, max(min(LONG_PART // size, MOST_REPETITIONS), 2 if size >= LARGE * inputs else 1))
        for size in sorted(sizes, reverse=True)
    ]


def replay(results: Results, *, shows_progress: bool = False) -> list[Profile]:
    """The profiles of parts of a link that worked, the largest first in each turn.

    On a quiet machine costs settle at once; on a busy one there are more turns.
    """
    found = []
    begun = time.process_time()
    parts = parts_of(len(results.objects.names))
    costs: dict[int, list[int]] = {size: [] for size, _ in parts}
    with Progress("measuring growth", FEWEST_TURNS * len(parts), wanted=shows_progress) as progress:
        for turn in range(MOST_TURNS):
            if turn >= FEWEST_TURNS and (
                all(map(is_settled, costs.values())) or time.process_time() - begun > SECONDS
            ):
                break
            for size, repetitions in parts:
                for _ in range(repetitions):
                    profile = run_part(results.objects, size)
                    if profile is not None:
                        found.append(profile)
                        costs[size].append(sum(phase.cost.thread_ns for phase in profile.phases))
                progress.advance(words=f"{size:,} inputs")
    return found


def is_settled(costs: list[int]) -> bool:
    """Whether the least of these costs would be about the same after one more measurement."""
    least, *more = sorted(costs)[:2] or [0]
    return all(one <= least * (1 + SETTLED) for one in more)


def run_part(whole: Objects, size: int) -> Profile | None:
    """The profile of linking the first `size` inputs; None when that cannot be done at all."""
    record = Recorder()
    steps = Steps([record])
    try:
        return _run(record, part_of(whole, size, steps), Lenient())
    except LinkError:
        return None
    finally:
        steps.end()
        record.close(failed=False)


def part_of(whole: Objects, size: int, steps: Steps) -> Objects:
    """The first `size` inputs; the arena is shared."""
    job: Job = copy.copy(whole.job)
    job.steps = steps
    last = whole.files[size - 1]
    return Objects(
        whole.arena,
        whole.files.first(size),
        whole.sections.first(last.first_section + last.section_count),
        whole.symbols.first(last.first_symbol + last.symbol_count),
        job=job,
        names=whole.names[:size],
        homes=whole.homes[:size],
        references=whole.references,
        release=whole.release,
        libraries=None,
    ).seal()


def _run(record: Recorder, part: Objects, sink: Lenient) -> Profile | None:
    record.seen["init"] = part.job
    record.resume()
    steps = part.job.steps
    extents = b"".join(extent(file.offset, file.size) for file in part.files)
    _read_again(part, steps)
    times = steps.times(len(part.names))
    elfread.parse(part.arena, extents, times)
    steps.done("parse", times)
    record.after("read", part)
    record.resume()
    merged = merge(part, sink)
    if merged is None:
        return None
    record.after("merge", merged)
    record.resume()
    placed = layout(merged, sink)
    record.after("layout", placed)
    final = None
    if not sink.failing:
        record.resume()
        with Draft(placed.size) as draft:
            image = relocate(placed, draft, sink)
            record.after("relocate", image)
            if image is not None:
                record.resume()
                final = finalize(image, sink)
                record.after("finalize", final)
    return profile_of(record, Results(part, merged, placed, final))


def _read_again(part: Objects, steps: Steps) -> None:
    """Read the files of the part, where each is an input as it stands."""
    inputs = part.job.inputs[: len(part.names)]
    if part.homes or any(one.data is not None for one in inputs):
        return
    sizes = part.files.column("size")
    times = steps.times(len(inputs))
    _, extents, failed, _ = inputfiles.read_files(
        [os.fsencode(one.name) for one in inputs], sizes, [None] * len(inputs), times
    )
    if failed < 0:
        steps.done("read_files", (times, extents))
