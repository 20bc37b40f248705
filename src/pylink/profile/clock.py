"""Reads time, memory and the processor's counters at a moment of a link."""

from __future__ import annotations

import os
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from struct import Struct
from time import perf_counter_ns, process_time_ns, thread_time_ns

from pylink._native.hardware import CYCLES, INSTRUCTIONS, open_counter
from pylink.profile.phase import Cost

_COUNTER = Struct("<3Q")  # what Linux gives: see `read_counter`
# Units of `getrusage` in bytes: of peak memory, and of a block from disks.
KIB, BLOCK_SIZE = 1024, 512


class Moment:
    """The values of clocks and counters at a moment.

    Only their differences mean something, except for `peak_kib`, the peak memory so far. Times are
    in nanoseconds. `cpu_ns` is the processor time of the process, `thread_ns` that of the calling
    thread; both include compilers that have ended. Faults are page faults, and `disk_blocks` were
    read from disks.
    """

    __slots__ = (
        "cpu_ns", "cycles", "disk_blocks", "instructions", "major_faults", "minor_faults",
        "peak_kib", "thread_ns", "wall_ns",
    )  # fmt: skip

    def __init__(self, cycles: int | None, instructions: int | None) -> None:
        self.cycles, self.instructions = cycles, instructions
        usage = getrusage(RUSAGE_SELF)
        tools = getrusage(RUSAGE_CHILDREN)  # compilers that the link has run
        compiling_ns = int((tools.ru_utime + tools.ru_stime) * 1e9)
        self.wall_ns = perf_counter_ns()
        self.cpu_ns = process_time_ns() + compiling_ns
        self.thread_ns = thread_time_ns() + compiling_ns
        self.minor_faults, self.major_faults = usage.ru_minflt, usage.ru_majflt
        self.peak_kib, self.disk_blocks = usage.ru_maxrss, usage.ru_inblock


class Clock:
    """Reads the clocks and counters of this process; `close` closes the counters.

    Counters that the kernel does not provide read as None (unsupported processor, virtual machine,
    setting of kernel.perf_event_paranoid).
    """

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        # Descriptors; negative if there is no such counter.
        self._counters = [open_counter(CYCLES), open_counter(INSTRUCTIONS)]

    def now(self) -> Moment:
        """Return the values of this moment."""
        return Moment(*map(read_counter, self._counters))

    def close(self) -> None:
        for descriptor in self._counters:
            if descriptor >= 0:
                os.close(descriptor)
        self._counters = [-1, -1]


def read_counter(descriptor: int) -> int | None:
    """Return the count so far, scaled up if the counter shared its hardware; None if unknown.

    Linux gives the count, the time since the counter was opened, and the time that it counted.
    """
    if descriptor < 0:
        return None
    count: int
    count, enabled, running = _COUNTER.unpack(os.read(descriptor, _COUNTER.size))
    if running == 0:
        return None
    return count if running == enabled else count * enabled // running


def cost_between(start: Moment, end: Moment) -> Cost:
    """Return the cost of the time between two moments."""
    return Cost(
        start_ns=start.wall_ns,
        wall_ns=end.wall_ns - start.wall_ns,
        cpu_ns=end.cpu_ns - start.cpu_ns,
        minor_faults=end.minor_faults - start.minor_faults,
        major_faults=end.major_faults - start.major_faults,
        peak_bytes=end.peak_kib * KIB,
        disk_bytes=(end.disk_blocks - start.disk_blocks) * BLOCK_SIZE,
        cycles=_difference(start.cycles, end.cycles),
        instructions=_difference(start.instructions, end.instructions),
        thread_ns=end.thread_ns - start.thread_ns,
    )


def _difference(start: int | None, end: int | None) -> int | None:
    """Return the difference of two counts; None if one is unknown."""
    return None if start is None or end is None else end - start
