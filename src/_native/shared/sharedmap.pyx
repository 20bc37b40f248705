"""Converts between the tables of the link and those of shared memory.

`gather` lists the variables and the kernels that use each; `pylink._native.shared` places the
variables; `apply_layout` sets values of symbols and sizes of sections from that.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_room, scratch_vector, scratch_zeros,
)
from base.vector cimport vec_to_bytes
from pylink._native.results cimport MergedTables, ObjectTables, PlacedTables, SharedTables
from pylink._native.tables cimport (
    ExternUses, Marks, Numbers, Outs, SharedUses, SharedVariables, Table, Values, new_rows,
)
from rownumbers cimport EF_UNSIZED, E_SHARED, LINK_DEBUG
from sectionkinds cimport IS_COMMON_SHARED, IS_KERNEL_SHARED
from shared.lists cimport SharedLists, SharedReference, list_all
from tables.graph cimport CallRows, NodeRef, calls_of, graph_init
from tables.kinds cimport is_a
from tables.rows cimport (
    OF_NO_SYMBOL, OF_STAYS, EntityNumber, EntityRow, OutNumber, OutRow, SectionNumber, is_instance,
)
from tables.sharedrows cimport (
    HAS_SYMBOL, RESERVED, SURVIVES, ExternUseRow, KernelNumber, KernelRow, UseRow, VariableRow,
)
from tables.views cimport MergedView, ObjectsView, SharedView
from traits cimport (
    FAMILY_TRAITS, TRAIT_ALIGNS_ARRAYS, TRAIT_BARE_VALUES, TRAIT_FILLS_SHARED, TRAIT_MERCURY,
    TRAIT_NAMELESS_SHARED, TRAIT_SHARED_RESERVE,
)


def gather(MergedTables merged not None):
    """Make the tables of shared variables and their users."""
    cdef ObjectTables objects = merged.objects
    if (merged.section_function.count != objects.sections.count
            or merged.section_resolution.count != objects.sections.count):
        raise ValueError("one function and one resolution per section")
    cdef size_t entity_count = merged.entities.count
    cdef SharedLists lists
    cdef CallRows calls = calls_of(merged)
    cdef Scratch scratch
    bind_inputs(&lists, merged)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &lists.variables, sizeof(VariableRow))
        scratch_vector(&scratch, &lists.variable_entities, sizeof(EntityNumber))
        scratch_vector(&scratch, &lists.kernels, sizeof(EntityNumber))
        scratch_vector(&scratch, &lists.uses, sizeof(UseRow))
        scratch_vector(&scratch, &lists.extern_uses, sizeof(ExternUseRow))
        scratch_vector(&scratch, &lists.references, sizeof(SharedReference))
        graph_init(&lists.graph, &scratch, &calls)
        lists.list_number = scratch_nones(&scratch, entity_count)
        lists.first = scratch_nones(&scratch, entity_count)
        lists.last_walk = <uint32_t*>scratch_zeros(&scratch, calls.nodes, 4)
        lists.stack = <NodeRef*>scratch_zeros(&scratch, calls.nodes, 4)
        if not scratch.failed:
            with nogil:
                scratch.failed = not list_all(&lists, &scratch)
        check_memory(not scratch.failed)
        return SharedTables(lists.kernels.count, entity_count,
                            variables=SharedVariables(vec_to_bytes(&lists.variables)),
                            uses=SharedUses(vec_to_bytes(&lists.uses)),
                            extern_uses=ExternUses(vec_to_bytes(&lists.extern_uses)),
                            variable_entities=Numbers(vec_to_bytes(&lists.variable_entities)),
                            kernel_entities=Numbers(vec_to_bytes(&lists.kernels)))
    finally:
        scratch_free(&scratch)


cdef void bind_inputs(SharedLists* lists, MergedTables merged):
    """Set the views of the link's tables, and the flags that follow from options and release."""
    cdef ObjectTables objects = merged.objects
    objects.view(&lists.objects)
    merged.view(&lists.merged)
    lists.uses_symbol_align = objects.traits & TRAIT_ALIGNS_ARRAYS != 0
    # With -g, each extern array has one address, instead of each function that uses arrays.
    lists.ties_by_array = objects.mode & LINK_DEBUG != 0
    lists.counts_nameless = objects.traits & TRAIT_NAMELESS_SHARED and not lists.ties_by_array


