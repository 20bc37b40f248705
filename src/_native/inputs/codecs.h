/* Libraries that decompress, and compress to Zstandard frames, opened when they are needed. */
#ifndef PYLINK_INPUTS_CODECS_H
#define PYLINK_INPUTS_CODECS_H

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>

/* Functions of the libraries; NULL before their library is opened. The library of Zstandard may
   lack the functions that compress. */
typedef int (*pylink_lz4_t)(const char*, char*, int, int);
typedef unsigned (*pylink_zstd_error_t)(size_t);
typedef size_t (*pylink_zstd_bound_t)(size_t);
typedef void* (*pylink_zstd_make_t)(void);
typedef size_t (*pylink_zstd_free_t)(void*);
typedef size_t (*pylink_zstd_unpack_t)(void*, void*, size_t, const void*, size_t);
typedef size_t (*pylink_zstd_pack_t)(void*, void*, size_t, const void*, size_t, int);
static pylink_lz4_t pylink_lz4;
static pylink_zstd_error_t pylink_zstd_error;
static pylink_zstd_bound_t pylink_zstd_bound;
static pylink_zstd_make_t pylink_zstd_make_unpacker, pylink_zstd_make_packer;
static pylink_zstd_free_t pylink_zstd_free_unpacker, pylink_zstd_free_packer;
static pylink_zstd_unpack_t pylink_zstd_unpack;
static pylink_zstd_pack_t pylink_zstd_pack;

/* Keys of what each thread keeps until it ends: a ZSTD_DCtx to decompress, a ZSTD_CCtx to compress.
   Making a ZSTD_CCtx for each frame took a seventh of the time for cubins of 23 kB. */
static pthread_key_t pylink_zstd_unpacker_key, pylink_zstd_packer_key;

/* Free the ZSTD_DCtx of a thread that ends. */
static inline void pylink_zstd_end_unpacker(void* context) {
    pylink_zstd_free_unpacker(context);
}

/* Free the ZSTD_CCtx of a thread that ends. */
static inline void pylink_zstd_end_packer(void* context) {
    pylink_zstd_free_packer(context);
}

/* Return the context of this thread with that key, made at the first call; NULL if memory is
   exhausted. */
static inline void* pylink_zstd_context(pthread_key_t key, pylink_zstd_make_t make,
                                        pylink_zstd_free_t free_context) {
    void* context = pthread_getspecific(key);
    if (context == NULL && (context = make()) != NULL && pthread_setspecific(key, context) != 0) {
        free_context(context);
        context = NULL;
    }
    return context;
}

/* Open the library of LZ4 at `path`. Returns whether it can decompress; it is used from then on. */
static inline int pylink_open_lz4(const char* path) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    pylink_lz4 = (pylink_lz4_t)dlsym(library, "LZ4_decompress_safe");
    return pylink_lz4 != NULL;
}

/* Open the library of Zstandard at `path`. The first that can decompress is used from then on, also
   to compress if it can. Returns whether there is one: a later library is opened, but not tried. */
static inline int pylink_open_zstd(const char* path) {
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    if (pylink_zstd_unpack != NULL)
        return 1;
    pylink_zstd_error = (pylink_zstd_error_t)dlsym(library, "ZSTD_isError");
    pylink_zstd_make_unpacker = (pylink_zstd_make_t)dlsym(library, "ZSTD_createDCtx");
    pylink_zstd_free_unpacker = (pylink_zstd_free_t)dlsym(library, "ZSTD_freeDCtx");
    if (pylink_zstd_error == NULL || pylink_zstd_make_unpacker == NULL ||
        pylink_zstd_free_unpacker == NULL ||
        pthread_key_create(&pylink_zstd_unpacker_key, pylink_zstd_end_unpacker) != 0)
        return 0;
    pylink_zstd_unpack = (pylink_zstd_unpack_t)dlsym(library, "ZSTD_decompressDCtx");
    pylink_zstd_bound = (pylink_zstd_bound_t)dlsym(library, "ZSTD_compressBound");
    pylink_zstd_make_packer = (pylink_zstd_make_t)dlsym(library, "ZSTD_createCCtx");
    pylink_zstd_free_packer = (pylink_zstd_free_t)dlsym(library, "ZSTD_freeCCtx");
    if (pylink_zstd_bound != NULL && pylink_zstd_make_packer != NULL &&
        pylink_zstd_free_packer != NULL &&
        pthread_key_create(&pylink_zstd_packer_key, pylink_zstd_end_packer) == 0)
        pylink_zstd_pack = (pylink_zstd_pack_t)dlsym(library, "ZSTD_compressCCtx");
    return pylink_zstd_unpack != NULL;
}

/* Decompress the LZ4 block of `size` bytes at `from` to `to`. Returns whether it becomes exactly
   `room` bytes; otherwise some of these may be written. Nothing outside the two ranges is touched.
 */
static inline int pylink_unpack_lz4(const void* from, size_t size, void* to, size_t room) {
    int unpacked_size;
    if (pylink_lz4 == NULL || size > INT_MAX || room > INT_MAX)
        return 0;
    unpacked_size = pylink_lz4((const char*)from, (char*)to, (int)size, (int)room);
    return unpacked_size >= 0 && (size_t)unpacked_size == room;
}

/* Decompress the Zstandard frame of `size` bytes at `from` to `to`. Returns whether it becomes
   exactly `room` bytes, as pylink_unpack_lz4 does. */
static inline int pylink_unpack_zstd(const void* from, size_t size, void* to, size_t room) {
    void* context;
    size_t unpacked_size;
    if (pylink_zstd_unpack == NULL)
        return 0;
    context = pylink_zstd_context(pylink_zstd_unpacker_key, pylink_zstd_make_unpacker,
                                  pylink_zstd_free_unpacker);
    if (context == NULL)
        return 0;
    unpacked_size = pylink_zstd_unpack(context, to, room, from, size);
    return !pylink_zstd_error(unpacked_size) && unpacked_size == room;
}

/* Return the most bytes of the frame that `size` bytes become; 0 if no open library compresses. */
static inline size_t pylink_frame_room(size_t size) {
    return pylink_zstd_pack == NULL ? 0 : pylink_zstd_bound(size);
}

/* Compress `size` bytes to a frame of at most `room` bytes. Returns the frame's size in bytes, 0 on
   failure. */
static inline size_t pylink_make_frame(const void* from, size_t size, void* to, size_t room,
                                       int level) {
    void* context;
    size_t frame_size;
    if (pylink_zstd_pack == NULL)
        return 0;
    context = pylink_zstd_context(pylink_zstd_packer_key, pylink_zstd_make_packer,
                                  pylink_zstd_free_packer);
    if (context == NULL)
        return 0;
    frame_size = pylink_zstd_pack(context, to, room, from, size, level);
    return pylink_zstd_error(frame_size) ? 0 : frame_size;
}

#endif
