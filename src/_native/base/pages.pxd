# Large buffers on large pages: a link touches each byte of its buffers once or twice, so at 4 KiB a
# page the kernel spends as long on giving out pages as the link on filling them.

from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

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


# Blocks of memory that grow: small ones in the heap, others on large pages of their own, since a
# heap that grows step by step has none. Whoever has a block remembers its size.
cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #ifndef MAP_ANONYMOUS
    #define MAP_ANONYMOUS MAP_ANON
    #endif
    #define PYLINK_LARGE_PAGE ((size_t)2 << 20)
    static inline size_t pylink_whole_pages(size_t size) {
        return (size + PYLINK_LARGE_PAGE - 1) & ~(PYLINK_LARGE_PAGE - 1);
    }
    static inline void* pylink_map_pages(size_t size) {
        size_t whole = pylink_whole_pages(size), before;
        char* start;
        if (size > (size_t)-1 / 2)
            return NULL;
        start = (char*)mmap(NULL, whole + PYLINK_LARGE_PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == (char*)MAP_FAILED)
            return NULL;
        before = pylink_whole_pages((size_t)start) - (size_t)start;
        if (before)
            munmap(start, before);
        if (before < PYLINK_LARGE_PAGE)
            munmap(start + before + whole, PYLINK_LARGE_PAGE - before);
        madvise(start + before, whole, MADV_HUGEPAGE);
        return start + before;
    }
    """
    void* map_pages "pylink_map_pages"(size_t size) noexcept nogil
    size_t whole_pages "pylink_whole_pages"(size_t size) noexcept nogil
    int munmap(void* start, size_t size) nogil

cdef enum:
    LARGE_BLOCK = 1 << 20       # zeroing a large page takes as long as faulting in 0.5 MB


cdef inline void* block_take(size_t size) noexcept nogil:
    """A block of zeros, or NULL."""
    return map_pages(size) if size >= LARGE_BLOCK else calloc(size, 1)


cdef inline void block_free(void* block, size_t size) noexcept nogil:
    if size >= LARGE_BLOCK:
        munmap(block, whole_pages(size))
    else:
        free(block)


cdef inline void* block_widen(void* block, size_t size, size_t wider) noexcept nogil:
    """The block with room for `wider` bytes, not all zeros; NULL, and it stays as it was."""
    cdef void* moved
    if wider < LARGE_BLOCK:
        return realloc(block, wider)
    moved = map_pages(wider)
    if moved != NULL and size:
        memcpy(moved, block, size)
        block_free(block, size)
    return moved
