/* Search for the next of two marks: short texts that device code begins with. Most of a library is
   searched, so 64 bytes are compared at a time. */
#ifndef PYLINK_INPUTS_MARKS_H
#define PYLINK_INPUTS_MARKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/vectors.h"

/* Return the number of the mark that begins at `data`, 0 or 1; 2 if none does. `remaining` is the
   number of bytes from `data` on. */
static inline size_t pylink_mark_at(const uint8_t* data, size_t remaining, const char* const* marks,
                                    const size_t* sizes) {
    size_t i;
    for (i = 0; i < 2; i++)
        if (sizes[i] <= remaining && memcmp(data, marks[i], sizes[i]) == 0)
            return i;
    return 2;
}

/* Return the offset of the next mark, from `at` on, and set its number; `size` if there is no other
   mark. A mark has two bytes or more. A block of 64 bytes is skipped if no mark's first two bytes
   begin in it; the second of them may be the byte after the block. */
static size_t pylink_next_mark(const uint8_t* data, size_t at, size_t size,
                               const char* const* marks, const size_t* sizes, size_t* number) {
    const pylink_vector first[2] = {pylink_vector_of(marks[0][0]), pylink_vector_of(marks[1][0])};
    const pylink_vector second[2] = {pylink_vector_of(marks[0][1]), pylink_vector_of(marks[1][1])};
    while (at < size) {
        const int is_block = size - at > 64; /* with the byte after it */
        size_t end = is_block ? at + 64 : size;
        if (is_block) {
            pylink_vector hits = {0};
            size_t i;
            for (i = 0; i < 64; i += 16) {
                pylink_vector here = pylink_vector_at(data + at + i);
                pylink_vector next = pylink_vector_at(data + at + i + 1);
                hits |= pylink_same(here, first[0]) & pylink_same(next, second[0]);
                hits |= pylink_same(here, first[1]) & pylink_same(next, second[1]);
            }
            if (!pylink_any(hits)) {
                at = end;
                continue;
            }
        }
        for (; at < end; at++) {
            *number = pylink_mark_at(data + at, size - at, marks, sizes);
            if (*number < 2)
                return at;
        }
    }
    return size;
}

#endif
