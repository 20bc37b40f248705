/* Pages that are kept for the next block or the next link, and moved instead of copied. */
#ifndef PYLINK_BASE_BLOCKS_H
#define PYLINK_BASE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/hugepages.h"
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
#define PYLINK_RECYCLED_RUNS 64
/* One for all native modules: the start of each run of recycled pages plus its page count, or 0. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_recycled[PYLINK_RECYCLED_RUNS];
__attribute__((weak, visibility("hidden"))) int pylink_no_recycling;
/* Recycled pages stay as they are, in a process that ends after a few links. */
__attribute__((weak, visibility("hidden"))) int pylink_keeps_pages;
static inline uint64_t pylink_peek_run(size_t at) {
    return __atomic_load_n(&pylink_recycled[at], __ATOMIC_RELAXED);
}

static inline uint64_t pylink_detach_run(size_t at) {
    return __atomic_exchange_n(&pylink_recycled[at], 0, __ATOMIC_ACQ_REL);
}

static inline int pylink_put_run(size_t at, uint64_t run) {
    uint64_t none = 0;
    return __atomic_compare_exchange_n(&pylink_recycled[at], &none, run, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Recycled pages that are divided: where each begins, plus a bit for each part that is in use. */
#define PYLINK_DIVIDED 32
__attribute__((weak, visibility("hidden"))) uint64_t pylink_divided[PYLINK_DIVIDED];
static inline uint64_t pylink_peek_divided(size_t at) {
    return __atomic_load_n(&pylink_divided[at], __ATOMIC_ACQUIRE);
}

static inline int pylink_set_divided(size_t at, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(&pylink_divided[at], &from, to, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static inline int pylink_space_is_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* The kernel may have the pages when it is short of memory, and child processes see zeros. */
static inline int pylink_set_aside(char* start, size_t size) {
    if (pylink_keeps_pages)
        return 1;
#if defined(MADV_FREE) && defined(MADV_WIPEONFORK)
    return madvise(start, size, MADV_WIPEONFORK) == 0 && madvise(start, size, MADV_FREE) == 0;
#else
    (void)start;
    (void)size;
    return 0;
#endif
}

static inline int pylink_bring_back(char* start, size_t size) {
    if (pylink_keeps_pages)
        return 1;
#ifdef MADV_KEEPONFORK
    return madvise(start, size, MADV_KEEPONFORK) == 0;
#else
    (void)start;
    (void)size;
    return 0;
#endif
}

/* Move pages to the start of a room instead of their contents. Returns the bytes moved. One at
   a time: pages that came from several mappings stay in as many, and kernels before 6.17 refuse
   to move from more than one, when they have unmapped the room already. */
static inline size_t pylink_move_pages(char* from, size_t size, char* to) {
    size_t moved = 0;
#ifdef MREMAP_FIXED
    while (moved < size && mremap(from + moved, PYLINK_LARGE_PAGE, PYLINK_LARGE_PAGE,
                                  MREMAP_MAYMOVE | MREMAP_FIXED, to + moved) == to + moved)
        moved += PYLINK_LARGE_PAGE;
#else
    (void)from;
    (void)size;
    (void)to;
#endif
    return moved;
}

/* Move pages to the beginning of a room and leave zeros in their old place; returns how many bytes
   moved. One at a time, as above. */
static inline size_t pylink_part_with_pages(char* from, size_t size, char* to) {
    size_t moved = 0;
#ifdef MREMAP_DONTUNMAP
    while (moved < size &&
           mremap(from + moved, PYLINK_LARGE_PAGE, PYLINK_LARGE_PAGE,
                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to + moved) == to + moved)
        moved += PYLINK_LARGE_PAGE;
#else
    (void)from;
    (void)size;
    (void)to;
#endif
    return moved;
}

/* Address space for new pages at a multiple of the size of a large one, or NULL. */
static inline char* pylink_new_pages(size_t size) {
    size_t before;
    char* start = (char*)mmap(NULL, size + PYLINK_LARGE_PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char*)MAP_FAILED)
        return NULL;
    before = pylink_whole_pages((size_t)start) - (size_t)start;
    if (before)
        munmap(start, before);
    if (before < PYLINK_LARGE_PAGE)
        munmap(start + before + size, PYLINK_LARGE_PAGE - before);
    return start + before;
}

#endif
