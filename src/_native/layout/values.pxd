# Values of data symbols: offsets in their sections, and room for common symbols and for the
# variables of the system.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport SHN_COMMON, round_up
from base.scratch cimport Scratch, scratch_room, scratch_zeros
from sectionkinds cimport IS_PARAMETERS, K_GLOBAL
from tables.kinds cimport is_a, is_pool, is_user_bank
from tables.rows cimport (
    EF_COMMON, E_CONST0_SIZE, E_SYSTEM_SHARED, SYSTEM_RESERVE, EntityRow, OutRow, SymbolRow,
    is_missing,
)
from tables.views cimport MergedView, ObjectsView


# What is known of the symbols, and what they get.
ctypedef struct Assignment:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    size_t out_count
    uint64_t* value             # by entity
    int32_t* home
    int32_t* parameters         # by entity: OutRow of a kernel's parameters, plus 1
    int32_t* pool               # that of its literals
    int32_t common              # that of .nv.global, or -1
    uint64_t constants          # bytes of the file-scope bank; all ones when there is none


cdef inline bint assign_all(Assignment* a, Scratch* scratch) noexcept nogil:
    """Values and homes of all entities; False when memory is exhausted."""
    cdef const SymbolRow* winner
    cdef size_t i
    cdef int32_t section
    find_outs(a)
    for i in range(a.merged.entity_count):
        winner = &a.objects.symbols[a.merged.entities[i].winner]
        section = winner.section
        a.home[i] = -1
        a.value[i] = winner.value
        if a.merged.entities[i].kind == E_CONST0_SIZE:
            a.value[i] = a.constants
        if is_missing(&a.merged.entities[i], winner):
            a.value[i] = ~<uint64_t>0
        if section >= 0:
            a.home[i] = a.merged.out_of[section]
            a.value[i] += a.merged.base[section]
            if a.merged.entities[i].kind == E_SYSTEM_SHARED:
                a.value[i] = winner.value       # until it has a place, its alignment
            # Parameters and constants of a copy that went are those of the one that stays.
            if a.home[i] < 0 and a.merged.section_function[section] >= 0:
                if is_a(a.objects.sections[section].kind, IS_PARAMETERS):
                    a.home[i] = a.parameters[a.merged.section_function[section]] - 1
                elif is_pool(a.objects.sections[section].kind, a.objects.sections[section].bank):
                    a.home[i] = a.pool[a.merged.section_function[section]] - 1
    place_system_shared(a)
    return a.common < 0 or place_common(a, scratch)


cdef inline void find_outs(Assignment* a) noexcept nogil:
    """The sections that identify homes."""
    cdef const OutRow* row
    cdef size_t i
    a.common = -1
    a.constants = ~<uint64_t>0
    for i in range(a.out_count):
        row = &a.outs[i]
        if row.kind == K_GLOBAL:
            a.common = <int32_t>i
        elif is_a(row.kind, IS_PARAMETERS):
            a.parameters[row.entity] = <int32_t>i + 1
        elif is_pool(row.kind, row.bank):
            a.pool[row.entity] = <int32_t>i + 1
        elif is_user_bank(row.kind, row.bank):
            a.constants = row.size


cdef inline bint place_common(Assignment* a, Scratch* scratch) noexcept nogil:
    """Room after the variables of .nv.global for the common symbols.

    The one that an input first gives room last comes first, whoever declared it before. A
    definition there that has an alignment was common before: it moves (`replace_common`). False
    when memory is exhausted.
    """
    cdef const EntityRow* e = a.merged.entities
    cdef OutRow* out = &a.outs[a.common]
    cdef uint8_t* common = NULL         # by entity
    cdef int32_t* declared
    cdef uint64_t align
    cdef size_t i, many = 0, last = 0
    cdef int32_t at
    for i in range(a.merged.out_symbol_count):
        at = a.merged.out_symbols[i].entity
        if at >= 0 and (e[at].flags & EF_COMMON or (a.home[at] == a.common and e[at].align)):
            if common == NULL:
                common = <uint8_t*>scratch_zeros(scratch, a.merged.entity_count, 1)
                if common == NULL:
                    return False
            common[at] = 1
            many += 1
    if not many:
        return True
    declared = <int32_t*>scratch_room(scratch, many, sizeof(int32_t))
    if declared == NULL:
        return False
    for i in range(a.objects.symbol_count):
        at = a.merged.symbol_entity[i]
        if a.objects.symbols[i].shndx == SHN_COMMON and at >= 0 and common[at]:
            common[at] = 0
            declared[last] = at
            last += 1
    for i in range(last):
        at = declared[last - 1 - i]
        align = e[at].align if e[at].align else 1
        if align & (align - 1) or align > 0x10000:
            align = 1
        a.value[at] = round_up(out.size, align)
        a.home[at] = a.common
        out.size = a.value[at] + e[at].size
        out.align = max(out.align, <uint32_t>align)
    return True


cdef inline void place_system_shared(Assignment* a) noexcept nogil:
    """Places of the variables in .nv.shared.reserved.0: by falling alignment, then last created
    first.

    Relocatable outputs have room for them and give them no place: `value` stays their alignment,
    at most MAX_ALIGN. One pass over the entities for each power of two, where there are any.
    """
    cdef const EntityRow* e = a.merged.entities
    cdef OutRow* outs = a.outs
    cdef uint64_t reserve = SYSTEM_RESERVE if a.objects.executable else 0
    cdef uint64_t end = reserve, align = 0x10000
    cdef size_t i, node
    cdef int32_t out = -1
    for i in range(a.merged.entity_count):
        if e[i].kind == E_SYSTEM_SHARED and a.home[i] >= 0:
            out = a.home[i]
    while out >= 0 and align:
        for i in range(a.merged.entity_count):
            node = a.merged.entity_count - 1 - i
            if (e[node].kind == E_SYSTEM_SHARED
                    and max(a.objects.symbols[e[node].winner].value, <uint64_t>1) == align):
                outs[out].align = max(outs[out].align, <uint32_t>align)
                end = round_up(end, align)
                if a.objects.executable:
                    a.value[node] = end
                end += e[node].size
        align >>= 1
    if out >= 0:
        outs[out].size = end
        if outs[out].merc >= 0:
            outs[outs[out].merc].size = end - reserve
            outs[outs[out].merc].align = outs[out].align
