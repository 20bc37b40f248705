/* Operations on rows of sixteen bytes, with the vectors of gcc and clang for every processor. */
#ifndef PYLINK_BASE_VECTORS_H
#define PYLINK_BASE_VECTORS_H

#include <stdint.h>
#include <string.h>

typedef uint8_t pylink_row __attribute__((vector_size(16)));

/* Return the row at an address of any alignment. */
static inline pylink_row pylink_row_at(const uint8_t* data) {
    pylink_row row;
    memcpy(&row, data, sizeof row);
    return row;
}

/* Return a row of sixteen equal bytes. */
static inline pylink_row pylink_row_of(char byte) {
    return (uint8_t)byte - (pylink_row){0};
}

/* Compare two rows: all bits of a byte are set where both have the same byte, none elsewhere. */
static inline pylink_row pylink_same(pylink_row row, pylink_row other) {
    return (pylink_row)(row == other);
}

/* Return whether any bit is set. */
static inline int pylink_any(pylink_row row) {
    uint64_t halves[2];
    memcpy(halves, &row, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

#endif
