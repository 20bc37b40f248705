# Blocks of memory that grow: small ones in the heap, large ones on large pages of their own, since
# a heap that grows step by step has no large pages. The owner of a block remembers its size.
#
# The pages of a freed block stay with the process, as recycled pages, and the next block of this
# link or of the next link gets them: a large link spends most of its waiting time on new memory
# (base/hugepages.pxd). The system takes them when memory is short, and a child process has none of
# their contents; only a process that ends after a device-link step keeps them for itself alone. A
# process whose address space is limited keeps none, nor does the command line if it links many
# inputs (`base/heap.pxd`).
#
# Blocks of medium size share a recycled page, if there is one, and are in the heap otherwise. The
# heap would return their memory to the system between links, and get it again as new memory.
#
# "Pages" are large pages here (LARGE_PAGE bytes), and the "room" of a block is the address range it
# may use.

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from base.clocks cimport CLOCK_MONOTONIC, nanoseconds
from base.hugepages cimport (
    LARGE_PAGE, collapse_page, note_large_pages, request_large_pages, whole_pages,
)

cdef extern from "base/blocks.h":
    uint64_t peek_run "pylink_peek_run"(size_t at) noexcept nogil
    uint64_t detach_run "pylink_detach_run"(size_t at) noexcept nogil
    bint put_run "pylink_put_run"(size_t at, uint64_t run) noexcept nogil
    bint space_is_limited "pylink_space_is_limited"() noexcept nogil
    bint set_aside "pylink_set_aside"(char* start, size_t size) noexcept nogil
    bint bring_back "pylink_bring_back"(char* start, size_t size) noexcept nogil
    size_t move_pages "pylink_move_pages"(char* start, size_t size, char* to) noexcept nogil
    size_t part_with_pages "pylink_part_with_pages"(char* start, size_t size,
                                                    char* to) noexcept nogil
    char* new_pages "pylink_new_pages"(size_t size) noexcept nogil
    uint64_t peek_divided "pylink_peek_divided"(size_t at) noexcept nogil
    bint set_divided "pylink_set_divided"(size_t at, uint64_t before, uint64_t page) noexcept nogil
    size_t DIVIDED "PYLINK_DIVIDED"
    int munmap(void* start, size_t size) nogil
    # These are set once, before there are threads. `no_recycling`: the process keeps no pages of
    # freed blocks. `keeps_pages`: the system may not take back those that it keeps.
    bint no_recycling "pylink_no_recycling"
    bint keeps_pages "pylink_keeps_pages"
    size_t RECYCLED_RUNS "PYLINK_RECYCLED_RUNS"

cdef enum:
    PART_SIZE = 128 << 10       # bytes of a part of a page that medium blocks share
    # Blocks of this size (bytes) and larger are medium.
    MEDIUM_BLOCK = 64 << 10
    # Blocks of this size (bytes) and larger are large. Zeroing a large page takes as long as
    # getting 0.5 MB of small pages, so a block that fills half of a large page gains from it.
    LARGE_BLOCK = 1 << 20
    # Most pages that are kept: more than the 1,100 of a link of 100,000 tiny inputs, of which its
    # tables take 600 and the bytes of its files 500. 10,000 larger inputs need 300 for each.
    MOST_RECYCLED = 1280
    RENEWAL_BYTES = 2           # bytes of a link's files that give `renew_recycled` 1 ns of time


cdef inline void drop_recycled() noexcept nogil:
    """Return all recycled pages to the system."""
    cdef size_t i
    cdef uint64_t run
    for i in range(RECYCLED_RUNS):
        run = detach_run(i)
        if run:
            munmap(<void*>(run - run % LARGE_PAGE), run % LARGE_PAGE * LARGE_PAGE)


cdef inline void release_pages(char* start, size_t size) noexcept nogil:
    """Give up whole pages: keep them to be recycled, or return them to the system."""
    cdef size_t count = size // LARGE_PAGE, kept_count = 0, i
    for i in range(RECYCLED_RUNS):
        kept_count += peek_run(i) % LARGE_PAGE
    if space_is_limited():
        drop_recycled()     # pages that were kept before the limit was set
    elif not no_recycling and kept_count + count <= MOST_RECYCLED and set_aside(start, size):
        for i in range(RECYCLED_RUNS):
            if peek_run(i) == 0 and put_run(i, <uint64_t>start + count):
                return
    munmap(start, size)


