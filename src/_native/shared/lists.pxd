# Lists the kernels and shared variables of a link, and which kernel uses which variable.
#
# The place of a shared variable depends on the kernels that use it (shared/shared.pyx). A kernel
# uses what its own code refers to, and what every function that it reaches refers to. The inputs
# have references by function only. With kernels K1 and K2 that both call F, as an example:
#
#     references   F: v, K1: w
#     uses         K1: w and v, K2: v
#
# `list_all` fills the lists in this order:
#
# 1. `list_kernels` and `list_variables` list the kernels and variables. `list_nameless` makes one
#    variable of all bytes of a kernel's section: of one without symbols, and of each one in a whole
#    program (-ewp).
# 2. `list_references` lists the references of each function, from the relocations that the link
#    resolves. `list_emitted_references` adds those that a link with -r and -g emits.
# 3. `list_uses` walks the calls of each kernel. With -r, and for idle kernels, only their own code
#    counts. An idle kernel is neither selected nor launched by device code, but the link keeps it.
# 4. With -r, `list_instances` adds the kernels that have an instance, i.e. a symbol that stands for
#    their extern arrays. `mark_late` marks idle kernels that get a section for such arrays alone.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_zeros
from base.vector cimport Vec, vec_push
from elfnumbers cimport STT_SECTION
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, FILE_WHOLE_PROGRAM, RESOLUTION_WON,
)
from sectionkinds cimport IS_CODE, IS_KERNEL_SHARED
from tables.graph cimport CallGraph, NodeRef, is_idle
from tables.kinds cimport is_a
from tables.rows cimport (
    EmittedNumber, EmittedRow, EntityNumber, EntityRef, EntityRow, FixupRow, OutCounter, OutNumber,
    OutRow, SectionRow, SymbolNumber, SymbolRow,
)
from tables.sharedrows cimport (
    ARRAYS_ONLY, COMMON, DEAD, EXTERN, FILE_ALIGN, REFERENCED, STAYS, ExternUseRow, KernelCounter,
    KernelNumber, KernelRef, UseRow, VariableNumber, VariableRef, VariableRow,
)
from tables.views cimport MergedView, ObjectsView

# The number of a SharedReference, from 0; -1 for none.
ctypedef int32_t SharedReferenceNumber

# One reference from a function's code to a shared variable.
ctypedef struct SharedReference:
    VariableNumber variable     # number of its VariableRow
    SharedReferenceNumber next  # number of the next reference of the same function, or -1


# The tables that the lists are made from, and the lists.
ctypedef struct SharedLists:
    ObjectsView objects
    MergedView merged
    bint uses_symbol_align          # extern arrays have the alignment that their symbols say
    bint counts_nameless            # sections without symbols are variables (`list_nameless`)
    bint ties_by_array              # a tie (shared/arrays.pxd) is an array, not its function
    CallGraph graph                 # edges from each node to what it calls
    uint32_t* last_walk             # by node: number, from 1, of the last walk that reached it
    NodeRef* stack                  # nodes that are reached and whose calls are not followed yet
    int32_t* list_number            # by entity: row of `variables` or of `kernels`, or -1
    SharedReferenceNumber* first    # by entity: its newest SharedReference, or -1
    Vec variables                   # VariableRow
    Vec variable_entities           # EntityNumber, by variable; -1 if no symbol names it
    Vec kernels                     # EntityNumber, by kernel
    Vec uses                        # UseRow
    Vec extern_uses                 # ExternUseRow
    Vec references                  # SharedReference


cdef inline bint list_all(SharedLists* lists, Scratch* scratch) noexcept nogil:
    """Fill all lists; False when memory is exhausted."""
    return (list_kernels(lists) and list_variables(lists) and list_nameless(lists, scratch)
            and list_references(lists)
            and (lists.objects.executable or not lists.ties_by_array
                 or list_emitted_references(lists))
            and list_uses(lists)
            and (lists.objects.executable or list_instances(lists))
            and mark_late(lists, scratch))


