"""Opening the inputs: all bytes in one arena, and what is no cubin taken apart into cubins.

This is no phase of its own: its time counts to the phase that comes next.
"""

from __future__ import annotations

import errno
import os
import stat

from pylink._native import inputfiles
from pylink.inputs.loaded import SYSTEM_LIBRARY, Loaded, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from pylink.diagnostics import Sink
    from pylink.inputs.loaded import Identity
    from pylink.options import Input
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

HEADER_SIZE = 64
UNKNOWN = 7  # as in pylink.inputs.kinds, which a link of plain cubins does not load

# Files up to SURE_SIZE are read without a look at their beginning; larger ones than MAX_SIZE never.
SURE_SIZE = 1 << 26
MAX_SIZE = 1 << 32


def load(job: Job, timing: CsvTiming, sink: Sink) -> Loaded:
    """Read every input, and make cubins of those that are none; LinkError after any error."""
    names, arena, extents = read_inputs(job, sink)
    kinds = inputfiles.classify(arena, extents)
    job.steps.done("classify")
    if not kinds:
        loaded = Loaded(job, names, arena, extents)
        if not any(SYSTEM_LIBRARY in name for name in names):
            return loaded
        from pylink.inputs.selection import select  # noqa: PLC0415 -- cubins are seldom called so

        return select(loaded)
    from pylink.inputs.unpack import unpack  # noqa: PLC0415 -- plain cubins need none of it

    loaded = unpack(job, arena, extents, kinds, timing, sink)
    job.steps.done("unpack")
    return loaded


def read_inputs(job: Job, sink: Sink) -> tuple[list[str], bytes, bytes]:
    """Names, the arena with all bytes, and the extents; LinkError when one cannot be read."""
    names = [one.name for one in job.inputs]
    paths = [_path(one) for one in job.inputs]
    data: list[bytes | None] = [None] * len(names)
    file = job.options.output_file
    output = None if file is None else identity(file)
    sizes = inputfiles.measure(paths, SURE_SIZE, output)
    for number in [number for number, size in enumerate(sizes) if size < 0]:
        data[number], size = _measure(job.inputs[number], output, sink)
        if data[number] is not None:
            paths[number] = None
        if size == 0:
            sink.report("empty-file", file=names[number])
        sizes[number] = size
    if sink.errors:
        sink.stop()
    job.steps.done("measure")
    times = job.steps.times(len(paths))
    try:
        arena, extents, failed, error = inputfiles.read_files(paths, sizes, data, times)
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


def _path(one: Input) -> bytes | None:
    """The path of a file; None for contents at hand, and for what can be no path."""
    if one.data is not None:
        return None
    try:
        return os.fsencode(one.name)
    except ValueError:
        return None


def _measure(one: Input, output: Identity | None, sink: Sink) -> tuple[bytes | None, int]:
    """The contents, where they are at hand or cannot be read at once, and the size in bytes."""
    if one.data is not None:
        return one.data, len(one.data)
    try:
        status = os.stat(one.name)
        if stat.S_ISREG(status.st_mode):
            if output == (status.st_dev, status.st_ino):
                sink.fatal("output-is-input", file=one.name)
            if status.st_size <= SURE_SIZE:
                return None, status.st_size
        elif not stat.S_ISFIFO(status.st_mode):
            raise OSError(errno.EINVAL, "neither a file nor a pipe")
        with open(one.name, "rb") as stream:
            return _read_doubtful(stream, status.st_size, one.name, sink)
    except (OSError, ValueError):
        sink.fatal("cannot-open-input", file=one.name)


def _read_doubtful(stream: BinaryIO, size: int, name: str, sink: Sink) -> tuple[bytes | None, int]:
    """A pipe or a large file: no more of it than its beginning unless that is of a known kind.

    A pipe may never end, and a file of holes is larger than the memory that it asks for.
    """
    head = stream.read(HEADER_SIZE)
    if _is_unknown(head):
        return head, len(head)
    if size > MAX_SIZE:
        sink.fatal("cannot-read-file", file=name, reason=f"it has more than {MAX_SIZE} bytes")
    if size:
        return None, size
    contents = bytearray(head)
    while chunk := stream.read(1 << 20):
        contents += chunk
        if len(contents) > MAX_SIZE:
            sink.fatal("cannot-read-file", file=name, reason=f"it has more than {MAX_SIZE} bytes")
    return bytes(contents), len(contents)


def _is_unknown(head: bytes) -> bool:
    """Whether a file that starts so is of no known kind; a comment may hide the start of PTX."""
    if head.lstrip().startswith(b"/"):
        return False
    kinds = inputfiles.classify(head, bytes(8) + len(head).to_bytes(8, "little"))
    return bool(kinds) and kinds[0] == UNKNOWN
