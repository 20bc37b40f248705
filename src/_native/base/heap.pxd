# Settings of the heap for a whole process, for programs that only link. Tables of a link are
# megabytes of memory that come and go. With pages of 4 KiB the system spends a tenth of the link on
# giving out pages and taking them back.
#
# `widen_heap` is for a process that links many inputs and ends, `keep_heap` for one that links
# several times. Only glibc's heap has such settings.

from libc.stddef cimport size_t

from base cimport blocks
from base.hugepages cimport (
    LARGE_BUFFER, LARGE_PAGE, MADV_HUGEPAGE, large_pages_pay, madvise, whole_pages,
)

cdef extern from "base/heap.h":
    size_t grow_heap "pylink_grow_heap"(size_t step, void** before) noexcept nogil
    void return_blocks "pylink_return_blocks"(size_t size) noexcept nogil
    void share_heap "pylink_share_heap"() noexcept nogil

cdef enum:
    # Bytes of address space by which `widen_heap` grows the heap. Only touched pages take memory.
    HEAP_STEP = 256 << 20
    # Freed blocks of malloc of this size (bytes) and larger return to the system, others are kept.
    # glibc allows no larger limit.
    KEPT_BLOCK = 32 << 20


cdef inline void widen_heap() noexcept nogil:
    """Grow the heap by a large step, on large pages if they pay, and recycle no pages.

    Only the first large page is timed (hugepages.pxd), since most of the step stays unused.
    """
    cdef void* before = NULL
    cdef size_t step = grow_heap(HEAP_STEP, &before)
    cdef char* first = <char*>whole_pages(<size_t>before)
    blocks.no_recycling = True
    if step >= LARGE_BUFFER and large_pages_pay(first):
        madvise(first, step - LARGE_PAGE, MADV_HUGEPAGE)


cdef inline void keep_heap(bint owns_process) noexcept nogil:
    """Keep what is freed for the next link of this process, in one heap for all threads.

    With `owns_process`, the process ends after its device-link step. Then the system may not take
    back recycled pages between links: to allow that needs system calls, in which threads wait for
    each other.
    """
    return_blocks(KEPT_BLOCK)
    share_heap()
    if owns_process:
        blocks.keeps_pages = True
