"""Reads time, memory and the processor's counters at a moment of a link, as one tuple."""

from __future__ import annotations

import os
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from struct import unpack
from time import perf_counter_ns, process_time_ns, thread_time_ns

from pylink._native.hardware import CYCLES, INSTRUCTIONS, open_counter
from pylink.profile.phase import Cost

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Wall and processor nanoseconds, minor and major faults, peak KiB, blocks of 512 bytes from
    # disks, cycles, instructions, processor nanoseconds of the thread alone.
    Moment = tuple[int, int, int, int, int, int, int | None, int | None, int]


class Clock:
    """Reads the clocks and counters of this process; `close` closes the counters.

    Counters that the kernel does not provide read as None (unsupported processor, virtual machine,
    setting of kernel.perf_event_paranoid).
    """

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        self._counters = [open_counter(CYCLES), open_counter(INSTRUCTIONS)]

    def now(self) -> Moment:
        cycles, instructions = map(read_counter, self._counters)
        usage = getrusage(RUSAGE_SELF)
        tools = getrusage(RUSAGE_CHILDREN)  # compilers that the link has run
        compiling = int((tools.ru_utime + tools.ru_stime) * 1e9)
        return (
            perf_counter_ns(),
            process_time_ns() + compiling,
            usage.ru_minflt,
            usage.ru_majflt,
            usage.ru_maxrss,
            usage.ru_inblock,
            cycles,
            instructions,
            thread_time_ns() + compiling,
        )

    def close(self) -> None:
        for descriptor in self._counters:
            if descriptor >= 0:
                os.close(descriptor)
        self._counters = [-1, -1]


def read_counter(descriptor: int) -> int | None:
    """The count so far, scaled up if the counter had to share its hardware; None if unknown."""
    if descriptor < 0:
        return None
    count: int
    count, enabled, running = unpack("<3Q", os.read(descriptor, 24))
    if running == 0:
        return None
    return count if running == enabled else count * enabled // running


def cost_between(start: Moment, end: Moment) -> Cost:
    """The cost of the time between two moments."""
    return Cost(
        start_ns=start[0],
        wall_ns=end[0] - start[0],
        cpu_ns=end[1] - start[1],
        minor_faults=end[2] - start[2],
        major_faults=end[3] - start[3],
        peak_bytes=end[4] * 1024,
        disk_bytes=(end[5] - start[5]) * 512,
        cycles=_difference(start[6], end[6]),
        instructions=_difference(start[7], end[7]),
        thread_ns=end[8] - start[8],
    )


def _difference(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start
