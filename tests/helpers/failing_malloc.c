/* Memory that runs out: the n-th request of the kernels fails, those of everybody else are served.
   It also counts the blocks that the kernels have and did not give back.

   Preloaded before the C library. `arm` and `held` are called between two links. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void __libc_free(void*);

static uintptr_t first, last; /* where the code of the kernels lies */
static long left = -1;        /* requests until the one that fails; below 0: none does */
static long asked;
static long blocks; /* that the kernels have in the heap */

/* From now on request number `number` from code in [`from`, `to`) fails, from 0; -1: none.
   Returns how many there were since the last call. */
long arm(uintptr_t from, uintptr_t to, long number) {
    long before = __atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST);
    first = from;
    last = to;
    __atomic_store_n(&left, number, __ATOMIC_SEQ_CST);
    return before;
}

/* Return how many blocks of the heap the code in the range of `arm` has, i.e. did not free. */
long held(void) {
    return __atomic_load_n(&blocks, __ATOMIC_SEQ_CST);
}

/* Return whether an address is in the range of `arm`, the code of pylink's native kernels. */
static int is_kernel(const void* caller) {
    return (uintptr_t)caller >= first && (uintptr_t)caller < last;
}

/* Count a request of the code at `caller`, and return whether it fails. */
static int fails(const void* caller) {
    if (!is_kernel(caller))
        return 0;
    __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&left, __ATOMIC_SEQ_CST) >= 0 &&
           __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST) == 0;
}

#define SERVE(call, fresh)                                                                         \
    if (fails(__builtin_return_address(0))) {                                                      \
        errno = ENOMEM;                                                                            \
        return NULL;                                                                               \
    }                                                                                              \
    if ((fresh) && is_kernel(__builtin_return_address(0)))                                         \
        __atomic_add_fetch(&blocks, 1, __ATOMIC_SEQ_CST);                                          \
    return call

void* malloc(size_t size) {
    SERVE(__libc_malloc(size), 1);
}
void* calloc(size_t count, size_t size) {
    SERVE(__libc_calloc(count, size), 1);
}
void* realloc(void* block, size_t size) {
    SERVE(__libc_realloc(block, size), block == NULL);
}

void free(void* block) {
    if (block != NULL && is_kernel(__builtin_return_address(0)))
        __atomic_sub_fetch(&blocks, 1, __ATOMIC_SEQ_CST);
    __libc_free(block);
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
    static void* (*real)(void*, size_t, int, int, int, off_t);
    if (real == NULL)
        real = (void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(address, size, protection, flags, file, offset);
}
