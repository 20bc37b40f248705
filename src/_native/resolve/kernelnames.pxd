# Names of kernels against what options and host objects say of them.

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp

from base.nameindex cimport NameIndex, NameSlot, index_find


cdef inline bint contains(const uint8_t* text, size_t size, const char* pattern,
                   size_t length) noexcept nogil:
    """Whether the parts of `pattern` between its stars occur in `text`, one after the other.

    The first place is the best one for every part, so nothing is tried twice.
    """
    cdef size_t at = 0, start = 0, end
    while start <= length:
        end = start
        while end < length and pattern[end] != c'*':
            end += 1
        while at + (end - start) <= size and memcmp(text + at, pattern + start, end - start) != 0:
            at += 1
        if at + (end - start) > size:
            return False
        at += end - start
        start = end + 1
    return True


ctypedef struct Pattern:
    const uint8_t* text
    uint32_t size
    uint32_t stem               # bytes before the first star
    int32_t next                # pattern with the same stem, or -1


cdef inline bint matches(const uint8_t* text, uint32_t size, const uint8_t* pattern,
                  uint32_t length) noexcept nogil:
    """Whether the pattern with its stars is the whole text.

    Only the last star can need another try: what came before fits as early as it can.
    """
    cdef uint32_t at = 0, of = 0, retry = 0, star = 0
    cdef bint starred = False
    while at < size:
        if of < length and pattern[of] == c'*':
            starred = True
            star = of
            of += 1
            retry = at
        elif of < length and pattern[of] == text[at]:
            at += 1
            of += 1
        elif starred:
            retry += 1
            at = retry
            of = star + 1
        else:
            return False
    while of < length and pattern[of] == c'*':
        of += 1
    return of == length


cdef inline bint is_referenced(NameIndex* index, const Pattern* patterns, const uint8_t* used,
                        uint32_t longest, const uint8_t* name, uint32_t size) noexcept nogil:
    cdef uint32_t stem
    cdef int32_t at
    cdef NameSlot* slot
    for stem in range(min(size, longest) + 1):
        if not used[stem]:
            continue
        slot = index_find(index, name, stem)
        at = slot.value if slot != NULL else -1
        while at >= 0:
            if matches(name, size, patterns[at].text, patterns[at].size):
                return True
            at = patterns[at].next
    return False
