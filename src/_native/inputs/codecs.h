/* Libraries that decompress, opened when an input needs them. */
#ifndef PYLINK_INPUTS_CODECS_H
#define PYLINK_INPUTS_CODECS_H

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>

/* Functions of the libraries; NULL before their library is opened. */
typedef int (*pylink_lz4_t)(const char*, char*, int, int);
typedef size_t (*pylink_zstd_t)(void*, void*, size_t, const void*, size_t);
typedef void* (*pylink_zstd_make_t)(void);
typedef size_t (*pylink_zstd_free_t)(void*);
typedef unsigned (*pylink_zstd_error_t)(size_t);
static pylink_lz4_t pylink_lz4;
static pylink_zstd_t pylink_zstd;
static pylink_zstd_make_t pylink_zstd_make;
static pylink_zstd_free_t pylink_zstd_free;
static pylink_zstd_error_t pylink_zstd_error;
static pthread_key_t pylink_zstd_key; /* a thread's ZSTD_DCtx */

/* Free the ZSTD_DCtx of a thread that ends. */
static void pylink_zstd_end(void* context) {
    pylink_zstd_free(context);
}

/* Return the ZSTD_DCtx of this thread, made at its first call and freed with the thread; NULL if
   memory is exhausted. */
static void* pylink_zstd_context(void) {
    void* context = pthread_getspecific(pylink_zstd_key);
    if (context == NULL && (context = pylink_zstd_make()) != NULL &&
        pthread_setspecific(pylink_zstd_key, context) != 0) {
        pylink_zstd_free(context);
        context = NULL;
    }
    return context;
}

/* Open the library of LZ4 at `path`. Returns whether it can decompress; it is used from then on. */
static int pylink_open_lz4(const char* path) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    pylink_lz4 = (pylink_lz4_t)dlsym(library, "LZ4_decompress_safe");
    return pylink_lz4 != NULL;
}

/* Open the library of Zstandard at `path`. Returns whether it can decompress; it is used from then
   on. */
static int pylink_open_zstd(const char* path) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    if (pylink_zstd != NULL)
        return 1;
    pylink_zstd_error = (pylink_zstd_error_t)dlsym(library, "ZSTD_isError");
    pylink_zstd_make = (pylink_zstd_make_t)dlsym(library, "ZSTD_createDCtx");
    pylink_zstd_free = (pylink_zstd_free_t)dlsym(library, "ZSTD_freeDCtx");
    if (pylink_zstd_error != NULL && pylink_zstd_make != NULL && pylink_zstd_free != NULL &&
        pthread_key_create(&pylink_zstd_key, pylink_zstd_end) == 0)
        pylink_zstd = (pylink_zstd_t)dlsym(library, "ZSTD_decompressDCtx");
    return pylink_zstd != NULL;
}

/* Decompress the LZ4 block of `size` bytes at `from` to `to`. Returns whether it becomes exactly
   `room` bytes; otherwise some of these may be written. Nothing outside the two ranges is touched.
 */
static int pylink_unpack_lz4(const void* from, size_t size, void* to, size_t room) {
    int unpacked_size;
    if (pylink_lz4 == NULL || size > INT_MAX || room > INT_MAX)
        return 0;
    unpacked_size = pylink_lz4((const char*)from, (char*)to, (int)size, (int)room);
    return unpacked_size >= 0 && (size_t)unpacked_size == room;
}

/* Do the same with a Zstandard frame. */
static int pylink_unpack_zstd(const void* from, size_t size, void* to, size_t room) {
    void* context = pylink_zstd == NULL ? NULL : pylink_zstd_context();
    size_t unpacked_size;
    if (context == NULL)
        return 0;
    unpacked_size = pylink_zstd(context, to, room, from, size);
    return !pylink_zstd_error(unpacked_size) && unpacked_size == room;
}

#endif
