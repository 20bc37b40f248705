/* A test whether large pages are faster than small ones now: one is timed, for all kernels. */
#ifndef PYLINK_BASE_HUGEPAGES_H
#define PYLINK_BASE_HUGEPAGES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; older ones and other systems refuse the number */
#endif
#define PYLINK_LARGE_PAGE ((size_t)2 << 20)
#define PYLINK_SLOW_PAGE  1000000   /* ns for one large page from which on they do not pay */
#define PYLINK_KNOWN_FOR  500000000 /* ns for which a result is used: about one link */
/* The result for all kernels: twice the time in ns at which a large page was timed, plus 1 if it
   was slow; 0 before. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_timed_page;
/* Whether one was slow, so that memory with small pages was taken instead. */
__attribute__((weak, visibility("hidden"))) int pylink_took_small_pages;
/* Return the time of a clock in ns. */
static inline uint64_t pylink_time(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether large pages pay. `page` is a large page of new memory, in which a byte is set to 0. */
static inline int pylink_large_pages_pay(char* page) {
    uint64_t known = __atomic_load_n(&pylink_timed_page, __ATOMIC_RELAXED);
    uint64_t now = pylink_time(CLOCK_MONOTONIC), start;
    if (known != 0 && now - known / 2 < PYLINK_KNOWN_FOR)
        return !(known & 1);
    madvise(page, PYLINK_LARGE_PAGE, MADV_HUGEPAGE);
    start = pylink_time(CLOCK_THREAD_CPUTIME_ID);
    ((volatile char*)page)[PYLINK_LARGE_PAGE / 2] = 0;
    known = now * 2 | (pylink_time(CLOCK_THREAD_CPUTIME_ID) - start > PYLINK_SLOW_PAGE);
    if (known & 1)
        __atomic_store_n(&pylink_took_small_pages, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&pylink_timed_page, known, __ATOMIC_RELAXED);
    return !(known & 1);
}

/* Make a large page of the small ones at `page`, with their bytes; nothing happens to one that is
   large. Returns 0 if that cannot be done, or if it took so long that others do not pay, either. */
static inline int pylink_collapse_page(char* page) {
    uint64_t start = pylink_time(CLOCK_THREAD_CPUTIME_ID), now;
    int failure = madvise(page, PYLINK_LARGE_PAGE, MADV_COLLAPSE) == 0 ? 0 : errno;
    if (failure == EINVAL) /* the system cannot do this, which says nothing of its pages */
        return 0;
    if (!failure && pylink_time(CLOCK_THREAD_CPUTIME_ID) - start <= PYLINK_SLOW_PAGE)
        return 1;
    now = pylink_time(CLOCK_MONOTONIC);
    __atomic_store_n(&pylink_timed_page, now * 2 | 1, __ATOMIC_RELAXED);
    return 0;
}

/* Whether memory with small pages was taken, and no large page was slow of late. */
static inline int pylink_may_collapse(void) {
    uint64_t known = __atomic_load_n(&pylink_timed_page, __ATOMIC_RELAXED);
    return __atomic_load_n(&pylink_took_small_pages, __ATOMIC_RELAXED) &&
           !((known & 1) && pylink_time(CLOCK_MONOTONIC) - known / 2 < PYLINK_KNOWN_FOR);
}

/* Note that all pages are large now. */
static inline void pylink_note_large_pages(void) {
    __atomic_store_n(&pylink_took_small_pages, 0, __ATOMIC_RELAXED);
}

/* Return a size rounded up to whole large pages. */
static inline size_t pylink_whole_pages(size_t size) {
    return (size + PYLINK_LARGE_PAGE - 1) & ~(PYLINK_LARGE_PAGE - 1);
}

#endif
