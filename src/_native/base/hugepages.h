/* A test whether large pages are faster than small ones now: the first page of each step of a
   buffer is timed (hugepages.pxd). */
#ifndef PYLINK_BASE_HUGEPAGES_H
#define PYLINK_BASE_HUGEPAGES_H

#include "base/clocks.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; older ones and other systems refuse the number */
#endif
#define PYLINK_LARGE_PAGE ((size_t)2 << 20)
#define PYLINK_SLOW_PAGE  1000000   /* ns: a large page that takes longer does not pay */
#define PYLINK_SLOW_FOR   500000000 /* ns after a slow page in which all are slow: about a link */
/* The last time in ns at which a large page was slow, for all native modules; 0 before that. Fast
   pages are not noted: one says little about the next, since a hypervisor may have a few at hand,
   and take others from elsewhere. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_slow_page;
/* Whether a large page was slow, so that memory with small pages was taken instead, and these were
   not replaced since (`renew_recycled` in blocks.pxd). */
__attribute__((weak, visibility("hidden"))) int pylink_took_small_pages;

/* Return whether a large page was slow in the last PYLINK_SLOW_FOR ns. */
static inline int pylink_large_pages_slow(void) {
    uint64_t slow = __atomic_load_n(&pylink_slow_page, __ATOMIC_RELAXED);
    return slow != 0 && pylink_nanoseconds(CLOCK_MONOTONIC) - slow < PYLINK_SLOW_FOR;
}

/* Note that a large page was slow. */
static inline void pylink_note_slow_page(void) {
    __atomic_store_n(&pylink_slow_page, pylink_nanoseconds(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
}

/* Return whether large pages pay, i.e. the system provides one quickly enough. `page` is a large
   page of new memory, in which a byte is set to 0 to time that. The answer is no, without a test,
   for PYLINK_SLOW_FOR after a slow page. */
static inline int pylink_large_pages_pay(char* page) {
    uint64_t start;
    if (pylink_large_pages_slow())
        return 0;
    madvise(page, PYLINK_LARGE_PAGE, MADV_HUGEPAGE);
    start = pylink_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    ((volatile char*)page)[PYLINK_LARGE_PAGE / 2] = 0;
    if (pylink_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start <= PYLINK_SLOW_PAGE)
        return 1;
    __atomic_store_n(&pylink_took_small_pages, 1, __ATOMIC_RELAXED);
    pylink_note_slow_page();
    return 0;
}

/* Replace the small pages at `page` by a large one that has their bytes; nothing happens if it is
   large already. Returns 0 if that cannot be done. */
static inline int pylink_collapse_page(char* page) {
    return madvise(page, PYLINK_LARGE_PAGE, MADV_COLLAPSE) == 0;
}

/* Return whether memory with small pages was taken because large ones were slow, and may still be
   in use. */
static inline int pylink_has_small_pages(void) {
    return __atomic_load_n(&pylink_took_small_pages, __ATOMIC_RELAXED);
}

/* Note that no recycled memory has small pages any more. */
static inline void pylink_note_large_pages(void) {
    __atomic_store_n(&pylink_took_small_pages, 0, __ATOMIC_RELAXED);
}

/* Return a size or an address rounded up to a multiple of PYLINK_LARGE_PAGE. */
static inline size_t pylink_whole_pages(size_t size) {
    return (size + PYLINK_LARGE_PAGE - 1) & ~(PYLINK_LARGE_PAGE - 1);
}

#endif