cdef enum:
    NOWHERE = -1                # address of an extern array that no kernel uses
    # Values of `user` for a variable that no kernel uses, and for one that several use.
    NO_USER = -1
    MANY_USERS = -2


# Tables that `apply_layout` reads and fills.
ctypedef struct SharedPlaces:
    ObjectsView objects
    MergedView merged
    SharedView shared
    OutRow* outs                    # sections of the output
    size_t out_count
    uint64_t* value                 # by entity: S in relocations
    uint64_t* symbol_value          # by entity: st_value
    uint64_t* merc_value            # by entity: st_value in .nv.merc.symtab
    OutNumber* home                 # by entity: OutRow of the section that it lies in, or -1
    # By entity: the address of the extern arrays that a kernel or function uses; -g: of an array.
    uint64_t* dynamic
    uint8_t* lost                   # by entity: 1 for a shared variable without a place
    uint64_t null_value             # st_value of the null symbol
    OutNumber* shared_out           # by entity, of a kernel: OutRow of its .nv.shared, or -1
    KernelNumber* user              # by variable: kernel that alone uses it, NO_USER or MANY_USERS
    OutNumber common                # OutRow of .nv_debug.shared, or -1
    uint64_t reserved               # bytes that are added to the values of variables' symbols
    uint64_t array_reserved         # bytes that are added to the values of extern arrays' symbols
    bint keep_symbols               # variables stay in the symbol table (-g, --preserve-relocs)
    bint ties_arrays                # ties are extern arrays, each with one address (-g)


def apply_layout(PlacedTables placed not None, SharedTables shared not None, *, bint keep_symbols,
                 bint reserves=True):
    """Copy the layout of shared memory to the tables of the link."""
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t entity_count = merged.entities.count
    if merged.section_function.count != objects.sections.count:
        raise ValueError("one function per section")
    cdef Values values = <Values>Table.writable(<PyObject*>placed.values)   # by entity: its S
    cdef Values symbol_values = <Values>values.copy(), merc_values = <Values>values.copy()
    cdef Numbers homes = <Numbers>Table.writable(<PyObject*>placed.homes)   # by entity: OutRow
    cdef Outs outs = <Outs>Table.writable(<PyObject*>placed.outs)
    cdef Values dynamic = Values(new_rows(8 * entity_count))    # by entity: address of its arrays
    cdef Marks lost = Marks(new_rows(entity_count))             # by entity: 1 without a place
    cdef const UseRow* use = shared.uses.rows
    cdef size_t use_count = shared.uses.count
    cdef SharedPlaces places
    cdef Scratch scratch
    bind_tables(&places, placed, shared, reserves)
    places.outs = <OutRow*>outs.rows
    places.value = <uint64_t*>values.rows
    places.symbol_value = <uint64_t*>symbol_values.rows
    places.merc_value = <uint64_t*>merc_values.rows
    places.home = <OutNumber*>homes.rows
    places.dynamic = <uint64_t*>dynamic.rows
    places.lost = <uint8_t*>lost.rows
    places.keep_symbols = keep_symbols
    scratch_init(&scratch)
    try:
        places.shared_out = scratch_nones(&scratch, entity_count)
        places.user = <KernelNumber*>scratch_room(&scratch, places.shared.variable_count, 4)
        check_memory(not scratch.failed)
        with nogil:
            find_users(use, use_count, places.user, places.shared.variable_count)
            find_sections(&places)
            start_variables(&places)
            set_sizes(&places)
            place_variables(&places)
    finally:
        scratch_free(&scratch)
    placed.values = values
    placed.symbol_values = symbol_values
    placed.merc_values = merc_values
    placed.homes = homes
    placed.outs = outs
    placed.dynamic = dynamic
    placed.lost = lost
    placed.null_value = places.null_value


