/* Large pages that a process keeps when a block is freed, for the next block or the next link. They
   are moved, not copied, to where they are needed. base/blocks.pxd has the rules. */
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
#define PYLINK_RECYCLED_RUNS 64 /* entries for runs of neighboring pages */
/* Recycled pages, for all native modules. An entry is 0 if it is free, otherwise the address of a
   run plus the number of its pages: addresses are multiples of the size of a large page, so the
   number is what remains after a division by it. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_recycled[PYLINK_RECYCLED_RUNS];
/* Nonzero if the process keeps no pages of freed blocks. */
__attribute__((weak, visibility("hidden"))) int pylink_no_recycling;
/* Nonzero in a process that ends after a few links: the system may not take recycled pages back,
   and is not told that they are unused. */
__attribute__((weak, visibility("hidden"))) int pylink_keeps_pages;

/* Return entry `at` of the recycled pages, an address plus a number of pages; 0 if it is free. */
static inline uint64_t pylink_peek_run(size_t at) {
    return __atomic_load_n(&pylink_recycled[at], __ATOMIC_RELAXED);
}

/* Return entry `at` of the recycled pages and clear it, so that its pages are the caller's; 0 if it
   was free. */
static inline uint64_t pylink_detach_run(size_t at) {
    return __atomic_exchange_n(&pylink_recycled[at], 0, __ATOMIC_ACQ_REL);
}

/* Set entry `at` to `run`, an address plus a number of pages, if the entry is free. Returns whether
   it was. */
static inline int pylink_put_run(size_t at, uint64_t run) {
    uint64_t none = 0;
    return __atomic_compare_exchange_n(&pylink_recycled[at], &none, run, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Recycled pages that medium blocks (64 KiB to 1 MiB) share. An entry is 0 if it is free, otherwise
   the address of a page plus a bit for each of its 16 parts that a block uses. */
#define PYLINK_DIVIDED 32 /* entries for pages that medium blocks share */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_divided[PYLINK_DIVIDED];

/* Return entry `at` of the shared pages; 0 if it is free. */
static inline uint64_t pylink_peek_divided(size_t at) {
    return __atomic_load_n(&pylink_divided[at], __ATOMIC_ACQUIRE);
}

/* Change entry `at` to `to` if it is `from`. Returns whether it was. */
static inline int pylink_set_divided(size_t at, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(&pylink_divided[at], &from, to, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Return whether the address space of the process is limited (ulimit -v), or that is not known. */
static inline int pylink_space_is_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* Let the system take pages back when it is short of memory, and let child processes see zeros in
   them; do nothing in a process that keeps them. Returns 0 if the system cannot do that. */
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

/* Prepare pages that were set aside for use: child processes see their bytes again. Returns whether
   they can be used. */
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

/* Move pages to another address, `to`, where they replace what is mapped. Returns the bytes moved.
   Pages are moved one at a time: they may come from several mappings. Linux before 6.17 cannot move
   pages of several together, and refuses only after it has unmapped what is at `to`. */
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

/* Move pages to another address and leave zeros in their old place. Returns the bytes moved. */
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

/* Map `size` bytes of address space for new large pages, at a multiple of their size. Returns NULL
   if that fails. */
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
