/* A clock of processor time by which each large page is slow while the environment has SLOW_PAGES,
   and none is slow later. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
    static int (*real)(clockid_t, struct timespec*);
    static long now;
    int failed;
    if (!real)
        real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(clock, time);
    if (!failed && clock == CLOCK_THREAD_CPUTIME_ID) {
        if (getenv("SLOW_PAGES"))
            now++;
        time->tv_sec = now;
        time->tv_nsec = 0;
    }
    return failed;
}
