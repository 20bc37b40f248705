# Who uses which shared variable: the kernels and variables of a link, and references to them.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from sectionkinds cimport IS_CODE, IS_KERNEL_SHARED
from base.elf64 cimport STT_SECTION
from tables.graph cimport CallGraph, is_idle
from tables.kinds cimport is_a
from tables.rows cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, ROLE_WON, SAYS_WHOLE, EntityRow,
    FileRow, FixRow, KeepRow, OutRow, SectionRow, SymbolRow,
)
from shared.rows cimport (
    COMMON, DEAD, EXTERN, LATE, REFERENCED, SAYS_ALIGN, STAYS, ExternUseRow, UseRow, VariableRow,
)
from base.vector cimport Vec, vec_push

# One reference from a function's code to a variable.
ctypedef struct Reference:
    int32_t variable
    int32_t next            # next reference of the same function, or -1


cdef inline bint list_kernels(const EntityRow* e, size_t n, int32_t* number,
                              Vec* kernels) noexcept nogil:
    cdef size_t i
    cdef int32_t* row
    for i in range(n):
        if e[i].flags & EF_KERNEL and e[i].flags & EF_LIVE:
            row = <int32_t*>vec_push(kernels)
            if row == NULL:
                return False
            row[0] = <int32_t>i
            number[i] = <int32_t>(kernels.count - 1)
    return True


cdef inline bint list_variables(const SectionRow* s, const SymbolRow* sym, size_t symbol_count,
                                const EntityRow* e, const int32_t* entity,
                                const int32_t* function, const uint8_t* used, int32_t* number,
                                bint aligned, Vec* variables, Vec* owners) noexcept nogil:
    """Variables by birth: one that is defined counts where its definition stands.

    With `aligned` arrays, and the instances of an earlier link, ask for what their symbols say.
    """
    cdef size_t i
    cdef int32_t at, kernel
    cdef VariableRow* row
    cdef int32_t* owner
    for i in range(symbol_count):
        at = entity[i]
        if at < 0 or e[at].kind != E_SHARED or e[at].winner != <int32_t>i:
            continue
        if not e[at].flags & (EF_DEFINED | EF_UNSIZED):
            continue
        row = <VariableRow*>vec_push(variables)
        owner = <int32_t*>vec_push(owners)
        if row == NULL or owner == NULL:
            return False
        owner[0] = at
        row.size = e[at].size
        if row.size > <uint64_t>0xffffffffU:    # of a mention in another space
            row.size = <uint64_t>0xffffffffU
        row.align = e[at].align if e[at].align else 1
        if e[at].flags & EF_UNSIZED and sym[i].value:
            row.align = sym[i].value        # that of an instance looks like an alignment
        row.owner = COMMON
        row.flags = (REFERENCED if used[at] else 0) | (
            EXTERN if e[at].flags & EF_UNSIZED else 0)
        if aligned and e[at].flags & EF_UNSIZED and sym[i].value:
            row.flags |= SAYS_ALIGN
        if sym[i].section >= 0 and is_a(s[sym[i].section].kind, IS_KERNEL_SHARED):
            kernel = function[sym[i].section]
            row.owner = number[kernel] if kernel >= 0 and number[kernel] >= 0 else DEAD
        number[at] = <int32_t>(variables.count - 1)
    return True


cdef inline bint has_whole(const SectionRow* s, size_t count, const FileRow* files) noexcept nogil:
    """Whether a whole program is among the files."""
    cdef size_t i = 0
    while i < count:
        if files[s[i].file].says & SAYS_WHOLE:
            return True
        i += files[s[i].file].section_count
    return False


cdef inline bint list_nameless(const SectionRow* s, size_t count, const SymbolRow* sym,
                               size_t symbol_count, const int32_t* function, const uint8_t* role,
                               const int32_t* number, const FileRow* files, bint every,
                               Vec* variables, Vec* owners) noexcept nogil:
    """The bytes of a kernel's section in which no variable lies are one variable.

    A link with -r gives such sections to kernels when extern arrays exist, and with `every` these
    count. Sections of whole programs (-ewp) always do, whose code knows where its variables are.
    """
    cdef size_t i
    cdef int32_t kernel
    cdef VariableRow* row
    cdef int32_t* owner
    cdef uint8_t* named
    cdef bint whole
    if not every and not has_whole(s, count, files):
        return True
    named = <uint8_t*>calloc(count + 1, 1)
    if named == NULL:
        return False
    for i in range(symbol_count):
        if sym[i].section >= 0 and sym[i].info & 15 != STT_SECTION:
            named[sym[i].section] = 1
    for i in range(count):
        whole = files[s[i].file].says & SAYS_WHOLE
        if (not is_a(s[i].kind, IS_KERNEL_SHARED)
                or not (whole or (every and s[i].size and not named[i]))):
            continue
        kernel = function[i] if role[i] == ROLE_WON else -1
        if kernel < 0 or number[kernel] < 0:
            continue
        row = <VariableRow*>vec_push(variables)
        owner = <int32_t*>vec_push(owners)
        if row == NULL or owner == NULL:
            free(named)
            return False
        owner[0] = -1
        row.size = s[i].size
        row.align = s[i].align if s[i].align else 1
        row.owner = number[kernel]
        row.flags = STAYS if whole else 0
    free(named)
    return True


