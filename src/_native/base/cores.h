/* The number of threads that a process may use at once. */
#ifndef PYLINK_BASE_CORES_H
#define PYLINK_BASE_CORES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

/* Return how many processors a quota of a control group allows, rounded up; 0 without a quota.
   `values` is the text of quota and period in microseconds, such as "150000 100000". Without a
   quota it begins with "max" or -1. */
static inline size_t pylink_quota_of(const char* values) {
    long long quota, period;
    if (sscanf(values, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    return (size_t)((quota + period - 1) / period);
}

/* Read the first line of a file into `line`, of `room` bytes. Returns whether that worked. */
static inline int pylink_read_line(const char* path, char* line, int room) {
    FILE* file = fopen(path, "re");
    int good = file != NULL && fgets(line, room, file) != NULL;
    if (file != NULL)
        fclose(file);
    return good;
}

/* Return the smallest quota of a control group and its parents, in processors; 0 without a quota.
   `groups` is a file such as /proc/self/cgroup, whose line "0::" names the group; `root` is the
   directory where control groups are mounted. If they have no quota, that of version 1 of control
   groups (cpu.cfs_quota_us) counts, which is read for the root alone. */
static inline size_t pylink_read_quota(const char* groups, const char* root) {
    char path[4096], group[2048], values[128];
    size_t least = 0, quota, end;
    FILE* file = fopen(groups, "re");
    group[0] = 0;
    while (file != NULL && fgets(group, sizeof group, file) != NULL &&
           strncmp(group, "0::", 3) != 0)
        group[0] = 0;
    if (file != NULL)
        fclose(file);
    if (group[0]) {
        group[strcspn(group, "\n")] = 0;
        for (end = strlen(group + 3);; --end) {
            if (end && group[3 + end] != '/' && group[3 + end] != 0)
                continue;
            group[3 + end] = 0;
            snprintf(path, sizeof path, "%s%s/cpu.max", root, group + 3);
            quota = pylink_read_line(path, values, sizeof values) ? pylink_quota_of(values) : 0;
            if (quota && (!least || quota < least))
                least = quota;
            if (end == 0)
                break;
        }
    }
    if (least)
        return least;
    snprintf(path, sizeof path, "%s/cpu/cpu.cfs_quota_us", root);
    if (pylink_read_line(path, values, 60)) {
        values[strcspn(values, "\n")] = ' ';
        end = strlen(values);
        snprintf(path, sizeof path, "%s/cpu/cpu.cfs_period_us", root);
        if (pylink_read_line(path, values + end, 60))
            least = pylink_quota_of(values);
    }
    return least;
}

size_t pylink_core_count(void) __attribute__((visibility("hidden")));
/* Return the number of processors that the process may use, at least 1: PYLINK_THREADS, if that is
   a number above 0, otherwise what its affinity and the quota of its control group allow. The quota
   is read once. */
size_t pylink_core_count(void) {
    static size_t quota = (size_t)-1;
    const char* text = getenv("PYLINK_THREADS");
    size_t count = 0, most = __atomic_load_n(&quota, __ATOMIC_RELAXED);
    if (text != NULL && *text && strspn(text, "0123456789") == strlen(text))
        count = (size_t)strtoul(text, NULL, 10);
    if (count)
        return count;
#ifdef __linux__
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        count = (size_t)CPU_COUNT(&cores);
#endif
    if (count == 0) /* too many for a cpu_set_t, or a system without affinity */
        count = (size_t)(sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1);
    if (most == (size_t)-1) {
        most = pylink_read_quota("/proc/self/cgroup", "/sys/fs/cgroup");
        __atomic_store_n(&quota, most, __ATOMIC_RELAXED);
    }
    return most && most < count ? most : count;
}

#endif
