/* Replaces the clock of processor time, to be loaded before a program. While the environment has
   FAST_PAGES=N, all large pages after the first N seem slow; without it, none does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
    static int (*real)(clockid_t, struct timespec*);
    static long now, calls;
    const char* fast = getenv("FAST_PAGES");
    int failed;
    if (!real)
        real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(clock, time);
    if (!failed && clock == CLOCK_THREAD_CPUTIME_ID) {
        if (fast && ++calls > 2 * atol(fast)) /* a page is timed by two calls */
            now++;
        time->tv_sec = now;
        time->tv_nsec = 0;
    }
    return failed;
}
