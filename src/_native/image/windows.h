/* Disk space for a file that is written in pieces. */
#ifndef PYLINK_IMAGE_WINDOWS_H
#define PYLINK_IMAGE_WINDOWS_H

#include <errno.h>
#ifdef __linux__
#include <fcntl.h>
#endif
#include <stdint.h>
#include <unistd.h>

/* Give an empty file its size, and reserve disk space if the system can. Returns 1, or 0 if the
   file cannot have the size. fallocate is the system's own call: where the file system does not
   support it, the C library's posix_fallocate would write to every page. */
static int pylink_reserve(int file, uint64_t size) {
    int result = -1;
    if (size > (uint64_t)INT64_MAX)
        return 0;
#ifdef __linux__
    do
        result = fallocate(file, 0, 0, (off_t)size);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return 0;
#endif
    return result == 0 || ftruncate(file, (off_t)size) == 0;
}

#endif
