/* Writes a line to standard error for each thread that a program starts, to be loaded before it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    static const char line[] = "a thread is started\n";
    int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) =
        (int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))dlsym(
            RTLD_NEXT, "pthread_create");
    if (write(2, line, sizeof line - 1) < 0)
        return -1;
    return real(thread, attributes, start, argument);
}
