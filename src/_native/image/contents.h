/* The lowest row with a fault, of those that several threads find. */
#ifndef PYLINK_IMAGE_CONTENTS_H
#define PYLINK_IMAGE_CONTENTS_H

#include <stdint.h>

/* Set *lowest to the row number `out` if that is lower, or if *lowest is -1 (no row yet). */
static inline void pylink_note_lowest(int32_t* lowest, int32_t out) {
    int32_t current = __atomic_load_n(lowest, __ATOMIC_RELAXED);
    while (
        (current < 0 || out < current) &&
        !__atomic_compare_exchange_n(lowest, &current, out, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

#endif