cdef inline char* take_run(size_t size) noexcept nogil:
    """Return `size` bytes of recycled pages in one piece, not zeroed.

    They are taken from the smallest run that has as many; NULL if none has.
    """
    cdef size_t best, least, have, i
    cdef uint64_t run
    cdef char* first
    while True:
        best, least = RECYCLED_RUNS, 0
        for i in range(RECYCLED_RUNS):
            have = peek_run(i) % LARGE_PAGE * LARGE_PAGE
            if have >= size and (least == 0 or have < least):
                best, least = i, have
        if best == RECYCLED_RUNS:
            return NULL
        run = detach_run(best)
        have = run % LARGE_PAGE * LARGE_PAGE
        first = <char*>(run - run % LARGE_PAGE)
        if have > size:
            release_pages(first + size, have - size)
        if have >= size:
            if bring_back(first, size):
                return first
            munmap(first, size)
            return NULL
        if have:    # another thread took that run, and this one is too short
            release_pages(first, have)


cdef inline size_t reuse_pages(char* start, size_t size) noexcept nogil:
    """Move up to `size` bytes of recycled pages to the start of a room, i.e. an address range.

    Returns how many bytes of the room they fill, with any values.
    """
    cdef size_t done = 0, have, used, moved, i
    cdef uint64_t run
    cdef char* first
    for i in range(RECYCLED_RUNS):
        if done == size:
            break
        run = detach_run(i) if peek_run(i) else 0
        if run == 0:
            continue
        have = run % LARGE_PAGE * LARGE_PAGE
        first = <char*>(run - run % LARGE_PAGE)
        used = min(have, size - done)
        if used < have:
            release_pages(first + used, have - used)
        moved = move_pages(first, used, start + done) if bring_back(first, used) else 0
        if moved < used:
            munmap(first + moved, used - moved)
        done += moved
    return done


cdef inline char* reserve_addresses(size_t size) noexcept nogil:
    """Return `size` bytes of new address space for whole pages, or NULL."""
    cdef char* start = NULL
    if size <= <size_t>-1 // 2:
        start = new_pages(size)
        if start == NULL:
            drop_recycled()
            start = new_pages(size)
    return start


cdef inline size_t fill_room(char* start, size_t size) noexcept nogil:
    """Give an address range its pages. Returns how many bytes at its start are on recycled ones.

    These have any values, all others are zeros.
    """
    cdef size_t used = reuse_pages(start, size)
    request_large_pages(start + used, size - used)
    return used


cdef inline bint can_recycle() noexcept nogil:
    """Return whether the process keeps pages of freed blocks."""
    return not no_recycling and not space_is_limited()


cdef inline bint has_recycled() noexcept nogil:
    """Return whether there are recycled pages: the process has linked before, and keeps them."""
    cdef size_t i
    for i in range(RECYCLED_RUNS):
        if peek_run(i):
            return True
    return False


cdef inline void renew_recycled(uint64_t size) noexcept nogil:
    """Give recycled memory large pages in place of its small ones, even if they are slow to get.

    A link on small pages takes up to a third more time, and so does each later link that gets the
    same memory. So even a slow large page pays after three or four links. `size` is the bytes that
    this link reads, and limits the time to a quarter of the link's. Later links do the rest.
    """
    cdef size_t i, k, count
    cdef uint64_t run, end = nanoseconds(CLOCK_MONOTONIC) + size // RENEWAL_BYTES
    cdef char* first
    cdef bint all_large = True
    for i in range(RECYCLED_RUNS):
        if not all_large:
            return
        run = detach_run(i) if peek_run(i) else 0
        count = run % LARGE_PAGE
        first = <char*>(run - count)
        for k in range(count):
            if not collapse_page(first + k * LARGE_PAGE) or nanoseconds(CLOCK_MONOTONIC) > end:
                all_large = False
                break
        if run and not put_run(i, run):
            release_pages(first, count * LARGE_PAGE)
    if all_large:
        note_large_pages()


cdef inline void recycle_pages(char* start, size_t size) noexcept nogil:
    """Recycle the pages of an address range, which stays its owner's and then reads as zeros.

    Pages that the system cannot move stay where they are, with their bytes.
    """
    cdef char* room = reserve_addresses(size)
    cdef size_t moved
    if room == NULL:
        return
    moved = part_with_pages(start, size, room)
    if moved < size:
        munmap(room + moved, size - moved)
    if moved:
        release_pages(room, moved)


cdef inline uint64_t mask_of(size_t parts) noexcept nogil:
    """Return the bits that mark the first `parts` parts of a page as used."""
    return (<uint64_t>1 << parts) - 1


