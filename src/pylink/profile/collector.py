"""Watching one link and making its profile.

While the link runs, the clock is read at the ends of phases and steps, some forty times, and
kernels keep the times of single inputs. All counts come from the finished tables at the end, by
native code.
"""

from __future__ import annotations

import sys
import time

from pylink._native import counts
from pylink.observer import Observer
from pylink.profile.clock import Clock, between
from pylink.profile.counts import column
from pylink.profile.model import Profile
from pylink.profile.phase import Phase, Step
from pylink.profile.results import Results
from pylink.profile.sizes import fill_sizes
from pylink.rowformats import FILE_COUNT

# Bytes of an offset and a size.
EXTENT_SIZE = 16

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.decisions import Folding
    from pylink.phases.init import Job
    from pylink.profile.clock import Moment


class Recorder(Observer):
    """Keeps what each phase and step took, and what came out of each phase."""

    __slots__ = (
        "_begin",
        "_clock",
        "_mark",
        "_steps",
        "details",
        "first",
        "last",
        "loads",
        "phases",
        "seen",
    )

    timed = True
    of_image = True

    def __init__(self) -> None:
        self._clock = Clock()
        self._begin: Moment = self._clock.now()
        self._mark = self.first = self.last = self._begin
        self._steps: list[Step] = []
        self.phases: list[Phase] = []
        self.seen: dict[str, object] = {}
        self.details: dict[str, object] = {}
        # Whether a link of this process that folds has to load what folds first.
        self.loads = "pylink.phases.fold" not in sys.modules

    def step_ended(self, name: str, detail: object) -> None:
        now = self._clock.now()
        self._steps.append(Step(name, between(self._mark, now)))
        self._mark = now
        if detail is not None:
            self.details[name] = detail

    def phase_ended(self, tag: str, result: object) -> None:
        self.last = self._clock.now()
        self.phases.append(Phase(tag, between(self._begin, self.last), self._steps))
        self.seen[tag] = result

    def resume(self) -> None:
        self._begin = self._mark = self._clock.now()
        self._steps = []

    def close(self, *, failed: bool) -> None:
        self._clock.close()

    def results(self) -> Results | None:
        """The results of a successful link; None when LTO made the whole program."""
        if "read" not in self.seen:
            return None
        objects, merged = self.seen["read"], self.seen["merge"]
        placed, final = self.seen["layout"], self.seen["finalize"]
        return Results(objects, merged, placed, final)  # type: ignore[arg-type] # by their tags


def outline(record: Recorder) -> Profile:
    """The profile of a link without what its tables tell: phases, steps and the files opened."""
    job: Job = record.seen["init"]  # type: ignore[assignment] # by its tag
    profile = Profile(
        job.target.name, job.target.sm, between(record.first, record.last), record.phases
    )
    profile.created = time.time() - (time.perf_counter_ns() - record.first[0]) / 1e9
    profile.output = job.options.subject
    profile.reading, extents = _reading(record)
    if extents:
        profile.opened_names = [source.name for source in job.inputs[: len(extents) // EXTENT_SIZE]]
    profile.opened_bytes = sum(column(extents, EXTENT_SIZE, 1))
    for phase in profile.phases:
        phase.size = profile.opened_bytes
        for step in phase.steps:
            step.size, step.unit = profile.opened_bytes, "bytes"
    return profile


def profile_of(record: Recorder, results: Results) -> Profile:
    """The profile of a link, complete or not."""
    objects, _merged, placed = results.objects, results.merged, results.placed
    profile = outline(record)
    profile.names = objects.names
    profile.release = objects.release
    profile.output_bytes = 0 if results.final is None else len(results.final.image)
    folding = _folding(record)
    if folding is not None:
        profile.folding, profile.decisions = folding.result, folding.decisions
    profile.loading_ns = _loading(record, profile)
    # From sm_100 on, merge may have replaced the inputs by ones with rewritten kernels.
    file_counts, sums, kind_counts = counts.count_sections(placed)
    profile.hold(
        objects.files.column("size"),
        file_counts,
        kind_counts,
        counts.count_relocations(placed),
        _times(record.details.get("parse")),
    )
    fill_sizes(profile, FILE_COUNT.unpack(sums), results)
    return profile


def _times(table: object) -> bytes | None:
    return bytes(table) if isinstance(table, bytearray) else None


def _reading(record: Recorder) -> tuple[bytes | None, bytes]:
    """Times and extents of the files that were opened."""
    step = record.details.get("read_files")
    if not isinstance(step, tuple):
        return None, b""
    times, extents = step
    return _times(times), extents


def _loading(record: Recorder, profile: Profile) -> int:
    """Nanoseconds of fold_mercury that went into loading modules, where it was the first."""
    if profile.folding is None or not record.loads:
        return 0
    steps = [step for phase in profile.phases for step in phase.steps]
    taken = sum(step.cpu_ns for step in steps if step.name == "fold_mercury")
    # What is left of it is comparing, and reading what is compared, which takes about as long.
    return max(taken - 2 * sum(profile.folding.stats.stage_ns), 0)


def _folding(record: Recorder) -> Folding | None:
    step = record.details.get("fold_mercury")
    return step  # type: ignore[return-value] # what phases.fold reports
