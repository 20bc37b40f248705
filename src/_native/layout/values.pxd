# Values of data symbols: offsets in their sections, which are called the homes of the symbols. Also
# makes room for common symbols in .nv.global, and for the system's variables in
# .nv.shared.reserved.0.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport round_up
from base.prefetch cimport AHEAD, prefetch
from base.scratch cimport Scratch, scratch_room, scratch_zeros
from elfnumbers cimport SHN_COMMON
from read.faults cimport MAX_ALIGN
from rownumbers cimport EF_COMMON, E_CONST0_SIZE, E_SYSTEM_SHARED
from sectionkinds cimport IS_PARAMETERS, K_GLOBAL
from tables.kinds cimport is_a, is_pool, is_user_bank
from tables.rows cimport (
    SYSTEM_RESERVE, EntityNumber, EntityRow, OutNumber, OutRow, SectionNumber, SymbolRow,
    is_missing,
)
from tables.views cimport MergedView, ObjectsView


# The tables that values of symbols are made from, and the values.
ctypedef struct Assignment:
    ObjectsView objects
    MergedView merged
    OutRow* outs                # of the output; sizes and alignments change
    size_t out_count
    uint64_t* value             # by entity: offset in its section
    OutNumber* home             # by entity: OutRow of that section, or -1
    OutNumber* parameters       # by entity: OutRow of a kernel's .nv.constant0.K, plus 1; or 0
    OutNumber* pool             # by entity: OutRow of a kernel's .nv.constant2.K, plus 1; or 0
    OutNumber common            # OutRow of .nv.global, or -1
    uint64_t bank_size          # bytes of .nv.constant3; all ones without it

cdef enum:
    MAX_COMMON_ALIGN = 0x10000  # bytes: a common symbol with a larger alignment is aligned to 1


cdef inline bint assign_all(Assignment* assignment, Scratch* scratch) noexcept nogil:
    """Set values and homes of all entities; False when memory is exhausted."""
    cdef const SymbolRow* winner
    cdef size_t i
    cdef SectionNumber section
    find_outs(assignment)
    for i in range(assignment.merged.entity_count):
        if i + AHEAD < assignment.merged.entity_count:
            prefetch(&assignment.objects.symbols[assignment.merged.entities[i + AHEAD].winner])
        winner = &assignment.objects.symbols[assignment.merged.entities[i].winner]
        section = winner.section
        assignment.home[i] = -1
        assignment.value[i] = winner.value
        if assignment.merged.entities[i].kind == E_CONST0_SIZE:
            assignment.value[i] = assignment.bank_size
        if is_missing(&assignment.merged.entities[i], winner):
            assignment.value[i] = ~<uint64_t>0
        if section >= 0:
            assignment.home[i] = assignment.merged.out_of[section]
            assignment.value[i] += assignment.merged.base[section]
            if assignment.merged.entities[i].kind == E_SYSTEM_SHARED:
                assignment.value[i] = winner.value    # its alignment, until it has a place
            # The output lacks the section: for example, it is of a definition that is not linked.
            # The parameters or literals of the function's linked definition are the home instead.
            if assignment.home[i] < 0 and assignment.merged.section_function[section] >= 0:
                if is_a(assignment.objects.sections[section].kind, IS_PARAMETERS):
                    assignment.home[i] = (
                        assignment.parameters[assignment.merged.section_function[section]] - 1)
                elif is_pool(assignment.objects.sections[section].kind,
                             assignment.objects.sections[section].bank):
                    assignment.home[i] = (
                        assignment.pool[assignment.merged.section_function[section]] - 1)
    place_system_shared(assignment)
    return assignment.common < 0 or place_common_symbols(assignment, scratch)


cdef inline void find_outs(Assignment* assignment) noexcept nogil:
    """Find .nv.global, functions' .nv.constant0 and .nv.constant2, and the size of bank 3."""
    cdef const OutRow* row
    cdef size_t i
    assignment.common = -1
    assignment.bank_size = ~<uint64_t>0
    for i in range(assignment.out_count):
        row = &assignment.outs[i]
        if row.kind == K_GLOBAL:
            assignment.common = <OutNumber>i
        elif is_a(row.kind, IS_PARAMETERS):
            assignment.parameters[row.entity] = <OutNumber>i + 1
        elif is_pool(row.kind, row.bank):
            assignment.pool[row.entity] = <OutNumber>i + 1
        elif is_user_bank(row.kind, row.bank):
            assignment.bank_size = row.size


