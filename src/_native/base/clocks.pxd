# Times of the items of one native function, for links that are profiled; other links read no clock.
#
# Moments are those of Python's time.perf_counter_ns, so that rows of kernels and of phases fit into
# one timeline. Reading the wall clock takes 25 ns; the processor time of a thread is a system call,
# which takes as long as a tenth of reading a small file.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from libc.stdint cimport uint64_t

cdef extern from "<time.h>" nogil:
    ctypedef int clockid_t
    ctypedef long time_t
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int clock_gettime(clockid_t clock, timespec* moment)
    clockid_t CLOCK_MONOTONIC
    clockid_t CLOCK_THREAD_CPUTIME_ID

cdef enum:
    SHORT = 20000               # nanoseconds

# The time that one item took, in nanoseconds; `lane` is the thread: 0 that of the link.
cdef packed struct TimeRow:
    uint64_t start
    uint64_t wall
    uint64_t cpu
    uint64_t lane


cdef inline uint64_t nanoseconds(clockid_t clock) noexcept nogil:
    cdef timespec moment
    clock_gettime(clock, &moment)
    return <uint64_t>moment.tv_sec * 1000000000 + <uint64_t>moment.tv_nsec


cdef inline void start_item(TimeRow* row, uint64_t lane, uint64_t* spent) noexcept nogil:
    """Begin the item of `row`, which is NULL when nobody wants to know.

    `spent` has the processor time of each lane at the end of its last item, 0 before the first:
    the threads do nothing between items.
    """
    if row != NULL:
        row.lane = lane
        if spent[lane] == 0:
            spent[lane] = nanoseconds(CLOCK_THREAD_CPUTIME_ID)
        row.start = nanoseconds(CLOCK_MONOTONIC)


cdef inline void end_item(TimeRow* row, uint64_t* spent) noexcept nogil:
    """End it. What was as short as SHORT did not wait: its wall time is its processor time."""
    cdef uint64_t now
    if row == NULL:
        return
    row.wall = row.cpu = nanoseconds(CLOCK_MONOTONIC) - row.start
    if row.wall > SHORT:
        now = nanoseconds(CLOCK_THREAD_CPUTIME_ID)
        row.cpu = min(now - spent[row.lane], row.wall) if now > spent[row.lane] else 0
        spent[row.lane] = now
    else:
        spent[row.lane] += row.cpu


cdef inline TimeRow* time_rows(bytearray times, Py_ssize_t n) except? NULL:
    """The rows of `times`, one an item; NULL when there is no such table."""
    if times is None:
        return NULL
    if PyByteArray_GET_SIZE(times) != n * <Py_ssize_t>sizeof(TimeRow):
        raise ValueError(f"{n} items need {n * sizeof(TimeRow)} bytes of times")
    return <TimeRow*>PyByteArray_AS_STRING(times)
