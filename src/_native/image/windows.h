/* Disk space for a file that is written in pieces. */
#ifndef PYLINK_IMAGE_WINDOWS_H
#define PYLINK_IMAGE_WINDOWS_H

#include <errno.h>
#ifdef __linux__
#include <fcntl.h>
#endif
#include <stdint.h>
#include <unistd.h>

/* Give an empty file its size, and reserve disk space if the system can. This is the system's own
   call: the C library's writes to every page if the file system does not support it. */
static int pylink_reserve(int file, uint64_t size) {
    int done = -1;
    if (size > (uint64_t)INT64_MAX)
        return 0;
#ifdef __linux__
    do
        done = fallocate(file, 0, 0, (off_t)size);
    while (done != 0 && errno == EINTR);
    if (done != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return 0;
#endif
    return done == 0 || ftruncate(file, (off_t)size) == 0;
}

#endif
