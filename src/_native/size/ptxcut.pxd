# Counts the bytes of PTX by function. Those of a function are from the start of the line with
# `.entry` or `.func` (after a statement that ends on this line) to the brace that ends its body.
# Declarations and all else are shared; zeros at the end are padding.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr

from base.texts cimport has_text
from size.cutting cimport SHARED, Cutting, add_function, count_bytes
from size.digests cimport OwnerRef
from sizenumbers cimport PART_PADDING, PART_PTX


cdef extern from "size/ptxscan.h":
    # By character: 1 if `skip_plain` stops there. Its argument `ends` is one of these tables. It
    # returns the offset of the next such character from `at` on, or `size`.
    const uint8_t* IN_BODY "pylink_in_body"
    const uint8_t* OUTSIDE "pylink_outside"
    uint64_t skip_plain "pylink_skip_plain"(
        const uint8_t* data, uint64_t at, uint64_t size, const uint8_t* ends
    ) noexcept nogil


cdef inline bint is_space(uint8_t character) noexcept nogil:
    return character in (c" ", c"\t", c"\n", c"\r")


cdef enum:
    ENTRY_WORD = 6          # bytes of ".entry"
    FUNC_WORD = 5           # bytes of ".func"
    ATTRIBUTE_WORD = 10     # bytes of ".attribute"


cdef inline bint is_name_character(uint8_t character) noexcept nogil:
    """Return whether a name in PTX may have this character."""
    return (c"0" <= character <= c"9" or c"A" <= character <= c"Z" or c"a" <= character <= c"z"
            or character in (c"_", c"$", c"%"))


cdef inline uint64_t skip_comment(const uint8_t* data, uint64_t offset,
                                  uint64_t size) noexcept nogil:
    """Return the offset after a comment that begins at `offset`, or `offset` if none does."""
    cdef const uint8_t* end
    if offset + 1 >= size or data[offset] != c"/":
        return offset
    if data[offset + 1] == c"/":
        end = <const uint8_t*>memchr(data + offset, c"\n", size - offset)
        return size if end == NULL else <uint64_t>(end - data)
    if data[offset + 1] == c"*":
        offset += 2
        while offset + 1 < size and not (data[offset] == c"*" and data[offset + 1] == c"/"):
            offset += 1
        return min(size, offset + 2)
    return offset


cdef inline uint64_t skip_string(const uint8_t* data, uint64_t offset,
                                 uint64_t size) noexcept nogil:
    """Return the offset after a string that begins at `offset`."""
    offset += 1
    while offset < size and data[offset] != c"\"":
        offset += 2 if data[offset] == c"\\" else 1
    return min(size, offset + 1)


cdef inline uint64_t find_body_end(const uint8_t* data, uint64_t offset,
                                   uint64_t size) noexcept nogil:
    """Return the offset after the brace that closes the one at `offset`; `size` if none does."""
    cdef uint64_t depth = 0, next
    while True:
        offset = skip_plain(data, offset, size, IN_BODY)
        if offset == size:
            return size
        if data[offset] == c"{":
            depth += 1
        elif data[offset] == c"}":
            depth -= 1
            if depth == 0:
                return offset + 1
        elif data[offset] == c"\"":
            offset = skip_string(data, offset, size)
            continue
        elif data[offset] == c"/":
            next = skip_comment(data, offset, size)
            if next != offset:
                offset = next
                continue
        offset += 1


cdef inline uint64_t skip_blanks(const uint8_t* data, uint64_t offset,
                                 uint64_t size) noexcept nogil:
    """Return the offset after spaces and comments, if any begin at `offset`."""
    cdef uint64_t next
    while offset < size:
        next = skip_comment(data, offset, size)
        if next == offset:
            if not is_space(data[offset]):
                break
            next += 1
        offset = next
    return offset


cdef inline uint64_t skip_parentheses(const uint8_t* data, uint64_t offset,
                                      uint64_t size) noexcept nogil:
    """Return the offset after a group in parentheses and blanks; `offset` if no group is there."""
    cdef uint64_t depth = 0
    if offset == size or data[offset] != c"(":
        return offset
    while offset < size:
        if data[offset] == c"(":
            depth += 1
        elif data[offset] == c")":
            depth -= 1
        offset += 1
        if depth == 0:
            break
    return skip_blanks(data, offset, size)


cdef inline uint64_t find_name(const uint8_t* data, uint64_t offset, uint64_t size,
                               uint64_t* end) noexcept nogil:
    """Return the offset of the name after `.entry` or `.func`, and set `end` to that of its end.

    They are equal if no name follows. A list of attributes, and the return parameter of a function
    in parentheses, may stand before the name.
    """
    offset = skip_blanks(data, offset, size)
    if size - offset > ATTRIBUTE_WORD and has_text(data + offset, b".attribute"):
        offset = skip_blanks(data, offset + ATTRIBUTE_WORD, size)
        offset = skip_parentheses(data, offset, size)
    offset = skip_parentheses(data, offset, size)
    end[0] = offset
    while end[0] < size and is_name_character(data[end[0]]):
        end[0] += 1
    return offset


cdef inline bint cut_ptx(Cutting* cutting, const uint8_t* data, uint64_t size) noexcept nogil:
    """Count the bytes of PTX by function; False if memory is exhausted."""
    # statement: offset after the last `;` or `}`; counted_end: offset up to which bytes are counted
    cdef uint64_t offset = 0, statement = 0, start, name, end, next, counted_end = 0
    cdef int64_t owner
    cdef uint64_t padded_size = size
    while size and data[size - 1] == 0:
        size -= 1
    count_bytes(cutting, SHARED, PART_PADDING, padded_size - size)
    while True:
        offset = skip_plain(data, offset, size, OUTSIDE)
        if offset == size:
            break
        if data[offset] == c"\"":
            offset = skip_string(data, offset, size)
            continue
        next = skip_comment(data, offset, size)
        if next != offset:
            offset = next
            continue
        if data[offset] in (c";", c"}"):
            statement = offset + 1
        if not (data[offset] == c"."
                and ((size - offset > ENTRY_WORD and has_text(data + offset, b".entry")
                      and is_space(data[offset + ENTRY_WORD]))
                     or (size - offset > FUNC_WORD and has_text(data + offset, b".func")
                         and (is_space(data[offset + FUNC_WORD])
                              or data[offset + FUNC_WORD] == c"(")))):
            offset += 1
            continue
        name = find_name(data, offset + (ENTRY_WORD if data[offset + 1] == c"e" else FUNC_WORD),
                         size, &end)
        next = end
        while next < size and data[next] not in (c";", c"{"):
            next = max(next + 1, skip_comment(data, next, size))
        if next >= size or data[next] == c";" or end == name:
            offset = next
            continue
        next = find_body_end(data, next, size)
        start = offset
        while start > statement and start > counted_end and data[start - 1] != c"\n":
            start -= 1
        owner = add_function(cutting, data + name, <uint32_t>(end - name))
        if owner < 0:
            return False
        count_bytes(cutting, SHARED, PART_PTX, start - counted_end)
        count_bytes(cutting, <OwnerRef>owner, PART_PTX, next - start)
        offset = counted_end = statement = next
    count_bytes(cutting, SHARED, PART_PTX, size - counted_end)
    return True
