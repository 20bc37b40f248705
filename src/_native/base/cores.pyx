"""The number of threads that the kernels of this process use."""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

from base.threads cimport claim, release_threads

cdef extern from "base/cores.h" nogil:
    size_t pylink_core_count() noexcept
    size_t pylink_read_quota(const char* groups, const char* root) noexcept

cdef extern from "base/threads.h" nogil:
    size_t pylink_helpers
    size_t pylink_link_threads
    uint64_t pylink_bytes_per_thread


def count_cores():
    """Return how many threads this process may use: PYLINK_THREADS, or its number of processors."""
    return pylink_core_count()


def read_quota(bytes groups not None, bytes root not None):
    """Return how many processors quotas of a control group and its parents allow, rounded up."""
    # `groups` is a file such as /proc/self/cgroup, `root` where groups are mounted. 0: no quota.
    return pylink_read_quota(groups, root)


def take_threads(size_t most):
    """Reserve up to `most` free threads of this process besides the caller's; return how many."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads, count
    pylink_link_threads = 0     # so they count for the process, and any thread may return them
    count = claim(<uint64_t>-1, most + 1, most)
    pylink_link_threads = before
    return count


def return_threads(size_t count):
    """Release threads that `take_threads` reserved."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads
    pylink_link_threads = 0
    release_threads(count)
    pylink_link_threads = before


def spare_threads(size_t most, uint64_t size):
    """Return how many threads, at most `most`, this thread's link may add to move `size` bytes."""
    cdef size_t spare = claim(size, most + 1, most)
    release_threads(spare)
    return spare


def use_threads(size_t count):
    """Set how many threads this thread's links use (0: those free); return the old number."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads
    pylink_link_threads = count
    return before


def set_bytes_per_thread(uint64_t size):
    """Set how many bytes of work each further thread needs; return the old number."""
    global pylink_bytes_per_thread
    cdef uint64_t before = pylink_bytes_per_thread
    pylink_bytes_per_thread = size
    return before
