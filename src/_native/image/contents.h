/* The first fault that several threads find. */
#ifndef PYLINK_IMAGE_CONTENTS_H
#define PYLINK_IMAGE_CONTENTS_H

#include <stdint.h>

/* The first of all that several threads find: that with the lowest number. */
static inline void pylink_note_bad(int32_t* bad, int32_t out) {
    int32_t known = __atomic_load_n(bad, __ATOMIC_RELAXED);
    while ((known < 0 || out < known) &&
           !__atomic_compare_exchange_n(bad, &known, out, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

#endif
