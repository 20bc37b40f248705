"""Shared memory between the tables of the link and those of the layout kernel.

`gather` says who uses which variable; `pylink._native.shared` places them; `apply` brings the
places back as values of symbols and sizes of sections.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_room, scratch_vector, scratch_zeros,
)
from sectionkinds cimport IS_COMMON_SHARED, IS_KERNEL_SHARED
from tables.graph cimport CallRows, calls_of, graph_init
from pylink._native.tables cimport (
    ExternUses, Marks, MergedTables, Numbers, ObjectTables, Outs, PlacedTables, SharedTables,
    SharedUses, SharedVariables, Table, Values, new_rows,
)
from tables.kinds cimport is_a
from tables.rows cimport (
    EF_UNSIZED, E_SHARED, M_DEBUG, OF_NO_SYMBOL, OF_STAYS, EntityRow, OutRow, is_instance,
)
from shared.lists cimport Reference, SharedLists, list_all
from shared.rows cimport HAS_SYMBOL, SURVIVES, ExternUseRow, KernelRow, UseRow, VariableRow
from traits cimport (
    FAMILY_TRAITS, TRAIT_ALIGNS_ARRAYS, TRAIT_BARE_VALUES, TRAIT_FILLS_SHARED, TRAIT_MERCURY,
    TRAIT_NAMELESS_SHARED, TRAIT_SHARED_RESERVE,
)
from base.vector cimport vec_take
from tables.views cimport MergedView, ObjectsView, SharedView


def gather(MergedTables merged not None):
    """The tables that the layout of shared memory starts from.

    Ties of extern arrays are entities: the function with the use or, with -g, the array. With -r
    only the kernels' own code counts, and `array_align` says which kernels name arrays through
    their instance. A variable that no symbol names has the entity -1.
    """
    cdef ObjectTables objects = merged.objects
    if (merged.section_function.count != objects.sections.count
            or merged.section_resolution.count != objects.sections.count):
        raise ValueError("one function and one resolution per section")
    cdef size_t n = merged.entities.count
    cdef SharedLists l
    cdef CallRows calls = calls_of(merged)
    cdef Scratch scratch
    take_inputs(&l, merged)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &l.variables, sizeof(VariableRow))
        scratch_vector(&scratch, &l.owners, 4)
        scratch_vector(&scratch, &l.kernels, 4)
        scratch_vector(&scratch, &l.uses, sizeof(UseRow))
        scratch_vector(&scratch, &l.extern_uses, sizeof(ExternUseRow))
        scratch_vector(&scratch, &l.references, sizeof(Reference))
        graph_init(&l.graph, &scratch, &calls)
        l.number = scratch_nones(&scratch, n)
        l.first = scratch_nones(&scratch, n)
        l.stamp = <uint32_t*>scratch_zeros(&scratch, calls.nodes, 4)
        l.stack = <uint32_t*>scratch_zeros(&scratch, calls.nodes, 4)
        if not scratch.failed:
            with nogil:
                scratch.failed = not list_all(&l, &scratch)
        if scratch.failed:
            raise MemoryError
        return SharedTables(
            l.kernels.count, n,
            variables=SharedVariables(vec_take(&l.variables)), uses=SharedUses(vec_take(&l.uses)),
            extern_uses=ExternUses(vec_take(&l.extern_uses)),
            variable_entities=Numbers(vec_take(&l.owners)),
            kernel_entities=Numbers(vec_take(&l.kernels)))
    finally:
        scratch_free(&scratch)


cdef void take_inputs(SharedLists* l, MergedTables merged):
    cdef ObjectTables objects = merged.objects
    objects.view(&l.objects)
    merged.view(&l.merged)
    l.aligned = objects.traits & TRAIT_ALIGNS_ARRAYS != 0
    # With -g, extern arrays have an address each instead of one in each function.
    l.by_name = objects.mode & M_DEBUG != 0
    l.every = objects.traits & TRAIT_NAMELESS_SHARED and not l.by_name


cdef enum:
    RESERVED = 0x400            # bytes that the system keeps from sm_90 on
    NOWHERE = -1                # where an extern array is that no kernel uses
    NO_USER = -1
    MANY_USERS = -2


# What `apply` reads and fills in.
ctypedef struct SharedPlaces:
    ObjectsView objects
    MergedView merged
    SharedView shared
    OutRow* outs
    size_t out_count
    uint64_t* value                 # by entity: S in relocations
    uint64_t* symbol_value          # by entity: st_value
    uint64_t* merc_value            # by entity: st_value in .nv.merc.symtab
    int32_t* home
    uint64_t* dynamic
    uint8_t* lost
    uint64_t null_value
    int32_t* shared_out             # by entity: its .nv.shared row
    int32_t* user                   # by variable: the kernel that alone uses it, or NO_USER ...
    int32_t common                  # .nv_debug.shared, or -1
    uint64_t reserved               # what symbol values count from
    uint64_t array_reserved         # the same for extern arrays
    bint keep_symbols
    bint ties_arrays                # arrays have an address each


def apply(PlacedTables placed not None, SharedTables shared not None, bint keep_symbols,
          bint reserves=True):
    """Values of shared variables, and the sections that hold them.

    With -r variables keep their alignments as values. With `keep_symbols` they stay in the symbol
    table: those with one user, `uses` tells, in that kernel's section, with values that count the
    bytes the system reserves. Fills `values`, `homes` and `outs` with shared memory in them,
    `symbol_values`, `merc_values`, `dynamic` and `lost`; and `null_value`, as nvlink gives
    variables without a symbol that of the null symbol.
    """
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count
    if merged.section_function.count != objects.sections.count:
        raise ValueError("one function per section")
    cdef Values values = <Values>Table.opened(<PyObject*>placed.values)
    cdef Values symbol_values = <Values>values.copy(), merc_values = <Values>values.copy()
    cdef Numbers homes = <Numbers>Table.opened(<PyObject*>placed.homes)
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef Values dynamic = Values(new_rows(8 * n))
    cdef Marks lost = Marks(new_rows(n))
    cdef const UseRow* use = shared.uses.rows
    cdef size_t use_count = shared.uses.count
    cdef SharedPlaces p
    cdef Scratch scratch
    take_tables(&p, placed, shared, reserves)
    p.outs = <OutRow*>outs.rows
    p.value = <uint64_t*>values.rows
    p.symbol_value = <uint64_t*>symbol_values.rows
    p.merc_value = <uint64_t*>merc_values.rows
    p.home = <int32_t*>homes.rows
    p.dynamic = <uint64_t*>dynamic.rows
    p.lost = <uint8_t*>lost.rows
    p.keep_symbols = keep_symbols
    scratch_init(&scratch)
    try:
        p.shared_out = scratch_nones(&scratch, n)
        p.user = <int32_t*>scratch_room(&scratch, p.shared.variable_count, 4)
        if scratch.failed:
            raise MemoryError
        with nogil:
            find_users(use, use_count, p.user, p.shared.variable_count)
            find_sections(&p)
            start_variables(&p)
            take_sizes(&p)
            place_variables(&p)
    finally:
        scratch_free(&scratch)
    placed.values = values
    placed.symbol_values = symbol_values
    placed.merc_values = merc_values
    placed.homes = homes
    placed.outs = outs
    placed.dynamic = dynamic
    placed.lost = lost
    placed.null_value = p.null_value


cdef void take_tables(SharedPlaces* p, PlacedTables placed, SharedTables shared, bint reserves):
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef bint counts
    objects.view(&p.objects)
    merged.view(&p.merged)
    shared.view(&p.shared)
    p.out_count = placed.outs.count
    p.null_value = placed.null_value
    p.ties_arrays = objects.mode & M_DEBUG != 0
    counts = p.objects.executable and (
        reserves or (p.objects.traits & TRAIT_MERCURY and not p.objects.traits & TRAIT_BARE_VALUES))
    p.reserved = RESERVED if counts and p.objects.traits & TRAIT_SHARED_RESERVE else 0
    p.array_reserved = RESERVED if counts and p.objects.traits & TRAIT_MERCURY else 0
    if (p.objects.executable and reserves and p.objects.traits & TRAIT_FILLS_SHARED
            and p.shared.kernels[p.shared.kernel_count].size > RESERVED):
        p.array_reserved = RESERVED


cdef void find_sections(SharedPlaces* p) noexcept nogil:
    cdef size_t i
    p.common = -1
    for i in range(p.out_count):
        if is_a(p.outs[i].kind, IS_KERNEL_SHARED):
            p.shared_out[p.outs[i].entity] = <int32_t>i
        elif is_a(p.outs[i].kind, IS_COMMON_SHARED):
            p.common = <int32_t>i


cdef void start_variables(SharedPlaces* p) noexcept nogil:
    """What holds for those in no table: the own variables of a code copy that lost."""
    cdef size_t i
    for i in range(p.merged.entity_count):
        p.dynamic[i] = <uint64_t>p.shared.ties[i] if i < p.shared.tie_count else 0
        p.lost[i] = False
        if p.merged.entities[i].kind == E_SHARED:
            p.lost[i] = p.objects.executable
            p.home[i] = -1


cdef void take_sizes(SharedPlaces* p) noexcept nogil:
    """Sizes of the sections, and where a kernel's arrays are."""
    cdef size_t i
    cdef int32_t out
    for i in range(p.shared.kernel_count):
        if p.shared.kernels[i].extern_address >= 0:
            p.dynamic[p.shared.kernel_entities[i]] = <uint64_t>p.shared.kernels[i].extern_address
        out = p.shared_out[p.shared.kernel_entities[i]]
        if out >= 0:
            take_size(&p.outs[out], &p.shared.kernels[i])
    if p.common >= 0:
        take_size(&p.outs[p.common], &p.shared.kernels[p.shared.kernel_count])


