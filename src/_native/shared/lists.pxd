# Who uses which shared variable: the kernels and variables of a link, and references to them.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_zeros
from sectionkinds cimport IS_CODE, IS_KERNEL_SHARED
from base.elf64 cimport STT_SECTION
from tables.graph cimport CallGraph, is_idle
from tables.kinds cimport is_a
from tables.rows cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, FILE_WHOLE, RESOLUTION_WON, EmittedRow,
    EntityRow, FixupRow, OutRow, SectionRow, SymbolRow,
)
from shared.rows cimport (
    COMMON, DEAD, EXTERN, LATE, REFERENCED, FILE_ALIGN, STAYS, ExternUseRow, UseRow, VariableRow,
)
from base.vector cimport Vec, vec_push
from tables.views cimport MergedView, ObjectsView

# One reference from a function's code to a variable.
ctypedef struct Reference:
    int32_t variable
    int32_t next            # next reference of the same function, or -1


# What the lists are made from, and the lists.
ctypedef struct SharedLists:
    ObjectsView objects
    MergedView merged
    bint aligned                # arrays ask for the alignment that their symbols say
    bint every                  # bytes that no symbol names count in all files
    bint by_name                # an extern array ties its kernels, not the function with the use
    CallGraph graph
    uint32_t* stamp             # by node
    uint32_t* stack
    int32_t* number             # by entity: variable or kernel
    int32_t* first              # by entity: newest Reference
    Vec variables               # VariableRow
    Vec owners                  # int32: the entity of each
    Vec kernels                 # int32: entities
    Vec uses                    # UseRow
    Vec extern_uses             # ExternUseRow
    Vec references              # Reference


cdef inline bint list_all(SharedLists* l, Scratch* scratch) noexcept nogil:
    """Fill all lists; False when memory is exhausted."""
    return (list_kernels(l) and list_variables(l) and list_nameless(l, scratch)
            and list_references(l)
            and (l.objects.executable or not l.by_name or list_kept_references(l))
            and list_uses(l)
            and (l.objects.executable or list_instances(l))
            and mark_late(l, scratch))


cdef inline bint list_kernels(SharedLists* l) noexcept nogil:
    cdef const EntityRow* e = l.merged.entities
    cdef size_t i
    cdef int32_t* row
    for i in range(l.merged.entity_count):
        if e[i].flags & EF_KERNEL and e[i].flags & EF_LIVE:
            row = <int32_t*>vec_push(&l.kernels)
            if row == NULL:
                return False
            row[0] = <int32_t>i
            l.number[i] = <int32_t>(l.kernels.count - 1)
    return True


cdef inline VariableRow* new_variable(SharedLists* l, int32_t entity) noexcept nogil:
    """A row for a variable, or NULL without memory; the entity is -1 where no symbol names it."""
    cdef VariableRow* row = <VariableRow*>vec_push(&l.variables)
    cdef int32_t* owner = <int32_t*>vec_push(&l.owners)
    if row == NULL or owner == NULL:
        return NULL
    owner[0] = entity
    return row


cdef inline bint list_variables(SharedLists* l) noexcept nogil:
    """Variables by creation: one that is defined counts where its definition stands.

    Arrays, and the instances of an earlier link, may ask for what their symbols say.
    """
    cdef const SymbolRow* sym = l.objects.symbols
    cdef const EntityRow* e = l.merged.entities
    cdef const int32_t* entity = l.merged.symbol_entity
    cdef size_t i
    cdef int32_t at, kernel
    cdef VariableRow* row
    for i in range(l.objects.symbol_count):
        at = entity[i]
        if at < 0 or e[at].kind != E_SHARED or e[at].winner != <int32_t>i:
            continue
        if not e[at].flags & (EF_DEFINED | EF_UNSIZED):
            continue
        row = new_variable(l, at)
        if row == NULL:
            return False
        row.size = e[at].size
        if row.size > <uint64_t>0xffffffffU:    # of a mention in another space
            row.size = <uint64_t>0xffffffffU
        row.align = e[at].align if e[at].align else 1
        if e[at].flags & EF_UNSIZED and sym[i].value:
            row.align = sym[i].value        # that of an instance looks like an alignment
        row.owner = COMMON
        row.flags = (REFERENCED if l.merged.referenced[at] else 0) | (
            EXTERN if e[at].flags & EF_UNSIZED else 0)
        if l.aligned and e[at].flags & EF_UNSIZED and sym[i].value:
            row.flags |= FILE_ALIGN
        if sym[i].section >= 0 and is_a(l.objects.sections[sym[i].section].kind, IS_KERNEL_SHARED):
            kernel = l.merged.section_function[sym[i].section]
            row.owner = l.number[kernel] if kernel >= 0 and l.number[kernel] >= 0 else DEAD
        l.number[at] = <int32_t>(l.variables.count - 1)
    return True


