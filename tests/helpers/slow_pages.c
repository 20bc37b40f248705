/* A clock by which each large page is slow while the environment has SLOW_PAGES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
    static int (*real)(clockid_t, struct timespec*);
    static long added;
    int failed;
    if (!real)
        real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(clock, time);
    if (!failed && clock == CLOCK_THREAD_CPUTIME_ID && getenv("SLOW_PAGES"))
        time->tv_sec += ++added;
    return failed;
}
