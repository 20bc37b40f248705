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

# Steps and phases that copy or read each byte of the input or output once.
MOVING_STEPS = ("read_files", "write_contents")
MOVING_PHASES = ("write",)
# Phases that use no files.
COMPUTING_PHASES = ("merge", "layout", "relocate", "finalize")
# Share of their processor time that is proportional to bytes; opening files is not.
MOVING_SHARE = 0.7
# The step that only rebuilds debug sections.
REBUILDING = "rebuild_debug"
FOLDING = ("find_ties", "fold_mercury")

# The first section is produced by -G only, the second one by -G and -lineinfo only.
DEBUG_INFO, DEBUG_LINE = b".debug_info", b".debug_line"
# The option that produced the debug data of an input; frame data needs no option.
FULL, LINES, ALWAYS = "-G", "-lineinfo", "always"

# Number of repeated measurements of reading and writing for the copy floor.
FLOOR_TURNS = 2


def steps_of(profile: Profile) -> dict[str, Step]:
    """The steps of all phases, by name."""
    return {step.name: step for phase in profile.phases for step in phase.steps}


def debug_ns(profile: Profile) -> int:
    """Nanoseconds spent on debug bytes: their share, by size, of the time for moving bytes."""
    debug = sum(file.debug_bytes for file in profile.files)
    if not debug or not profile.input_bytes:
        return 0
    steps = steps_of(profile)
    moving = sum(steps[name].cpu_ns for name in MOVING_STEPS if name in steps)
    moving += sum(phase.cpu_ns for phase in profile.phases if phase.tag in MOVING_PHASES)
    rebuilding = steps[REBUILDING].cpu_ns if REBUILDING in steps else 0
    return int(MOVING_SHARE * moving * debug / profile.input_bytes) + rebuilding


def folding_ns(profile: Profile) -> int:
    """Nanoseconds of looking for duplicates, without loading the modules for it."""
    steps = steps_of(profile)
    step_ns = sum(steps[name].cpu_ns for name in FOLDING if name in steps)
    return max(step_ns - profile.loading_ns, 0)


def disk_wait_ns(profile: Profile) -> int:
    """Nanoseconds that reading waited for disks, without delays by other programs.

    A busy machine stretches all phases beyond their processor time. Phases that use no files show
    by how much.
    """
    if not any(phase.tag == "read" for phase in profile.phases):
        return 0
    computing = [phase for phase in profile.phases if phase.tag in COMPUTING_PHASES]
    busy = sum(phase.cpu_ns for phase in computing)
    stretch = max(sum(phase.wall_ns for phase in computing) / busy, 1.0) if busy else 1.0
    read = reading(profile)
    return max(int(read.wall_ns - stretch * read.cpu_ns), 0)


def reading(profile: Profile) -> Cost:
    """The cost of reading the inputs: that of the step, else of the phase."""
    steps = steps_of(profile)
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
    """The least wall time of reading the inputs and writing the output.

    The link did both once. They are repeated `FLOOR_TURNS` times, into an unnamed temporary file.
    """
    steps = steps_of(profile)
    reading = [steps["read_files"].wall_ns] if "read_files" in steps else [0]
    writing = [sum(phase.wall_ns for phase in profile.phases if phase.tag == "write")]
    if results is None:
        return reading[0] + writing[0]
    objects = results.objects
    inputs = objects.job.inputs[: len(objects.names)]
    names: list[bytes | None] = []
    # Estimated only for plain cubins: other files are read in another way.
    if not objects.source_numbers and all(source.data is None for source in inputs):
        names = [os.fsencode(source.name) for source in inputs]
    sizes = objects.files.column("size")
    directory = os.path.dirname(profile.output or "") or "."
    for _ in range(FLOOR_TURNS):
        if names:
            begun = time.perf_counter_ns()
            _, _, failed, _ = inputfiles.read_files(names, sizes, [None] * len(names), None)
            if failed < 0:
                reading.append(time.perf_counter_ns() - begun)
        if results.final is not None and profile.output is not None:
            try:
                with tempfile.TemporaryFile(dir=directory) as stream:
                    begun = time.perf_counter_ns()
                    os.write(stream.fileno(), results.final.image)
                    writing.append(time.perf_counter_ns() - begun)
            except OSError:
                break
    return min(reading) + min(writing)
