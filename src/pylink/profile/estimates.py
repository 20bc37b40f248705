"""What following a piece of advice would save, estimated from one link's own figures.

Estimates are processor time: what a busy machine or a cold cache adds is not a gain of the advice.
Each says how it was made where rules state it, and `benchmarks/bench_advice.py` does what the
advice says and measures.
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
    from pylink.profile.results import Results

# Steps that handle each byte of the input or of the output once, and phases that do so.
MOVING_STEPS = ("read_files", "write_contents")
MOVING_PHASES = ("write",)
# Phases that touch no file.
COMPUTING_PHASES = ("merge", "layout", "relocate", "finalize")
# Part of their processor time that grows with the bytes; the rest is opening files and the like.
MOVED = 0.7
# The step that does nothing but write debug sections anew.
REBUILDING = "rebuild_debug"
FOLDING = ("find_ties", "fold_mercury")

# What only -G makes, and what of the rest only -lineinfo makes.
DEBUG_INFO, DEBUG_LINE = b".debug_info", b".debug_line"
# Inputs by the option that their debug data comes from; frames need none.
FULL, LINES, ALWAYS = "-G", "-lineinfo", "always"

# How often reading and writing are measured again for the copy floor.
FLOOR_TURNS = 2


def steps_of(profile: Profile) -> dict[str, Step]:
    """The steps of all phases, by name."""
    return {step.name: step for phase in profile.phases for step in phase.steps}


def debug_ns(profile: Profile) -> int:
    """Nanoseconds spent on debug bytes: their part of what moves bytes, by size."""
    debug = sum(file.debug_bytes for file in profile.files)
    if not debug or not profile.input_bytes:
        return 0
    steps = steps_of(profile)
    moving = sum(steps[name].cpu_ns for name in MOVING_STEPS if name in steps)
    moving += sum(phase.cpu_ns for phase in profile.phases if phase.tag in MOVING_PHASES)
    rebuilding = steps[REBUILDING].cpu_ns if REBUILDING in steps else 0
    return int(MOVED * moving * debug / profile.input_bytes) + rebuilding


def folding_ns(profile: Profile) -> int:
    """Nanoseconds that looking for copies takes, without loading the modules that do it."""
    steps = steps_of(profile)
    taken = sum(steps[name].cpu_ns for name in FOLDING if name in steps)
    return max(taken - profile.loading_ns, 0)


def disk_wait_ns(profile: Profile) -> int:
    """Nanoseconds that reading waited for disks, as far as other phases did not wait as long.

    A busy machine makes each phase longer than its processor time; by how much, those tell that
    read and write no files.
    """
    if not any(phase.tag == "read" for phase in profile.phases):
        return 0
    computing = [phase for phase in profile.phases if phase.tag in COMPUTING_PHASES]
    busy = sum(phase.cpu_ns for phase in computing)
    stretch = max(sum(phase.wall_ns for phase in computing) / busy, 1.0) if busy else 1.0
    read = reading(profile)
    return max(int(read.wall_ns - stretch * read.cpu_ns), 0)


def reading(profile: Profile) -> Cost:
    """What reading the inputs took; all of the phase where no step says so."""
    steps = steps_of(profile)
    return steps["read_files"].cost if "read_files" in steps else profile["read"].cost


def debug_options(results: Results) -> dict[int, str]:
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


def copy_floor_ns(profile: Profile, results: Results | None) -> int:
    """The least wall time that reading the inputs and writing the output took.

    The link did both once; they are done again `FLOOR_TURNS` times, into a file that nobody sees.
    """
    steps = steps_of(profile)
    reading = [steps["read_files"].wall_ns] if "read_files" in steps else [0]
    writing = [sum(phase.wall_ns for phase in profile.phases if phase.tag == "write")]
    if results is None:
        return reading[0] + writing[0]
    objects = results.objects
    inputs = objects.job.inputs[: len(objects.names)]
    names: list[bytes | None] = []
    # Only files that are cubins as they stand: others were read in another way.
    if not objects.source_numbers and all(source.data is None for source in inputs):
        names = [os.fsencode(source.name) for source in inputs]
    sizes = objects.files.column("size")
    folder = os.path.dirname(profile.output or "") or "."
    for _ in range(FLOOR_TURNS):
        if names:
            begun = time.perf_counter_ns()
            _, _, failed, _ = inputfiles.read_files(names, sizes, [None] * len(names), None)
            if failed < 0:
                reading.append(time.perf_counter_ns() - begun)
        if results.final is not None and profile.output is not None:
            try:
                with tempfile.TemporaryFile(dir=folder) as stream:
                    begun = time.perf_counter_ns()
                    os.write(stream.fileno(), results.final.image)
                    writing.append(time.perf_counter_ns() - begun)
            except OSError:
                break
    return min(reading) + min(writing)
