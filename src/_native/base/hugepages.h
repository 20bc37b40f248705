/* A test whether large pages pay now: one is timed, for all kernels. */
#ifndef PYLINK_BASE_HUGEPAGES_H
#define PYLINK_BASE_HUGEPAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#define PYLINK_LARGE_PAGE ((size_t)2 << 20)
#define PYLINK_SLOW_PAGE  1000000   /* ns */
#define PYLINK_KNOWN_FOR  500000000 /* ns: a link; memory stays warm for longer */
/* One for all kernels: when a large page was timed, in ns, times 2, and whether it was slow. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_timed_page;
/* Whether one was slow, so that memory with small pages was taken instead. */
__attribute__((weak, visibility("hidden"))) int pylink_took_small_pages;
static inline uint64_t pylink_time(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* `page` is 2 MiB of zeros, or of nothing that anybody needs, at a multiple of its size. */
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

/* Whether small pages that were taken are no longer the better ones: asked once for all of them. */
static inline int pylink_small_pages_lose(char* page) {
    if (!__atomic_load_n(&pylink_took_small_pages, __ATOMIC_RELAXED) ||
        !pylink_large_pages_pay(page))
        return 0;
    return __atomic_exchange_n(&pylink_took_small_pages, 0, __ATOMIC_RELAXED);
}

static inline size_t pylink_whole_pages(size_t size) {
    return (size + PYLINK_LARGE_PAGE - 1) & ~(PYLINK_LARGE_PAGE - 1);
}

#endif
