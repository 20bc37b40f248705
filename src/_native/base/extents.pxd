# Extents of the files in an arena, the buffer that holds all of them: for each file its offset and
# its size in bytes, both uint64.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t


cdef inline Py_ssize_t count_files(bytes arena, bytes extents) except -1:
    """Return the number of files in `extents`; IndexError for one that runs past the arena."""
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t file_count = PyBytes_GET_SIZE(extents) // 16, i
    cdef uint64_t limit = <uint64_t>PyBytes_GET_SIZE(arena)
    for i in range(file_count):
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"file {i} runs past the arena")
    return file_count


cdef inline void move_extents(uint64_t* extent, Py_ssize_t file_count,
                              uint64_t distance) noexcept:
    """Add a distance in bytes to the offset of each file."""
    cdef Py_ssize_t i
    for i in range(file_count):
        extent[2 * i] += distance