cdef inline bint list_references(const FixRow* fix, size_t count, const OutRow* out,
                                 const EntityRow* e, const int32_t* number, int32_t* first,
                                 Vec* references) noexcept nogil:
    cdef size_t i
    for i in range(count):
        if (fix[i].entity < 0 or e[fix[i].entity].kind != E_SHARED or fix[i].function < 0
                or not is_a(out[fix[i].out].kind, IS_CODE) or number[fix[i].entity] < 0):
            continue
        if not add_reference(references, number[fix[i].entity], &first[fix[i].function]):
            return False
    return True


cdef inline bint list_kept_references(const KeepRow* keeps, const OutRow* out, size_t count,
                                      const EntityRow* e, const int32_t* number, int32_t* first,
                                      Vec* references) noexcept nogil:
    """Those that a relocatable link leaves to the next one."""
    cdef size_t i, code
    cdef int32_t at
    for i in range(2 * count):
        code = i // 2
        if not is_a(out[code].kind, IS_CODE):
            continue
        at = out[code].rela if i & 1 else out[code].rel
        at = out[at].head if at >= 0 else -1
        while at >= 0:
            if (keeps[at].entity >= 0 and e[keeps[at].entity].kind == E_SHARED
                    and number[keeps[at].entity] >= 0
                    and not add_reference(references, number[keeps[at].entity],
                                          &first[out[code].entity])):
                return False
            at = keeps[at].next
    return True


cdef inline bint add_reference(Vec* references, int32_t variable, int32_t* newest) noexcept nogil:
    cdef Reference* row = <Reference*>vec_push(references)
    if row == NULL:
        return False
    row.variable = variable
    row.next = newest[0]
    newest[0] = <int32_t>(references.count - 1)
    return True


cdef inline bint list_uses(const CallGraph* graph, const EntityRow* e, size_t n,
                           const int32_t* kernels, size_t kernel_count,
                           const VariableRow* variables, const int32_t* first,
                           const Reference* references, size_t reference_count, uint32_t* stamp,
                           uint32_t* stack, const int32_t* arrays, bint deep, Vec* uses,
                           Vec* extern_uses) noexcept nogil:
    """Walk the calls of every kernel; free when nothing refers to shared memory."""
    cdef size_t k, depth
    cdef uint32_t node, to, j
    cdef int32_t at
    cdef bint idle
    cdef UseRow* use
    cdef ExternUseRow* extern_use
    if reference_count == 0:
        return True
    for k in range(kernel_count):
        idle = is_idle(&e[kernels[k]])      # its own code counts, not what it calls
        stack[0] = <uint32_t>kernels[k]
        stamp[kernels[k]] = <uint32_t>k + 1
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            at = first[node] if node < n else -1
            while at >= 0:
                if variables[references[at].variable].flags & EXTERN:
                    extern_use = <ExternUseRow*>vec_push(extern_uses)
                    if extern_use == NULL:
                        return False
                    extern_use.kernel = <uint32_t>k
                    extern_use.align = 0
                    extern_use.flags = 0
                    if variables[references[at].variable].flags & SAYS_ALIGN:
                        extern_use.align = variables[references[at].variable].align
                    if arrays != NULL:
                        extern_use.tie = arrays[references[at].variable]
                    else:
                        extern_use.tie = -1 if node == <uint32_t>kernels[k] else <int32_t>node
                else:
                    use = <UseRow*>vec_push(uses)
                    if use == NULL:
                        return False
                    use.variable = <uint32_t>references[at].variable
                    use.kernel = <uint32_t>k
                at = references[at].next
            for j in range(graph.start[node], graph.start[node + (deep and not idle)]):
                to = graph.edges[j]
                if stamp[to] != <uint32_t>k + 1:
                    stamp[to] = <uint32_t>k + 1
                    stack[depth] = to
                    depth += 1
    return True


cdef inline bint list_instances(const uint64_t* array_align, const int32_t* number, size_t n,
                                Vec* extern_uses) noexcept nogil:
    cdef size_t i
    cdef ExternUseRow* row
    for i in range(n):
        if array_align[i]:
            row = <ExternUseRow*>vec_push(extern_uses)
            if row == NULL:
                return False
            row.kernel = <uint32_t>number[i]
            row.tie = -1
            row.align = array_align[i] if array_align[i] > 1 else 0
            row.flags = 0
    return True


cdef inline bint mark_late(const EntityRow* e, const int32_t* kernels, size_t kernel_count,
                           const Vec* variables, const Vec* uses, Vec* extern_uses,
                           bint executable) noexcept nogil:
    """Tell which idle kernels get their section for arrays alone, behind all others."""
    cdef size_t i
    cdef const VariableRow* variable = <const VariableRow*>variables.data
    cdef const UseRow* use = <const UseRow*>uses.data
    cdef ExternUseRow* extern_use = <ExternUseRow*>extern_uses.data
    cdef uint8_t* early
    if extern_uses.count == 0:
        return True
    early = <uint8_t*>calloc(kernel_count + 1, 1)
    if early == NULL:
        return False
    for i in range(kernel_count):
        early[i] = not is_idle(&e[kernels[i]])
    for i in range(variables.count):
        if variable[i].owner >= 0:
            early[variable[i].owner] = True
    for i in range(uses.count if executable else 0):
        early[use[i].kernel] = True
    for i in range(extern_uses.count):
        if not early[extern_use[i].kernel]:
            extern_use[i].flags |= LATE
    free(early)
    return True
