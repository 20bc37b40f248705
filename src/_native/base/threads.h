/* The number of threads that work for a link, and how they share a sequence of items. */
#ifndef PYLINK_BASE_THREADS_H
#define PYLINK_BASE_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Claim the next `run` items of a sequence, and return the number of the first, which the caller
   compares with the count. `next` points to the number of the first item that no thread has
   claimed. */
#define claim_items(next, run) __atomic_fetch_add((next), (run), __ATOMIC_RELAXED)
/* Set to 1 a byte that several threads may set, and none clears. A thread that finds it set writes
   nothing: each write would take the cache line away from the other threads. */
static inline void set_mark(uint8_t* mark) {
    if (!__atomic_load_n(mark, __ATOMIC_RELAXED))
        __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
}

/* The number of threads claimed now, besides the first of each link, for all native modules. Links
   that asked for a number of threads are not counted. */
__attribute__((weak, visibility("hidden"))) size_t pylink_helpers;
/* Bytes to move for which one more thread is used. A second thread moves half of the first 4 MiB;
   starting it takes as long as moving 0.1 MB, a twentieth of that. Besides, a thread whose core has
   nothing of the data in its cache begins slowly; how slowly was not measured, nor whether fewer
   bytes would pay. */
__attribute__((weak, visibility("hidden"))) uint64_t pylink_bytes_per_thread = 4 << 20;

/* The number of threads that the caller of this thread's link asked for; 0 without a request. */
__attribute__((weak, visibility("hidden"))) __thread size_t pylink_link_threads;

/* The number of this thread among those that work on the same items; 0: the thread of the link. */
static __thread size_t pylink_thread_number;

/* Return how many threads this process may use (base/cores.h). */
extern size_t pylink_core_count(void) __attribute__((visibility("hidden")));

/* Bytes of address space that a process must have left for a second thread. A thread takes 8 MB for
   its stack and 64 MB for a heap, which a small process needs for the link itself. */
#define PYLINK_SPACE_FOR_THREADS ((uint64_t)1 << 30)

/* Return whether the address space of the process has room for threads; mostly it has no limit. */
static inline int pylink_has_space(void) {
    struct rlimit limit;
    unsigned long long pages = 0;
    uint64_t used;
    FILE* file;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 1;
    file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used != 0 && used < limit.rlim_cur && limit.rlim_cur - used >= PYLINK_SPACE_FOR_THREADS;
}

/* Claim up to `most` threads besides the caller's, for work on `items` items that moves `size`
   bytes. Returns how many it claimed. They count against the threads of the process until they are
   released, unless the caller of the link asked for a number of threads. */
static inline size_t pylink_claim(uint64_t size, size_t items, size_t most) {
    uint64_t worth = pylink_bytes_per_thread ? size / pylink_bytes_per_thread : most;
    size_t wanted = worth < most ? (size_t)worth : most;
    size_t total, claimed; /* threads besides the first: that may work, and that do */
    size_t got;
    if (items < 2 || wanted == 0 || !pylink_has_space())
        return 0;
    if (wanted > items - 1)
        wanted = items - 1;
    if (pylink_link_threads)
        return wanted < pylink_link_threads - 1 ? wanted : pylink_link_threads - 1;
    total = pylink_core_count() - 1;
    claimed = __atomic_load_n(&pylink_helpers, __ATOMIC_RELAXED);
    do {
        got = claimed >= total ? 0 : total - claimed < wanted ? total - claimed : wanted;
    } while (got && !__atomic_compare_exchange_n(&pylink_helpers, &claimed, claimed + got, 0,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return got;
}

/* Release `count` threads that pylink_claim returned. */
static inline void pylink_release_threads(size_t count) {
    if (count && !pylink_link_threads)
        __atomic_fetch_sub(&pylink_helpers, count, __ATOMIC_RELAXED);
}

#endif
