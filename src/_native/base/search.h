/* memmem, which <string.h> declares only if _GNU_SOURCE was defined before its first inclusion. */
#ifndef PYLINK_BASE_SEARCH_H
#define PYLINK_BASE_SEARCH_H

#include <stddef.h>

extern void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size);

#endif
