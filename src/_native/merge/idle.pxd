# Sections for the shared memory of idle kernels: those that are not selected and that no device
# code launches. Only a link that keeps dead code has their code.
#
# Without -use-host-info, such a kernel gets no .nv.shared.K when its code is read. If it has no
# shared variables of its own, nvlink creates that section when it lays shared memory out. A common
# variable is a shared one that does not belong to one kernel; `shared.pyx` sorts these. The order
# of the sections is:
#
# 1. for each common variable that one kernel alone uses: the section of this kernel, if it is idle;
# 2. for each common variable that several kernels use: the sections of the idle ones among them;
# 3. the sections of idle kernels that use extern arrays.
#
# Only references from the kernel's own code count. With -r, only arrays are laid out.

from libc.stdint cimport int32_t, uint8_t

from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_room, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_push
from merge.creation cimport create_shared_section
from merge.sharedusers cimport is_common
from merge.state cimport Merge, find_function_section, out_row
from rownumbers cimport EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, LINK_RELOCATABLE
from sectionkinds cimport IS_CODE, K_SHARED
from tables.graph cimport is_idle
from tables.kinds cimport is_a
from tables.rows cimport EntityCounter, EntityNumber, EntityRow, FixupRow, SymbolNumber
from tables.sharedrows cimport KernelNumber, VariableRef, VariableRow, sort_list


# The number of an IdleUse, from 0; -1 for none.
ctypedef int32_t IdleUseNumber

# One reference from the code of an idle kernel to a shared variable that is not an extern array.
# Only references to common variables, which do not belong to one kernel, are used later.
ctypedef struct IdleUse:
    EntityNumber variable       # entity
    EntityNumber kernel         # entity
    IdleUseNumber of_kernel     # IdleUse: the previous one of this kernel, or -1
    IdleUseNumber of_variable   # IdleUse: the next one of this variable, by kernel, or -1


# The references from idle kernels to shared variables, chained by kernel and by variable.
ctypedef struct IdleUses:
    Vec rows                    # IdleUse
    Vec variables               # VariableRow: common ones and arrays, in the order of symbols
    IdleUseNumber* of_kernel    # by entity: the last IdleUse of the kernel, or -1
    IdleUseNumber* of_variable  # by entity: the first IdleUse of the variable, or -1
    uint8_t* has_array          # by entity: 1 for an idle kernel that uses extern arrays


cdef inline void create_idle_sections(Merge* merge) noexcept nogil:
    """Create `.nv.shared.K` of idle kernels (not selected, nor launched) that use shared memory."""
    cdef size_t entity_count = merge.merged.entity_count, i
    cdef IdleUses uses
    cdef Scratch scratch
    cdef bint any_idle = False
    for i in range(entity_count):
        any_idle = any_idle or is_idle_code(merge, <EntityCounter>i)
    if not any_idle:
        return
    scratch_init(&scratch)
    scratch_vector(&scratch, &uses.rows, sizeof(IdleUse))
    scratch_vector(&scratch, &uses.variables, sizeof(VariableRow))
    uses.of_kernel = scratch_nones(&scratch, entity_count)
    uses.of_variable = scratch_nones(&scratch, entity_count)
    uses.has_array = <uint8_t*>scratch_zeros(&scratch, entity_count, 1)
    if not scratch.failed:
        find_idle_uses(merge, &uses)
        if uses.rows.count and not merge.failed:
            create_sections_by_variable(merge, &scratch, &uses)
        for i in range(entity_count):
            if uses.has_array[i]:
                create_idle_section(merge, <EntityNumber>i)
    merge.failed |= scratch.failed
    scratch_free(&scratch)


cdef inline bint is_idle_code(const Merge* merge, EntityCounter entity) noexcept nogil:
    """Return whether an entity is an idle kernel (not selected, nor launched) of the output."""
    cdef const EntityRow* entity_row = &merge.merged.entities[entity]
    return (entity_row.flags & EF_LIVE != 0 and entity_row.flags & EF_KERNEL != 0
            and is_idle(entity_row))


