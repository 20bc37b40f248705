"""Columns of numbers and text as pages of a Parquet file, without headers.

A page of data begins with levels: for each row 1 if it has a value, 0 for a null. The values
follow, as they are or as their numbers in a dictionary, which is a page of its own. Numbers have a
dictionary if at most half of them are distinct, texts if the caller gives one. Levels and numbers
in a dictionary are stored as runs (`fleet/runs.pxd`).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from base.memory cimport check_memory
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_append, vec_extend, vec_over, vec_push, vec_to_bytes
from fleet.distinct cimport find_distinct
from fleet.runs cimport put_levels, put_numbered, put_numbers, put_texts

cdef bytes check_rows(bytes data, Py_ssize_t width, Py_ssize_t rows):
    """Return `data`; ValueError unless it has `rows` rows of `width` bytes."""
    if rows < 0 or PyBytes_GET_SIZE(data) != rows * width:
        raise ValueError("columns differ in length")
    return data


def number_pages(bytes values not None, int width, bytes valid=None):
    """Return Parquet pages of values of `width` bytes (4, 8, 16); 0 in `valid` marks a null row."""
    # The result is: dictionary page or None, number of its values (0 for None), data page.
    cdef Py_ssize_t rows
    cdef uint8_t* value = <uint8_t*>PyBytes_AS_STRING(values)
    cdef const uint8_t* flags = NULL
    cdef Vec present, distinct, numbers, page
    cdef Scratch scratch
    cdef bint good
    cdef size_t i, count
    if width not in (4, 8, 16):
        raise ValueError(f"values of {width} bytes")
    rows = PyBytes_GET_SIZE(values) // width
    check_rows(values, width, rows)
    if valid is not None:
        flags = <const uint8_t*>PyBytes_AS_STRING(check_rows(valid, 1, rows))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &present, width * sizeof(uint8_t))
        scratch_vector(&scratch, &distinct, width * sizeof(uint8_t))
        scratch_vector(&scratch, &numbers, sizeof(int32_t))
        scratch_vector(&scratch, &page, 1)
        good = not scratch.failed
        with nogil:
            if flags == NULL:
                vec_over(&present, value, width * sizeof(uint8_t), rows)
            else:
                for i in range(<size_t>rows):
                    if good and flags[i]:
                        good = vec_append(&present, value + i * width, 1)
            good = good and put_levels(&page, flags, rows)
            good = good and find_distinct(&present, &distinct, &numbers)
            if good and distinct.count:
                good = put_numbers(&page, <const int32_t*>numbers.data, numbers.count,
                                   distinct.count)
            elif good:
                good = vec_append(&page, present.data, present.count * width)
        check_memory(good)
        count = distinct.count
        return (vec_to_bytes(&distinct) if count else None), count, vec_to_bytes(&page)
    finally:
        scratch_free(&scratch)


def flag_pages(bytes flags not None):
    """Return Parquet pages of booleans; `flags` has a byte for each, 0 for False."""
    # The result has no dictionary page: it is (None, 0, data page).
    cdef size_t i, flag_count = PyBytes_GET_SIZE(flags)
    cdef const uint8_t* flag = <const uint8_t*>PyBytes_AS_STRING(flags)
    cdef uint8_t* place
    cdef Vec page
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &page, 1)
        check_memory(put_levels(&page, NULL, flag_count))
        place = <uint8_t*>vec_extend(&page, (flag_count + 7) // 8)
        check_memory(not flag_count or place != NULL)
        for i in range(flag_count):
            if i % 8 == 0:
                place[i // 8] = 0
            place[i // 8] |= (flag[i] != 0) << i % 8
        return None, 0, vec_to_bytes(&page)
    finally:
        scratch_free(&scratch)


def text_pages(bytes ends not None, bytes text not None, bytes numbers=None):
    """Return Parquet pages of texts: text `i` is `text` from `ends[i]` to `ends[i + 1]` (int64)."""
    # With `numbers` (int32), these texts are a dictionary: a row has the number of its text, -1 for
    # null. The result is: dictionary page or None, number of its texts (0 for None), data page.
    cdef Py_ssize_t text_count = check_ends(ends, text), rows = text_count, i
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const char* base = PyBytes_AS_STRING(text)
    cdef const int32_t* number = NULL
    cdef Vec page, plain
    cdef Scratch scratch
    cdef bint good
    if numbers is not None:
        rows = PyBytes_GET_SIZE(numbers) // 4
        number = <const int32_t*>PyBytes_AS_STRING(check_rows(numbers, 4, rows))
        for i in range(rows):
            if not -1 <= number[i] < text_count:
                raise IndexError(f"no text {number[i]}")
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &page, 1)
        scratch_vector(&scratch, &plain, 1)
        with nogil:
            if number == NULL:
                good = put_levels(&page, NULL, rows) and put_texts(&page, end, base, text_count)
            else:
                good = (put_numbered(&page, number, rows, text_count)
                        and put_texts(&plain, end, base, text_count))
        check_memory(good)
        if number == NULL or text_count == 0:
            return None, 0, vec_to_bytes(&page)
        return vec_to_bytes(&plain), text_count, vec_to_bytes(&page)
    finally:
        scratch_free(&scratch)


def join_words(list pieces not None):
    """Concatenate columns of texts, each with its dictionary, to one with one dictionary."""
    # A piece is the number of each row's text (int32), then `ends` and `text` of its dictionary.
    cdef bytes numbers, ends, text
    cdef NameIndex index
    cdef NameSlot* slot
    cdef Vec all_numbers, joined_numbers, all_ends, all_text
    cdef Scratch scratch
    cdef const int64_t* end
    cdef const int32_t* number
    cdef int32_t* place
    cdef int64_t* joined_end
    cdef Py_ssize_t text_count, rows, i
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &all_numbers, sizeof(int32_t))
        scratch_vector(&scratch, &joined_numbers, sizeof(int32_t))
        scratch_vector(&scratch, &all_ends, sizeof(int64_t))
        scratch_vector(&scratch, &all_text, 1)
        scratch_index(&scratch, &index, 64)
        check_memory(not scratch.failed and vec_push(&all_ends) != NULL)
        (<int64_t*>all_ends.data)[0] = 0
        for numbers, ends, text in pieces:
            text_count = check_ends(ends, text)
            rows = PyBytes_GET_SIZE(numbers) // 4
            number = <const int32_t*>PyBytes_AS_STRING(check_rows(numbers, 4, rows))
            end = <const int64_t*>PyBytes_AS_STRING(ends)
            joined_numbers.count = 0
            for i in range(text_count):
                slot = index_find(&index, <const uint8_t*>PyBytes_AS_STRING(text) + end[i],
                                  <uint32_t>(end[i + 1] - end[i]))
                place = <int32_t*>vec_push(&joined_numbers)
                check_memory(slot != NULL and place != NULL)
                if slot.value < 0:
                    slot.value = <int32_t>index.count
                    index.count += 1
                    joined_end = <int64_t*>vec_push(&all_ends)
                    check_memory(joined_end != NULL
                                 and vec_append(&all_text, slot.text, slot.size))
                    joined_end[0] = <int64_t>all_text.count
                place[0] = slot.value
            place = <int32_t*>vec_extend(&all_numbers, rows)
            check_memory(not rows or place != NULL)
            for i in range(rows):
                if not 0 <= number[i] < text_count:
                    raise IndexError(f"no text {number[i]}")
                place[i] = (<int32_t*>joined_numbers.data)[number[i]]
        return vec_to_bytes(&all_numbers), vec_to_bytes(&all_ends), vec_to_bytes(&all_text)
    finally:
        scratch_free(&scratch)


cdef Py_ssize_t check_ends(bytes ends, bytes text) except -1:
    """Return the number of texts: text `i` is `text` from `ends[i]` to `ends[i + 1]` (int64).

    ValueError if `ends` is empty or not a whole number of int64, IndexError if a text is not in
    `text` or ends before it begins.
    """
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef Py_ssize_t text_count = PyBytes_GET_SIZE(ends) // 8 - 1, i
    if text_count < 0:
        raise ValueError("columns differ in length")
    check_rows(ends, 8, text_count + 1)
    for i in range(text_count):
        if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
            raise IndexError(f"text {i} is outside the text")
    return text_count
