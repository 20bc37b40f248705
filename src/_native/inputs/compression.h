/* Zstandard frames made anew, to know their bytes, by the library that decompresses. */
#ifndef PYLINK_INPUTS_COMPRESSION_H
#define PYLINK_INPUTS_COMPRESSION_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

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
static pthread_key_t pylink_frame_key;

static void pylink_frame_end(void* context) {
    pylink_frame_free(context);
}

/* Whether the library at `path` can; it does from then on. */
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

/* The most bytes that a frame of `size` bytes has; 0 without the library. */
static size_t pylink_frame_room(size_t size) {
    return pylink_frame == NULL ? 0 : pylink_frame_bound(size);
}

/* Bytes of the frame that is made of `size` bytes; 0 if none is. The memory that this takes is the
   thread's, and goes with it: to get it anew took a seventh of the time for cubins of 23 kB. */
static size_t pylink_make_frame(const void* from, size_t size, void* to, size_t room, int level) {
    void* context;
    size_t made;
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
    made = pylink_frame(context, to, room, from, size, level);
    return pylink_frame_error(made) ? 0 : made;
}

#endif
