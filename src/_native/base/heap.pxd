# The heap of a process that links many inputs and ends: its tables come and go by the megabyte, and
# at 4 KiB a page the kernel spends a tenth of the link on giving out pages and taking them back.
#
# These are settings of the whole process, for whoever owns it. Other C libraries than glibc keep
# their own way.

from libc.stddef cimport size_t

cimport blocks
from pages cimport prefer_large_pages

cdef extern from *:
    """
    #include <limits.h>
    #include <stdlib.h>
    #include <unistd.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #endif
    /* Takes a step, the size of which it returns; `before` is where it begins. */
    static size_t pylink_take_step(size_t step, void** before) {
    #ifdef __GLIBC__
        void* volatile taken;                   /* compilers drop a malloc that is only freed */
        mallopt(M_MMAP_THRESHOLD, 32 << 20);    /* the most that glibc takes */
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        mallopt(M_TOP_PAD, (int)step);
        *before = sbrk(0);
        taken = malloc(step / 16);              /* more than is left: the heap grows by a step */
        free(taken);
        return (size_t)((char*)sbrk(0) - (char*)*before);
    #else
        (void)step;
        (void)before;
        return 0;
    #endif
    }
    """
    size_t take_step "pylink_take_step"(size_t step, void** before) noexcept nogil

cdef enum:
    HEAP_STEP = 256 << 20       # address space alone: pages come when they are touched


cdef inline void widen_heap() noexcept nogil:
    cdef void* before = NULL
    cdef size_t taken = take_step(HEAP_STEP, &before)
    blocks.no_spares = True
    prefer_large_pages(before, taken)
