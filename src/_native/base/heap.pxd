# The heap of a process that links many inputs and ends: its tables come and go by the megabyte, and
# at 4 KiB a page the kernel spends a tenth of the link on giving out pages and taking them back.
#
# These are settings of the whole process, for whoever owns it. Other C libraries than glibc keep
# their own way.

from libc.stddef cimport size_t

from base cimport blocks
from base.hugepages cimport prefer_large_pages

cdef extern from "base/heap.h":
    size_t grow_heap "pylink_grow_heap"(size_t step, void** before) noexcept nogil
    void return_blocks "pylink_return_blocks"(size_t size) noexcept nogil
    void share_heap "pylink_share_heap"() noexcept nogil

cdef enum:
    HEAP_STEP = 256 << 20       # address space alone: pages come when they are touched
    KEPT_BLOCK = 32 << 20       # bytes; the most that glibc takes


cdef inline void widen_heap() noexcept nogil:
    cdef void* before = NULL
    cdef size_t step = grow_heap(HEAP_STEP, &before)
    blocks.no_recycling = True
    prefer_large_pages(before, step)


cdef inline void keep_heap(bint owns_process) noexcept nogil:
    """Keep what is freed for the next link of this process, in one heap for all threads.

    A process that ends after its links sets nothing aside for the system in between: that takes
    system calls, in which threads wait for each other.
    """
    return_blocks(KEPT_BLOCK)
    share_heap()
    if owns_process:
        blocks.keeps_pages = True
