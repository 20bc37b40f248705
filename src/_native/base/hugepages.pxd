# Large buffers on large pages. A link touches each byte of its buffers once or twice, so with small
# pages of 4 KiB the system spends as long on giving out pages as the link on filling them.
#
# In a virtual machine large pages can be slower. A large page needs 2 MiB in one piece, and a
# hypervisor takes back such pieces a few seconds after they were freed. To get one again takes 2.5
# ms instead of 0.1, which is longer than 512 small pages take. So the first large page of a buffer
# is timed, which decides about the others.

from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t

cdef extern from "<sys/mman.h>" nogil:
    """
    #ifndef MADV_HUGEPAGE
    #define MADV_HUGEPAGE 14    /* only Linux has it; others refuse it, which does no harm */
    #endif
    """
    int madvise(void* start, size_t size, int advice)
    int MADV_HUGEPAGE

cdef extern from "base/hugepages.h":
    bint large_pages_pay "pylink_large_pages_pay"(char* page) noexcept nogil
    bint collapse_page "pylink_collapse_page"(char* page) noexcept nogil
    bint may_collapse "pylink_may_collapse"() noexcept nogil
    void note_large_pages "pylink_note_large_pages"() noexcept nogil
    size_t whole_pages "pylink_whole_pages"(size_t size) noexcept nogil
    size_t LARGE_PAGE "PYLINK_LARGE_PAGE"

cdef enum:
    PAGE = 4096                 # bytes of a small page
    LARGE_BUFFER = 4 << 20      # smaller buffers have too few large pages to gain from them


cdef inline void prefer_large_pages(void* start, size_t size) noexcept nogil:
    """Ask the system for large pages, if they pay, for a buffer that has not been written yet."""
    cdef uintptr_t first = (<uintptr_t>start + PAGE - 1) & ~<uintptr_t>(PAGE - 1)
    if size >= LARGE_BUFFER and large_pages_pay(<char*>whole_pages(<size_t>start)):
        madvise(<void*>first, <uintptr_t>start + size - first, MADV_HUGEPAGE)
