"""Finds equal sections in a whole build, at any position.

A row is a section with its relocation section. The first of all equal rows is their leader: rows
with the bytes A, B, A, A have the leaders 0, 1, 0, 0.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from base.spans cimport KeySlot, KeyTable, first_difference, scratch_table, table_put, table_slot


cdef class Twins:
    """Equal rows, and the work that finding them took."""
    cdef readonly bytes leaders             # int64 by row: the first row that is equal to it
    cdef readonly uint64_t comparisons      # pairs of buffers that were compared
    # Bytes compared in these pairs, up to and with the first difference of each.
    cdef readonly uint64_t bytes_compared

    cdef bint are_equal(self, const Py_buffer* a, const Py_buffer* b) noexcept nogil:
        """Return whether two buffers have equal bytes; adds to the counts of this object."""
        cdef size_t difference
        if a.len != b.len:
            return False
        difference = first_difference(<const uint8_t*>a.buf, <const uint8_t*>b.buf, a.len)
        self.comparisons += 1
        self.bytes_compared += difference + (difference != <size_t>a.len)
        return difference == <size_t>a.len


# The lists have, by row, the bytes of a section and of its relocation section, and a number (such
# as a hash) that equal rows share.
def find_twins(list sections not None, list relocations not None, list keys not None):
    """Find, for each row, the first row that is equal to it."""
    cdef Py_ssize_t row_count = len(sections), i, view_count = 0
    cdef KeyTable table
    cdef KeySlot* slot
    cdef uint32_t row                   # 1 + a leader with the key, 0 at the end of the chain
    cdef Twins twins = Twins.__new__(Twins)
    if not len(relocations) == len(keys) == row_count:
        raise ValueError("columns differ in length")
    if row_count > 0x7fffffff:
        raise ValueError("a table holds fewer than 2**31 rows")
    twins.leaders = PyBytes_FromStringAndSize(NULL, row_count * 8)
    cdef int64_t* leader = <int64_t*>PyBytes_AS_STRING(twins.leaders)
    cdef Scratch scratch
    scratch_init(&scratch)
    # A row has two: the bytes of its section, then those of its relocation section.
    cdef Py_buffer* views = <Py_buffer*>scratch_zeros(&scratch, 2 * row_count, sizeof(Py_buffer))
    cdef uint64_t* key = <uint64_t*>scratch_zeros(&scratch, row_count, sizeof(uint64_t))
    scratch_table(&scratch, &table, row_count)
    try:
        check_memory(not scratch.failed)
        for i in range(row_count):
            key[i] = keys[i]
            PyObject_GetBuffer(sections[i], &views[view_count], PyBUF_SIMPLE)
            view_count += 1
            PyObject_GetBuffer(relocations[i], &views[view_count], PyBUF_SIMPLE)
            view_count += 1
        with nogil:
            for i in range(row_count):
                leader[i] = i
                slot = table_slot(&table, key[i])
                row = slot.head
                # Only leaders are in the table, so a key's chain has no two equal rows.
                while row:
                    if (key[row - 1] == key[i]
                            and twins.are_equal(&views[2 * (row - 1)], &views[2 * i])
                            and twins.are_equal(&views[2 * (row - 1) + 1], &views[2 * i + 1])):
                        leader[i] = row - 1
                        break
                    row = table.next[row - 1]
                if leader[i] == i:
                    table_put(&table, slot, key[i], <uint32_t>i)
    finally:
        for i in range(view_count):
            PyBuffer_Release(&views[i])
        scratch_free(&scratch)
    return twins
