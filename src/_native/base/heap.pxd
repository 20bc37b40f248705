# The heap of a process that links many inputs and ends: its tables come and go by the megabyte, and
# at 4 KiB a page the kernel spends a tenth of the link on giving out pages and taking them back.
#
# These are settings of the whole process, for whoever owns it. Other C libraries than glibc keep
# their own way.

from libc.stddef cimport size_t

cdef extern from *:
    """
    #include <limits.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #endif
    static void pylink_widen_heap(size_t step) {
    #if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
        char *before, *after;
        void* volatile taken;                   /* compilers drop a malloc that is only freed */
        mallopt(M_MMAP_THRESHOLD, 32 << 20);    /* the most that glibc takes */
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        mallopt(M_TOP_PAD, (int)step);
        before = sbrk(0);
        taken = malloc(step / 16);              /* more than is left: the heap grows by a step */
        free(taken);
        after = sbrk(0);
        before = (char*)(((uintptr_t)before + 4095) & ~(uintptr_t)4095);
        if (after > before)
            madvise(before, (size_t)(after - before), MADV_HUGEPAGE);
    #else
        (void)step;
    #endif
    }
    """
    void widen_heap "pylink_widen_heap"(size_t step) noexcept nogil

cdef enum:
    HEAP_STEP = 256 << 20       # address space alone: pages come when they are touched
