"""Shared memory between the tables of the link and those of the layout kernel.

`gather` says who uses which variable; `pylink._native.shared` places them; `apply` brings the
places back as values of symbols and sizes of sections.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from elf64 cimport *
from graph cimport *
from rows cimport *
from vec cimport *

# Rows of pylink._native.shared; its stub describes them.
cdef struct VariableRow:
    uint64_t size
    uint64_t align
    int32_t owner
    uint32_t flags

cdef struct UseRow:
    uint32_t variable
    uint32_t kernel

cdef struct ExternUseRow:
    uint32_t kernel
    int32_t function

cdef struct KernelRow:
    uint64_t size
    uint64_t align
    int64_t extern_address
    uint32_t flags
    uint32_t spare

# One reference from a function's code to a variable.
ctypedef struct Reference:
    int32_t variable
    int32_t next            # next reference of the same function, or -1


def gather(bytes sections, bytes symbols, bytes entities, bytes symbol_entity, bytes symbol_role,
           bytes calls, bytes prototypes, bytes fixes, bytes outs, bytes referenced,
           bint tie_by_name):
    """The tables that the layout of shared memory starts from.

    `referenced` marks, a byte per entity, what any code refers to. Ties of extern arrays are
    entities: the function with the use or, with `tie_by_name` (-g), the array. Returns `(variables, uses,
    extern_uses, variable_entities, kernel_entities)`, the last two as int32 tables.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef size_t nodes = n + PyBytes_GET_SIZE(prototypes) // 8
    cdef size_t symbol_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
    cdef size_t fix_count = PyBytes_GET_SIZE(fixes) // sizeof(FixRow)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* sym = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const int32_t* entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    cdef const uint8_t* role = <const uint8_t*>PyBytes_AS_STRING(symbol_role)
    cdef const FixRow* fix = <const FixRow*>PyBytes_AS_STRING(fixes)
    cdef const OutRow* out = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const uint8_t* used = <const uint8_t*>PyBytes_AS_STRING(referenced)
    cdef Vec variables, uses, extern_uses, owners, kernels, references
    cdef CallGraph graph
    cdef int32_t* number = <int32_t*>calloc(n + 1, 4)       # by entity: variable or kernel
    cdef int32_t* first = <int32_t*>calloc(n + 1, 4)        # by entity: newest Reference
    cdef uint32_t* stamp = <uint32_t*>calloc(nodes + 1, 4)
    cdef uint32_t* stack = <uint32_t*>calloc(nodes + 1, 4)
    cdef bint ok
    vec_init(&variables, sizeof(VariableRow))
    vec_init(&uses, sizeof(UseRow))
    vec_init(&extern_uses, sizeof(ExternUseRow))
    vec_init(&owners, 4)
    vec_init(&kernels, 4)
    vec_init(&references, sizeof(Reference))
    ok = graph_init(&graph, <const CallRow*>PyBytes_AS_STRING(calls),
                    PyBytes_GET_SIZE(calls) // sizeof(CallRow), n, nodes)
    ok = ok and number != NULL and first != NULL and stamp != NULL and stack != NULL
    if ok:
        with nogil:
            memset(number, 0xff, 4 * n)
            memset(first, 0xff, 4 * n)
            ok = (list_kernels(e, n, number, &kernels)
                  and list_variables(s, sym, symbol_count, e, entity, role, used, number,
                                     &variables, &owners)
                  and list_references(fix, fix_count, out, e, number, first, &references)
                  and list_uses(&graph, e, n, <int32_t*>kernels.data, kernels.count,
                                <VariableRow*>variables.data, first,
                                <Reference*>references.data, references.count, stamp, stack,
                                <int32_t*>owners.data if tie_by_name else NULL,
                                &uses, &extern_uses))
    graph_free(&graph)
    free(number)
    free(first)
    free(stamp)
    free(stack)
    vec_free(&references)
    tables = (vec_take(&variables), vec_take(&uses), vec_take(&extern_uses), vec_take(&owners),
              vec_take(&kernels))
    if not ok:
        raise MemoryError
    return tables


cdef bint list_kernels(const EntityRow* e, size_t n, int32_t* number, Vec* kernels) noexcept nogil:
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


cdef bint list_variables(const SectionRow* s, const SymbolRow* sym, size_t symbol_count,
                         const EntityRow* e, const int32_t* entity, const uint8_t* role,
                         const uint8_t* used, int32_t* number, Vec* variables,
                         Vec* owners) noexcept nogil:
    """Variables by birth: one that is defined counts where its definition stands."""
    cdef size_t i
    cdef int32_t at, function
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
        row.align = e[at].align if e[at].align else 1
        row.owner = -1
        row.flags = (1 if used[at] else 0) | (2 if e[at].flags & EF_UNSIZED else 0)
        if sym[i].section >= 0 and s[sym[i].section].kind == K_SHARED:
            function = s[s[sym[i].section].target].target
            row.owner = -2
            if role[function] == ROLE_WON and entity[function] >= 0:
                if number[entity[function]] >= 0:
                    row.owner = number[entity[function]]
        number[at] = <int32_t>(variables.count - 1)
    return True


cdef bint list_references(const FixRow* fix, size_t count, const OutRow* out, const EntityRow* e,
                          const int32_t* number, int32_t* first, Vec* references) noexcept nogil:
    cdef size_t i
    cdef Reference* row
    for i in range(count):
        if (fix[i].entity < 0 or e[fix[i].entity].kind != E_SHARED or fix[i].function < 0
                or out[fix[i].out].kind != K_TEXT or number[fix[i].entity] < 0):
            continue
        row = <Reference*>vec_push(references)
        if row == NULL:
            return False
        row.variable = number[fix[i].entity]
        row.next = first[fix[i].function]
        first[fix[i].function] = <int32_t>(references.count - 1)
    return True


cdef bint list_uses(const CallGraph* graph, const EntityRow* e, size_t n, const int32_t* kernels,
                    size_t kernel_count, const VariableRow* variables, const int32_t* first,
                    const Reference* references, size_t reference_count, uint32_t* stamp,
                    uint32_t* stack, const int32_t* arrays, Vec* uses,
                    Vec* extern_uses) noexcept nogil:
    """Walk the calls of every kernel; free when nothing refers to shared memory."""
    cdef size_t k, depth
    cdef uint32_t node, to, j
    cdef int32_t at
    cdef UseRow* use
    cdef ExternUseRow* extern_use
    if reference_count == 0:
        return True
    for k in range(kernel_count):
        stack[0] = <uint32_t>kernels[k]
        stamp[kernels[k]] = <uint32_t>k + 1
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            at = first[node] if node < n else -1
            while at >= 0:
                if variables[references[at].variable].flags & 2:
                    extern_use = <ExternUseRow*>vec_push(extern_uses)
                    if extern_use == NULL:
                        return False
                    extern_use.kernel = <uint32_t>k
                    if arrays != NULL:
                        extern_use.function = arrays[references[at].variable]
                    else:
                        extern_use.function = -1 if node == <uint32_t>kernels[k] else <int32_t>node
                else:
                    use = <UseRow*>vec_push(uses)
                    if use == NULL:
                        return False
                    use.variable = <uint32_t>references[at].variable
                    use.kernel = <uint32_t>k
                at = references[at].next
            for j in range(graph.start[node], graph.start[node + 1]):
                to = graph.edges[j]
                if stamp[to] != <uint32_t>k + 1:
                    stamp[to] = <uint32_t>k + 1
                    stack[depth] = to
                    depth += 1
    return True


def apply(bytes sections, bytes symbols, bytes entities, bytes symbol_entity, bytes outs,
          bytes values, bytes homes, bytes variable_entities, bytes kernel_entities, bytes offsets, bytes kernels,
          bytes functions, bint executable):
    """Values of shared variables, and the sections that hold them.

    Without `executable` (-r) nothing is laid out yet: sections keep their pieces. Returns `(values, homes, outs, dynamic, lost, merc_values)`: the tables with shared memory filled in,
    the uint64 offset of extern arrays per function entity, a byte per entity for variables
    without a place, and the values that the mercury symbol table has.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t variable_count = PyBytes_GET_SIZE(variable_entities) // 4
    cdef size_t kernel_count = PyBytes_GET_SIZE(kernel_entities) // 4
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* sym = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const int32_t* entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    cdef bytes new_values = PyBytes_FromStringAndSize(PyBytes_AS_STRING(values), 8 * n)
    cdef bytes new_homes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(homes), 4 * n)
    cdef bytes new_outs = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs),
                                                    PyBytes_GET_SIZE(outs))
    cdef bytes dynamic_table = PyBytes_FromStringAndSize(NULL, 8 * n)
    cdef bytes lost_table = PyBytes_FromStringAndSize(NULL, n)
    cdef uint64_t* value = <uint64_t*>PyBytes_AS_STRING(new_values)
    cdef int32_t* home = <int32_t*>PyBytes_AS_STRING(new_homes)
    cdef OutRow* out = <OutRow*>PyBytes_AS_STRING(new_outs)
    cdef uint64_t* dynamic = <uint64_t*>PyBytes_AS_STRING(dynamic_table)
    cdef uint8_t* lost = <uint8_t*>PyBytes_AS_STRING(lost_table)
    cdef const int32_t* variable = <const int32_t*>PyBytes_AS_STRING(variable_entities)
    cdef const int32_t* kernel = <const int32_t*>PyBytes_AS_STRING(kernel_entities)
    cdef const int64_t* offset = <const int64_t*>PyBytes_AS_STRING(offsets)
    cdef const KernelRow* size = <const KernelRow*>PyBytes_AS_STRING(kernels)
    cdef const int64_t* shared_by = <const int64_t*>PyBytes_AS_STRING(functions)
    cdef size_t function_count = PyBytes_GET_SIZE(functions) // 8
    cdef int32_t* shared_out = <int32_t*>calloc(n + 1, 4)   # by entity: its .nv.shared row
    cdef bytes mercury
    cdef uint64_t* merc_value
    cdef int32_t common = -1, section
    if shared_out == NULL:
        raise MemoryError
    mercury = PyBytes_FromStringAndSize(PyBytes_AS_STRING(new_values), 8 * n)
    merc_value = <uint64_t*>PyBytes_AS_STRING(mercury)
    with nogil:
        memset(shared_out, 0xff, 4 * n)
        memset(lost, 0, n)
        for i in range(n):
            dynamic[i] = <uint64_t>shared_by[i] if i < function_count else 0
        for i in range(out_count):
            if out[i].kind == K_SHARED:
                shared_out[out[i].entity] = <int32_t>i
            elif out[i].kind == K_DEBUG_SHARED:
                common = <int32_t>i
        for i in range(kernel_count):
            section = shared_out[kernel[i]]
            if size[i].extern_address >= 0:
                dynamic[kernel[i]] = <uint64_t>size[i].extern_address
            if section < 0:
                continue
            take_size(&out[section], &size[i])
        for i in range(n):
            # An own variable of a code copy that lost is in no table.
            if e[i].kind == E_SHARED:
                lost[i] = True
                home[i] = -1
        for i in range(variable_count):
            value[variable[i]] = <uint64_t>offset[i] if offset[i] >= 0 else 0
            lost[variable[i]] = False
            section = sym[e[variable[i]].winner].section
            if section < 0:
                continue
            if s[section].kind == K_DEBUG_SHARED:
                home[variable[i]] = common
            else:
                lost[variable[i]] = offset[i] < 0
                section = entity[s[s[section].target].target]
                home[variable[i]] = shared_out[section] if section >= 0 else -1
            merc_value[variable[i]] = 0
        if common >= 0:
            take_size(&out[common], &size[kernel_count])
    free(shared_out)
    return new_values, new_homes, new_outs, dynamic_table, lost_table, mercury


cdef inline void take_size(OutRow* out, const KernelRow* size) noexcept nogil:
    out.size = size.size
    out.align = <uint32_t>size.align
    out.notes |= (OF_STAYS if size.flags & 1 else 0) | (0 if size.flags & 2 else OF_NO_SYMBOL)