cdef void place_variables(SharedPlaces* p) noexcept nogil:
    cdef size_t i
    cdef int64_t offset
    cdef uint64_t nameless = 0      # those with bytes
    cdef bint any_nameless = False
    for i in range(p.shared.variable_count):
        offset = p.shared.offsets[i] if p.objects.executable else -1
        if p.shared.variable_entities[i] >= 0:
            place_variable(p, p.shared.variable_entities[i], offset, p.user[i])
            continue
        if not any_nameless:           # the kernels are placed from the last to the first
            p.null_value = (<uint64_t>offset if p.objects.executable
                            else p.shared.variables[i].align)
        any_nameless = True
        nameless += p.shared.variables[i].size != 0
    if p.objects.traits & TRAIT_FILLS_SHARED:
        p.null_value += nameless * p.reserved


cdef void find_users(const UseRow* use, size_t count, int32_t* user, size_t n) noexcept nogil:
    """The kernel that alone uses a variable, or NO_USER or MANY_USERS."""
    cdef size_t i
    for i in range(n):
        user[i] = NO_USER
    for i in range(count):
        if user[use[i].variable] == NO_USER:
            user[use[i].variable] = <int32_t>use[i].kernel
        elif user[use[i].variable] != <int32_t>use[i].kernel:
            user[use[i].variable] = MANY_USERS


