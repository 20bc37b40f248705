/* A test whether large pages are faster than small ones now: one is timed, for all kernels. */
#ifndef PYLINK_BASE_HUGEPAGES_H
#define PYLINK_BASE_HUGEPAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
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

/* Return whether small pages were taken, and large ones have not been found to pay since. */
static inline int pylink_has_small_pages(void) {
    return __atomic_load_n(&pylink_took_small_pages, __ATOMIC_RELAXED);
}

/* Return whether small pages were taken since the last such answer, and large ones pay by now.
   `page` is as above. */
static inline int pylink_small_pages_lose(char* page) {
    if (!pylink_has_small_pages() || !pylink_large_pages_pay(page))
        return 0;
    return __atomic_exchange_n(&pylink_took_small_pages, 0, __ATOMIC_RELAXED);
}

/* Return a size rounded up to whole large pages. */
static inline size_t pylink_whole_pages(size_t size) {
    return (size + PYLINK_LARGE_PAGE - 1) & ~(PYLINK_LARGE_PAGE - 1);
}

#endif
