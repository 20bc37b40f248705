# Large buffers on large pages: a link touches each byte of its buffers once or twice, so at 4 KiB a
# page the kernel spends as long on giving out pages as the link on filling them.
#
# In a virtual machine it can be the other way round. A large page needs 2 MiB in one piece, which
# is what a hypervisor takes back a few seconds after it was freed; getting it again takes 2.5 ms
# instead of 0.1, more than 512 small pages out of pieces that nobody takes. So the first large page
# of a buffer is timed, and tells how the others are asked for.

from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t

cdef extern from "<sys/mman.h>" nogil:
    """
    #ifndef MADV_HUGEPAGE
    #define MADV_HUGEPAGE 14    /* only Linux has it; others refuse the number, which is harmless */
    #endif
    """
    int madvise(void* start, size_t size, int advice)
    int MADV_HUGEPAGE

cdef extern from "base/hugepages.h":
    bint large_pages_pay "pylink_large_pages_pay"(char* page) noexcept nogil
    bint small_pages_lose "pylink_small_pages_lose"(char* page) noexcept nogil
    bint took_small_pages "pylink_took_small_pages"
    size_t whole_pages "pylink_whole_pages"(size_t size) noexcept nogil
    size_t LARGE_PAGE "PYLINK_LARGE_PAGE"

cdef enum:
    PAGE = 4096
    LARGE_BUFFER = 4 << 20      # below, a buffer holds too few large pages to gain from them


cdef inline void prefer_large_pages(void* start, size_t size) noexcept nogil:
    """Ask for large pages, if they pay, under a buffer that has not been written yet."""
    cdef uintptr_t first = (<uintptr_t>start + PAGE - 1) & ~<uintptr_t>(PAGE - 1)
    if size >= LARGE_BUFFER and large_pages_pay(<char*>whole_pages(<size_t>start)):
        madvise(<void*>first, <uintptr_t>start + size - first, MADV_HUGEPAGE)
