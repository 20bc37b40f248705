"""Opening the inputs: all bytes in one arena, and what is not a cubin taken apart into cubins.

This is not a phase of its own: its time counts to the phase that comes next.
"""

from __future__ import annotations

import os
import stat
import sys

from pylink._native import inputfiles
from pylink.diagnostics.errors import reason_of
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.inputs.loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.unpacking import Shared
    from pylink.options.model import Input
    from pylink.options.plan import Plan
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

UNKNOWN = 7  # as in pylink.inputs.kinds, which a link of plain cubins does not load

# Files up to so many bytes are read without a look at their beginning.
SURE_SIZE = 1 << 26


def load(sink: Sink, job: Job, timing: CsvTiming, shared: Shared | None = None) -> Loaded:
    """Read every input, and make cubins of those that are none; LinkError after any error.

    Inputs that are `shared` with other links are not read again.
    """
    opened = None if shared is None else shared.give(job)
    if opened is None:
        shared = None
        names, arena, extents = read_inputs(job, sink)
        kinds = inputfiles.classify(arena, extents)
        job.steps.done("classify")
        if not kinds:
            return load_plain(job, names, arena, extents)
        from pylink.inputs.sources import Run

        opened = [Run(arena, names, kinds, extents)]
    elif len(opened) == 1 and not any(opened[0].kinds):
        from pylink._native.sharing import compact

        return load_plain(job, opened[0].names, *compact(opened[0].arena, opened[0].extents))
    # Taking inputs apart may run a compiler, and files are not mapped for long.
    job.mapped.end(keeps=True)
    from pylink.inputs.unpacking import unpack  # plain cubins need none of it

    loaded = unpack(job, opened, timing, sink, shared)
    if loaded.libraries is not None and loaded.candidates is not None:
        from pylink.phases.borrow import borrow  # few links have libraries that lend

        loaded = borrow(loaded, loaded.libraries, timing, sink)
    job.steps.done("unpack")
    return loaded


def load_plain(job: Job, names: list[str], arena: bytes, extents: bytes) -> Loaded:
    """The link of inputs that are all cubins."""
    loaded = Loaded(job, names, arena, extents)
    if not any(SYSTEM_LIBRARY in name for name in names):
        return loaded
    from pylink.inputs.selection import select

    return select(loaded)


def read_inputs(job: Job, sink: Sink) -> tuple[list[str], bytes, bytes]:
    """Names, the arena with all bytes, and the extents; LinkError when one cannot be read."""
    names = [source.name for source in job.inputs]
    paths = paths_of(job.inputs)
    data: list[bytes | None] = [None] * len(names)
    # With what has been made since the plan was, such as the table of -time.
    written = job.plan.written(again=True)
    sizes = inputfiles.measure(paths, SURE_SIZE, list(written))
    for number in [number for number, size in enumerate(sizes) if size < 0]:
        data[number], size = measure(job.inputs[number], job.plan, sink)
        if data[number] is not None:
            paths[number] = None
        if size == 0:
            sink.report("empty-file", file=names[number])
        sizes[number] = size
    if sink.errors:
        sink.stop()
    job.steps.done("measure")
    times = job.steps.times(len(paths))
    # Observers get the cost of reading.
    mapped = None if job.steps.observers else job.mapped
    try:
        arena, extents, failed, error = inputfiles.read_files(paths, sizes, data, times, mapped)
    except MemoryError:
        name = names[sizes.index(max(sizes))]
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    if failed >= 0:
        if error:
            sink.fatal("cannot-open-input", file=names[failed])
        sink.fatal(
            "cannot-read-file", file=names[failed], reason="it became shorter while it was read"
        )
    job.steps.done("read_files", (times, extents))
    return names, arena, extents


def paths_of(inputs: Sequence[Input]) -> list[bytes | None]:
    """The paths of files; None for contents at hand, and for what can be no path."""
    # What `os.fsencode` asks for each of them.
    encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    paths: list[bytes | None] = []
    for source in inputs:
        try:
            paths.append(None if source.data is not None else source.name.encode(encoding, errors))
        except ValueError:
            paths.append(None)
    return paths


def measure(source: Input, plan: Plan, sink: Sink) -> tuple[bytes | None, int]:
    """The contents, where they are at hand or cannot be read at once, and the size in bytes."""
    if source.data is not None:
        return source.data, len(source.data)
    try:
        status = os.stat(source.name)
        plan.reads(source.name, sink, status)
        if stat.S_ISREG(status.st_mode) and status.st_size <= SURE_SIZE:
            return None, status.st_size
        return _measure_doubtful(source.name, sink)
    except (OSError, ValueError) as error:
        from pylink.diagnostics.errors import reason_of
        from pylink.diagnostics.record import note

        hint = note("file-reason", reason=reason_of(error))
        sink.fatal("cannot-open-input", file=source.name, hints=[hint])


def _measure_doubtful(name: str, sink: Sink) -> tuple[bytes | None, int]:
    """A pipe or a large file: no more of it than its beginning unless that is of a known kind.

    A pipe may never end, and a file of holes is larger than the memory that it asks for.
    """
    from pylink.files.reading import (
        HEAD_SIZE,
        MAX_SIZE,
        Incoming,
        RefusedError,
        too_large,
    )

    try:
        with Incoming(name) as stream:
            head = stream.read(HEAD_SIZE)
            if _is_unknown(head):
                return head, len(head)
            if stream.size > MAX_SIZE:
                raise too_large(MAX_SIZE)
            if stream.size:
                return None, stream.size
            data = head + stream.read(MAX_SIZE + 1 - len(head))
            if len(data) > MAX_SIZE:
                raise too_large(MAX_SIZE)
            return data, len(data)
    except RefusedError as error:
        sink.fatal("cannot-read-file", file=name, reason=reason_of(error))


def _is_unknown(head: bytes) -> bool:
    """Whether a file that starts so is of no known kind; a comment may hide the start of PTX."""
    if head.lstrip().startswith(b"/"):
        return False
    kinds = inputfiles.classify(head, bytes(8) + len(head).to_bytes(8, "little"))
    return bool(kinds) and kinds[0] == UNKNOWN
