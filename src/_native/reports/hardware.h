/* Counters of the processor, on systems that have them. */
#ifndef PYLINK_REPORTS_HARDWARE_H
#define PYLINK_REPORTS_HARDWARE_H

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <errno.h>

/* Open a counter of PERF_TYPE_HARDWARE, a PERF_COUNT_HW_ number, for the calling thread and those
   that it starts later. Returns a descriptor, or -1 with errno. */
static int open_hardware(unsigned long long number) {
    struct perf_event_attr attr = {0};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = number;
    attr.inherit = 1;        /* threads that the link starts count, too */
    attr.exclude_kernel = 1; /* what an ordinary process may ask for */
    attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}
#else
#include <errno.h>

/* Return -1 with ENOSYS: other systems have no such counters. */
static int open_hardware(unsigned long long number) {
    (void)number;
    errno = ENOSYS;
    return -1;
}
#endif

#endif
