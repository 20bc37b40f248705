# Kernels that let grids which depend on them start before they end, with the instruction PREEXIT
# (griddepcontrol.launch_dependents): a record that ends those of each function says so from 13.4.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_PREEXIT_USED
from base.elf64 cimport WORD
from info.records cimport Info, append_bytes
from rownumbers cimport EF_KERNEL, E_FUNC
from tables.attributes cimport find_record

cdef enum:
    OP_PREEXIT = 0x82d
    VALUE_AT = 2            # offset of the value in a record


cdef inline void find_preexits(Info* info) noexcept nogil:
    """`preexits` of all functions, and `preexit_offset`, where the closing records say so."""
    cdef const uint8_t* record = find_record(info.closing_records, info.closing_size,
                                             EIATTR_PREEXIT_USED)
    cdef size_t i
    if record == NULL:
        return
    for i in range(info.merged.entity_count):
        if info.merged.entities[i].kind == E_FUNC and has_preexit(info, <int32_t>i):
            info.preexits[i] = True
            info.preexit_offset = <uint32_t>(record - info.closing_records) + VALUE_AT


cdef inline bint has_preexit(Info* info, int32_t e) noexcept nogil:
    """Whether code of the function itself does it; that of older objects has no record of it."""
    cdef int32_t attributes = info.merged.functions[e].info
    cdef int32_t code = info.objects.symbols[info.merged.entities[e].winner].section
    cdef const uint8_t* record = NULL
    cdef const uint8_t* word
    cdef uint64_t offset
    if attributes >= 0:
        record = find_record(info.objects.arena + info.objects.sections[attributes].offset,
                             info.objects.sections[attributes].size, EIATTR_PREEXIT_USED)
    if record != NULL:
        return record[VALUE_AT] != 0
    if code < 0:
        return False
    for offset in range(info.objects.sections[code].size // WORD):
        word = info.objects.arena + info.objects.sections[code].offset + offset * WORD
        if (word[0] | <uint32_t>word[1] << 8) & 0xfff == OP_PREEXIT:
            return True
    return False


cdef inline bint is_reaching_preexit(Info* info, int32_t e) noexcept nogil:
    """Whether the function does it or, for a kernel, one that it calls directly does."""
    cdef size_t depth = 1
    cdef uint32_t node, to, j
    if not info.objects.executable or not info.merged.entities[e].flags & EF_KERNEL:
        return info.preexits[e]
    info.walk += 1
    info.stamp[e] = info.walk
    info.stack[0] = <uint32_t>e
    while depth:
        depth -= 1
        node = info.stack[depth]
        if info.preexits[node]:
            return True
        for j in range(info.graph.start[node], info.graph.start[node + 1]):
            to = info.graph.edges[j]
            if to < info.merged.entity_count and info.stamp[to] != info.walk:
                info.stamp[to] = info.walk
                info.stack[depth] = to
                depth += 1
    return False


cdef inline bint put_closing(Info* info, int32_t e) noexcept nogil:
    """The records that end those of each function; False without memory."""
    cdef uint8_t* place
    if not info.closing_size:
        return True
    place = append_bytes(info, info.closing_records, info.closing_size)
    if place != NULL and info.preexit_offset and is_reaching_preexit(info, e):
        place[info.preexit_offset] = True
    return place != NULL
