/* The time of a clock. */
#ifndef PYLINK_BASE_CLOCKS_H
#define PYLINK_BASE_CLOCKS_H

#include <stdint.h>
#include <time.h>

/* Return the time of a clock in ns. */
static inline uint64_t pylink_nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
