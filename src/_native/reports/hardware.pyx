"""Counters of the processor, if the operating system lets an ordinary process read them."""

from libc.errno cimport errno

cdef extern from "reports/hardware.h":
    int open_hardware(unsigned long long number) noexcept nogil

# PERF_COUNT_HW_CPU_CYCLES and PERF_COUNT_HW_INSTRUCTIONS of linux/perf_event.h.
CYCLES = 0
INSTRUCTIONS = 1


def open_counter(int number):
    """Open a counter, CYCLES or INSTRUCTIONS: returns a descriptor, or a negative errno."""
    cdef int descriptor = open_hardware(<unsigned long long>number)
    return descriptor if descriptor >= 0 else -errno
