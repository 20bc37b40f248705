# Growable arrays of packed rows, for functions that do not know their row count beforehand. A Vec
# belongs to the native function that fills it. `detach_rows` (src/pylink/_native/tables.pxd) moves
# its memory to a table, `vec_to_bytes` makes bytes of it. In a struct, the comment of a Vec begins
# with the type of its rows, which `tests/helpers/row_numbers.py` compares with the pointers that
# lead to them.
#
# In all native code, a `bint` function whose name is a verb returns False if memory is exhausted. A
# docstring, or the head of a file for its functions, says if False means something else.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from base.blocks cimport block_free, block_widen
from base.hugepages cimport prefer_large_pages


# A growable array of packed rows, which all have the same number of bytes.
ctypedef struct Vec:
    uint8_t* data
    size_t row                  # bytes of a row
    size_t count                # rows in use
    size_t room                 # rows allocated
    bint borrowed               # `data` belongs to another owner, so it cannot grow


cdef inline void vec_init(Vec* vec, size_t row) noexcept nogil:
    """Start an empty Vec of rows of `row` bytes."""
    vec.data = NULL
    vec.row = row
    vec.count = 0
    vec.room = 0
    vec.borrowed = False


cdef inline void vec_over(Vec* vec, void* rows, size_t row, size_t count) noexcept nogil:
    """Make a Vec of `count` existing rows of `row` bytes, which it does not own."""
    vec.data = <uint8_t*>rows
    vec.row = row
    vec.count = vec.room = count
    vec.borrowed = True


cdef inline void vec_free(Vec* vec) noexcept nogil:
    """Free the rows, unless they are borrowed, and leave the Vec empty."""
    if vec.data != NULL and not vec.borrowed:
        block_free(vec.data, vec.room * vec.row)
    vec.data = NULL
    vec.count = vec.room = 0


cdef inline bint vec_reserve(Vec* vec, size_t count) noexcept nogil:
    """Make room for `count` rows in all; False without memory, or if borrowed rows are too few."""
    cdef size_t room
    cdef uint8_t* data
    if count <= vec.room:
        return True
    if vec.borrowed:
        return False
    room = vec.room * 2 if vec.room else 64
    if room < count:
        room = count
    if room > (<size_t>-1) // 2 // vec.row:
        return False
    data = <uint8_t*>block_widen(vec.data, vec.room * vec.row, room * vec.row)
    if data == NULL:
        return False
    vec.data = data
    vec.room = room
    return True


cdef inline void* vec_push(Vec* vec) noexcept nogil:
    """Add a row with any values at the end, and return it; NULL without memory."""
    if vec.count == vec.room:
        return vec_push_to_full(vec)
    vec.count += 1
    return vec.data + (vec.count - 1) * vec.row


cdef inline void* vec_push_to_full(Vec* vec) noexcept nogil:
    """Add a row to a Vec that has no room for it, and return the row; NULL without memory.

    It is a function of its own so that compilers inline `vec_push`, and a row for which there is
    room takes no call.
    """
    if not vec_reserve(vec, vec.count + 1):
        return NULL
    vec.count += 1
    return vec.data + (vec.count - 1) * vec.row


cdef inline void* vec_extend(Vec* vec, size_t count) noexcept nogil:
    """Add `count` rows with any values at the end, and return the first; NULL without memory."""
    if not vec_reserve(vec, vec.count + count):
        return NULL
    vec.count += count
    return vec.data + (vec.count - count) * vec.row


cdef inline bint vec_append(Vec* vec, const void* rows, size_t count) noexcept nogil:
    """Add copies of `count` rows at the end; False without memory."""
    cdef void* end
    if count == 0:
        return True
    end = vec_extend(vec, count)
    if end == NULL:
        return False
    memcpy(end, rows, count * vec.row)
    return True


cdef inline bytes vec_to_bytes(Vec* vec):
    """Return the rows as bytes, and free the Vec."""
    cdef bytes table = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(vec.count * vec.row))
    prefer_large_pages(PyBytes_AS_STRING(table), vec.count * vec.row)
    if vec.count:
        memcpy(PyBytes_AS_STRING(table), vec.data, vec.count * vec.row)
    vec_free(vec)
    return table