cdef inline bint list_kernels(SharedLists* lists) noexcept nogil:
    """List the live kernels; False without memory."""
    cdef const EntityRow* entities = lists.merged.entities
    cdef size_t i
    cdef EntityNumber* row
    for i in range(lists.merged.entity_count):
        if entities[i].flags & EF_KERNEL and entities[i].flags & EF_LIVE:
            row = <EntityNumber*>vec_push(&lists.kernels)
            if row == NULL:
                return False
            row[0] = <EntityNumber>i
            lists.list_number[i] = <int32_t>(lists.kernels.count - 1)
    return True


cdef inline VariableRow* add_variable(SharedLists* lists, EntityNumber entity) noexcept nogil:
    """Add a row for a variable; NULL without memory. The entity is -1 if no symbol names it."""
    cdef VariableRow* row = <VariableRow*>vec_push(&lists.variables)
    cdef EntityNumber* variable_entity = <EntityNumber*>vec_push(&lists.variable_entities)
    if row == NULL or variable_entity == NULL:
        return NULL
    variable_entity[0] = entity
    return row


cdef inline bint list_variables(SharedLists* lists) noexcept nogil:
    """List variables in the order of input symbols, each at its definition, if it has one.

    The value of an extern array's symbol, if it is not 0, is its alignment. This also holds for an
    instance, by which an earlier -r link replaced a kernel's arrays. False without memory.
    """
    cdef const SymbolRow* symbols = lists.objects.symbols
    cdef const EntityRow* entities = lists.merged.entities
    cdef const EntityNumber* symbol_entity = lists.merged.symbol_entity
    cdef size_t i
    cdef EntityNumber entity, kernel
    cdef VariableRow* row
    for i in range(lists.objects.symbol_count):
        entity = symbol_entity[i]
        if (entity < 0 or entities[entity].kind != E_SHARED
                or entities[entity].winner != <SymbolNumber>i):
            continue
        if not entities[entity].flags & (EF_DEFINED | EF_UNSIZED):
            continue
        row = add_variable(lists, entity)
        if row == NULL:
            return False
        row.size = entities[entity].size
        if row.size > <uint64_t>0xffffffffU:    # from a mention of the name in another state space
            row.size = <uint64_t>0xffffffffU
        row.align = entities[entity].align if entities[entity].align else 1
        if entities[entity].flags & EF_UNSIZED and symbols[i].value:
            row.align = symbols[i].value        # the value of an instance is an alignment
        row.owner = COMMON
        row.flags = (REFERENCED if lists.merged.referenced[entity] else 0) | (
            EXTERN if entities[entity].flags & EF_UNSIZED else 0)
        if lists.uses_symbol_align and entities[entity].flags & EF_UNSIZED and symbols[i].value:
            row.flags |= FILE_ALIGN
        if (symbols[i].section >= 0
                and is_a(lists.objects.sections[symbols[i].section].kind, IS_KERNEL_SHARED)):
            kernel = lists.merged.section_function[symbols[i].section]
            row.owner = DEAD
            if kernel >= 0 and lists.list_number[kernel] >= 0:
                row.owner = <KernelNumber>lists.list_number[kernel]
        lists.list_number[entity] = <int32_t>(lists.variables.count - 1)
    return True


cdef inline bint has_whole_program(const SharedLists* lists) noexcept nogil:
    """Return whether one of the files is a whole program (-ewp)."""
    cdef size_t i = 0
    while i < lists.objects.section_count:
        if lists.objects.files[lists.objects.sections[i].file].flags & FILE_WHOLE_PROGRAM:
            return True
        i += lists.objects.files[lists.objects.sections[i].file].section_count
    return False