cdef inline void find_idle_uses(Merge* merge, IdleUses* uses) noexcept nogil:
    """List the references from idle kernels to shared variables, and mark users of arrays."""
    cdef const FixupRow* fixup = <const FixupRow*>merge.columns.fixups.data
    cdef IdleUse* use
    cdef size_t i, entity
    cdef EntityNumber variable, kernel
    cdef IdleUseNumber use_number
    for i in range(merge.merged.entity_count):
        uses.has_array[i] = merge.columns.array_align[i] != 0 and is_idle_code(merge, i)
    for i in range(0 if merge.objects.mode & LINK_RELOCATABLE else merge.columns.fixups.count):
        variable = fixup[i].entity
        kernel = fixup[i].function
        if (variable < 0 or kernel < 0 or merge.merged.entities[variable].kind != E_SHARED
                or not is_idle_code(merge, kernel)
                or not is_a(out_row(merge, fixup[i].out).kind, IS_CODE)):
            continue
        if merge.merged.entities[variable].flags & EF_UNSIZED:
            uses.has_array[kernel] = True
            continue
        use = <IdleUse*>vec_push(&uses.rows)
        if use == NULL:
            merge.failed = True
            return
        use.variable = variable
        use.kernel = kernel
        use.of_kernel = uses.of_kernel[kernel]
        uses.of_kernel[kernel] = <IdleUseNumber>uses.rows.count - 1
    for i in range(merge.merged.entity_count):
        entity = merge.merged.entity_count - 1 - i
        use_number = uses.of_kernel[entity]
        while use_number >= 0:
            use = <IdleUse*>uses.rows.data + use_number
            use.of_variable = uses.of_variable[use.variable]
            uses.of_variable[use.variable] = use_number
            use_number = use.of_kernel


cdef inline void create_sections_by_variable(Merge* merge, Scratch* scratch,
                                             IdleUses* uses) noexcept nogil:
    """Create sections of the idle kernels that use common variables, variable by variable.

    The variables are in the order of `order_common` of the layout: sorted, then reversed. A first
    walk over them takes those that one kernel alone uses, a second one the others.
    """
    cdef Vec* variables = &uses.variables
    cdef VariableRow* row
    cdef VariableRef* order         # the sorted `variables`, then as much room for the sort
    cdef const EntityRow* entity
    cdef size_t i
    cdef EntityNumber variable
    cdef IdleUseNumber number
    for i in range(merge.objects.symbol_count):
        variable = merge.merged.symbol_entity[i]
        if variable < 0:
            continue
        entity = &merge.merged.entities[variable]
        if entity.winner != <SymbolNumber>i or entity.kind != E_SHARED:
            continue
        if not entity.flags & EF_UNSIZED and not is_common(merge, variable):
            continue
        row = <VariableRow*>vec_push(variables)
        if row == NULL:
            merge.failed = True
            break
        row.size = entity.size
        row.align = entity.align
        row.owner = <KernelNumber>variable      # an entity: the sort does not look at it
    order = <VariableRef*>scratch_room(scratch, 2 * variables.count, 4)
    if not merge.failed and not scratch.failed:
        for i in range(variables.count):
            order[i] = <VariableRef>i
        sort_list(<VariableRow*>variables.data, order, order + variables.count, variables.count,
                  False)
        for i in range(2 * variables.count):
            row = <VariableRow*>variables.data + order[variables.count - 1 - i % variables.count]
            variable = <EntityNumber>row.owner
            number = (uses.of_variable[variable]
                      if (merge.work.users[variable] >= 0) == (i < variables.count) else -1)
            while number >= 0:
                create_idle_section(merge, (<const IdleUse*>uses.rows.data)[number].kernel)
                number = (<const IdleUse*>uses.rows.data)[number].of_variable


cdef inline void create_idle_section(Merge* merge, EntityNumber kernel) noexcept nogil:
    """Create the shared memory section of an idle kernel, unless it exists."""
    if not merge.failed and find_function_section(merge, kernel, K_SHARED, 0) < 0:
        create_shared_section(merge, kernel)
