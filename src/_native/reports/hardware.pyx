"""Counters of the processor, where the kernel gives them to an ordinary process."""

from libc.errno cimport errno

cdef extern from "reports/hardware.h":
    int open_hardware(unsigned long long number) noexcept nogil

CYCLES = 0
INSTRUCTIONS = 1


def open_counter(int number):
    cdef int descriptor = open_hardware(<unsigned long long>number)
    return descriptor if descriptor >= 0 else -errno
