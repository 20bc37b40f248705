# The result of `stat`: identity, size, kind and times of a file.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct Stat "struct stat":
        uint64_t st_dev
        uint64_t st_ino
        int64_t st_size
        uint32_t st_mode
        int64_t seconds "st_mtim.tv_sec"            # when its bytes were last changed
        int64_t nanoseconds "st_mtim.tv_nsec"
        int64_t change_seconds "st_ctim.tv_sec"     # when bytes or status were last changed
        int64_t change_nanoseconds "st_ctim.tv_nsec"
    int c_stat "stat"(const char* path, Stat* status)
    int fstatat(int directory, const char* path, Stat* status, int flags)
    int fstat(int file, Stat* status)
    bint S_ISREG(uint32_t mode)
    bint S_ISDIR(uint32_t mode)
    bint S_ISLNK(uint32_t mode)
