# The bytes of PTX by function: from the line of `.entry` or `.func` to the brace that ends its
# body. Declarations and all else are shared; zeros at the end are padding.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from size.cutting cimport PART_PADDING, PART_PTX, SHARED, Cutting, add_function, count_bytes


cdef extern from "size/ptxscan.h":
    const uint8_t* IN_BODY "pylink_in_body"
    const uint8_t* OUTSIDE "pylink_outside"
    uint64_t skip_plain "pylink_skip_plain"(
        const uint8_t* data, uint64_t at, uint64_t size, const uint8_t* ends
    ) noexcept nogil


cdef inline bint is_space(uint8_t sign) noexcept nogil:
    return sign in (c" ", c"\t", c"\n", c"\r")


cdef inline bint is_word(uint8_t sign) noexcept nogil:
    return (c"0" <= sign <= c"9" or c"A" <= sign <= c"Z" or c"a" <= sign <= c"z"
            or sign in (c"_", c"$", c"%"))


cdef inline uint64_t skip_comment(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After a comment that begins at `at`, or `at` itself."""
    cdef const uint8_t* end
    if at + 1 >= size or data[at] != c"/":
        return at
    if data[at + 1] == c"/":
        end = <const uint8_t*>memchr(data + at, c"\n", size - at)
        return size if end == NULL else <uint64_t>(end - data)
    if data[at + 1] == c"*":
        at += 2
        while at + 1 < size and not (data[at] == c"*" and data[at + 1] == c"/"):
            at += 1
        return min(size, at + 2)
    return at


cdef inline uint64_t skip_string(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After a string that begins at `at`."""
    at += 1
    while at < size and data[at] != c"\"":
        at += 2 if data[at] == c"\\" else 1
    return min(size, at + 1)


cdef inline uint64_t end_of_body(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After the brace that closes the one at `at`."""
    cdef uint64_t depth = 0, next
    while True:
        at = skip_plain(data, at, size, IN_BODY)
        if at == size:
            return size
        if data[at] == c"{":
            depth += 1
        elif data[at] == c"}":
            depth -= 1
            if depth == 0:
                return at + 1
        elif data[at] == c"\"":
            at = skip_string(data, at, size)
            continue
        elif data[at] == c"/":
            next = skip_comment(data, at, size)
            if next != at:
                at = next
                continue
        at += 1


cdef inline uint64_t name_of(const uint8_t* data, uint64_t at, uint64_t size,
                             uint64_t* end) noexcept nogil:
    """Where the name after `.entry` or `.func` begins, and its end; a result may be in front."""
    while at < size and is_space(data[at]):
        at += 1
    if at < size and data[at] == c"(":
        while at < size and data[at] != c")":
            at += 1
        at += 1
        while at < size and is_space(data[at]):
            at += 1
    end[0] = at
    while end[0] < size and is_word(data[end[0]]):
        end[0] += 1
    return at


cdef inline bint cut_ptx(Cutting* c, const uint8_t* data, uint64_t size) noexcept nogil:
    """Count all of it; False without memory."""
    cdef uint64_t at = 0, line = 0, start, name, end, next, counted = 0
    cdef int64_t owner
    cdef uint64_t whole = size
    while size and data[size - 1] == 0:
        size -= 1
    count_bytes(c, SHARED, PART_PADDING, whole - size)
    while True:
        at = skip_plain(data, at, size, OUTSIDE)
        if at == size:
            break
        if data[at] == c"\"":
            at = skip_string(data, at, size)
            continue
        next = skip_comment(data, at, size)
        if next != at:
            at = next
            continue
        if data[at] in (c";", c"}"):
            line = at + 1
        if not (data[at] == c"." and (
                (size - at > 6 and memcmp(data + at, b".entry", 6) == 0 and is_space(data[at + 6]))
                or (size - at > 5 and memcmp(data + at, b".func", 5) == 0
                    and (is_space(data[at + 5]) or data[at + 5] == c"(")))):
            at += 1
            continue
        name = name_of(data, at + (6 if data[at + 1] == c"e" else 5), size, &end)
        next = end
        while next < size and data[next] not in (c";", c"{"):
            next += 1
        if next >= size or data[next] == c";" or end == name:
            at = next
            continue
        next = end_of_body(data, next, size)
        start = at
        while start > line and start > counted and data[start - 1] != 10:
            start -= 1
        owner = add_function(c, data + name, <uint32_t>(end - name))
        if owner < 0:
            return False
        count_bytes(c, SHARED, PART_PTX, start - counted)
        count_bytes(c, <uint32_t>owner, PART_PTX, next - start)
        at = counted = line = next
    count_bytes(c, SHARED, PART_PTX, size - counted)
    return True
