# Blocks of memory that grow: small ones in the heap, others on large pages of their own, since a
# heap that grows step by step has none. Whoever has a block remembers its size.
#
# Pages that nobody needs any more stay with the process. The next block of this link or of the
# next link recycles them: new memory is most of what a large link waits for (base/hugepages.pxd).
# The kernel takes them when memory is short, and a child process has none of their contents. A
# process whose address space is limited keeps none, nor does one that ends after a link.

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from base.hugepages cimport LARGE_PAGE, large_pages_pay, madvise, MADV_HUGEPAGE, whole_pages

cdef extern from "base/blocks.h":
    uint64_t see_run "pylink_see_run"(size_t at) noexcept nogil
    uint64_t take_run "pylink_take_run"(size_t at) noexcept nogil
    bint put_run "pylink_put_run"(size_t at, uint64_t run) noexcept nogil
    bint space_is_limited "pylink_space_is_limited"() noexcept nogil
    bint set_aside "pylink_set_aside"(char* start, size_t size) noexcept nogil
    bint bring_back "pylink_bring_back"(char* start, size_t size) noexcept nogil
    size_t move_pages "pylink_move_pages"(char* start, size_t size, char* to) noexcept nogil
    char* new_pages "pylink_new_pages"(size_t size) noexcept nogil
    int munmap(void* start, size_t size) nogil
    bint no_recycling "pylink_no_recycling"   # set once, before there are threads
    size_t RECYCLED_RUNS "PYLINK_RECYCLED_RUNS"

cdef enum:
    LARGE_BLOCK = 1 << 20       # zeroing a large page takes as long as faulting in 0.5 MB
    MOST_RECYCLED = 256         # pages; the tables of a link of 1,600 inputs take 40, of 10,000 300


cdef inline void drop_recycled() noexcept nogil:
    cdef size_t i
    cdef uint64_t run
    for i in range(RECYCLED_RUNS):
        run = take_run(i)
        if run:
            munmap(<void*>(run - run % LARGE_PAGE), run % LARGE_PAGE * LARGE_PAGE)


cdef inline void give_pages(char* start, size_t size) noexcept nogil:
    """Give up whole pages: to be recycled, or to the kernel."""
    cdef size_t count = size // LARGE_PAGE, run = 0, i
    for i in range(RECYCLED_RUNS):
        run += see_run(i) % LARGE_PAGE
    if space_is_limited():
        drop_recycled()     # of before it was
    elif not no_recycling and run + count <= MOST_RECYCLED and set_aside(start, size):
        for i in range(RECYCLED_RUNS):
            if see_run(i) == 0 and put_run(i, <uint64_t>start + count):
                return
    munmap(start, size)


cdef inline size_t reuse_pages(char* start, size_t size) noexcept nogil:
    """Put recycled pages under the beginning of a room; how many bytes have them, not zeros."""
    cdef size_t done = 0, have, used, moved, i
    cdef uint64_t run
    cdef char* first
    for i in range(RECYCLED_RUNS):
        if done == size:
            break
        run = take_run(i) if see_run(i) else 0
        if run == 0:
            continue
        have = run % LARGE_PAGE * LARGE_PAGE
        first = <char*>(run - run % LARGE_PAGE)
        used = min(have, size - done)
        if used < have:
            give_pages(first + used, have - used)
        moved = move_pages(first, used, start + done) if bring_back(first, used) else 0
        if moved < used:
            munmap(first + moved, used - moved)
        done += moved
    return done


cdef inline char* find_room(size_t size) noexcept nogil:
    """Address space for whole pages, or NULL."""
    cdef char* start = NULL
    if size <= <size_t>-1 // 2:
        start = new_pages(size)
        if start == NULL:
            drop_recycled()
            start = new_pages(size)
    return start


cdef inline size_t fill_room(char* start, size_t size) noexcept nogil:
    """Have pages in a room; how many bytes from its beginning on are not zeros."""
    cdef size_t used = reuse_pages(start, size)
    if used < size and large_pages_pay(start + used):
        madvise(start + used, size - used, MADV_HUGEPAGE)
    return used


cdef inline void* block_zeros(size_t size) noexcept nogil:
    """A block of zeros, or NULL."""
    cdef char* start
    if size < LARGE_BLOCK:
        return calloc(size, 1)
    start = find_room(whole_pages(size))
    if start != NULL:
        memset(start, 0, fill_room(start, whole_pages(size)))
    return start


cdef inline void block_cut(void* block, size_t size, size_t needed) noexcept nogil:
    """Give up what a large block has beyond `needed` bytes, which is its size from now on."""
    if whole_pages(size) > whole_pages(needed):
        give_pages(<char*>block + whole_pages(needed), whole_pages(size) - whole_pages(needed))


cdef inline void block_free(void* block, size_t size) noexcept nogil:
    if size >= LARGE_BLOCK:
        give_pages(<char*>block, whole_pages(size))
    else:
        free(block)


cdef inline void* block_widen(void* block, size_t size, size_t wider) noexcept nogil:
    """The block with room for `wider` bytes, not all zeros; NULL, and it stays as it was.

    A block of no bytes is NULL.
    """
    cdef size_t before = whole_pages(size) if size >= LARGE_BLOCK else 0
    cdef size_t after = whole_pages(wider), moved
    cdef char* start
    if wider < LARGE_BLOCK:
        return realloc(block, wider)
    if before == after:
        return block
    start = find_room(after)
    if start == NULL:
        return NULL
    moved = move_pages(<char*>block, before, start)
    fill_room(start + moved, after - moved)
    if moved < size:
        memcpy(start + moved, <char*>block + moved, size - moved)
    if before == 0:
        free(block)
    elif moved < before:
        give_pages(<char*>block + moved, before - moved)
    return start