cdef inline bint list_nameless(SharedLists* lists, Scratch* scratch) noexcept nogil:
    """List the bytes of a kernel's section that has no symbols as one variable of the kernel.

    An earlier link with -r gave such sections to kernels if there were extern arrays; they are
    listed with `counts_nameless`. Sections of whole programs (-ewp) are always listed, and as one
    variable even with symbols, since their code contains the offsets of variables. False without
    memory.
    """
    cdef const SymbolRow* symbols = lists.objects.symbols
    cdef const SectionRow* section
    cdef size_t i
    cdef EntityNumber kernel
    cdef VariableRow* row
    cdef uint8_t* has_variables     # by input section: 1 if it has a symbol, not only its own
    cdef bint is_whole_program
    if not lists.counts_nameless and not has_whole_program(lists):
        return True
    has_variables = <uint8_t*>scratch_zeros(scratch, lists.objects.section_count, 1)
    if has_variables == NULL:
        return False
    for i in range(lists.objects.symbol_count):
        if symbols[i].section >= 0 and symbols[i].info & 15 != STT_SECTION:
            has_variables[symbols[i].section] = 1
    for i in range(lists.objects.section_count):
        section = &lists.objects.sections[i]
        is_whole_program = lists.objects.files[section.file].flags & FILE_WHOLE_PROGRAM
        if (not is_a(section.kind, IS_KERNEL_SHARED)
                or not (is_whole_program or (lists.counts_nameless and section.size
                                             and not has_variables[i]))):
            continue
        kernel = lists.merged.section_function[i]
        if (lists.merged.section_resolution[i] != RESOLUTION_WON or kernel < 0
                or lists.list_number[kernel] < 0):
            continue
        row = add_variable(lists, -1)
        if row == NULL:
            return False
        row.size = section.size
        row.align = section.align if section.align else 1
        row.owner = <KernelNumber>lists.list_number[kernel]
        row.flags = STAYS if is_whole_program else 0
    return True


cdef inline bint list_references(SharedLists* lists) noexcept nogil:
    """List the resolved references of code to shared variables; False without memory."""
    cdef const FixupRow* fixup = lists.merged.fixups
    cdef const EntityRow* entities = lists.merged.entities
    cdef size_t i
    for i in range(lists.merged.fixup_count):
        if (fixup[i].entity < 0 or entities[fixup[i].entity].kind != E_SHARED
                or fixup[i].function < 0
                or not is_a(lists.merged.outs[fixup[i].out].kind, IS_CODE)
                or lists.list_number[fixup[i].entity] < 0):
            continue
        if not add_reference(&lists.references,
                             <VariableNumber>lists.list_number[fixup[i].entity],
                             &lists.first[fixup[i].function]):
            return False
    return True


