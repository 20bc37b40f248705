/* Replaces madvise and pread by functions that can fail, to be loaded before a program.

   MADVISE=refused: madvise does not know MADV_POPULATE_READ, as before Linux 5.14.
   MADVISE=NAME: the file of that name has a bad block. MADV_POPULATE_READ fails for its mappings,
   and so does pread after its first 4096 bytes. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* Return whether a path, up to a line feed, ends with a slash and `name`. */
static int ends_with(const char* path, const char* name) {
    size_t size = strcspn(path, "\n"), length = strlen(name);
    return size > length && path[size - length - 1] == '/' &&
           memcmp(path + size - length, name, length) == 0;
}

/* Return whether a mapping of the file `name` has addresses between `start` and `end`. */
static int is_bad(uintptr_t start, uintptr_t end, const char* name) {
    unsigned long first, last;
    char line[4096];
    int found = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = ends_with(line, name) && sscanf(line, "%lx-%lx", &first, &last) == 2 &&
                start < last && first < end;
    fclose(maps);
    return found;
}

int madvise(void* place, size_t size, int advice) {
    const char* how = getenv("MADVISE");
    if (advice == MADV_POPULATE_READ) {
        int refused = strcmp(how, "refused") == 0;
        if (refused || is_bad((uintptr_t)place, (uintptr_t)place + size, how)) {
            fputs(refused ? "" : "bad block\n", stderr);
            errno = refused ? EINVAL : EFAULT;
            return -1;
        }
    }
    return (int)syscall(SYS_madvise, place, size, advice);
}

ssize_t pread(int file, void* data, size_t size, off_t offset) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (offset + size > 4096 && ends_with(path, getenv("MADVISE"))) {
        errno = EIO;
        return -1;
    }
    return (ssize_t)syscall(SYS_pread64, file, data, size, offset);
}

ssize_t pread64(int file, void* data, size_t size, off_t offset) {
    return pread(file, data, size, offset);
}
