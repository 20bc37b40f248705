/* The next of two marks in bytes, 64 at a time: most of a library is searched for them. */
#ifndef PYLINK_INPUTS_MARKS_H
#define PYLINK_INPUTS_MARKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/vectors.h"

/* The number of the mark that begins at a place; 2 without one. */
static inline size_t pylink_mark_at(const uint8_t* data, size_t left, const char* const* marks,
                                    const size_t* sizes) {
    size_t i;
    for (i = 0; i < 2; i++)
        if (sizes[i] <= left && memcmp(data, marks[i], sizes[i]) == 0)
            return i;
    return 2;
}

/* Find the next mark: its start and its number; `size` without another mark. A mark has two bytes
   and more: places are looked at where the first two are right. */
static size_t pylink_next_mark(const uint8_t* data, size_t at, size_t size,
                               const char* const* marks, const size_t* sizes, size_t* number) {
    const pylink_row first[2] = {pylink_row_of(marks[0][0]), pylink_row_of(marks[1][0])};
    const pylink_row second[2] = {pylink_row_of(marks[0][1]), pylink_row_of(marks[1][1])};
    while (at < size) {
        size_t end = size - at < 65 ? size : at + 64;
        if (end - at == 64) {
            pylink_row hits = {0};
            size_t i;
            for (i = 0; i < 64; i += 16) {
                pylink_row here = pylink_row_at(data + at + i);
                pylink_row next = pylink_row_at(data + at + i + 1);
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
