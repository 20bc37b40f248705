# Comparison of kernels' names with the patterns of options and host objects, where a star stands
# for any characters.

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp

from base.nameindex cimport NameIndex, NameSlot, index_find


cdef inline bint has_parts_of_pattern(const uint8_t* text, size_t size, const char* pattern,
                                      size_t length) noexcept nogil:
    """Return whether the parts of `pattern` between its stars occur in `text`, one after the other.

    Each part is taken at the first place where it occurs, which leaves most room for the rest, so
    no place is tried twice. `pattern` has `length` bytes.
    """
    cdef size_t position = 0, start = 0, end
    while start <= length:
        end = start
        while end < length and pattern[end] != c'*':
            end += 1
        while (position + (end - start) <= size
                and memcmp(text + position, pattern + start, end - start) != 0):
            position += 1
        if position + (end - start) > size:
            return False
        position += end - start
        start = end + 1
    return True


# A pattern for names. Those of a list that have the same stem, the bytes before the first star, are
# chained.
ctypedef struct Pattern:
    const uint8_t* text
    uint32_t size               # bytes of `text`
    uint32_t stem               # number of bytes before the first star
    int32_t next                # number of the previous pattern with the same stem, or -1


cdef inline bint is_matched_by(const uint8_t* text, uint32_t size, const uint8_t* pattern,
                               uint32_t length) noexcept nogil:
    """Return whether the whole text fits a pattern with stars, of `length` bytes.

    After a mismatch, only the last star takes one character more. That is enough, since what stands
    before that star fits as early in the text as possible.
    """
    cdef uint32_t position = 0, pattern_position = 0, retry_position = 0, star = 0
    cdef bint has_star = False
    while position < size:
        if pattern_position < length and pattern[pattern_position] == c'*':
            has_star = True
            star = pattern_position
            pattern_position += 1
            retry_position = position
        elif pattern_position < length and pattern[pattern_position] == text[position]:
            position += 1
            pattern_position += 1
        elif has_star:
            retry_position += 1
            position = retry_position
            pattern_position = star + 1
        else:
            return False
    while pattern_position < length and pattern[pattern_position] == c'*':
        pattern_position += 1
    return pattern_position == length


cdef inline bint is_matched_by_any(NameIndex* index, const Pattern* patterns, const uint8_t* used,
                                   uint32_t longest, const uint8_t* name,
                                   uint32_t size) noexcept nogil:
    """Return whether a name fits any of the patterns.

    `index` has the last pattern of each stem (the bytes before the first star); `next` leads to the
    earlier ones. `used` says for each size up to `longest` whether a stem has it.
    """
    cdef uint32_t stem
    cdef int32_t number
    cdef NameSlot* slot
    for stem in range(min(size, longest) + 1):
        if not used[stem]:
            continue
        slot = index_find(index, name, stem)
        number = slot.value if slot != NULL else -1
        while number >= 0:
            if is_matched_by(name, size, patterns[number].text, patterns[number].size):
                return True
            number = patterns[number].next
    return False
