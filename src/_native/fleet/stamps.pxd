# Stamps identify a version of a file; `pylink.fleet.walk.Stamp` has the same fields.

from libc.stdint cimport int64_t

from base.filestatus cimport Stat

cdef struct Stamp:
    int64_t size                # bytes
    int64_t mtime               # ns
    int64_t ctime               # ns
    int64_t inode


cdef inline Stamp stamp_of(const Stat* status) noexcept nogil:
    """Return the stamp of a file with this status."""
    cdef Stamp stamp
    stamp.size = status.st_size
    stamp.mtime = status.seconds * 1000000000 + status.nanoseconds
    stamp.ctime = status.change_seconds * 1000000000 + status.change_nanoseconds
    stamp.inode = <int64_t>status.st_ino
    return stamp


cdef inline bint is_same(const Stamp* stamp, const Stamp* other) noexcept nogil:
    """Return whether two stamps are of one version of a file."""
    return (stamp.size == other.size and stamp.mtime == other.mtime and stamp.ctime == other.ctime
            and stamp.inode == other.inode)


cdef inline bint is_unknown(const Stamp* stamp) noexcept nogil:
    """Return whether only the size is known, as for a file that changed just before it was read."""
    return stamp.mtime == 0 and stamp.ctime == 0 and stamp.inode == 0
