# Large buffers on large pages. A link touches each byte of its buffers once or twice, so with small
# pages of 4 KiB the system spends as long on giving out pages as the link on filling them.
#
# In a virtual machine large pages can be slower. A large page needs 2 MiB in one piece, and a
# hypervisor takes back such pieces a few seconds after they were freed. Getting one again takes 2.5
# ms instead of 0.1 ms, longer than getting the same 2 MiB as 512 small pages. So large pages are
# asked for in steps, and the first page of each step is timed. After a slow one, none are asked for
# during half a second.

from libc.stddef cimport size_t

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
    bint has_small_pages "pylink_has_small_pages"() noexcept nogil
    void note_large_pages "pylink_note_large_pages"() noexcept nogil
    size_t whole_pages "pylink_whole_pages"(size_t size) noexcept nogil
    size_t LARGE_PAGE "PYLINK_LARGE_PAGE"

cdef enum:
    PAGE = 4096                 # bytes of a small page
    LARGE_BUFFER = 4 << 20      # bytes: smaller buffers have too few large pages to gain from them
    FIRST_STEP = 16 << 20       # bytes of the first step; each next step has twice as many


cdef inline void request_large_pages(char* start, size_t size) noexcept nogil:
    """Ask the system for large pages for `size` bytes from `start` on, step by step while they pay.

    `start` and `size` are multiples of a large page's size. No byte has been written yet: the test
    of each step sets one to 0.
    """
    cdef size_t done = 0, step = FIRST_STEP
    while done < size and large_pages_pay(start + done):
        madvise(start + done, min(step, size - done), MADV_HUGEPAGE)
        done += step
        step *= 2


cdef inline void prefer_large_pages(void* start, size_t size) noexcept nogil:
    """Ask the system for large pages, if they pay, for a buffer that has not been written yet.

    A buffer of less than LARGE_BUFFER bytes stays as it is.
    """
    cdef size_t before = whole_pages(<size_t>start) - <size_t>start
    if size >= LARGE_BUFFER:
        request_large_pages(<char*>start + before, (size - before) & ~(LARGE_PAGE - 1))
