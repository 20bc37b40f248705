# Whether a kernel lets grids that depend on it start before it ends, with the instruction PREEXIT
# (griddepcontrol.launch_dependents): a record that ends those of each function says so from 13.4.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from tables.attributes cimport find_record
from attributetypes cimport EIATTR_PREEXIT_USED
from tables.rows cimport EF_KERNEL, E_FUNC
from info.records cimport Info, put

cdef enum:
    WORD = 16               # bytes of an instruction
    OP_PREEXIT = 0x82d
    VALUE_AT = 2            # of a record


cdef inline void find_preexits(Info* m) noexcept nogil:
    """`preexits` of all functions, and `preexit_at`, where the closing records say so."""
    cdef const uint8_t* record = find_record(m.closing, m.closing_size, EIATTR_PREEXIT_USED)
    cdef size_t i
    if record == NULL:
        return
    for i in range(m.merged.entity_count):
        if m.merged.entities[i].kind == E_FUNC and has_preexit(m, <int32_t>i):
            m.preexits[i] = True
            m.preexit_at = <uint32_t>(record - m.closing) + VALUE_AT


cdef inline bint has_preexit(Info* m, int32_t e) noexcept nogil:
    """Whether code of the function itself does it; that of older objects has no record of it."""
    cdef int32_t info = m.merged.functions[e].info
    cdef int32_t code = m.objects.symbols[m.merged.entities[e].winner].section
    cdef const uint8_t* record = NULL
    cdef const uint8_t* word
    cdef uint64_t at
    if info >= 0:
        record = find_record(m.objects.arena + m.objects.sections[info].offset,
                             m.objects.sections[info].size, EIATTR_PREEXIT_USED)
    if record != NULL:
        return record[VALUE_AT] != 0
    if code < 0:
        return False
    for at in range(m.objects.sections[code].size // WORD):
        word = m.objects.arena + m.objects.sections[code].offset + at * WORD
        if (word[0] | <uint32_t>word[1] << 8) & 0xfff == OP_PREEXIT:
            return True
    return False


cdef inline bint reaches_preexit(Info* m, int32_t e) noexcept nogil:
    """Whether the function does it or, for a kernel, one that it calls directly does."""
    cdef size_t depth = 1
    cdef uint32_t node, to, j
    if not m.objects.executable or not m.merged.entities[e].flags & EF_KERNEL:
        return m.preexits[e]
    m.walk += 1
    m.stamp[e] = m.walk
    m.stack[0] = <uint32_t>e
    while depth:
        depth -= 1
        node = m.stack[depth]
        if m.preexits[node]:
            return True
        for j in range(m.graph.start[node], m.graph.start[node + 1]):
            to = m.graph.edges[j]
            if to < m.merged.entity_count and m.stamp[to] != m.walk:
                m.stamp[to] = m.walk
                m.stack[depth] = to
                depth += 1
    return False


cdef inline bint put_closing(Info* m, int32_t e) noexcept nogil:
    """The records that end those of each function; False without memory."""
    cdef uint8_t* place
    if not m.closing_size:
        return True
    place = put(m, m.closing, m.closing_size)
    if place != NULL and m.preexit_at and reaches_preexit(m, e):
        place[m.preexit_at] = True
    return place != NULL
