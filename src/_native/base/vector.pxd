# Growable arrays of packed rows for kernels that do not know their row count beforehand.
# A Vec is owned by the kernel that fills it. `take_rows` (tables.pxd) hands its memory over to the
# table that leaves the kernel, `vec_take` makes bytes of it.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from base.blocks cimport block_free, block_widen
from base.hugepages cimport prefer_large_pages


ctypedef struct Vec:
    uint8_t* data
    size_t row          # bytes of a row
    size_t count        # rows in use
    size_t room         # rows allocated
    bint lent           # `data` is somebody else's: it cannot grow


cdef inline void vec_init(Vec* v, size_t row) noexcept nogil:
    v.data = NULL
    v.row = row
    v.count = 0
    v.room = 0
    v.lent = False


cdef inline void vec_over(Vec* v, void* rows, size_t row, size_t count) noexcept nogil:
    """A Vec of rows that somebody has."""
    v.data = <uint8_t*>rows
    v.row = row
    v.count = v.room = count
    v.lent = True


cdef inline void vec_free(Vec* v) noexcept nogil:
    if v.data != NULL and not v.lent:
        block_free(v.data, v.room * v.row)
    v.data = NULL
    v.count = v.room = 0


cdef inline bint vec_reserve(Vec* v, size_t count) noexcept nogil:
    """Make room for `count` rows in all; False when memory is exhausted."""
    cdef size_t room
    cdef uint8_t* data
    if count <= v.room:
        return True
    if v.lent:
        return False
    room = v.room * 2 if v.room else 64
    if room < count:
        room = count
    if room > (<size_t>-1) // 2 // v.row:
        return False
    data = <uint8_t*>block_widen(v.data, v.room * v.row, room * v.row)
    if data == NULL:
        return False
    v.data = data
    v.room = room
    return True


cdef inline void* vec_push(Vec* v) noexcept nogil:
    """A new, uninitialised row at the end, or NULL when memory is exhausted."""
    if v.count == v.room and not vec_reserve(v, v.count + 1):
        return NULL
    v.count += 1
    return v.data + (v.count - 1) * v.row


cdef inline void* vec_extend(Vec* v, size_t count) noexcept nogil:
    """`count` new, uninitialised rows at the end, or NULL when memory is exhausted."""
    if not vec_reserve(v, v.count + count):
        return NULL
    v.count += count
    return v.data + (v.count - count) * v.row


cdef inline bint vec_append(Vec* v, const void* rows, size_t count) noexcept nogil:
    """Put a copy of `count` rows at the end; False when memory is exhausted."""
    cdef void* place
    if count == 0:
        return True
    place = vec_extend(v, count)
    if place == NULL:
        return False
    memcpy(place, rows, count * v.row)
    return True


cdef inline bytes vec_take(Vec* v):
    """The rows as a frozen table; the Vec is empty afterwards."""
    cdef bytes table = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(v.count * v.row))
    prefer_large_pages(PyBytes_AS_STRING(table), v.count * v.row)
    if v.count:
        memcpy(PyBytes_AS_STRING(table), v.data, v.count * v.row)
    vec_free(v)
    return table
