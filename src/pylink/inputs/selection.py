"""Selects the cubins that a link takes."""

from __future__ import annotations

from pylink._native import selection
from pylink.facts.picknumbers import Demand
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.inputs.loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Sources
    from pylink.phases.init import Job


def is_system(job: Job, name: str) -> bool:
    """Return whether the link treats a file with this name as the device runtime library."""
    return SYSTEM_LIBRARY in name and not job.options.keep_system_libraries


def find_system(job: Job, names: list[str]) -> set[int]:
    """Return the numbers of the files for which `is_system` holds."""
    # Most links have no such file; searching the joined names takes a hundredth of the time.
    if job.options.keep_system_libraries or SYSTEM_LIBRARY not in "\n".join(names):
        return set()
    return {number for number, name in enumerate(names) if SYSTEM_LIBRARY in name}


def count_before_runtime(job: Job, names: list[str], demands: bytes) -> int:
    """Return how many of these files come before those of the device runtime library.

    0 if the link may take a file of the library, or of an archive, for another reason than that a
    name is undefined at the end: some such file is not last, or the library is an input like any
    other. `demands` has a Demand for each file.
    """
    system = find_system(job, names)
    count = len(names) - len(system)
    is_last = bool(system) and min(system) == count and not any(demands[:count])
    return count if is_last else 0


def select(loaded: Loaded, sources: Sources | None = None, lent: bytes = b"") -> Loaded:
    """Return the link with only the cubins that it takes; `sources` is None for plain cubins.

    The result of LTO has the source number after all sources, and is always taken. Modules that are
    borrowed from shared libraries have the numbers after that; `lent` has a Demand for each.
    """
    job, source_numbers = loaded.job, loaded.source_numbers
    count = len(loaded.names)
    demand = bytearray(count)
    groups = bytes(4 * count)
    if sources is not None:
        demands = sources.demands + bytes([Demand.ALWAYS]) + lent
        demand = bytearray(map(demands.__getitem__, source_numbers))
    for number in find_system(job, loaded.names):
        demand[number] = Demand.SYSTEM
    if not any(demand):
        return loaded
    if sources is not None and sources.groups.strip(b"\0"):
        rows = sources.groups + bytes(4 * (1 + len(lent)))
        groups = b"".join([rows[4 * source : 4 * source + 4] for source in source_numbers])
    selected = selection.select(
        loaded.arena, loaded.extents, bytes(demand), groups, relocatable=not job.executable
    )
    taken_count = selected.count(1)
    if selected.startswith(b"\1" * taken_count):  # as usual, taken files come first
        names, numbers_taken = loaded.names[:taken_count], source_numbers[:taken_count]
        extents = loaded.extents[: 16 * taken_count]
    else:
        numbers = [number for number, take in enumerate(selected) if take]
        names = [loaded.names[number] for number in numbers]
        numbers_taken = [source_numbers[number] for number in numbers if source_numbers]
        extents = b"".join([loaded.extents[16 * row : 16 * row + 16] for row in numbers])
    return Loaded(
        job,
        names,
        loaded.arena,
        extents,
        source_numbers=numbers_taken,
        modules=loaded.modules,
        references=loaded.references,
    )


def warn_of_skipped(loaded: Loaded, sources: Sources, sink: Sink) -> None:
    """Report, as nvlink does, the unused libraries that are not archives for the host."""
    skipped = [
        number for number, source in enumerate(loaded.job.inputs) if source.skipped is not None
    ]
    if not skipped:
        return
    used = {
        sources.group(source_number)
        for source_number in loaded.source_numbers
        if source_number < len(sources)
    }
    for number in skipped:
        source = loaded.job.inputs[number]
        if source.skipped is not None and number + 1 not in used:
            from pylink.inputs.archivehost import report_skipped
            from pylink.inputs.hostmachine import host_machine

            job = loaded.job
            machine = host_machine(job.options)
            report_skipped(source.name, source.skipped, machine, sink, job.plan.root)