cdef inline bint place_common_symbols(Assignment* assignment, Scratch* scratch) noexcept nogil:
    """Make room for common symbols after the variables of .nv.global.

    They are placed in reverse order of their first SHN_COMMON symbols in the inputs; undefined
    symbols in front of these do not count. A definition in .nv.global with an alignment has
    replaced a common symbol (`replace_common` in resolve), and is placed with them. False when
    memory is exhausted.
    """
    cdef const EntityRow* entities = assignment.merged.entities
    cdef OutRow* out = &assignment.outs[assignment.common]
    cdef uint8_t* common = NULL         # by entity: 1 if it is to be placed, and not listed yet
    cdef EntityNumber* declared         # entities in the order of their first common symbol
    cdef uint64_t align
    cdef size_t i, common_count = 0, listed_count = 0
    cdef EntityNumber entity
    for i in range(assignment.merged.out_symbol_count):
        entity = assignment.merged.out_symbols[i].entity
        if (entity >= 0
                and (entities[entity].flags & EF_COMMON
                     or (assignment.home[entity] == assignment.common and entities[entity].align))):
            if common == NULL:
                common = <uint8_t*>scratch_zeros(scratch, assignment.merged.entity_count, 1)
                if common == NULL:
                    return False
            common[entity] = 1
            common_count += 1
    if not common_count:
        return True
    declared = <EntityNumber*>scratch_room(scratch, common_count, sizeof(EntityNumber))
    if declared == NULL:
        return False
    for i in range(assignment.objects.symbol_count):
        entity = assignment.merged.symbol_entity[i]
        if assignment.objects.symbols[i].shndx == SHN_COMMON and entity >= 0 and common[entity]:
            common[entity] = 0
            declared[listed_count] = entity
            listed_count += 1
    for i in range(listed_count):
        entity = declared[listed_count - 1 - i]
        align = entities[entity].align if entities[entity].align else 1
        if align & (align - 1) or align > MAX_COMMON_ALIGN:
            align = 1
        assignment.value[entity] = round_up(out.size, align)
        assignment.home[entity] = assignment.common
        out.size = assignment.value[entity] + entities[entity].size
        out.align = max(out.align, <uint32_t>align)
    return True


cdef inline void place_system_shared(Assignment* assignment) noexcept nogil:
    """Place the variables of .nv.shared.reserved.0: by falling alignment, then last created first.

    Relocatable outputs have room for the variables, but give them no place: `value` stays their
    alignment. If there are such variables, this goes through all entities once for each power of
    two up to MAX_ALIGN, the largest alignment.
    """
    cdef const EntityRow* entities = assignment.merged.entities
    cdef OutRow* outs = assignment.outs
    cdef uint64_t reserve = SYSTEM_RESERVE if assignment.objects.executable else 0
    cdef uint64_t end = reserve, align = MAX_ALIGN
    cdef size_t i, entity
    cdef OutNumber out = -1
    for i in range(assignment.merged.entity_count):
        if entities[i].kind == E_SYSTEM_SHARED and assignment.home[i] >= 0:
            out = assignment.home[i]
    while out >= 0 and align:
        for i in range(assignment.merged.entity_count):
            entity = assignment.merged.entity_count - 1 - i
            if (entities[entity].kind == E_SYSTEM_SHARED
                    and max(assignment.objects.symbols[entities[entity].winner].value, <uint64_t>1)
                    == align):
                outs[out].align = max(outs[out].align, <uint32_t>align)
                end = round_up(end, align)
                if assignment.objects.executable:
                    assignment.value[entity] = end
                end += entities[entity].size
        align >>= 1
    if out >= 0:
        outs[out].size = end
        if outs[out].merc >= 0:
            outs[outs[out].merc].size = end - reserve
            outs[outs[out].merc].align = outs[out].align
