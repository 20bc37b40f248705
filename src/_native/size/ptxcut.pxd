# The bytes of PTX by function: from the line of `.entry` or `.func` to the brace that ends its
# body. Declarations and all else are shared; zeros at the end are padding.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from size.cutting cimport (
    PART_PADDING, PART_PTX, SHARED, Cutting, add_function, count_bytes,
)


cdef extern from "size/ptxscan.h":
    const uint8_t* IN_BODY "pylink_in_body"
    const uint8_t* OUTSIDE "pylink_outside"
    uint64_t skip_plain "pylink_skip_plain"(
        const uint8_t* data, uint64_t at, uint64_t size, const uint8_t* ends
    ) noexcept nogil


cdef inline bint is_space(uint8_t sign) noexcept nogil:
    return sign in (32, 9, 10, 13)


cdef inline bint is_word(uint8_t sign) noexcept nogil:
    return (48 <= sign <= 57 or 65 <= sign <= 90 or 97 <= sign <= 122
            or sign in (95, 36, 37))            # _ $ %


cdef inline uint64_t skip_comment(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After a comment that begins at `at`, or `at` itself."""
    cdef const uint8_t* end
    if at + 1 >= size or data[at] != 47:
        return at
    if data[at + 1] == 47:
        end = <const uint8_t*>memchr(data + at, 10, size - at)
        return size if end == NULL else <uint64_t>(end - data)
    if data[at + 1] == 42:
        at += 2
        while at + 1 < size and not (data[at] == 42 and data[at + 1] == 47):
            at += 1
        return min(size, at + 2)
    return at


cdef inline uint64_t skip_string(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After a string that begins at `at`."""
    at += 1
    while at < size and data[at] != 34:
        at += 2 if data[at] == 92 else 1
    return min(size, at + 1)


cdef inline uint64_t end_of_body(const uint8_t* data, uint64_t at, uint64_t size) noexcept nogil:
    """After the brace that closes the one at `at`."""
    cdef uint64_t depth = 0, next
    while True:
        at = skip_plain(data, at, size, IN_BODY)
        if at == size:
            return size
        if data[at] == 123:
            depth += 1
        elif data[at] == 125:
            depth -= 1
            if depth == 0:
                return at + 1
        elif data[at] == 34:
            at = skip_string(data, at, size)
            continue
        elif data[at] == 47:
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
    if at < size and data[at] == 40:
        while at < size and data[at] != 41:
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
        if data[at] == 34:
            at = skip_string(data, at, size)
            continue
        next = skip_comment(data, at, size)
        if next != at:
            at = next
            continue
        if data[at] in (59, 125):               # ; }
            line = at + 1
        if not (data[at] == 46 and (
                (size - at > 6 and memcmp(data + at, b".entry", 6) == 0 and is_space(data[at + 6]))
                or (size - at > 5 and memcmp(data + at, b".func", 5) == 0
                    and (is_space(data[at + 5]) or data[at + 5] == 40)))):
            at += 1
            continue
        name = name_of(data, at + (6 if data[at + 1] == 101 else 5), size, &end)
        next = end
        while next < size and data[next] not in (59, 123):
            next += 1
        if next >= size or data[next] == 59 or end == name:
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
