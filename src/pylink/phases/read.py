"""Phase read: input files into one arena and checked tables."""

from __future__ import annotations

import errno
import os
import stat

from pylink._native import elfread, notes
from pylink.phases.faults import report_fault
from pylink.sections import rules
from pylink.tables import FILE
from pylink.tables import rows as table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from pylink.diagnostics import Sink
    from pylink.options import Input
    from pylink.phases.init import Job


ELF_MAGIC = b"\x7fELF"
HEADER_SIZE = 64

# Files up to SURE_SIZE are read without a look at their beginning; larger ones than MAX_SIZE never.
SURE_SIZE = 1 << 26
MAX_SIZE = 1 << 32


class Objects:
    """The inputs: `arena` holds their bytes; the tables are packed FileRow, SectionRow, SymbolRow.

    `names` are the inputs' names by file number.
    """

    __slots__ = ("arena", "files", "job", "names", "sections", "symbols")

    def __init__(
        self,
        job: Job,
        names: list[str],
        arena: bytes,
        files: bytes,
        sections: bytes,
        symbols: bytes,
    ) -> None:
        self.job = job
        self.names = names
        self.arena = arena
        self.files = files
        self.sections = sections
        self.symbols = symbols


def read(job: Job, sink: Sink) -> Objects | None:
    """Read and check every input; after errors the result is None."""
    paths: list[bytes | None] = []
    sizes: list[int] = []
    data: list[bytes | None] = []
    output = _identity(job.options.output_file)
    for one in job.inputs:
        contents, size = _measure(one, output, sink)
        if size == 0:
            sink.report("empty-file", file=one.name)
        paths.append(None if contents is not None else os.fsencode(one.name))
        sizes.append(size)
        data.append(contents)
    if sink.errors:
        return None
    try:
        arena, extents, failed, error = elfread.read_files(paths, sizes, data)
    except MemoryError:
        largest = sizes.index(max(sizes))
        name = job.inputs[largest].name
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    if failed >= 0:
        name = job.inputs[failed].name
        if error:
            sink.fatal("cannot-open-input", file=name)
        sink.fatal("cannot-read-file", file=name, reason="it became shorter while it was read")
    files, sections, symbols, fault = elfread.parse(arena, extents, rules.compiled())
    names = [one.name for one in job.inputs]
    if fault:
        report_fault(fault, arena, files, sections, extents, names, sink)
        return None
    specific = notes.specific_files(arena, sections, len(names))
    _check_targets(job, names, files, specific, sink)
    return Objects(job, names, arena, files, sections, symbols)


def _identity(path: str | None) -> tuple[int, int] | None:
    """Device and inode of a regular file that the output would replace."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _measure(one: Input, output: tuple[int, int] | None, sink: Sink) -> tuple[bytes | None, int]:
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
    """A pipe or a large file: no more of it than its beginning unless that is ELF.

    A pipe may never end, and a file of holes is larger than the memory that it asks for.
    """
    head = stream.read(HEADER_SIZE)
    if not head.startswith(ELF_MAGIC):
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


def _check_targets(job: Job, names: list[str], files: bytes, specific: bytes, sink: Sink) -> None:
    """Refuse inputs that the target cannot run."""
    for number, row in enumerate(table_rows(files, FILE)):
        sm = row[7] >> 8 & 0xFF
        if job.target.accepts(sm, bool(specific[number])):
            continue
        if job.target.limits(sm):
            sink.report("output-limited", file=names[number], arch=str(job.target.sm))
        sink.fatal("arch-mismatch", file=names[number], arch=job.options.arch)
