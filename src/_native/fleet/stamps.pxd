# Stamps identify a version of a file; `pylink.fleet.walk.Stamp` has the same fields.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct Time "struct timespec":
        int64_t tv_sec
        int64_t tv_nsec
    ctypedef struct Stat "struct stat":
        uint64_t st_ino
        int64_t st_size
        uint32_t st_mode
        Time st_mtim
        Time st_ctim
    int fstatat(int directory, const char* path, Stat* status, int flags)
    int fstat(int file, Stat* status)
    bint S_ISREG(uint32_t mode)
    bint S_ISDIR(uint32_t mode)
    bint S_ISLNK(uint32_t mode)

cdef struct Stamp:
    int64_t size                # bytes
    int64_t mtime               # ns
    int64_t ctime               # ns
    int64_t inode


cdef inline Stamp stamp_of(const Stat* status) noexcept nogil:
    """Return the stamp of a file with this status."""
    cdef Stamp stamp
    stamp.size = status.st_size
    stamp.mtime = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec
    stamp.ctime = status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec
    stamp.inode = <int64_t>status.st_ino
    return stamp


cdef inline bint is_same(const Stamp* stamp, const Stamp* other) noexcept nogil:
    """Return whether two stamps are of one version of a file."""
    return (stamp.size == other.size and stamp.mtime == other.mtime and stamp.ctime == other.ctime
            and stamp.inode == other.inode)


cdef inline bint is_unknown(const Stamp* stamp) noexcept nogil:
    """Return whether only the size is known, as for a file that changed a moment before."""
    return stamp.mtime == 0 and stamp.ctime == 0 and stamp.inode == 0
