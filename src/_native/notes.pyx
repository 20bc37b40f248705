"""Notes and compatibility attributes: one section of the output from all those of the inputs."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from rows cimport *
from vec cimport *


def join_sections(bytes arena, bytes sections, int kind):
    """The bytes of every input section of that kind, one after the other."""
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef Vec joined
    cdef uint8_t* place
    cdef bint ok = True
    vec_init(&joined, 1)
    with nogil:
        for i in range(n):
            if s[i].kind == kind and s[i].size:
                place = <uint8_t*>vec_extend(&joined, s[i].size)
                if place == NULL:
                    ok = False
                    break
                memcpy(place, base + s[i].offset, s[i].size)
    result = vec_take(&joined)
    if not ok:
        raise MemoryError
    return result


def has_attribute(bytes arena, bytes sections, int kind, int attribute):
    """Whether any input section of that kind has an EIATTR record with that attribute."""
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const uint8_t* data
    cdef uint64_t at
    for i in range(n):
        if s[i].kind != kind:
            continue
        at = 0
        while at < s[i].size:
            data = base + s[i].offset + at
            if data[1] == attribute:
                return True
            at += 4 + ((<uint32_t>data[2] | <uint32_t>data[3] << 8) if data[0] == 4 else 0)
    return False


def merge_compat(bytes arena, bytes sections, int family, bint arch_specific,
                 bint has_code):
    """The attributes of .nv.compat, merged over all inputs.

    Attribute 2 is 0 if any input has 0, else the largest; 3 the union; 6 and the bytes of 7 stay
    while equal, else 1 and the larger; 9 depends on the target; 0x0b, from sm_100 on, the
    intersection, all zero when the output has no code. Order and formats are those of the first input. Empty for inputs without any.
    """
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef bytearray merged = bytearray()
    cdef uint8_t* record
    cdef const uint8_t* data
    cdef uint64_t at, mine, size
    for i in range(n):
        if s[i].kind != K_COMPAT:
            continue
        at = 0
        while s[i].size - at >= 4:
            data = base + s[i].offset + at
            size = 4 + ((<uint32_t>data[2] | <uint32_t>data[3] << 8) if data[0] == 4 else 0)
            if size > s[i].size - at:
                break
            at += size
            if data[1] == 0x0b and family != 2:
                continue
            mine = find(merged, data[1])
            if mine == <uint64_t>len(merged):
                merged += data[:size]
                continue
            record = merged
            combine(record + mine, data, size)
    mine = find(merged, 9)
    if mine < <uint64_t>len(merged):
        merged[mine + 2] = arch_specific
    mine = find(merged, 0x0b)
    if mine < <uint64_t>len(merged) and merged[mine] == 4 and not has_code:
        record = merged
        memset(record + mine + 4, 0, record[mine + 2] | record[mine + 3] << 8)
    return bytes(merged)


cdef uint64_t find(bytearray merged, uint8_t attribute):
    cdef uint64_t at = 0
    while at < <uint64_t>len(merged):
        if merged[at + 1] == attribute:
            return at
        at += 4 + (merged[at + 2] | merged[at + 3] << 8 if merged[at] == 4 else 0)
    return at


cdef void combine(uint8_t* mine, const uint8_t* theirs, uint64_t size) noexcept nogil:
    cdef uint64_t i
    cdef uint8_t attribute = mine[1]
    if mine[0] != theirs[0]:
        return
    if attribute == 2:
        mine[2] = 0 if mine[2] == 0 or theirs[2] == 0 else max(mine[2], theirs[2])
    elif attribute == 3:
        mine[2] |= theirs[2]
    elif attribute == 6:
        mine[2] = mine[2] if mine[2] == theirs[2] and mine[2] else 1
    elif attribute == 7:
        mine[2] = max(mine[2], theirs[2])
        mine[3] = max(mine[3], theirs[3])
    elif attribute == 0x0b:
        for i in range(4, size):
            mine[i] &= theirs[i]
