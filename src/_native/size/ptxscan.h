/* Most of PTX is neither a brace nor a string nor a comment: how far that goes from a place on. */
#ifndef PYLINK_SIZE_PTXSCAN_H
#define PYLINK_SIZE_PTXSCAN_H

#include <stdint.h>

/* Signs that end what can be skipped in a body, and outside of one: directives and statements. */
static const uint8_t pylink_in_body[256] = {['{'] = 1, ['}'] = 1, ['"'] = 1, ['/'] = 1};
static const uint8_t pylink_outside[256] = {
    ['"'] = 1, ['/'] = 1, [';'] = 1, ['}'] = 1, ['.'] = 1};

static inline uint64_t pylink_skip_plain(const uint8_t* data, uint64_t at, uint64_t size,
                                         const uint8_t* ends) {
    while (size - at >= 4) {
        if (ends[data[at]] | ends[data[at + 1]] | ends[data[at + 2]] | ends[data[at + 3]])
            break;
        at += 4;
    }
    while (at < size && !ends[data[at]])
        at++;
    return at;
}

#endif