cdef void bind_tables(SharedPlaces* places, PlacedTables placed, SharedTables shared,
                      bint reserves):
    """Set views of the tables, and the bytes of shared memory that the target reserves."""
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef bint has_reserve
    objects.view(&places.objects)
    merged.view(&places.merged)
    shared.view(&places.shared)
    places.out_count = placed.outs.count
    places.null_value = placed.null_value
    places.ties_arrays = objects.mode & LINK_DEBUG != 0
    has_reserve = (places.objects.executable
              and (reserves
                   or (places.objects.traits & TRAIT_MERCURY
                       and not places.objects.traits & TRAIT_BARE_VALUES)))
    places.reserved = places.array_reserved = 0
    if has_reserve and places.objects.traits & TRAIT_SHARED_RESERVE:
        places.reserved = RESERVED
    if has_reserve and places.objects.traits & TRAIT_MERCURY:
        places.array_reserved = RESERVED
    if (places.objects.executable and reserves and places.objects.traits & TRAIT_FILLS_SHARED
            and places.shared.kernels[places.shared.kernel_count].size > RESERVED):
        places.array_reserved = RESERVED


cdef void find_sections(SharedPlaces* places) noexcept nogil:
    """Set `shared_out` and `common`: the output's sections of shared memory, if it has them."""
    cdef size_t i
    places.common = -1
    for i in range(places.out_count):
        if is_a(places.outs[i].kind, IS_KERNEL_SHARED):
            places.shared_out[places.outs[i].entity] = <OutNumber>i
        elif is_a(places.outs[i].kind, IS_COMMON_SHARED):
            places.common = <OutNumber>i


cdef void start_variables(SharedPlaces* places) noexcept nogil:
    """Set what holds for a variable without a row in the tables: lost in executables, no section.

    No input defines such a variable. Also sets the address of each tie: of the extern arrays in a
    function that kernels call or, with -g, of an extern array.
    """
    cdef size_t i
    for i in range(places.merged.entity_count):
        places.dynamic[i] = <uint64_t>places.shared.ties[i] if i < places.shared.tie_count else 0
        places.lost[i] = False
        if places.merged.entities[i].kind == E_SHARED:
            places.lost[i] = places.objects.executable
            places.home[i] = -1


cdef void set_sizes(SharedPlaces* places) noexcept nogil:
    """Set the sizes of sections, and the address of each kernel's extern arrays."""
    cdef size_t i
    cdef OutNumber out
    for i in range(places.shared.kernel_count):
        if places.shared.kernels[i].extern_address >= 0:
            places.dynamic[places.shared.kernel_entities[i]] = (
                <uint64_t>places.shared.kernels[i].extern_address)
        out = places.shared_out[places.shared.kernel_entities[i]]
        if out >= 0:
            set_size(&places.outs[out], &places.shared.kernels[i])
    if places.common >= 0:
        set_size(&places.outs[places.common], &places.shared.kernels[places.shared.kernel_count])


cdef void place_variables(SharedPlaces* places) noexcept nogil:
    """Set the value and the section of every variable."""
    cdef size_t i
    cdef int64_t offset
    cdef uint64_t nameless = 0      # number of nameless variables that have bytes
    cdef bint any_nameless = False
    for i in range(places.shared.variable_count):
        offset = places.shared.offsets[i] if places.objects.executable else -1
        if places.shared.variable_entities[i] >= 0:
            place_variable(places, places.shared.variable_entities[i], offset, places.user[i])
            continue
        # nvlink writes the value of each nameless variable to the null symbol, and takes kernels
        # from last to first. So the value of the first variable stays.
        if not any_nameless:
            places.null_value = (<uint64_t>offset if places.objects.executable
                                 else places.shared.variables[i].align)
        any_nameless = True
        nameless += places.shared.variables[i].size != 0
    if places.objects.traits & TRAIT_FILLS_SHARED:
        places.null_value += nameless * places.reserved


cdef void find_users(const UseRow* use, size_t use_count, KernelNumber* user,
                     size_t variable_count) noexcept nogil:
    """Set `user` of each variable: the kernel that alone uses it, NO_USER or MANY_USERS."""
    cdef size_t i
    for i in range(variable_count):
        user[i] = NO_USER
    for i in range(use_count):
        if user[use[i].variable] == NO_USER:
            user[use[i].variable] = <KernelNumber>use[i].kernel
        elif user[use[i].variable] != <KernelNumber>use[i].kernel:
            user[use[i].variable] = MANY_USERS


