# Finds the distinct values of a column whose values have 4, 8 or 16 bytes.

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_nones
from base.vector cimport Vec, vec_append, vec_extend

cdef enum:
    FIRST_SLOTS = 1024          # slots of a new hash table, a power of two; half full, it doubles


cdef inline bint find_distinct(const Vec* values, Vec* distinct, Vec* numbers) noexcept nogil:
    """Append distinct values, and for each row the number of its value; False without memory.

    `distinct` must be empty. It stays empty, and `numbers` have no meaning, if more than
    half of the values are distinct: a dictionary would save little.
    """
    cdef int32_t* number = <int32_t*>vec_extend(numbers, values.count)
    cdef Scratch scratch
    cdef bint good
    if values.count and number == NULL:
        return False
    scratch_init(&scratch)
    good = number_values(values, distinct, number, &scratch)
    scratch_free(&scratch)
    return good


cdef inline bint number_values(const Vec* values, Vec* distinct, int32_t* number,
                               Scratch* scratch) noexcept nogil:
    """Append distinct values, and set the number of each row's value; False without memory.

    `distinct` must be empty; it is empty again at the end if more than half of the values are
    distinct. `scratch` is empty, and gets the hash table.
    """
    cdef size_t width = values.row, i, slot, limit = values.count // 2
    cdef size_t mask = FIRST_SLOTS - 1
    cdef int32_t* slots = scratch_nones(scratch, mask + 1)
    cdef const uint8_t* value = values.data
    if slots == NULL:
        return False
    for i in range(values.count):
        # Neighbors are often equal: rows of one object repeat its number.
        if i and is_equal(value, value - width, width):
            number[i] = number[i - 1]
        else:
            slot = hash_value(value, width) & mask
            while (slots[slot] >= 0
                    and not is_equal(distinct.data + slots[slot] * width, value, width)):
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                if distinct.count == limit:
                    distinct.count = 0
                    break
                slots[slot] = <int32_t>distinct.count
                if not vec_append(distinct, value, 1):
                    return False
            number[i] = slots[slot]
            if 2 * distinct.count > mask:
                mask = 2 * mask + 1
                scratch_free(scratch)
                slots = scratch_nones(scratch, mask + 1)
                if slots == NULL:
                    return False
                for slot in range(distinct.count):
                    insert_value(slots, mask, distinct, slot)
        value += width
    return True


cdef inline void insert_value(int32_t* slots, size_t mask, const Vec* distinct,
                              size_t number) noexcept nogil:
    """Insert the number of a value that the hash table does not have yet."""
    cdef size_t slot = hash_value(distinct.data + number * distinct.row, distinct.row) & mask
    while slots[slot] >= 0:
        slot = (slot + 1) & mask
    slots[slot] = <int32_t>number


cdef inline bint is_equal(const uint8_t* left, const uint8_t* right, size_t width) noexcept nogil:
    """Return whether two values are equal, without memcmp, whose calls would take longer."""
    cdef uint64_t a = 0, b = 0
    if width == 4:
        memcpy(&a, left, 4)
        memcpy(&b, right, 4)
        return a == b
    memcpy(&a, left, 8)
    memcpy(&b, right, 8)
    if a != b or width == 8:
        return a == b
    memcpy(&a, left + 8, 8)
    memcpy(&b, right + 8, 8)
    return a == b


cdef inline size_t hash_value(const uint8_t* value, size_t width) noexcept nogil:
    """Return a hash of a value of 4, 8 or 16 bytes; its low bits depend on most bits of the value.
    """
    cdef uint64_t low = 0, high = 0
    if width == 4:
        memcpy(&low, value, 4)
    else:
        memcpy(&low, value, 8)
        if width == 16:
            memcpy(&high, value + 8, 8)
    low = (low ^ high * 0xc4ceb9fe1a85ec53ULL) * 0x9e3779b97f4a7c15ULL
    return low ^ (low >> 32)
