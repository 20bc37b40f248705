# Which copy of a function counts. `resolve` says it once, as the role of each definition; kernels
# ask here whose a section is, and whether that copy stays.

from libc.stdint cimport int32_t, uint8_t

from kinds cimport IS_ENTRIES, IS_LITERALS, is_function, is_merc
from rows cimport ROLE_REPLACED, ROLE_WON, SectionRow


cdef inline bint was_current(uint8_t role) noexcept nogil:
    """Whether a definition was the current one when its file was read: sections come of it."""
    return role == ROLE_WON or role == ROLE_REPLACED


cdef inline int32_t symbol_of(const SectionRow* sections, int32_t at) noexcept nogil:
    """The symbol of the function that a section belongs to, or -1."""
    cdef const SectionRow* s = &sections[at]
    if not is_function(s.kind):
        if s.target < 0:
            return -1
        s = &sections[s.target]
        if not is_function(s.kind):
            return -1
    return s.target


cdef inline int32_t read_for(const SectionRow* sections, const int32_t* entity,
                             const uint8_t* role, int32_t at) noexcept nogil:
    """The function whose current copy a section was when its file was read, or -1."""
    cdef int32_t symbol = symbol_of(sections, at)
    return entity[symbol] if symbol >= 0 and was_current(role[symbol]) else -1


cdef inline int32_t stays_for(const SectionRow* sections, const int32_t* entity,
                              const uint8_t* role, int32_t at) noexcept nogil:
    """The function whose copy that stays a section belongs to, or -1."""
    cdef int32_t symbol = symbol_of(sections, at)
    return entity[symbol] if symbol >= 0 and role[symbol] == ROLE_WON else -1


cdef inline void find_lists(int32_t* list_of, const SectionRow* s,
                            size_t section_count) noexcept nogil:
    """The mercury relocations that the pool of a copy of a function brings, by its symbol."""
    cdef size_t i
    for i in range(section_count):
        if is_merc(s[i].kind, IS_ENTRIES) and is_merc(s[s[i].target].kind, IS_LITERALS):
            list_of[s[s[s[i].target].target].target] = <int32_t>i + 1
