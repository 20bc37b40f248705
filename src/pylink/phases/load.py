"""Loads the inputs: reads all bytes into one arena, and unpacks other files into cubins.

This is not a phase of its own: its time counts for the phase that follows.
"""

from __future__ import annotations

from pylink._native import inputfiles
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.inputs.loaded import Loaded
from pylink.inputs.sizes import measure_input, measure_inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.inputs.unpacking import Shared
    from pylink.options.model import Input
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming


def load(sink: Sink, job: Job, timing: CsvTiming, shared: Shared | None = None) -> Loaded:
    """Read every input and unpack those that are not cubins; LinkError after any error.

    Inputs that are `shared` with other links are not read again. `timing` gets compiler runs.
    """
    batches = None if shared is None else shared.batches_for(job)
    if batches is None:
        shared = None
        names, arena, extents = read_inputs(job, sink)
        kinds = inputfiles.classify(arena, extents)
        job.steps.end_step("classify")
        if not kinds:
            return _load_plain(job, names, arena, extents)
        from pylink.inputs.sources import SourceBatch

        batches = [SourceBatch(arena, names, kinds, extents)]
        del arena
    elif len(batches) == 1 and not any(batches[0].kinds):
        from pylink._native.sharing import compact

        return _load_plain(job, batches[0].names, *compact(batches[0].arena, batches[0].extents))
    # A mapped input has a lease: a program that opens it to write waits, up to 45 s, until it is
    # unmapped. Unpacking may run a compiler, which takes long, so inputs are copied and unmapped.
    job.mapped.end(keeps=True)
    from pylink.inputs.unpacking import unpack  # plain cubins need none of it

    loaded = unpack(job, batches, timing, sink, shared)
    del batches
    job.pages.give_back()  # the memory of files that are no longer needed
    if loaded.libraries is not None and loaded.candidates is not None:
        from pylink.phases.borrow import borrow  # few links have libraries that lend

        loaded = borrow(loaded, loaded.libraries, timing, sink)
    job.steps.end_step("unpack")
    return loaded


def _load_plain(job: Job, names: list[str], arena: bytes, extents: bytes) -> Loaded:
    """Return the inputs of a link, all of which are cubins.

    Cubins of the device runtime that no other cubin needs are omitted, except with
    --keep-system-libraries.
    """
    loaded = Loaded(job, names, arena, extents)
    if not any(SYSTEM_LIBRARY in name for name in names):
        return loaded
    from pylink.inputs.selection import select

    return select(loaded)


def read_inputs(job: Job, sink: Sink) -> tuple[list[str], bytes, bytes]:
    """Read the inputs: names, arena and extents (offset and size of each in the arena).

    LinkError if an input cannot be read.
    """

    def look(source: Input) -> tuple[bytes | None, int]:
        """Return the contents (None if not in memory) and size of an input; report an empty one."""
        data, size = measure_input(source, job.plan, sink)
        if size == 0:
            sink.report("empty-file", file=source.name)
        return data, size

    names = [source.name for source in job.inputs]
    paths, sizes, data = measure_inputs(job.inputs, job.plan, look)
    if sink.errors:
        sink.stop()
    job.steps.end_step("measure")
    times = job.steps.times(len(paths))
    # Observers measure the cost of reading, so they get no mapped files.
    mapped = None if job.steps.observers else job.mapped
    try:
        arena, extents, failed, error = inputfiles.read_files(
            paths, sizes, data, times, mapped, pages=job.pages
        )
    except MemoryError:
        name = names[sizes.index(max(sizes))]
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    if failed >= 0:
        if error:
            sink.fatal("cannot-open-input", file=names[failed])
        sink.fatal(
            "cannot-read-file", file=names[failed], reason="it became shorter while it was read"
        )
    job.steps.end_step("read_files", (times, extents))
    return names, arena, extents


def refuse_change(name: str, sink: Sink) -> NoReturn:
    """Refuse an input that was changed while it was mapped."""
    sink.fatal("cannot-read-file", file=name, reason="it changed while it was linked")
