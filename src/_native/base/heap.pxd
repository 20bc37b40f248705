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

cdef enum:
    HEAP_STEP = 256 << 20       # address space alone: pages come when they are touched


cdef inline void widen_heap() noexcept nogil:
    cdef void* before = NULL
    cdef size_t step = grow_heap(HEAP_STEP, &before)
    blocks.no_recycling = True
    prefer_large_pages(before, step)
