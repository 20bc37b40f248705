"""Two independent timers: of the phases of a link, and of runs of sub-tools.

`PhaseTimer` writes `<tag> time: <ms>` lines and fills `LinkResult.timings`. `CsvTiming` appends a
row per run of ptxas or cicc to the file of `-time`. Linking cubins runs neither, so such a link
writes only the header.

Both read the wall clock in microseconds and compute in binary32, as nvlink does.
"""

from __future__ import annotations

import os
import sys
import time

from pylink.diagnostics.stream import to_bytes, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    Moment = tuple[int, int]  # seconds and microseconds of the wall clock

NS_PER_MS = 1e6

# Bit of -edbg that asks for a line with the time of each phase.
TRACE_PHASES = 0x20

# The comma after `tool` has no blank before it; tools that compare the line expect that.
HEADER = (
    "source file name , phase name , phase input files , phase output file , "
    "arch , tool, metric , unit\n"
)


PRECISION = 24  # bits of the significand of a binary32


def now() -> Moment:
    """Return the wall clock as (seconds, microseconds)."""
    return divmod(time.time_ns() // 1000, 1_000_000)


def _binary32(value: float) -> float:
    """Return the value rounded to the nearest binary32, ties to even.

    Valid for 0 and between 2**-126 and 2**127. Every link needs this, and few links load `struct`,
    which has it.
    """
    numerator, denominator = value.as_integer_ratio()
    excess_bits = numerator.bit_length() - PRECISION
    if excess_bits <= 0:
        return float(value)
    quotient, remainder = divmod(numerator, 1 << excess_bits)
    middle = 1 << (excess_bits - 1)
    quotient += remainder > middle or (remainder == middle and quotient & 1)
    return (quotient << excess_bits) / denominator


def elapsed_ms(start: Moment, stop: Moment) -> float:
    """Return the milliseconds between two moments, every step rounded to binary32.

    nvlink computes float(seconds) * 1000f + float(microseconds) / 1000f. The second term may be
    negative. One operation in binary64, rounded once more, gives the binary32 result exactly.
    """
    seconds = _binary32(_binary32(stop[0] - start[0]) * 1000.0)
    fraction = _binary32(_binary32(stop[1] - start[1]) / 1000.0)
    return _binary32(seconds + fraction)


class PhaseTimer:
    """Times the phases of one link, each at its end.

    The first checkpoint starts the timer. Each later one stores the milliseconds since the previous
    one under its tag in `timings`, writes a line if there is a `stream`, and restarts the timer.
    """

    __slots__ = ("_clock", "_start", "_stream", "timings")

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], Moment] = now) -> None:
        self.timings: dict[str, float] = {}
        self._stream = stream
        self._clock = clock
        self._start: Moment | None = None

    def checkpoint(self, tag: str) -> float | None:
        """End the phase `tag`, and return its milliseconds; None for the first call."""
        start = self._start
        elapsed = None
        if start is not None:
            elapsed = elapsed_ms(start, self._clock())
            self.timings[tag] = elapsed
            if self._stream is not None:
                write(self._stream, f"{tag} time: {elapsed:f}\n")
        self._start = self._clock()
        return elapsed

    def resume(self) -> None:
        """Restart the timer: the time since the last checkpoint belongs to no phase."""
        self._start = self._clock()


class CsvTiming:
    """The table of `-time FILE`: `-` is standard output, None discards the rows.

    `complete` is False if the header could not be written.

    The constructor writes the header, except to a file that exists, be it empty; OSError if the
    file cannot be created. A row is one write on a descriptor opened for appending, so that rows of
    many processes do not mix. On a full disk the complete row is lost, and nothing else.
    """

    __slots__ = ("complete", "file")

    def __init__(self, file: str | os.PathLike[str] | None) -> None:
        self.file = None if file is None else os.fspath(file)
        self.complete = True
        if self.file == "-":
            _write_stdout(HEADER)
        elif self.file is not None and (os.path.isdir(self.file) or not os.path.exists(self.file)):
            self.complete = _create_table(self.file)

    def add_row(
        self,
        phase: str,
        *,
        source: str,
        inputs: str,
        output: str,
        arch: str,
        elapsed: float,
        tool: str = "nvlink",
    ) -> bool:
        """Append a run of the sub-tool `phase` that took `elapsed` milliseconds.

        Nothing is quoted. False if the row could not be written, OSError if the file cannot be
        opened.
        """
        if self.file is None:
            return True
        cells = (source, phase, inputs, output, arch, tool, f"{_binary32(elapsed):.4f}", "ms")
        line = " , ".join(cells) + "\n"
        if self.file == "-":
            return _write_stdout(line)
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        return _append(descriptor, line)


def _create_table(file: str) -> bool:
    """Create the file with the header in it, atomically if the file system can.

    False if the header could not be written, on a full disk.

    A process that starts at the same moment then sees no file or the complete header. On file
    systems without nameless files, one with a temporary name is linked; on those without links, the
    process that creates the file writes the header into it.

    `files.atomic` is not for this: it replaces an existing file. Here that would be one of another
    process, and perhaps the rows in it.
    """
    for create in (_link_nameless, _link_named):
        try:
            create(file)
        except FileExistsError:  # created meanwhile by another process, or a dangling link
            if os.path.isfile(file):
                return True
        except (AttributeError, OSError):  # not on every system and file system
            pass
        else:
            return True
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
    except FileExistsError:
        if os.path.isfile(file):
            return True
        # A dangling link: create its target.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    return _append(descriptor, HEADER)


def _link_nameless(file: str) -> None:
    """Write the header to a nameless file and link it to its name."""
    descriptor = os.open(os.path.dirname(file) or ".", os.O_TMPFILE | os.O_WRONLY, 0o666)
    try:
        os.write(descriptor, HEADER.encode())
        # The link in /proc must be followed, which os.link does by flag only.
        os.link(f"/proc/self/fd/{descriptor}", file, src_dir_fd=0, follow_symlinks=True)
    finally:
        os.close(descriptor)


def _link_named(file: str) -> None:
    """Write the header to a file of another name and link it; OSError also on a full disk."""
    partial = f"{file}.{os.getpid()}.{time.monotonic_ns()}"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        if not _append(descriptor, HEADER):
            raise OSError(f"{partial}: no room")
        os.link(partial, file)
    finally:
        os.unlink(partial)


def _append(descriptor: int, text: str) -> bool:
    """Write the text and close the file; return False, and write nothing, on a full disk."""
    data = to_bytes(text)
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            if os.fstat(descriptor).st_size == end:  # no other process has written more since
                os.ftruncate(descriptor, end - written)
        return written == len(data)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _write_stdout(text: str) -> bool:
    """Write the text to standard output; return whether it was written."""
    # A process that was started with standard output closed has no sys.stdout.
    return sys.stdout is not None and write(sys.stdout, text)