cdef inline bint has_whole(const SharedLists* l) noexcept nogil:
    """Whether a whole program is among the files."""
    cdef size_t i = 0
    while i < l.objects.section_count:
        if l.objects.files[l.objects.sections[i].file].flags & FILE_WHOLE:
            return True
        i += l.objects.files[l.objects.sections[i].file].section_count
    return False


cdef inline bint list_nameless(SharedLists* l, Scratch* scratch) noexcept nogil:
    """The bytes of a kernel's section in which no variable lies are one variable.

    A link with -r gives such sections to kernels when extern arrays exist, and with `every` these
    count. Sections of whole programs (-ewp) always do, whose code knows where its variables are.
    """
    cdef const SymbolRow* sym = l.objects.symbols
    cdef const SectionRow* s
    cdef size_t i
    cdef int32_t kernel
    cdef VariableRow* row
    cdef uint8_t* named
    cdef bint whole
    if not l.every and not has_whole(l):
        return True
    named = <uint8_t*>scratch_zeros(scratch, l.objects.section_count, 1)
    if named == NULL:
        return False
    for i in range(l.objects.symbol_count):
        if sym[i].section >= 0 and sym[i].info & 15 != STT_SECTION:
            named[sym[i].section] = 1
    for i in range(l.objects.section_count):
        s = &l.objects.sections[i]
        whole = l.objects.files[s.file].flags & FILE_WHOLE
        if (not is_a(s.kind, IS_KERNEL_SHARED)
                or not (whole or (l.every and s.size and not named[i]))):
            continue
        kernel = l.merged.section_function[i]
        if (l.merged.section_resolution[i] != RESOLUTION_WON or kernel < 0
                or l.number[kernel] < 0):
            continue
        row = new_variable(l, -1)
        if row == NULL:
            return False
        row.size = s.size
        row.align = s.align if s.align else 1
        row.owner = l.number[kernel]
        row.flags = STAYS if whole else 0
    return True


cdef inline bint list_references(SharedLists* l) noexcept nogil:
    cdef const FixupRow* fixup = l.merged.fixups
    cdef const EntityRow* e = l.merged.entities
    cdef size_t i
    for i in range(l.merged.fixup_count):
        if (fixup[i].entity < 0 or e[fixup[i].entity].kind != E_SHARED or fixup[i].function < 0
                or not is_a(l.merged.outs[fixup[i].out].kind, IS_CODE)
                or l.number[fixup[i].entity] < 0):
            continue
        if not add_reference(&l.references, l.number[fixup[i].entity], &l.first[fixup[i].function]):
            return False
    return True


cdef inline bint list_kept_references(SharedLists* l) noexcept nogil:
    """Those that a relocatable link leaves to the next one."""
    cdef const EmittedRow* emitted = l.merged.emitted
    cdef const OutRow* out = l.merged.outs
    cdef size_t i, code
    cdef int32_t at
    for i in range(2 * l.merged.out_count):
        code = i // 2
        if not is_a(out[code].kind, IS_CODE):
            continue
        at = out[code].rela if i & 1 else out[code].rel
        at = out[at].head if at >= 0 else -1
        while at >= 0:
            if (emitted[at].entity >= 0 and l.merged.entities[emitted[at].entity].kind == E_SHARED
                    and l.number[emitted[at].entity] >= 0
                    and not add_reference(&l.references, l.number[emitted[at].entity],
                                          &l.first[out[code].entity])):
                return False
            at = emitted[at].next
    return True


