/* A hash of 128 bits, by which equal contents are found. Somebody could make files that collide:
   where that matters, the caller starts the hash with a random seed. */
#ifndef PYLINK_SIZE_FINGERPRINT_H
#define PYLINK_SIZE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct Fingerprint {
    uint64_t a, b;
};

/* Return both halves of the 128-bit product, combined. Each bit of a factor can change it, unless
   the other factor is 0 or has only ones: then the result is the same for all factors but 0. */
static inline uint64_t pylink_fold(uint64_t x, uint64_t y) {
    __uint128_t product = (__uint128_t)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Absorb two words. A word that makes one of the factors for `a` 0, or only ones, hides the other
   word in `a`, but not in `b`, since `b` has other factors. */
static inline void pylink_absorb_words(struct Fingerprint* f, uint64_t x, uint64_t y) {
    f->a = pylink_fold(f->a ^ x ^ 0xa0761d6478bd642fULL, y ^ 0xe7037ed1a0b428dbULL) + f->a;
    f->b = pylink_fold(f->b ^ y ^ 0x8ebc6af09c88c6e3ULL, x ^ 0x589965cc75374cc3ULL) + f->b;
}

/* Absorb bytes, then their number. */
static inline void pylink_absorb(struct Fingerprint* f, const uint8_t* data, size_t size) {
    uint64_t words[2];
    size_t left = size;
    for (; left >= 16; left -= 16, data += 16) {
        memcpy(words, data, 16);
        pylink_absorb_words(f, words[0], words[1]);
    }
    words[0] = words[1] = 0;
    memcpy(words, data, left);
    pylink_absorb_words(f, words[0], words[1]);
    pylink_absorb_words(f, size, 0x1d8e4e27c47d124fULL);
}

#endif