cdef void place_variable(SharedPlaces* p, int32_t v, int64_t offset, int32_t user) noexcept nogil:
    cdef const EntityRow* e = &p.merged.entities[v]
    cdef int32_t section = p.objects.symbols[e.winner].section, kernel
    cdef bint array = e.flags & EF_UNSIZED != 0
    cdef bint common = section < 0 or is_a(p.objects.sections[section].kind, IS_COMMON_SHARED)
    p.lost[v] = False
    if p.objects.executable:
        p.value[v] = <uint64_t>offset if offset >= 0 else 0
    if array:
        if p.keep_symbols and <int64_t>p.dynamic[v] == NOWHERE:
            p.dynamic[v] = 0            # no kernel uses it
        # With -r it has the address that a link with -g gave it, if any.
        p.value[v] = (p.dynamic[v] if p.objects.executable or p.keep_symbols
                      else p.objects.symbols[e.winner].value)
        p.home[v] = p.common
    elif common:
        p.lost[v] = p.objects.executable and offset < 0
        p.home[v] = p.common
        if p.objects.executable and user >= 0 and p.keep_symbols:
            p.home[v] = p.shared_out[p.shared.kernel_entities[user]]
    else:
        p.lost[v] = p.objects.executable and offset < 0
        kernel = p.merged.section_function[section]
        p.home[v] = p.shared_out[kernel] if kernel >= 0 else -1
    if not p.objects.executable and not array and p.value[v] == 0:
        p.value[v] = 1                  # whole programs (-ewp) do not say how they are aligned
    p.merc_value[v] = p.value[v]
    p.symbol_value[v] = p.value[v] + (p.array_reserved if array else p.reserved)
    if array and p.objects.executable and p.keep_symbols and not p.ties_arrays:
        p.symbol_value[v] = p.reserved + <uint64_t>NOWHERE  # if it has one: merge/sharedusers.pxd
    elif (array and p.objects.traits & TRAIT_ALIGNS_ARRAYS and not p.objects.executable
          and not p.keep_symbols and not is_instance(e)):
        # It has no place yet: what its symbol says is the alignment.
        p.dynamic[v] = p.symbol_value[v] = p.merc_value[v] = p.objects.symbols[e.winner].value


cdef inline void take_size(OutRow* out, const KernelRow* size) noexcept nogil:
    out.size = size.size
    out.align = <uint32_t>size.align
    out.marks |= (OF_STAYS if size.flags & SURVIVES else 0) | (
        0 if size.flags & HAS_SYMBOL else OF_NO_SYMBOL)


def find_oversized(SharedTables shared not None, uint64_t limit, int family, bint reserves=True):
    """Kernels with more shared memory of their own than `limit` bytes: (entity, bytes)."""
    cdef size_t n = shared.kernel_entities.count, i
    cdef const int32_t* kernel = shared.kernel_entities.rows
    cdef const KernelRow* row = shared.kernels.rows
    cdef uint32_t traits = FAMILY_TRAITS[family]
    cdef uint64_t reserved = 0
    # On sm_90 nvlink takes the reserve off sizes that have none, too.
    if traits & TRAIT_SHARED_RESERVE and (reserves or not traits & TRAIT_MERCURY):
        reserved = RESERVED
    cdef list sizes = []
    for i in range(n):
        if row[i].size > limit + reserved:
            sizes.append((kernel[i], row[i].size - reserved))
    return sizes
