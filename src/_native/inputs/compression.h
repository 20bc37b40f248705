/* Compression to Zstandard frames, by the library that also decompresses them. */
#ifndef PYLINK_INPUTS_COMPRESSION_H
#define PYLINK_INPUTS_COMPRESSION_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* Functions of the library; NULL before it is opened. */
typedef size_t (*pylink_frame_t)(void*, void*, size_t, const void*, size_t, int);
typedef size_t (*pylink_frame_bound_t)(size_t);
typedef void* (*pylink_frame_make_t)(void);
typedef size_t (*pylink_frame_free_t)(void*);
typedef unsigned (*pylink_frame_error_t)(size_t);
static pylink_frame_t pylink_frame;
static pylink_frame_bound_t pylink_frame_bound;
static pylink_frame_make_t pylink_frame_make;
static pylink_frame_free_t pylink_frame_free;
static pylink_frame_error_t pylink_frame_error;
static pthread_key_t pylink_frame_key; /* a thread's ZSTD_CCtx */

/* Free the ZSTD_CCtx of a thread that ends. */
static void pylink_frame_end(void* context) {
    pylink_frame_free(context);
}

/* Open the library at `path`. Returns whether it can compress; it is used from then on. */
static int pylink_open_frames(const char* path) {
    void* library;
    if (pylink_frame != NULL)
        return 1;
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    pylink_frame_bound = (pylink_frame_bound_t)dlsym(library, "ZSTD_compressBound");
    pylink_frame_error = (pylink_frame_error_t)dlsym(library, "ZSTD_isError");
    pylink_frame_make = (pylink_frame_make_t)dlsym(library, "ZSTD_createCCtx");
    pylink_frame_free = (pylink_frame_free_t)dlsym(library, "ZSTD_freeCCtx");
    if (pylink_frame_bound != NULL && pylink_frame_error != NULL && pylink_frame_make != NULL &&
        pylink_frame_free != NULL && pthread_key_create(&pylink_frame_key, pylink_frame_end) == 0)
        pylink_frame = (pylink_frame_t)dlsym(library, "ZSTD_compressCCtx");
    return pylink_frame != NULL;
}

/* Most bytes of the frame that `size` bytes become; 0 without the library. */
static size_t pylink_frame_room(size_t size) {
    return pylink_frame == NULL ? 0 : pylink_frame_bound(size);
}

/* Compress `size` bytes to a frame of at most `room` bytes. Returns the bytes of the frame, 0 on
   failure. Each thread keeps its ZSTD_CCtx until it ends: making one for each frame took a seventh
   of the time for cubins of 23 kB. */
static size_t pylink_make_frame(const void* from, size_t size, void* to, size_t room, int level) {
    void* context;
    size_t frame_size;
    if (pylink_frame == NULL)
        return 0;
    context = pthread_getspecific(pylink_frame_key);
    if (context == NULL) {
        context = pylink_frame_make();
        if (context == NULL)
            return 0;
        if (pthread_setspecific(pylink_frame_key, context) != 0) {
            pylink_frame_free(context);
            return 0;
        }
    }
    frame_size = pylink_frame(context, to, room, from, size, level);
    return pylink_frame_error(frame_size) ? 0 : frame_size;
}

#endif
