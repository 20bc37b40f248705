/* A fetch into the cache that the compiler does not omit. */
#ifndef PYLINK_BASE_PREFETCH_H
#define PYLINK_BASE_PREFETCH_H

/* Fetch the bytes at an address, which need not be valid, into the cache. GCC takes a function that
   does nothing else for one without an effect, and omits its calls. An empty statement of assembler
   counts as an effect. */
static inline void pylink_prefetch(const void* address) {
    __builtin_prefetch(address);
    __asm__ volatile("");
}

#endif
