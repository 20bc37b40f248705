"""How many threads the kernels of this process use."""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

cdef extern from "base/cores.h" nogil:
    size_t pylink_core_count() noexcept
    size_t pylink_read_quota(const char* groups, const char* root) noexcept

cdef extern from "base/threads.h" nogil:
    size_t pylink_helpers
    size_t pylink_link_threads
    uint64_t pylink_thread_worth
    size_t claim "pylink_claim"(uint64_t size, size_t items, size_t most) noexcept
    void release_threads "pylink_release_threads"(size_t count) noexcept


def count_cores():
    """How many threads work in this process unless a link asks for more, see `cores.pyi`."""
    return pylink_core_count()


def read_quota(bytes groups, bytes root):
    """What a control group allows; see `cores.pyi`."""
    return pylink_read_quota(groups, root)


def take_threads(size_t most):
    """Take threads from the total of the process, also within a link of its own number."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads, count
    pylink_link_threads = 0     # a thread without links may return them
    count = claim(<uint64_t>-1, most + 1, most)
    pylink_link_threads = before
    return count


def return_threads(size_t count):
    """Give back what was taken, from any thread."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads
    pylink_link_threads = 0
    release_threads(count)
    pylink_link_threads = before


def spare_threads(size_t most, uint64_t size):
    """How many threads the link of this one may use besides, see `cores.pyi`."""
    cdef size_t spare = claim(size, most + 1, most)
    release_threads(spare)
    return spare


def use_threads(size_t count):
    """Have the links of this thread use so many; the number before."""
    global pylink_link_threads
    cdef size_t before = pylink_link_threads
    pylink_link_threads = count
    return before


def set_worth(uint64_t size):
    """Have a thread be worth so many bytes; the number before."""
    global pylink_thread_worth
    cdef uint64_t before = pylink_thread_worth
    pylink_thread_worth = size
    return before
