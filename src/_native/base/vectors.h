/* Operations on vectors of sixteen bytes, a type that gcc and clang have for every processor. */
#ifndef PYLINK_BASE_VECTORS_H
#define PYLINK_BASE_VECTORS_H

#include <stdint.h>
#include <string.h>

typedef uint8_t pylink_vector __attribute__((vector_size(16)));

/* Return the vector at an address of any alignment. */
static inline pylink_vector pylink_vector_at(const uint8_t* data) {
    pylink_vector vector;
    memcpy(&vector, data, sizeof vector);
    return vector;
}

/* Return a vector of sixteen equal bytes. */
static inline pylink_vector pylink_vector_of(char byte) {
    return (uint8_t)byte - (pylink_vector){0};
}

/* Compare two vectors: all bits of a byte are set where both have the same byte, none elsewhere. */
static inline pylink_vector pylink_same(pylink_vector vector, pylink_vector other) {
    return (pylink_vector)(vector == other);
}

/* Return whether any bit is set. */
static inline int pylink_any(pylink_vector vector) {
    uint64_t halves[2];
    memcpy(halves, &vector, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

#endif
