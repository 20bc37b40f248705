# Writes levels, numbers and texts in the encodings of a Parquet file. Levels say which rows have a
# value. Levels and numbers are stored as runs. A run is one number that repeats (at least eight
# times, or in all rows), or groups of eight numbers with `bits` bits each. A run begins with a
# varint: 2 * repeats for a number that repeats, 2 * groups + 1 for groups. Example with 1 bit:
#
#     1 0 1 1 0 0 0 0   1 (20 times)    03 0d   28 01    groups: 1 of 0b00001101; repeats: 20 of 1

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room
from base.vector cimport Vec, vec_append, vec_extend, vec_reserve

cdef enum:
    GROUP = 8                   # numbers are packed in groups of this size


cdef inline bint put_levels(Vec* page, const uint8_t* valid, size_t rows) noexcept nogil:
    """Append the level of each row, which says whether it has a value: 1 if so, else 0.

    A row has one if its `valid` is not 0; all have one if `valid` is NULL. The size of the levels
    in bytes comes first. False without memory.
    """
    cdef size_t start = page.count, i
    cdef uint32_t size
    cdef int32_t* levels
    cdef Scratch scratch
    cdef bint good
    if not vec_append(page, &start, 4):     # any 4 bytes; the size replaces them below
        return False
    if valid == NULL:
        good = put_varint(page, rows << 1) and vec_append(page, b"\1", 1)
    else:
        scratch_init(&scratch)
        levels = <int32_t*>scratch_room(&scratch, rows, sizeof(int32_t))
        for i in range(0 if scratch.failed else rows):
            levels[i] = valid[i] != 0
        good = not scratch.failed and put_runs(page, levels, rows, 1)
        scratch_free(&scratch)
    size = <uint32_t>(page.count - start - 4)
    memcpy(page.data + start, &size, 4)
    return good


cdef inline bint put_numbered(Vec* page, const int32_t* numbers, size_t rows,
                              size_t distinct) noexcept nogil:
    """Append levels of rows (1: has a value), and numbers in a dictionary of `distinct` values.

    The number -1 is a row without a value. False without memory.
    """
    cdef uint8_t* levels
    cdef int32_t* present
    cdef size_t i, count = 0
    cdef Scratch scratch
    cdef bint good
    scratch_init(&scratch)
    levels = <uint8_t*>scratch_room(&scratch, rows, 1)
    present = <int32_t*>scratch_room(&scratch, rows, sizeof(int32_t))
    good = not scratch.failed
    if good:
        for i in range(rows):
            levels[i] = numbers[i] >= 0
            if levels[i]:
                present[count] = numbers[i]
                count += 1
        good = (put_levels(page, levels if count < rows else NULL, rows)
                and (distinct == 0 or put_numbers(page, present, count, distinct)))
    scratch_free(&scratch)
    return good


cdef inline bint put_numbers(Vec* page, const int32_t* numbers, size_t count,
                             size_t distinct) noexcept nogil:
    """Append the width in bits of numbers in a dictionary of `distinct` values, then the numbers.

    False without memory.
    """
    cdef uint8_t bits = 1
    while distinct > <size_t>1 << bits:
        bits += 1
    return vec_append(page, &bits, 1) and put_runs(page, numbers, count, bits)


cdef inline bint put_runs(Vec* page, const int32_t* numbers, size_t count,
                          uint8_t bits) noexcept nogil:
    """Append numbers of `bits` bits as runs; False without memory."""
    cdef size_t i = 0, run, packed = 0      # packed: numbers before `i` still to be bit-packed
    while i < count:
        run = 1
        while i + run < count and numbers[i + run] == numbers[i]:
            run += 1
        if run < GROUP:
            run = min(<size_t>GROUP, count - i)
            packed += run
        else:
            if not put_packed(page, numbers + i - packed, packed, bits):
                return False
            packed = 0
            if not put_varint(page, run << 1) or (
                    not vec_append(page, &numbers[i], (bits + 7) // 8)):
                return False
        i += run
    return put_packed(page, numbers + count - packed, packed, bits)


cdef inline bint put_packed(Vec* page, const int32_t* numbers, size_t count,
                            uint8_t bits) noexcept nogil:
    """Append a run of bit-packed numbers, padded with zeros to full groups of eight.

    A `count` of 0 appends nothing. False without memory.
    """
    cdef size_t groups = (count + GROUP - 1) // GROUP, i
    cdef uint64_t bits_to_write = 0
    cdef uint8_t pending_bits = 0
    cdef uint8_t* target
    if count == 0:
        return True
    if not put_varint(page, groups << 1 | 1):
        return False
    target = <uint8_t*>vec_extend(page, groups * bits)
    if target == NULL:
        return False
    for i in range(groups * GROUP):
        if i < count:
            bits_to_write |= <uint64_t>numbers[i] << pending_bits
        pending_bits += bits
        while pending_bits >= 8:
            target[0] = <uint8_t>bits_to_write
            target += 1
            bits_to_write >>= 8
            pending_bits -= 8
    return True


cdef inline bint put_texts(Vec* page, const int64_t* ends, const char* text,
                           size_t count) noexcept nogil:
    """Append `count` texts, each after its size in 4 bytes; False without memory."""
    cdef size_t i
    cdef uint32_t size
    if not vec_reserve(page, page.count + 4 * count + ends[count] - ends[0]):
        return False
    for i in range(count):
        size = <uint32_t>(ends[i + 1] - ends[i])
        if not vec_append(page, &size, 4) or not vec_append(page, text + ends[i], size):
            return False
    return True


cdef inline bint put_varint(Vec* page, uint64_t value) noexcept nogil:
    """Append a number as a varint: 7 bits a byte, low ones first, bit 7 set in all but the last.

    False without memory.
    """
    cdef uint8_t byte
    while value >= 128:
        byte = <uint8_t>(value | 128)
        if not vec_append(page, &byte, 1):
            return False
        value >>= 7
    byte = <uint8_t>value
    return vec_append(page, &byte, 1)