cdef void place_variable(SharedPlaces* places, EntityNumber v, int64_t offset,
                         KernelNumber user) noexcept nogil:
    """Set the value and the section of the variable with entity `v`.

    `offset` is -1 if it has no place. `user` is the kernel that alone uses it, or NO_USER or
    MANY_USERS.
    """
    cdef const EntityRow* entity = &places.merged.entities[v]
    cdef SectionNumber section = places.objects.symbols[entity.winner].section
    cdef EntityNumber kernel
    cdef bint is_array = entity.flags & EF_UNSIZED != 0
    cdef bint is_common = (section < 0 or is_a(places.objects.sections[section].kind,
                                               IS_COMMON_SHARED))
    places.lost[v] = False
    if places.objects.executable:
        places.value[v] = <uint64_t>offset if offset >= 0 else 0
    if is_array:
        if places.keep_symbols and <int64_t>places.dynamic[v] == NOWHERE:
            places.dynamic[v] = 0       # no kernel uses it
        # With -r, but without -g and --preserve-relocs, the array keeps the value of its input
        # symbol: an address if an earlier link with -r -g gave it one.
        places.value[v] = (places.dynamic[v] if places.objects.executable or places.keep_symbols
                           else places.objects.symbols[entity.winner].value)
        places.home[v] = places.common
    elif is_common:
        places.lost[v] = places.objects.executable and offset < 0
        places.home[v] = places.common
        if places.objects.executable and user >= 0 and places.keep_symbols:
            places.home[v] = places.shared_out[places.shared.kernel_entities[user]]
    else:
        places.lost[v] = places.objects.executable and offset < 0
        kernel = places.merged.section_function[section]
        places.home[v] = places.shared_out[kernel] if kernel >= 0 else -1
    if not places.objects.executable and not is_array and places.value[v] == 0:
        # With -r, the value is the alignment; whole programs (-ewp) do not state any.
        places.value[v] = 1
    places.merc_value[v] = places.value[v]
    places.symbol_value[v] = places.value[v] + (places.array_reserved if is_array
                                                else places.reserved)
    if is_array and places.objects.executable and places.keep_symbols and not places.ties_arrays:
        # The array has an address by kernel, none of its own: its symbol, if it keeps one
        # (merge/sharedusers.pxd), has -1 plus the reserved bytes.
        places.symbol_value[v] = places.reserved + <uint64_t>NOWHERE
    elif (is_array and places.objects.traits & TRAIT_ALIGNS_ARRAYS and not places.objects.executable
          and not places.keep_symbols and not is_instance(entity)):
        # The array has no address yet: the value of its symbol is its alignment.
        places.dynamic[v] = places.symbol_value[v] = places.merc_value[v] = (
            places.objects.symbols[entity.winner].value)


cdef inline void set_size(OutRow* out, const KernelRow* kernel) noexcept nogil:
    """Set size and alignment of a section, and whether it and its symbol stay."""
    out.size = kernel.size
    out.align = <uint32_t>kernel.align
    out.marks |= (OF_STAYS if kernel.flags & SURVIVES else 0) | (
        0 if kernel.flags & HAS_SYMBOL else OF_NO_SYMBOL)


def find_oversized(SharedTables shared not None, uint64_t limit, int family, *, bint reserves=True):
    """List the kernels with more than `limit` bytes of shared memory: (entity, bytes)."""
    cdef size_t kernel_count = shared.kernel_entities.count, i
    cdef const EntityNumber* kernel = <const EntityNumber*>shared.kernel_entities.rows
    cdef const KernelRow* row = shared.kernels.rows
    cdef uint32_t traits = FAMILY_TRAITS[family]
    cdef uint64_t reserved = 0
    # On sm_90, nvlink subtracts the reserve from all sizes, even from those without it.
    if traits & TRAIT_SHARED_RESERVE and (reserves or not traits & TRAIT_MERCURY):
        reserved = RESERVED
    cdef list sizes = []
    for i in range(kernel_count):
        if row[i].size > limit + reserved:
            sizes.append((kernel[i], row[i].size - reserved))
    return sizes
