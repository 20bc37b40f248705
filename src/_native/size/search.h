/* The search for bytes in bytes, which <string.h> declares only if it is asked for first. */
#ifndef PYLINK_SIZE_SEARCH_H
#define PYLINK_SIZE_SEARCH_H

#include <stddef.h>

extern void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size);

#endif
