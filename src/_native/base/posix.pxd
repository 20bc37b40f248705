# Functions of the C library for files and processes, and `memmem`. `open`, `close`, `read`, `pread`
# and `pwrite` have the prefix `c_` here.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char* path, int flags)
    int O_RDONLY
    int O_CLOEXEC
    int O_NOCTTY
    int O_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int fd)
    ssize_t c_read "read"(int fd, void* data, size_t size)
    ssize_t c_pread "pread"(int fd, void* data, size_t size, int64_t offset)
    ssize_t c_pwrite "pwrite"(int fd, const void* data, size_t size, int64_t offset)
    int getpid()

cdef extern from "base/search.h" nogil:
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size)
