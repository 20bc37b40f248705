# Times that a native function spends on each of its items, such as files, for links that are
# profiled. Other links do not time their items.
#
# Points in time are those of Python's time.perf_counter_ns, so that rows of native functions and of
# phases fit into one timeline. Reading the wall clock takes 25 ns. Reading the processor time of a
# thread is a system call: it takes a tenth of the time in which a small file is read. So it is not
# read for short items (`end_item`).

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from libc.stdint cimport uint64_t

cdef extern from "<time.h>" nogil:
    ctypedef int clockid_t
    clockid_t CLOCK_MONOTONIC
    clockid_t CLOCK_THREAD_CPUTIME_ID

cdef extern from "base/clocks.h":
    uint64_t nanoseconds "pylink_nanoseconds"(clockid_t clock) noexcept nogil

cdef enum:
    SHORT = 20000               # ns: an item that takes at most this has waited for nothing

# The time that one item, such as a file, took, in nanoseconds.
cdef packed struct TimeRow:
    uint64_t start              # point in time, of CLOCK_MONOTONIC
    uint64_t wall               # duration
    uint64_t cpu                # processor time
    uint64_t lane               # number of the thread; 0 is the thread of the link


cdef inline void start_item(TimeRow* row, uint64_t lane, uint64_t* spent) noexcept nogil:
    """Begin timing an item in `row`; do nothing if it is NULL, as in a link without a profile.

    `lane` is the number of this thread. `spent` has, by thread, the processor time at the end of
    its last item, 0 before the first. The next item begins at that processor time, since threads do
    nothing between items.
    """
    if row != NULL:
        row.lane = lane
        if spent[lane] == 0:
            spent[lane] = nanoseconds(CLOCK_THREAD_CPUTIME_ID)
        row.start = nanoseconds(CLOCK_MONOTONIC)


cdef inline void end_item(TimeRow* row, uint64_t* spent) noexcept nogil:
    """End timing the item of `row`; if it took at most SHORT, all of that is processor time.

    `spent` is the argument of `start_item`, and gets the new processor time of this thread.
    """
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


cdef inline TimeRow* time_rows(bytearray times, Py_ssize_t count) except? NULL:
    """Return `times` as `count` rows, or NULL if it is None; ValueError if it has another size."""
    if times is None:
        return NULL
    if PyByteArray_GET_SIZE(times) != count * <Py_ssize_t>sizeof(TimeRow):
        raise ValueError(f"{count} items need {count * sizeof(TimeRow)} bytes of times")
    return <TimeRow*>PyByteArray_AS_STRING(times)
