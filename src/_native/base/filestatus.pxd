# The result of `stat`: identity, size, kind and time of a file.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct Stat "struct stat":
        uint64_t st_dev
        uint64_t st_ino
        int64_t st_size
        uint32_t st_mode
        int64_t seconds "st_mtim.tv_sec"
        int64_t nanoseconds "st_mtim.tv_nsec"
    int c_stat "stat"(const char* path, Stat* status)
    int fstatat(int directory, const char* path, Stat* status, int flags)
    bint S_ISREG(uint32_t mode)
