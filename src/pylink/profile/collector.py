"""Observes one link and creates its profile.

While the link runs, the clock is read at the ends of phases and steps, about forty times, and
native code records the times of single inputs. At the end, native code counts rows of the finished
tables.
"""

from __future__ import annotations

import sys
import time

from pylink._native import counts
from pylink.observer import Observer
from pylink.profile.clock import Clock, cost_between
from pylink.profile.counts import column
from pylink.profile.model import Profile
from pylink.profile.phase import Phase, Step
from pylink.profile.results import PhaseResults
from pylink.profile.sizes import fill_sizes
from pylink.rowformats import FILE_COUNT
from pylink.tables import EXTENT_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.decisions import Folding
    from pylink.phases.init import Job
    from pylink.profile.clock import Moment

# Column of the size in a row of extents, which has an offset and a size.
SIZE_COLUMN = 1


class Recorder(Observer):
    """Records the cost of each phase and step, and the result of each phase.

    `first` is the moment of the start, `last` that of the end of the last phase. `details` has
    what steps report at their end, by the name of the step, and `results_by_tag` has the results of
    phases. `loads_folding` is true if the link must first import the Python modules for folding.
    """

    __slots__ = (
        "_clock", "_phase_start", "_step_start", "_steps", "details", "first", "last",
        "loads_folding", "phases", "results_by_tag",
    )  # fmt: skip

    timed = True

    def __init__(self) -> None:
        self._clock = Clock()
        self._phase_start: Moment = self._clock.now()
        self._step_start = self.first = self.last = self._phase_start
        self._steps: list[Step] = []
        self.phases: list[Phase] = []
        self.results_by_tag: dict[str, object] = {}
        self.details: dict[str, object] = {}
        self.loads_folding = "pylink.phases.fold" not in sys.modules

    def step_ended(self, name: str, detail: object) -> None:
        """Record the cost of step `name`, and its `detail`: data that the result lacks, or None."""
        now = self._clock.now()
        self._steps.append(Step(name, cost_between(self._step_start, now)))
        self._step_start = now
        if detail is not None:
            self.details[name] = detail

    def phase_ended(self, tag: str, result: object) -> None:
        self.last = self._clock.now()
        self.phases.append(Phase(tag, cost_between(self._phase_start, self.last), self._steps))
        self.results_by_tag[tag] = result

    def resume(self) -> None:
        """Start the next phase now, after time that belongs to no phase."""
        self._phase_start = self._step_start = self._clock.now()
        self._steps = []

    def close(self, *, failed: bool) -> None:
        self._clock.close()

    def results(self) -> PhaseResults | None:
        """Return the results of a successful link; None if its output is that of LTO."""
        if "read" not in self.results_by_tag:
            return None
        objects, placed = self.results_by_tag["read"], self.results_by_tag["layout"]
        final = self.results_by_tag["finalize"]
        return PhaseResults(objects, placed, final)  # type: ignore[arg-type] # by their tags


def profile_outline(record: Recorder) -> Profile:
    """Return a profile without counts from tables: only phases, steps and the opened files."""
    job: Job = record.results_by_tag["init"]  # type: ignore[assignment] # by its tag
    profile = Profile(
        job.target.name, job.target.sm, cost_between(record.first, record.last), record.phases
    )
    profile.created = time.time() - (time.perf_counter_ns() - record.first.wall_ns) / 1e9
    profile.output = job.options.subject
    profile.reading, extents = _read_times(record)
    if extents:
        profile.opened_names = [source.name for source in job.inputs[: len(extents) // EXTENT_SIZE]]
    profile.opened_bytes = sum(column(extents, EXTENT_SIZE, SIZE_COLUMN))
    for phase in profile.phases:
        phase.size = profile.opened_bytes
        for step in phase.steps:
            step.size, step.unit = profile.opened_bytes, "bytes"
    return profile


def profile_of(record: Recorder, results: PhaseResults) -> Profile:
    """Return the profile of a link from its results, of which `final` may be None."""
    objects, placed = results.objects, results.placed
    profile = profile_outline(record)
    profile.names = objects.names
    profile.release = objects.release
    profile.output_bytes = 0 if results.final is None else placed.size
    folding = _folding(record)
    if folding is not None:
        profile.folding, profile.decisions = folding.result, folding.decisions
    profile.loading_ns = _loading_ns(record, profile)
    # From sm_100 on, merge may replace the inputs by ones with rewritten kernels. They are counted,
    # since `placed` refers to them.
    file_counts, sums, kind_counts = counts.count_sections(placed)
    profile.set_counts(
        objects.files.column("size"),
        file_counts,
        kind_counts,
        counts.count_relocations(placed),
        _times(record.details.get("parse")),
    )
    fill_sizes(profile, FILE_COUNT.unpack(sums), results)
    return profile


def _times(table: object) -> bytes | None:
    """Return a step's TIME rows (start, times and thread by file); None if it reported none."""
    return bytes(table) if isinstance(table, bytearray) else None


def _read_times(record: Recorder) -> tuple[bytes | None, bytes]:
    """Return TIME rows of the opened files, None if unknown, and their offsets and sizes."""
    detail = record.details.get("read_files")
    if not isinstance(detail, tuple):
        return None, b""
    times, extents = detail
    return _times(times), extents


def _loading_ns(record: Recorder, profile: Profile) -> int:
    """Return roughly how long fold_mercury imported Python modules; 0 if that was done before."""
    if profile.folding is None or not record.loads_folding:
        return 0
    steps = [step for phase in profile.phases for step in phase.steps]
    step_ns = sum(step.cpu_ns for step in steps if step.name == "fold_mercury")
    # Comparing takes `stage_ns`, and reading the compared data takes about the same time.
    return max(step_ns - 2 * sum(profile.folding.stats.stage_ns), 0)


def _folding(record: Recorder) -> Folding | None:
    """Return the report of step fold_mercury (deduplication); None if the link has no such step."""
    detail = record.details.get("fold_mercury")
    return detail  # type: ignore[return-value] # what phases.fold reports
