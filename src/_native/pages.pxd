# Large buffers on large pages: a link touches each byte of its buffers once or twice, so at 4 KiB a
# page the kernel spends as long on giving out pages as the link on filling them.

from libc.stdint cimport uintptr_t

cdef extern from "<sys/mman.h>" nogil:
    """
    #ifndef MADV_HUGEPAGE
    #define MADV_HUGEPAGE 14    /* only Linux has it; others refuse the number, which is harmless */
    #endif
    """
    int madvise(void* start, size_t size, int advice)
    int MADV_HUGEPAGE

cdef enum:
    PAGE = 4096
    LARGE_BUFFER = 4 << 20      # below, a buffer holds too few large pages to gain from them


cdef inline void prefer_large_pages(void* start, size_t size) noexcept nogil:
    """Ask for large pages under a buffer that has not been written yet; may have no effect."""
    cdef uintptr_t first = (<uintptr_t>start + PAGE - 1) & ~<uintptr_t>(PAGE - 1)
    if size >= LARGE_BUFFER:
        madvise(<void*>first, <uintptr_t>start + size - first, MADV_HUGEPAGE)