cdef inline bint add_reference(Vec* references, int32_t variable, int32_t* newest) noexcept nogil:
    cdef Reference* row = <Reference*>vec_push(references)
    if row == NULL:
        return False
    row.variable = variable
    row.next = newest[0]
    newest[0] = <int32_t>(references.count - 1)
    return True


cdef inline bint add_use(SharedLists* l, int32_t variable, size_t kernel,
                         uint32_t node) noexcept nogil:
    """The code of `node`, which the kernel reaches, refers to a variable."""
    cdef const VariableRow* row = <const VariableRow*>l.variables.data + variable
    cdef UseRow* use
    cdef ExternUseRow* extern_use
    if not row.flags & EXTERN:
        use = <UseRow*>vec_push(&l.uses)
        if use == NULL:
            return False
        use.variable = <uint32_t>variable
        use.kernel = <uint32_t>kernel
        return True
    extern_use = <ExternUseRow*>vec_push(&l.extern_uses)
    if extern_use == NULL:
        return False
    extern_use.kernel = <uint32_t>kernel
    extern_use.align = row.align if row.flags & FILE_ALIGN else 0
    extern_use.flags = 0
    if l.by_name:
        extern_use.tie = (<const int32_t*>l.owners.data)[variable]
    else:
        extern_use.tie = (-1 if node == (<const uint32_t*>l.kernels.data)[kernel]
                          else <int32_t>node)
    return True


cdef inline bint list_uses(SharedLists* l) noexcept nogil:
    """Walk the calls of every kernel; free when nothing refers to shared memory."""
    cdef const int32_t* kernels = <const int32_t*>l.kernels.data
    cdef const Reference* references = <const Reference*>l.references.data
    cdef uint32_t* stamp = l.stamp
    cdef uint32_t* stack = l.stack
    cdef size_t k, depth
    cdef uint32_t node, to, j
    cdef int32_t at
    cdef bint idle
    if l.references.count == 0:
        return True
    for k in range(l.kernels.count):
        idle = is_idle(&l.merged.entities[kernels[k]])     # its own code counts, not what it calls
        stack[0] = <uint32_t>kernels[k]
        stamp[kernels[k]] = <uint32_t>k + 1
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            at = l.first[node] if node < l.merged.entity_count else -1
            while at >= 0:
                if not add_use(l, references[at].variable, k, node):
                    return False
                at = references[at].next
            for j in range(l.graph.start[node],
                           l.graph.start[node + (l.objects.executable and not idle)]):
                to = l.graph.edges[j]
                if stamp[to] != <uint32_t>k + 1:
                    stamp[to] = <uint32_t>k + 1
                    stack[depth] = to
                    depth += 1
    return True


cdef inline bint list_instances(SharedLists* l) noexcept nogil:
    cdef const uint64_t* align = l.merged.array_align
    cdef size_t i
    cdef ExternUseRow* row
    for i in range(l.merged.entity_count):
        if align[i]:
            row = <ExternUseRow*>vec_push(&l.extern_uses)
            if row == NULL:
                return False
            row.kernel = <uint32_t>l.number[i]
            row.tie = -1
            row.align = align[i] if align[i] > 1 else 0
            row.flags = 0
    return True


cdef inline bint mark_late(SharedLists* l, Scratch* scratch) noexcept nogil:
    """Tell which idle kernels get their section for arrays alone, after all others."""
    cdef size_t i
    cdef const int32_t* kernels = <const int32_t*>l.kernels.data
    cdef const VariableRow* variable = <const VariableRow*>l.variables.data
    cdef const UseRow* use = <const UseRow*>l.uses.data
    cdef ExternUseRow* extern_use = <ExternUseRow*>l.extern_uses.data
    cdef uint8_t* early
    if l.extern_uses.count == 0:
        return True
    early = <uint8_t*>scratch_zeros(scratch, l.kernels.count, 1)
    if early == NULL:
        return False
    for i in range(l.kernels.count):
        early[i] = not is_idle(&l.merged.entities[kernels[i]])
    for i in range(l.variables.count):
        if variable[i].owner >= 0:
            early[variable[i].owner] = True
    for i in range(l.uses.count if l.objects.executable else 0):
        early[use[i].kernel] = True
    for i in range(l.extern_uses.count):
        if not early[extern_use[i].kernel]:
            extern_use[i].flags |= LATE
    return True
