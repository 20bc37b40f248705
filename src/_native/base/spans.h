/* Arithmetic of hashes and comparisons. */
#ifndef PYLINK_BASE_SPANS_H
#define PYLINK_BASE_SPANS_H

#include <stddef.h>
#include <stdint.h>

/* Return the exclusive or of both halves of the product of two numbers, which has 128 bits. */
static inline uint64_t pylink_fold_product(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Return how many leading bytes two words share. `difference` is their exclusive or, not 0. */
static inline size_t pylink_equal_bytes(uint64_t difference) {
    return (size_t)__builtin_ctzll(difference) / 8; /* little endian: lowest byte first */
}

#endif