cdef inline void* allocate_parts(size_t size) noexcept nogil:
    """Return a medium block in a recycled page that blocks share; NULL without such a page.

    In the heap it would lie on new memory, which comes one small page after the other.
    """
    cdef size_t parts = (size + PART_SIZE - 1) // PART_SIZE, i, k
    cdef uint64_t page, mask = mask_of(parts)
    cdef char* start
    for i in range(DIVIDED):
        page = peek_divided(i)
        k = 0
        while page and k + parts <= LARGE_PAGE // PART_SIZE:
            if page & mask << k:
                k += 1
            elif set_divided(i, page, page | mask << k):
                return <char*>(page - page % LARGE_PAGE) + k * PART_SIZE
            else:
                page = peek_divided(i)      # another thread took or gave up a part, so search again
                k = 0
    start = take_run(LARGE_PAGE)
    if start == NULL:
        return NULL
    for i in range(DIVIDED):
        if peek_divided(i) == 0 and set_divided(i, 0, <uint64_t>start | mask):
            return start
    release_pages(start, LARGE_PAGE)
    return NULL


cdef inline bint is_in_parts(const void* block) noexcept nogil:
    """Return whether a medium block is in a recycled page that blocks share, not in the heap."""
    cdef uint64_t base = <uint64_t>block - <uint64_t>block % LARGE_PAGE, page
    cdef size_t i
    for i in range(DIVIDED):
        page = peek_divided(i)
        if page and page - page % LARGE_PAGE == base:
            return True
    return False


cdef inline bint release_parts(void* block, size_t size) noexcept nogil:
    """Give up a medium block, if it is in a recycled page. Returns whether it is.

    A page whose last part in use is given up is given up itself.
    """
    cdef uint64_t base = <uint64_t>block - <uint64_t>block % LARGE_PAGE, page, remaining
    cdef uint64_t mask = mask_of((size + PART_SIZE - 1) // PART_SIZE)
    cdef size_t i
    mask <<= <uint64_t>block % LARGE_PAGE // PART_SIZE
    for i in range(DIVIDED):
        page = peek_divided(i)
        while page and page - page % LARGE_PAGE == base:
            remaining = page & ~mask
            if set_divided(i, page, 0 if remaining == base else remaining):
                if remaining == base:
                    release_pages(<char*>base, LARGE_PAGE)
                return True
            page = peek_divided(i)
    return False


cdef inline void* block_zeros(size_t size) noexcept nogil:
    """Return a block of `size` bytes that are zeros, or NULL."""
    cdef char* start
    if size < LARGE_BLOCK:
        start = <char*>allocate_parts(size) if size >= MEDIUM_BLOCK else NULL
        if start == NULL:
            return calloc(size, 1)
        memset(start, 0, size)
        return start
    start = take_run(whole_pages(size))
    if start != NULL:
        memset(start, 0, size)
        return start
    start = reserve_addresses(whole_pages(size))
    if start != NULL:
        memset(start, 0, fill_room(start, whole_pages(size)))
    return start


cdef inline void block_cut(void* block, size_t size, size_t needed) noexcept nogil:
    """Cut a large block of `size` bytes to `needed` bytes, and give up the pages after these."""
    if whole_pages(size) > whole_pages(needed):
        release_pages(<char*>block + whole_pages(needed), whole_pages(size) - whole_pages(needed))


cdef inline void block_free(void* block, size_t size) noexcept nogil:
    """Free a block of `size` bytes."""
    if size >= LARGE_BLOCK:
        release_pages(<char*>block, whole_pages(size))
    elif size < MEDIUM_BLOCK or not release_parts(block, size):
        free(block)


cdef inline void* widen_medium(void* block, size_t size, size_t wider) noexcept nogil:
    """Expand a block to `wider` bytes, fewer than LARGE_BLOCK; otherwise like `block_widen`."""
    cdef void* start
    if wider < MEDIUM_BLOCK:
        return realloc(block, wider)
    start = allocate_parts(wider)
    if start == NULL and (size < MEDIUM_BLOCK or not is_in_parts(block)):
        return realloc(block, wider)
    if start == NULL:
        start = malloc(wider)
    if start != NULL:
        memcpy(start, block, size)
        block_free(block, size)
    return start


cdef inline void* block_widen(void* block, size_t size, size_t wider) noexcept nogil:
    """Return a block that is enlarged from `size` to `wider` bytes; its address may change.

    The new bytes have any values. Without memory the result is NULL, and the block stays as it was.
    A `block` of NULL is one of 0 bytes.
    """
    cdef size_t before = whole_pages(size) if size >= LARGE_BLOCK else 0
    cdef size_t after = whole_pages(wider), moved
    cdef char* start
    if wider < LARGE_BLOCK:
        return widen_medium(block, size, wider)
    if before == after:
        return block
    if block == NULL:
        start = take_run(after)
        if start != NULL:
            return start
    start = reserve_addresses(after)
    if start == NULL:
        return NULL
    moved = move_pages(<char*>block, before, start)
    fill_room(start + moved, after - moved)
    if moved < size:
        memcpy(start + moved, <char*>block + moved, size - moved)
    if before == 0:
        block_free(block, size)
    elif moved < before:
        release_pages(<char*>block + moved, before - moved)
    return start
