"""Estimates how much a piece of advice would save, from the figures of one link.

Estimates are processor time, since advice does not remove delays by a busy machine or a cold cache.
Rules that show an estimate explain it, and `benchmarks/bench_advice.py` follows the advice and
measures.
"""

from __future__ import annotations

import os
import tempfile
import time

from pylink._native import inputfiles
from pylink.facts.sectionkinds import DEBUG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.profile.model import Profile
    from pylink.profile.phase import Cost, Step
    from pylink.profile.results import PhaseResults

# Steps and phases whose work is to copy or read each byte of the inputs or the output once.
MOVING_STEPS = ("read_files", "write_contents")
MOVING_PHASES = ("write",)
# Phases that use no files.
COMPUTING_PHASES = ("merge", "layout", "relocate", "finalize")
# Share of the processor time of MOVING_STEPS and MOVING_PHASES that is proportional to bytes;
# opening files is not.
MOVING_SHARE = 0.7
# The step that only rebuilds debug sections.
REBUILDING_STEP = "rebuild_debug"
# Steps that look for duplicate Mercury sections.
FOLDING_STEPS = ("find_ties", "fold_mercury")

# Names of debug sections: the first is written for -G only, the second for -G and -lineinfo only.
DEBUG_INFO, DEBUG_LINE = b".debug_info", b".debug_line"
# The option that produced the debug data of an input; frame data needs no option.
FULL, LINES, ALWAYS = "-G", "-lineinfo", "always"

# Number of repeated measurements for the copy floor: the least time to read inputs and write the
# output.
FLOOR_TURNS = 2


def _steps_of(profile: Profile) -> dict[str, Step]:
    """Return the steps of all phases, by name."""
    return {step.name: step for phase in profile.phases for step in phase.steps}


def debug_ns(profile: Profile) -> int:
    """Return the processor time for debug bytes: their share of moving bytes, and rebuilding."""
    debug_bytes = sum(file.debug_bytes for file in profile.files)
    if not debug_bytes or not profile.input_bytes:
        return 0
    steps = _steps_of(profile)
    moving_ns = sum(steps[name].cpu_ns for name in MOVING_STEPS if name in steps)
    moving_ns += sum(phase.cpu_ns for phase in profile.phases if phase.tag in MOVING_PHASES)
    rebuilding_ns = steps[REBUILDING_STEP].cpu_ns if REBUILDING_STEP in steps else 0
    return int(MOVING_SHARE * moving_ns * debug_bytes / profile.input_bytes) + rebuilding_ns


def folding_ns(profile: Profile) -> int:
    """Return the processor time of looking for duplicates, without imports of Python modules."""
    steps = _steps_of(profile)
    step_ns = sum(steps[name].cpu_ns for name in FOLDING_STEPS if name in steps)
    return max(step_ns - profile.loading_ns, 0)


def disk_wait_ns(profile: Profile) -> int:
    """Return the nanoseconds that reading waited for disks, without delays by other programs.

    A busy machine makes the wall time of all phases longer than their processor time. Phases that
    use no files show by how much, since they do not wait for disks.
    """
    if not any(phase.tag == "read" for phase in profile.phases):
        return 0
    computing = [phase for phase in profile.phases if phase.tag in COMPUTING_PHASES]
    cpu_ns = sum(phase.cpu_ns for phase in computing)
    stretch = max(sum(phase.wall_ns for phase in computing) / cpu_ns, 1.0) if cpu_ns else 1.0
    read = reading_cost(profile)
    return max(int(read.wall_ns - stretch * read.cpu_ns), 0)


def reading_cost(profile: Profile) -> Cost:
    """Return the cost of the step that reads the inputs, or of the phase if it has no such step."""
    steps = _steps_of(profile)
    return steps["read_files"].cost if "read_files" in steps else profile["read"].cost


def debug_options(results: PhaseResults) -> dict[int, str]:
    """Map the number of each input with debug data to the option that produced it."""
    objects = results.objects
    options: dict[int, str] = {}
    for row in objects.sections:
        if row.kind != DEBUG or not row.size:
            continue
        name = objects.arena[row.name : row.name + row.name_size]
        if name == DEBUG_INFO:
            options[row.file] = FULL
        elif name == DEBUG_LINE and options.get(row.file) != FULL:
            options[row.file] = LINES
        else:
            options.setdefault(row.file, ALWAYS)
    return options


def copy_floor_ns(profile: Profile, results: PhaseResults | None) -> int:
    """Return the least wall time in nanoseconds of reading the inputs and writing the output.

    The link did both once. With `results`, each is repeated here `FLOOR_TURNS` times if possible:
    inputs are read again if all are plain cubins in files; an output that was written goes to an
    unnamed temporary file.
    """
    steps = _steps_of(profile)
    reading_times = [steps["read_files"].wall_ns] if "read_files" in steps else [0]
    writing_times = [sum(phase.wall_ns for phase in profile.phases if phase.tag == "write")]
    if results is None:
        return reading_times[0] + writing_times[0]
    objects = results.objects
    inputs = objects.job.inputs[: len(objects.names)]
    names: list[bytes | None] = []
    # Only plain cubins are read again here: other files are read in another way.
    if not objects.source_numbers and all(source.data is None for source in inputs):
        names = [os.fsencode(source.name) for source in inputs]
    sizes = objects.files.column("size")
    directory = os.path.dirname(profile.output or "") or "."
    for _ in range(FLOOR_TURNS):
        if names:
            start = time.perf_counter_ns()
            _, _, failed_file, _ = inputfiles.read_files(names, sizes, [None] * len(names), None)
            if failed_file < 0:
                reading_times.append(time.perf_counter_ns() - start)
        if results.final is not None and profile.output is not None:
            try:
                with tempfile.TemporaryFile(dir=directory) as stream:
                    start = time.perf_counter_ns()
                    os.write(stream.fileno(), results.final.image)
                    writing_times.append(time.perf_counter_ns() - start)
            except OSError:
                break
    return min(reading_times) + min(writing_times)
