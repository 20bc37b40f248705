/* Libraries that decompress, opened when an input needs them. */
#ifndef PYLINK_INPUTS_CODECS_H
#define PYLINK_INPUTS_CODECS_H

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>

/* Numbers of Codec in pylink/facts/picknumbers.py. */
enum { PYLINK_LZ4_BLOCK = 1, PYLINK_ZSTD_FRAME = 2 };

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

/* Open the library at `path` for a codec. Returns whether it has what the codec needs;
   pylink_decompress uses it from then on. */
static int pylink_open_codec(int codec, const char* path) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    if (codec == PYLINK_LZ4_BLOCK) {
        pylink_lz4 = (pylink_lz4_t)dlsym(library, "LZ4_decompress_safe");
        return pylink_lz4 != NULL;
    }
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

/* Decompress the `size` bytes at `from` to `to`. Returns whether they become exactly `room` bytes;
   otherwise some of these may be written. Nothing outside the two ranges is touched. */
static int pylink_decompress(int codec, const void* from, size_t size, void* to, size_t room) {
    if (codec == PYLINK_LZ4_BLOCK && pylink_lz4 != NULL && size <= INT_MAX && room <= INT_MAX) {
        int unpacked_size = pylink_lz4((const char*)from, (char*)to, (int)size, (int)room);
        return unpacked_size >= 0 && (size_t)unpacked_size == room;
    }
    if (codec == PYLINK_ZSTD_FRAME && pylink_zstd != NULL) {
        void* context = pylink_zstd_context();
        size_t unpacked_size = context == NULL ? 0 : pylink_zstd(context, to, room, from, size);
        return context != NULL && !pylink_zstd_error(unpacked_size) && unpacked_size == room;
    }
    return 0;
}

#endif
