/* Skips PTX up to the next character that a table marks, such as a brace or a quote: 16 bytes at a
   time, since most of PTX has no such character. */
#ifndef PYLINK_SIZE_PTXSCAN_H
#define PYLINK_SIZE_PTXSCAN_H

#include <stdint.h>

#include "base/vectors.h"

/* By character: 1 if skipping stops there. In the body of a function, that is at braces, strings
   and comments; outside of bodies at `}`, strings, comments, directives, and ends of statements. */
static const uint8_t pylink_in_body[256] = {['{'] = 1, ['}'] = 1, ['"'] = 1, ['/'] = 1};
static const uint8_t pylink_outside[256] = {['"'] = 1, ['/'] = 1, [';'] = 1, ['}'] = 1, ['.'] = 1};

/* Return a vector (16 bytes) with all bits set where the byte of `vector` stops skipping.
   `is_outside` says that the vector is outside of bodies. */
static inline pylink_vector pylink_ends(pylink_vector vector, int is_outside) {
    pylink_vector is_end = pylink_same(vector, pylink_vector_of('"'));
    is_end |=
        pylink_same(vector, pylink_vector_of('}')) | pylink_same(vector, pylink_vector_of('/'));
    if (is_outside)
        return is_end | pylink_same(vector, pylink_vector_of(';')) |
               pylink_same(vector, pylink_vector_of('.'));
    return is_end | pylink_same(vector, pylink_vector_of('{'));
}

/* Return the offset of the next byte, from `offset` on, for which `is_end` has 1; `size` without
   one. `is_end` is one of the two tables above. */
static inline uint64_t pylink_skip_plain(const uint8_t* data, uint64_t offset, uint64_t size,
                                         const uint8_t* is_end) {
    int is_outside = is_end == pylink_outside;
    while (size - offset >= 16 &&
           !pylink_any(pylink_ends(pylink_vector_at(data + offset), is_outside)))
        offset += 16;
    while (offset < size && !is_end[data[offset]])
        offset++;
    return offset;
}

#endif
