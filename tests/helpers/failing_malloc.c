/* Memory that runs out: the n-th request of the kernels fails, those of everybody else are served.

   Preloaded before the C library. `arm` is called between two links. */
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

static uintptr_t first, last; /* where the code of the kernels lies */
static long left = -1;        /* requests until the one that fails; below 0: none does */
static long asked;

/* From now on request number `number` from code in [`from`, `to`) fails, from 0; -1: none.
   Returns how many there were since the last call. */
long arm(uintptr_t from, uintptr_t to, long number) {
    long before = __atomic_exchange_n(&asked, 0, __ATOMIC_SEQ_CST);
    first = from;
    last = to;
    __atomic_store_n(&left, number, __ATOMIC_SEQ_CST);
    return before;
}

static int fails(const void* caller) {
    uintptr_t at = (uintptr_t)caller;
    if (at < first || at >= last)
        return 0;
    __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&left, __ATOMIC_SEQ_CST) >= 0 &&
           __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST) == 0;
}

#define SERVE(call)                             \
    if (fails(__builtin_return_address(0))) {   \
        errno = ENOMEM;                         \
        return NULL;                            \
    }                                           \
    return call

void* malloc(size_t size) { SERVE(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { SERVE(__libc_calloc(count, size)); }
void* realloc(void* block, size_t size) { SERVE(__libc_realloc(block, size)); }

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
