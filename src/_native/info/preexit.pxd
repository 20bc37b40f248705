# Kernels that let grids which depend on them start early, by the instruction PREEXIT
# (griddepcontrol.launch_dependents). From 13.4 on the closing records, which end the list of each
# function, have PREEXIT_USED with 1 or 0.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_PREEXIT_USED
from base.elf64 cimport WORD, load16
from info.records cimport Info, append_bytes
from rownumbers cimport EF_KERNEL, E_FUNC
from tables.attributes cimport find_record
from tables.graph cimport NodeRef
from tables.rows cimport EntityNumber, EntityRef, SectionNumber

cdef enum:
    OP_PREEXIT = 0x82d
    OPCODE_MASK = 0xfff     # bits of an instruction that have its opcode
    VALUE_OFFSET = 2        # offset of the value in a record


cdef inline void find_preexits(Info* info) noexcept nogil:
    """Fill `preexits`, by entity, and `preexit_offset` if a function has PREEXIT (from 13.4 on)."""
    cdef const uint8_t* record = find_record(info.closing_records, info.closing_size,
                                             EIATTR_PREEXIT_USED)
    cdef size_t i
    if record == NULL:
        return
    for i in range(info.merged.entity_count):
        if info.merged.entities[i].kind == E_FUNC and has_preexit(info, <EntityNumber>i):
            info.preexits[i] = True
            info.preexit_offset = <uint32_t>(record - info.closing_records) + VALUE_OFFSET


cdef inline bint has_preexit(Info* info, EntityNumber entity) noexcept nogil:
    """Return whether a function's own code has PREEXIT.

    PREEXIT_USED of its input's records says so or, without that record, the instructions.
    """
    cdef SectionNumber attributes = info.merged.functions[entity].info
    cdef SectionNumber code = info.objects.symbols[info.merged.entities[entity].winner].section
    cdef const uint8_t* record = NULL
    cdef const uint8_t* word
    cdef uint64_t offset
    if attributes >= 0:
        record = find_record(info.objects.arena + info.objects.sections[attributes].offset,
                             info.objects.sections[attributes].size, EIATTR_PREEXIT_USED)
    if record != NULL:
        return record[VALUE_OFFSET] != 0
    if code < 0:
        return False
    for offset in range(info.objects.sections[code].size // WORD):
        word = info.objects.arena + info.objects.sections[code].offset + offset * WORD
        if load16(word) & OPCODE_MASK == OP_PREEXIT:
            return True
    return False


cdef inline bint is_reaching_preexit(Info* info, EntityNumber entity) noexcept nogil:
    """Return whether a function has PREEXIT or, if it is a kernel, reaches a function that has it.

    Only direct calls count, and only in an executable.
    """
    cdef size_t depth = 1
    cdef NodeRef node, to
    cdef uint32_t j
    if not info.objects.executable or not info.merged.entities[entity].flags & EF_KERNEL:
        return info.preexits[entity]
    info.walk += 1
    info.stamp[entity] = info.walk
    info.stack[0] = <NodeRef>entity
    while depth:
        depth -= 1
        node = info.stack[depth]
        if info.preexits[<EntityRef>node]:
            return True
        for j in range(info.graph.start[node], info.graph.start[node + 1]):
            to = info.graph.edges[j]
            if to < info.merged.entity_count and info.stamp[to] != info.walk:
                info.stamp[to] = info.walk
                info.stack[depth] = to
                depth += 1
    return False


cdef inline bint put_closing(Info* info, EntityNumber entity) noexcept nogil:
    """Append the closing records, which end the list of each function; False without memory."""
    cdef uint8_t* place
    if not info.closing_size:
        return True
    place = append_bytes(info, info.closing_records, info.closing_size)
    if place != NULL and info.preexit_offset and is_reaching_preexit(info, entity):
        place[info.preexit_offset] = True
    return place != NULL
