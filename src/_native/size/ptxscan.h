/* Most of PTX is neither a brace nor a string nor a comment: how far that goes from a place on. */
#ifndef PYLINK_SIZE_PTXSCAN_H
#define PYLINK_SIZE_PTXSCAN_H

#include <stdint.h>

#include "base/vectors.h"

/* Signs that end what can be skipped in a body, and outside of one: directives and statements. */
static const uint8_t pylink_in_body[256] = {['{'] = 1, ['}'] = 1, ['"'] = 1, ['/'] = 1};
static const uint8_t pylink_outside[256] = {['"'] = 1, ['/'] = 1, [';'] = 1, ['}'] = 1, ['.'] = 1};

/* The bytes of a row that end a plain stretch. */
static inline pylink_row pylink_ends(pylink_row row, int outside) {
    pylink_row ends = pylink_same(row, pylink_row_of('"')) | pylink_same(row, pylink_row_of('}'));
    ends |= pylink_same(row, pylink_row_of('/'));
    if (outside)
        return ends | pylink_same(row, pylink_row_of(';')) | pylink_same(row, pylink_row_of('.'));
    return ends | pylink_same(row, pylink_row_of('{'));
}

static inline uint64_t pylink_skip_plain(const uint8_t* data, uint64_t at, uint64_t size,
                                         const uint8_t* ends) {
    int outside = ends == pylink_outside;
    while (size - at >= 16 && !pylink_any(pylink_ends(pylink_row_at(data + at), outside)))
        at += 16;
    while (at < size && !ends[data[at]])
        at++;
    return at;
}

#endif
