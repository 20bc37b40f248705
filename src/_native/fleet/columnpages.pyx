"""Columns of numbers and of text as pages of a Parquet file, without what is around them.

A page of data has a level for each row, 1 where there is a value, and then the values: each as it
is, or, where at most every second one is another, numbers of a dictionary, which is a page of its
own. Levels and numbers are runs: a value that comes eight times or more, or eight values by eight,
packed into as few bits as the largest of them needs.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from names cimport *
from vec cimport *

cdef enum:
    GROUP = 8                   # rows of which packed values are a multiple
    FIRST_SLOTS = 1024


cdef bytes rows_of(bytes data, Py_ssize_t width, Py_ssize_t rows):
    """The data, which must have so many rows."""
    if rows < 0 or PyBytes_GET_SIZE(data) != rows * width:
        raise ValueError("columns differ in length")
    return data


def number_pages(bytes values not None, int width, bytes valid=None):
    """Values of 4, 8 or 16 bytes; see columnpages.pyi."""
    cdef Py_ssize_t rows
    cdef uint8_t* value = <uint8_t*>PyBytes_AS_STRING(values)
    cdef const uint8_t* flags = NULL
    cdef Vec there, words, numbers, page
    cdef bint good = True
    cdef size_t i, count
    if width not in (4, 8, 16):
        raise ValueError(f"values of {width} bytes")
    rows = PyBytes_GET_SIZE(values) // width
    rows_of(values, width, rows)
    if valid is not None:
        flags = <const uint8_t*>PyBytes_AS_STRING(rows_of(valid, 1, rows))
    vec_init(&there, width)
    vec_init(&words, width)
    vec_init(&numbers, sizeof(int32_t))
    vec_init(&page, 1)
    try:
        with nogil:
            if flags == NULL:
                vec_over(&there, value, width, rows)
            else:
                for i in range(<size_t>rows):
                    if good and flags[i]:
                        good = vec_append(&there, value + i * width, 1)
            good = good and put_levels(&page, flags, rows)
            good = good and find_words(&there, &words, &numbers)
            if good and words.count:
                good = put_numbers(&page, <const int32_t*>numbers.data, numbers.count,
                                   words.count)
            elif good:
                good = vec_append(&page, there.data, there.count * width)
        if not good:
            raise MemoryError
        count = words.count
        return (vec_take(&words) if count else None), count, vec_take(&page)
    finally:
        vec_free(&there)
        vec_free(&words)
        vec_free(&numbers)
        vec_free(&page)


def flag_pages(bytes flags not None):
    """Truth values, a byte each; see columnpages.pyi."""
    cdef size_t i, n = PyBytes_GET_SIZE(flags)
    cdef const uint8_t* flag = <const uint8_t*>PyBytes_AS_STRING(flags)
    cdef uint8_t* place
    cdef Vec page
    vec_init(&page, 1)
    try:
        if not put_levels(&page, NULL, n):
            raise MemoryError
        place = <uint8_t*>vec_extend(&page, (n + 7) // 8)
        if n and place == NULL:
            raise MemoryError
        for i in range(n):
            if i % 8 == 0:
                place[i // 8] = 0
            place[i // 8] |= (flag[i] != 0) << i % 8
        return None, 0, vec_take(&page)
    finally:
        vec_free(&page)


def text_pages(bytes ends not None, bytes text not None, bytes numbers=None):
    """Text, or numbers of text; see columnpages.pyi."""
    cdef Py_ssize_t words = check_ends(ends, text), rows = words, i
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const char* base = PyBytes_AS_STRING(text)
    cdef const int32_t* number = NULL
    cdef Vec page, plain
    cdef bint good = True
    if numbers is not None:
        rows = PyBytes_GET_SIZE(numbers) // 4
        number = <const int32_t*>PyBytes_AS_STRING(rows_of(numbers, 4, rows))
        for i in range(rows):
            if not -1 <= number[i] < words:
                raise IndexError(f"no text {number[i]}")
    vec_init(&page, 1)
    vec_init(&plain, 1)
    try:
        with nogil:
            if number == NULL:
                good = put_levels(&page, NULL, rows) and put_texts(&page, end, base, words)
            else:
                good = (put_numbered(&page, number, rows, words)
                        and put_texts(&plain, end, base, words))
        if not good:
            raise MemoryError
        if number == NULL or words == 0:
            return None, 0, vec_take(&page)
        return vec_take(&plain), words, vec_take(&page)
    finally:
        vec_free(&page)
        vec_free(&plain)


def join_words(list pieces not None):
    """Numbers of several dictionaries as those of one; see columnpages.pyi."""
    cdef bytes numbers, ends, text
    cdef NameIndex index
    cdef NameSlot* slot
    cdef Vec joined, own, all_ends, all_text
    cdef const int64_t* end
    cdef const int32_t* number
    cdef int32_t* place
    cdef int64_t* total
    cdef Py_ssize_t words, rows, i
    index.slots = NULL
    vec_init(&joined, sizeof(int32_t))
    vec_init(&own, sizeof(int32_t))
    vec_init(&all_ends, sizeof(int64_t))
    vec_init(&all_text, 1)
    try:
        if not index_init(&index, 64) or vec_push(&all_ends) == NULL:
            raise MemoryError
        (<int64_t*>all_ends.data)[0] = 0
        for numbers, ends, text in pieces:
            words = check_ends(ends, text)
            rows = PyBytes_GET_SIZE(numbers) // 4
            number = <const int32_t*>PyBytes_AS_STRING(rows_of(numbers, 4, rows))
            end = <const int64_t*>PyBytes_AS_STRING(ends)
            own.count = 0
            for i in range(words):
                slot = index_find(&index, <const uint8_t*>PyBytes_AS_STRING(text) + end[i],
                                  <uint32_t>(end[i + 1] - end[i]))
                place = <int32_t*>vec_push(&own)
                if slot == NULL or place == NULL:
                    raise MemoryError
                if slot.value < 0:
                    slot.value = <int32_t>index.count
                    index.count += 1
                    if not vec_append(&all_text, slot.text, slot.size):
                        raise MemoryError
                    total = <int64_t*>vec_push(&all_ends)
                    if total == NULL:
                        raise MemoryError
                    total[0] = <int64_t>all_text.count
                place[0] = slot.value
            place = <int32_t*>vec_extend(&joined, rows)
            if rows and place == NULL:
                raise MemoryError
            for i in range(rows):
                if not 0 <= number[i] < words:
                    raise IndexError(f"no text {number[i]}")
                place[i] = (<int32_t*>own.data)[number[i]]
        return vec_take(&joined), vec_take(&all_ends), vec_take(&all_text)
    finally:
        index_free(&index)
        vec_free(&joined)
        vec_free(&own)
        vec_free(&all_ends)
        vec_free(&all_text)


cdef Py_ssize_t check_ends(bytes ends, bytes text) except -1:
    """How many pieces text is cut into, all of which it has."""
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef Py_ssize_t words = PyBytes_GET_SIZE(ends) // 8 - 1, i
    if words < 0:
        raise ValueError("columns differ in length")
    rows_of(ends, 8, words + 1)
    for i in range(words):
        if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
            raise IndexError(f"text {i} is outside the text")
    return words


cdef bint find_words(const Vec* values, Vec* words, Vec* numbers) noexcept nogil:
    """The different values and the number of each row; no words where that is no gain.

    False without memory.
    """
    cdef size_t width = values.row, i, at, most = values.count // 2
    cdef size_t mask = FIRST_SLOTS - 1
    cdef int32_t* slots = new_slots(mask)
    cdef int32_t* number = <int32_t*>vec_extend(numbers, values.count)
    cdef const uint8_t* value = values.data
    if slots == NULL or (values.count and number == NULL):
        free(slots)
        return False
    for i in range(values.count):
        # Rows of one object have the same object, and much else in common.
        if i and memcmp(value, value - width, width) == 0:
            number[i] = number[i - 1]
        else:
            at = hash_value(value, width) & mask
            while slots[at] >= 0 and memcmp(words.data + slots[at] * width, value, width) != 0:
                at = (at + 1) & mask
            if slots[at] < 0:
                if words.count == most:
                    words.count = 0
                    break
                slots[at] = <int32_t>words.count
                if not vec_append(words, value, 1):
                    free(slots)
                    return False
            number[i] = slots[at]
            if 2 * words.count > mask:
                free(slots)
                mask = 2 * mask + 1
                slots = new_slots(mask)
                if slots == NULL:
                    return False
                for at in range(words.count):
                    enter(slots, mask, words, at)
        value += width
    free(slots)
    return True


cdef int32_t* new_slots(size_t mask) noexcept nogil:
    cdef int32_t* slots = <int32_t*>malloc((mask + 1) * sizeof(int32_t))
    if slots != NULL:
        memset(slots, 0xff, (mask + 1) * sizeof(int32_t))
    return slots


cdef void enter(int32_t* slots, size_t mask, const Vec* words, size_t number) noexcept nogil:
    """Note a word that no slot has."""
    cdef size_t at = hash_value(words.data + number * words.row, words.row) & mask
    while slots[at] >= 0:
        at = (at + 1) & mask
    slots[at] = <int32_t>number


cdef inline size_t hash_value(const uint8_t* value, size_t width) noexcept nogil:
    cdef uint64_t low = 0, high = 0
    if width == 4:
        memcpy(&low, value, 4)
    else:
        memcpy(&low, value, 8)
        if width == 16:
            memcpy(&high, value + 8, 8)
    low = (low ^ high * 0xc4ceb9fe1a85ec53ULL) * 0x9e3779b97f4a7c15ULL
    return low ^ (low >> 32)


cdef bint put_levels(Vec* page, const uint8_t* valid, size_t rows) noexcept nogil:
    """Which rows have a value, all of them without `valid`; False without memory."""
    cdef size_t start = page.count, i
    cdef uint32_t size
    cdef int32_t* levels
    cdef bint good
    if not vec_append(page, &start, 4):     # for the size, which follows
        return False
    if valid == NULL:
        good = put_varint(page, rows << 1) and vec_append(page, b"\1", 1)
    else:
        levels = <int32_t*>malloc((rows + 1) * sizeof(int32_t))
        if levels == NULL:
            return False
        for i in range(rows):
            levels[i] = valid[i] != 0
        good = put_runs(page, levels, rows, 1)
        free(levels)
    size = <uint32_t>(page.count - start - 4)
    memcpy(page.data + start, &size, 4)
    return good


cdef bint put_numbered(Vec* page, const int32_t* numbers, size_t rows,
                       size_t words) noexcept nogil:
    """Levels and numbers of rows, -1 for one that has none; False without memory."""
    cdef uint8_t* levels = <uint8_t*>malloc(rows + 1)
    cdef int32_t* there = <int32_t*>malloc((rows + 1) * sizeof(int32_t))
    cdef size_t i, count = 0
    cdef bint good = levels != NULL and there != NULL
    if good:
        for i in range(rows):
            levels[i] = numbers[i] >= 0
            if levels[i]:
                there[count] = numbers[i]
                count += 1
        good = (put_levels(page, levels if count < rows else NULL, rows)
                and (words == 0 or put_numbers(page, there, count, words)))
    free(levels)
    free(there)
    return good


cdef bint put_numbers(Vec* page, const int32_t* numbers, size_t n, size_t words) noexcept nogil:
    """Numbers of a dictionary; False without memory."""
    cdef uint8_t bits = 1
    while words > <size_t>1 << bits:
        bits += 1
    return vec_append(page, &bits, 1) and put_runs(page, numbers, n, bits)


cdef bint put_runs(Vec* page, const int32_t* numbers, size_t n, uint8_t bits) noexcept nogil:
    """Numbers of so many bits; False without memory."""
    cdef size_t i = 0, run, packed = 0      # rows that wait
    while i < n:
        run = 1
        while i + run < n and numbers[i + run] == numbers[i]:
            run += 1
        if run < GROUP:
            run = min(<size_t>GROUP, n - i)
            packed += run
        else:
            if not put_packed(page, numbers + i - packed, packed, bits):
                return False
            packed = 0
            if not put_varint(page, run << 1) or (
                    not vec_append(page, &numbers[i], (bits + 7) // 8)):
                return False
        i += run
    return put_packed(page, numbers + n - packed, packed, bits)


cdef bint put_packed(Vec* page, const int32_t* numbers, size_t n, uint8_t bits) noexcept nogil:
    """The same one after the other, up to a whole group; False without memory."""
    cdef size_t groups = (n + GROUP - 1) // GROUP, i
    cdef uint64_t pending = 0
    cdef uint8_t waiting = 0
    cdef uint8_t* place
    if n == 0:
        return True
    if not put_varint(page, groups << 1 | 1):
        return False
    place = <uint8_t*>vec_extend(page, groups * bits)
    if place == NULL:
        return False
    for i in range(groups * GROUP):
        if i < n:
            pending |= <uint64_t>numbers[i] << waiting
        waiting += bits
        while waiting >= 8:
            place[0] = <uint8_t>pending
            place += 1
            pending >>= 8
            waiting -= 8
    return True


cdef bint put_texts(Vec* page, const int64_t* ends, const char* text, size_t n) noexcept nogil:
    """Each with its size in front; False without memory."""
    cdef size_t i
    cdef uint32_t size
    if not vec_reserve(page, page.count + 4 * n + ends[n] - ends[0]):
        return False
    for i in range(n):
        size = <uint32_t>(ends[i + 1] - ends[i])
        if not vec_append(page, &size, 4) or not vec_append(page, text + ends[i], size):
            return False
    return True


cdef bint put_varint(Vec* page, uint64_t value) noexcept nogil:
    cdef uint8_t byte
    while value >= 128:
        byte = <uint8_t>(value | 128)
        if not vec_append(page, &byte, 1):
            return False
        value >>= 7
    byte = <uint8_t>value
    return vec_append(page, &byte, 1)