cdef inline bint list_emitted_references(SharedLists* lists) noexcept nogil:
    """Add references of code to shared variables in emitted relocations (-r).

    False without memory.
    """
    cdef const EmittedRow* emitted = lists.merged.emitted
    cdef const OutRow* out = lists.merged.outs
    cdef size_t i
    cdef OutCounter code
    cdef OutNumber list_of_code     # the REL or RELA section of `code`, or -1
    cdef EmittedNumber entry
    for i in range(2 * lists.merged.out_count):     # REL and RELA section of each code section
        code = <OutCounter>(i // 2)
        if not is_a(out[code].kind, IS_CODE):
            continue
        list_of_code = out[code].rela if i & 1 else out[code].rel
        entry = out[list_of_code].head if list_of_code >= 0 else -1
        while entry >= 0:
            if (emitted[entry].entity >= 0
                    and lists.merged.entities[emitted[entry].entity].kind == E_SHARED
                    and lists.list_number[emitted[entry].entity] >= 0
                    and not add_reference(&lists.references,
                                          <VariableNumber>lists.list_number[emitted[entry].entity],
                                          &lists.first[out[code].entity])):
                return False
            entry = emitted[entry].next
    return True


cdef inline bint add_reference(Vec* references, VariableNumber variable,
                               SharedReferenceNumber* newest) noexcept nogil:
    """Put a reference in front of a function's list, whose head is `newest`; False without memory.
    """
    cdef SharedReference* row = <SharedReference*>vec_push(references)
    if row == NULL:
        return False
    row.variable = variable
    row.next = newest[0]
    newest[0] = <SharedReferenceNumber>(references.count - 1)
    return True


cdef inline bint add_use(SharedLists* lists, VariableNumber variable, KernelCounter kernel,
                         NodeRef node) noexcept nogil:
    """Record that the kernel reaches `node`, whose code uses the variable; False without memory.

    `variable` and `kernel` are numbers of rows.
    """
    cdef const VariableRow* row = <const VariableRow*>lists.variables.data + variable
    cdef UseRow* use
    cdef ExternUseRow* extern_use
    if not row.flags & EXTERN:
        use = <UseRow*>vec_push(&lists.uses)
        if use == NULL:
            return False
        use.variable = <VariableRef>variable
        use.kernel = <KernelRef>kernel
        return True
    extern_use = <ExternUseRow*>vec_push(&lists.extern_uses)
    if extern_use == NULL:
        return False
    extern_use.kernel = <KernelRef>kernel
    extern_use.align = row.align if row.flags & FILE_ALIGN else 0
    extern_use.flags = 0
    if lists.ties_by_array:
        extern_use.tie = (<const EntityNumber*>lists.variable_entities.data)[variable]
    else:
        extern_use.tie = (-1 if node == <NodeRef>(<const EntityNumber*>lists.kernels.data)[kernel]
                          else <EntityNumber>node)
    return True


cdef inline bint list_uses(SharedLists* lists) noexcept nogil:
    """List what each kernel uses, by a walk over its calls; False without memory."""
    cdef const EntityNumber* kernels = <const EntityNumber*>lists.kernels.data
    cdef const SharedReference* references = <const SharedReference*>lists.references.data
    cdef uint32_t* last_walk = lists.last_walk
    cdef NodeRef* stack = lists.stack
    cdef size_t kernel, depth
    cdef NodeRef node, callee
    cdef uint32_t j
    cdef SharedReferenceNumber reference
    cdef bint idle              # the kernel's calls are not followed; with -r, no kernel's are
    if lists.references.count == 0:
        return True
    for kernel in range(lists.kernels.count):
        idle = is_idle(&lists.merged.entities[kernels[kernel]])
        stack[0] = <NodeRef>kernels[kernel]
        last_walk[kernels[kernel]] = <uint32_t>kernel + 1
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            reference = lists.first[<EntityRef>node] if node < lists.merged.entity_count else -1
            while reference >= 0:
                if not add_use(lists, references[reference].variable, kernel, node):
                    return False
                reference = references[reference].next
            for j in range(lists.graph.start[node],
                           lists.graph.start[node + (lists.objects.executable and not idle)]):
                callee = lists.graph.edges[j]
                if last_walk[callee] != <uint32_t>kernel + 1:
                    last_walk[callee] = <uint32_t>kernel + 1
                    stack[depth] = callee
                    depth += 1
    return True


cdef inline bint list_instances(SharedLists* lists) noexcept nogil:
    """Add a use of extern arrays for each kernel with an instance, a symbol for these (-r).

    False without memory.
    """
    cdef const uint64_t* align = lists.merged.array_align
    cdef size_t i
    cdef ExternUseRow* row
    for i in range(lists.merged.entity_count):
        if align[i]:
            row = <ExternUseRow*>vec_push(&lists.extern_uses)
            if row == NULL:
                return False
            row.kernel = <KernelRef>lists.list_number[i]
            row.tie = -1
            row.align = align[i] if align[i] > 1 else 0
            row.flags = 0
    return True


cdef inline bint mark_late(SharedLists* lists, Scratch* scratch) noexcept nogil:
    """Mark uses of extern arrays by idle kernels that have their section only for such arrays.

    Idle kernels are neither selected nor launched by device code. False without memory.
    """
    cdef size_t i
    cdef const EntityNumber* kernels = <const EntityNumber*>lists.kernels.data
    cdef const VariableRow* variable = <const VariableRow*>lists.variables.data
    cdef const UseRow* use = <const UseRow*>lists.uses.data
    cdef ExternUseRow* extern_use = <ExternUseRow*>lists.extern_uses.data
    cdef uint8_t* is_early      # by kernel: 1 if it is not idle, or uses other variables
    if lists.extern_uses.count == 0:
        return True
    is_early = <uint8_t*>scratch_zeros(scratch, lists.kernels.count, 1)
    if is_early == NULL:
        return False
    for i in range(lists.kernels.count):
        is_early[i] = not is_idle(&lists.merged.entities[kernels[i]])
    for i in range(lists.variables.count):
        if variable[i].owner >= 0:
            is_early[variable[i].owner] = True
    for i in range(lists.uses.count if lists.objects.executable else 0):
        is_early[use[i].kernel] = True
    for i in range(lists.extern_uses.count):
        if not is_early[extern_use[i].kernel]:
            extern_use[i].flags |= ARRAYS_ONLY
    return True
