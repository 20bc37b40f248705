/* Replaces mremap by that of other systems, to be loaded before a program. MREMAP=one: only pages
   of a single mapping can be moved, as before Linux 6.17. MREMAP=seldom: three of four calls fail,
   as in a process that has as many mappings as it may have. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Return whether one mapping of this process contains all `size` bytes from `start` on. */
static int in_one_mapping(unsigned long start, size_t size) {
    unsigned long first, end;
    char line[4096];
    int found = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = sscanf(line, "%lx-%lx", &first, &end) == 2 && first <= start && start + size <= end;
    fclose(maps);
    return found;
}

void* mremap(void* from, size_t size, size_t wider, int flags, ...) {
    static int count;
    const char* how = getenv("MREMAP");
    void* to;
    va_list more;
    va_start(more, flags);
    to = flags & MREMAP_FIXED ? va_arg(more, void*) : NULL;
    va_end(more);
    if (flags & MREMAP_FIXED) {
        fprintf(stderr, "%s", count ? "" : "moves pages\n");
        count++;
        if (strcmp(how, "one") == 0 && !in_one_mapping((unsigned long)from, size)) {
            munmap(to, wider);
            errno = EFAULT;
            return MAP_FAILED;
        }
        if (strcmp(how, "seldom") == 0 && count % 4) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
    return (void*)syscall(SYS_mremap, from, size, wider, flags, to);
}
