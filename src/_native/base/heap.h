/* Settings of glibc's heap. Other C libraries ignore them. */
#ifndef PYLINK_BASE_HEAP_H
#define PYLINK_BASE_HEAP_H

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
/* Let the heap grow by steps of `step` bytes, and grow it by the first step. Returns by how many
   bytes the heap grew, and sets `before` to its former end; 0 if the heap is not glibc's. */
static size_t pylink_grow_heap(size_t step, void** before) {
#ifdef __GLIBC__
    void* volatile block;                /* compilers drop a malloc that is only freed */
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that glibc takes */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, (int)step);
    *before = sbrk(0);
    block = malloc(step / 16); /* more than the heap has left, so it grows by this and a step */
    free(block);
    return (size_t)((char*)sbrk(0) - (char*)*before);
#else
    (void)step;
    (void)before;
    return 0;
#endif
}

/* Let blocks of `size` bytes and more return to the system as soon as they are freed. */
static void pylink_return_blocks(size_t size) {
#ifdef __GLIBC__
    /* Once it is set, glibc does not raise this limit when a larger block is freed. */
    mallopt(M_MMAP_THRESHOLD, (int)size);
    mallopt(M_TRIM_THRESHOLD, (int)(16 * size)); /* bytes that it keeps at its end */
#else
    (void)size;
#endif
}

/* Have one heap for all threads, which grows by large steps: what one thread frees serves any
   other. Call this before there are threads. */
static void pylink_share_heap(void) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, 16 << 20);
#endif
}

#endif
