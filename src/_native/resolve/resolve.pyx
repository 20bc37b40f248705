"""Symbol resolution and dead-code removal.

Symbols become entities: a global name is one entity in all files, and each local symbol is an
entity of its own. Entities are numbered in the order in which their symbols are first met, since
nvlink creates symbols in that order (docs/order.md). Which definition wins may depend on all files
before. A function `f` of four files, as an example:

    file   defines `f`            outcome
    a      weak, 40 registers     wins for now
    b      weak, 32 registers     replaces it, since it needs fewer registers
    c      strong                 replaces it, since a strong definition wins over a weak one
    d      strong                 error: two strong definitions

So the files are read one after the other. What follows from a single file is read before, on
several threads. `resolve` does this:

1. `prepare_file` hashes the names of a file, and reads the registers and frames of its functions.
2. `assign_function_entities` and then `assign_other_entities` give each symbol of a file its
   entity. `resolve_repeated` (resolve/definitions.pxd) decides between a further definition and the
   one that won so far. After them, `read_calls` adds the calls of definitions that won.
3. `settle_resolutions` and `assign_sections` record what became of each definition in the end, and
   of the sections of each function's definition.

`find_live` flags what the link keeps:

1. `push_kept` begins at the selected kernels or, without a selection, at all kernels. Unless
   exactly one is selected, it also begins at kernels that device code launches. A function whose
   address is taken is kept, but not what it calls. A function that only a table names is kept with
   what it calls (docs/nvlink-differences.md).
2. `flag_reached` follows the call graph (tables/graph.pxd).
3. `keep_undefined` and `update_inner_functions` flag what these walks do not reach: functions
   without a definition that any kept function calls, and functions inside of others.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from base.memory cimport check_memory
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.threads cimport FILE_COST, run_each
from base.vector cimport vec_to_bytes
from pylink._native.results cimport MergedTables, ObjectTables
from pylink._native.tables cimport (
    Calls, Clashes, Entities, Marks, Numbers, Table, Values, detach_rows, new_rows,
)
from read.runtime cimport is_runtime_function
from resolve.calls cimport read_calls
from resolve.entities cimport assign_function_entities, assign_other_entities, count_symbol_walks
from resolve.kernelnames cimport Pattern, has_parts_of_pattern, is_matched_by_any
from resolve.liveness cimport (
    LiveWalk, count_selected, flag_reached, push_node, update_inner_functions,
)
from resolve.symbols cimport Resolver, fetch_names, hash_names, read_function_facts
from rownumbers cimport (
    EF_DEFINED, EF_DESELECTED, EF_KERNEL, EF_LIVE, EF_LOCAL, EF_MAYBE_TAKEN, EF_TAKEN, EF_UNCALLED,
    EF_UNSELECTED, EF_UNSIZED, E_CONST0_SIZE, E_FUNC, E_OTHER, E_RESERVED, E_UNIFIED,
    RESOLUTION_LOST, RESOLUTION_LOST_EARLY, RESOLUTION_NONE,
)
from tables.graph cimport CallRows, NodeRef, calls_of, graph_init
from tables.kinds cimport is_function
from tables.rows cimport (
    CallRow, ClashRow, EntityNumber, EntityRow, FileCounter, FileRow, SectionRef, SectionRow,
    SymbolNumber, SymbolRow, function_symbol,
)


# For each input section, the function that it belongs to, and whether this definition of the
# function (also called a copy) won or lost.
ctypedef struct SectionCopies:
    const Resolver* resolver
    EntityNumber* function      # by input section: the function, or -1
    uint8_t* resolution         # by input section: Resolution of the copy


def resolve(MergedTables merged not None):
    """Find the entities of the link and the definition that wins for each."""
    merged.fill()
    cdef ObjectTables objects = merged.objects
    cdef Resolver resolver
    cdef SectionCopies copies
    cdef size_t symbol_count = objects.symbols.count
    cdef Scratch scratch
    objects.view(&resolver.objects)
    cdef Numbers entity = Numbers(new_rows(symbol_count * 4))           # by symbol
    cdef Marks resolution = Marks(new_rows(symbol_count))               # by symbol
    cdef Numbers met = Numbers(new_rows(symbol_count * 4))      # symbols in the order of resolution
    cdef Numbers section_function = Numbers(new_rows(objects.sections.count * 4))
    cdef Marks section_resolution = Marks(new_rows(objects.sections.count))
    cdef EntityNumber* function_of = <EntityNumber*>section_function.rows
    cdef uint8_t* resolution_of = <uint8_t*>section_resolution.rows
    resolver.entity_of = <EntityNumber*>entity.rows
    resolver.resolution_of = <uint8_t*>resolution.rows
    resolver.met = <SymbolNumber*>met.rows
    resolver.met_count = 0
    resolver.has_replaced = False
    resolver.const0_size = -1
    memset(resolver.entity_of, 0xff, symbol_count * 4)
    memset(resolver.resolution_of, RESOLUTION_NONE, symbol_count)
    scratch_init(&scratch)
    try:
        allocate_resolver(&resolver, &scratch, symbol_count)
        if not scratch.failed:
            with nogil:
                scratch.failed = not resolve_files(&resolver)
                settle_resolutions(&resolver, symbol_count)
                copies.resolver = &resolver
                copies.function = function_of
                copies.resolution = resolution_of
                run_each(assign_sections, &copies, resolver.objects.file_count,
                         resolver.objects.file_count * FILE_COST)
        check_memory(not scratch.failed)
        merged.entities = Entities(detach_rows(&resolver.entities))
        merged.symbol_entity = entity
        merged.symbol_resolution = resolution
        merged.met = <Numbers>met.first(resolver.met_count)
        merged.section_function = section_function
        merged.section_resolution = section_resolution
        merged.calls = Calls(detach_rows(&resolver.calls))
        merged.prototypes = Values(vec_to_bytes(&resolver.prototypes))
        return Clashes(vec_to_bytes(&resolver.clashes))
    finally:
        scratch_free(&scratch)


cdef void allocate_resolver(Resolver* resolver, Scratch* scratch, size_t symbol_count) noexcept:
    """Allocate the resolver's tables and arrays; `scratch` frees all that are not detached."""
    scratch_index(scratch, &resolver.names, symbol_count // 2)
    scratch_index(scratch, &resolver.prototype_names, 64)
    scratch_vector(scratch, &resolver.entities, sizeof(EntityRow))
    scratch_vector(scratch, &resolver.calls, sizeof(CallRow))
    scratch_vector(scratch, &resolver.clashes, sizeof(ClashRow))
    scratch_vector(scratch, &resolver.prototypes, sizeof(uint64_t))
    resolver.regcount = <uint32_t*>scratch_zeros(scratch, symbol_count, 4)
    resolver.frame = <uint32_t*>scratch_zeros(scratch, symbol_count, 4)
    resolver.prototype_of = <int32_t*>scratch_zeros(scratch, symbol_count, 4)
    resolver.hash_of = <uint32_t*>scratch_zeros(scratch, symbol_count, 4)
    resolver.first_sm = <uint16_t*>scratch_zeros(scratch, symbol_count, 2)
    resolver.unbounded = <uint8_t*>scratch_zeros(scratch, symbol_count, 1)


cdef void prepare_file(void* context, FileCounter number) noexcept nogil:
    """Hash a file's names, and read registers and stack of its functions; a task of `run_each`."""
    cdef Resolver* resolver = <Resolver*>context
    hash_names(resolver, &resolver.objects.files[number])
    read_function_facts(resolver, &resolver.objects.files[number])


cdef bint resolve_files(Resolver* resolver) noexcept nogil:
    """Resolve symbols and calls, file by file, up to the first with a clash (an error).

    False without memory.
    """
    cdef size_t number
    cdef int walk_count = count_symbol_walks(resolver.objects.traits), walk
    run_each(prepare_file, resolver, resolver.objects.file_count,
             resolver.objects.file_count * FILE_COST)
    for number in range(resolver.objects.file_count):
        fetch_names(resolver, &resolver.objects.files[number])
        for walk in range(walk_count):
            if not assign_function_entities(resolver, &resolver.objects.files[number], walk,
                                            walk_count):
                return False
        for walk in range(walk_count):
            if not assign_other_entities(resolver, &resolver.objects.files[number], walk,
                                         walk_count):
                return False
        if not read_calls(resolver, &resolver.objects.files[number]):
            return False
        if resolver.clashes.count:
            return True             # only the first file with clashes reports them
    return True


cdef void settle_resolutions(Resolver* resolver, size_t symbol_count) noexcept nogil:
    """Set what is known only after the last file: RESOLUTION_LOST_EARLY, and `of_linked_copy`.

    A definition lost early if the one that it lost to was replaced later. Until here,
    `of_linked_copy` of a row of calls has the symbol of the definition that the row belongs to.
    """
    cdef const EntityRow* entities = <const EntityRow*>resolver.entities.data
    cdef CallRow* calls = <CallRow*>resolver.calls.data
    cdef size_t i
    for i in range(symbol_count if resolver.has_replaced else 0):
        if (resolver.resolution_of[i] == RESOLUTION_LOST
                and entities[resolver.entity_of[i]].winner > <SymbolNumber>i):
            resolver.resolution_of[i] = RESOLUTION_LOST_EARLY
    for i in range(resolver.calls.count):
        calls[i].of_linked_copy = (entities[calls[i].caller].winner
                                   == <SymbolNumber>calls[i].of_linked_copy)


cdef void assign_sections(void* context, FileCounter number) noexcept nogil:
    """Record the function of each section of one file, and whether its definition there won.

    A task of `run_each`.
    """
    cdef const SectionCopies* copies = <const SectionCopies*>context
    cdef const Resolver* resolver = copies.resolver
    cdef const FileRow* file = &resolver.objects.files[number]
    cdef const SectionRow* section
    cdef SectionRef i
    for i in range(file.first_section, file.first_section + file.section_count):
        section = &resolver.objects.sections[i]
        if not is_function(section.kind) and section.target >= 0:
            section = &resolver.objects.sections[section.target]
        copies.function[i] = -1
        copies.resolution[i] = RESOLUTION_NONE
        if is_function(section.kind) and function_symbol(section) >= 0:
            copies.function[i] = resolver.entity_of[function_symbol(section)]
            copies.resolution[i] = resolver.resolution_of[function_symbol(section)]


# `selected` has a byte for each entity, or is empty if all kernels are selected. With `keep_all`,
# everything is kept.
def find_live(MergedTables merged not None, Marks selected not None, *, bint keep_all):
    """Set EF_LIVE of the entities that the output keeps, in `entities`."""
    merged.fill()
    cdef size_t entity_count = merged.entities.count
    cdef Entities table = <Entities>Table.writable(<PyObject*>merged.entities)
    cdef EntityRow* entities = <EntityRow*>table.rows
    cdef const uint8_t* is_selected = selected.rows
    cdef bint has_selection = selected.count != 0
    cdef CallRows calls = calls_of(merged)
    cdef LiveWalk walk
    cdef size_t i
    cdef Scratch scratch
    if has_selection and selected.count != entity_count:
        raise ValueError("one byte per entity")
    scratch_init(&scratch)
    try:
        graph_init(&walk.graph, &scratch, &calls)
        walk.stack = <uint32_t*>scratch_zeros(&scratch, calls.nodes, 4)
        walk.seen = <uint8_t*>scratch_zeros(&scratch, calls.nodes, 1)
        walk.entities = entities
        walk.count = entity_count
        walk.depth = 0
        check_memory(not scratch.failed)
        with nogil:
            push_kept(&walk, is_selected if has_selection else NULL, keep_all)
            flag_reached(&walk, EF_LIVE)
            for i in range(entity_count):
                if (entities[i].kind == E_FUNC and entities[i].flags & EF_TAKEN
                        and not entities[i].flags & EF_KERNEL and not walk.seen[i]
                        and not keep_all):
                    entities[i].flags |= EF_UNCALLED
            keep_undefined(&walk)
            for i in range(entity_count):
                if entities[i].flags & EF_KERNEL and has_selection and not is_selected[i]:
                    entities[i].flags |= EF_UNSELECTED
                if entities[i].flags & EF_KERNEL and not walk.seen[i] and not keep_all:
                    push_node(&walk, <NodeRef>i)
            flag_reached(&walk, EF_DESELECTED)
            update_inner_functions(merged.objects.symbols.rows, merged.objects.sections.rows,
                                   <const EntityNumber*>merged.symbol_entity.rows, entities,
                                   entity_count)
    finally:
        scratch_free(&scratch)
    merged.entities = table


cdef void push_kept(LiveWalk* walk, const uint8_t* is_selected, bint keep_all) noexcept nogil:
    """Flag what is kept in any case; push the functions that are kept with all that they call.

    `is_selected` says by entity which kernels are selected, and is NULL if all are. With `keep_all`
    everything is kept.
    """
    cdef EntityRow* entities = walk.entities
    cdef size_t i
    # Kernels that device code launches are kept, unless exactly one kernel is selected.
    cdef bint keeps_launched = (is_selected == NULL
                                or count_selected(entities, walk.count, is_selected) != 1)
    for i in range(walk.count):
        if entities[i].kind != E_FUNC or keep_all:
            entities[i].flags |= EF_LIVE
        elif (entities[i].flags & EF_KERNEL
                and (is_selected == NULL or is_selected[i]
                     or (keeps_launched and entities[i].flags & EF_TAKEN))):
            push_node(walk, <NodeRef>i)
        elif entities[i].flags & EF_TAKEN and entities[i].flags & EF_DEFINED:
            entities[i].flags |= EF_LIVE
        elif entities[i].flags & EF_MAYBE_TAKEN and entities[i].flags & EF_DEFINED:
            # A table may name this function, so it is kept; nvlink drops it
            # (docs/nvlink-differences.md).
            push_node(walk, <NodeRef>i)


cdef void keep_undefined(LiveWalk* walk) noexcept nogil:
    """Keep the undefined functions that any kept function calls, reached by a kernel or not."""
    cdef EntityRow* entities = walk.entities
    cdef size_t i
    cdef uint32_t j, callee
    for i in range(walk.count):
        if entities[i].kind == E_FUNC and entities[i].flags & EF_LIVE:
            for j in range(walk.graph.start[i], walk.graph.start[i + 1]):
                callee = walk.graph.edges[j]
                if callee < walk.count and not entities[callee].flags & EF_DEFINED:
                    entities[callee].flags |= EF_LIVE


def select_kernels(MergedTables merged not None, list patterns not None):
    """Return, by entity, whether it is a kernel whose name contains one of the patterns."""
    cdef ObjectTables objects = merged.objects
    cdef size_t entity_count = merged.entities.count, i
    cdef const SymbolRow* symbols = objects.symbols.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef const uint8_t* arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, entity_count)
    cdef uint8_t* is_selected = <uint8_t*>PyBytes_AS_STRING(result)
    cdef const SymbolRow* symbol
    memset(is_selected, 0, entity_count)
    for pattern in patterns:
        for i in range(entity_count):
            symbol = &symbols[entities[i].first]
            if (entities[i].flags & EF_KERNEL
                    and has_parts_of_pattern(arena + symbol.name, symbol.name_size,
                                             PyBytes_AS_STRING(pattern),
                                             PyBytes_GET_SIZE(pattern))):
                is_selected[i] = True
    return Marks(result)


# `external` are patterns for kernels with global names, `internal` for those with local names.
def select_referenced(MergedTables merged not None, list external not None, list internal not None):
    """Return, by entity, whether it is a kernel that host code names."""
    cdef bytes result = bytes(merged.entities.count)
    mark_referenced(merged, external, 0, <uint8_t*>PyBytes_AS_STRING(result))
    mark_referenced(merged, internal, EF_LOCAL, <uint8_t*>PyBytes_AS_STRING(result))
    return Marks(result)


cdef void mark_referenced(MergedTables merged, list names, uint32_t local,
                          uint8_t* is_selected) except *:
    """Mark in `is_selected` the kernels that one of the names matches.

    `local` is EF_LOCAL for kernels with local names, 0 for those with global names. Names are
    patterns, found by their stem, the bytes before the first star. Stems have few different sizes:
    N kernels and P names cost N lookups for each size, not N * P comparisons.
    """
    cdef size_t count = len(names), entity_count = merged.entities.count, i
    cdef uint32_t longest = 0, stem
    cdef bytes rows = PyBytes_FromStringAndSize(NULL, count * sizeof(Pattern))
    cdef Pattern* patterns = <Pattern*>PyBytes_AS_STRING(rows)
    cdef bytes name, sizes
    cdef NameIndex index
    cdef NameSlot* slot = NULL
    cdef Scratch scratch
    cdef const SymbolRow* symbols = merged.objects.symbols.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef const uint8_t* arena = <const uint8_t*>PyBytes_AS_STRING(merged.objects.arena)
    cdef uint8_t* used          # by number of bytes: 1 if a pattern has a stem of that size
    for i in range(count):
        name = names[i]
        patterns[i].text = <const uint8_t*>PyBytes_AS_STRING(name)
        patterns[i].size = <uint32_t>PyBytes_GET_SIZE(name)
        stem = 0
        while stem < patterns[i].size and patterns[i].text[stem] != c'*':
            stem += 1
        patterns[i].stem = stem
        longest = max(longest, stem)
    sizes = bytes(longest + 1)
    used = <uint8_t*>PyBytes_AS_STRING(sizes)
    scratch_init(&scratch)
    try:
        scratch_index(&scratch, &index, count)
        for i in range(0 if scratch.failed else count):
            slot = index_find(&index, patterns[i].text, patterns[i].stem)
            if slot == NULL:
                scratch.failed = True
                break
            patterns[i].next = slot.value
            if slot.value < 0:
                index.count += 1
            slot.value = <int32_t>i
            used[patterns[i].stem] = True
        check_memory(not scratch.failed)
        with nogil:
            for i in range(entity_count):
                if (entities[i].flags & EF_KERNEL and (entities[i].flags & EF_LOCAL) == local
                        and not is_selected[i]):
                    is_selected[i] = is_matched_by_any(&index, patterns, used, longest,
                                                       arena + symbols[entities[i].first].name,
                                                       symbols[entities[i].first].name_size)
    finally:
        scratch_free(&scratch)


# `borrowed` has a byte for each file: 1 if another image registers its module. `selected` has a
# byte for each entity, or is empty if all kernels are selected.
def select_unborrowed(MergedTables merged not None, bytes borrowed not None,
                      Marks selected not None):
    """Return, by entity, whether it is a `selected` kernel that no other image registers."""
    merged.fill()
    cdef const uint8_t* is_borrowed = <const uint8_t*>PyBytes_AS_STRING(borrowed)
    cdef const uint8_t* is_selected = selected.rows
    cdef size_t entity_count = merged.entities.count, i
    cdef const SymbolRow* symbols = merged.objects.symbols.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef bytes result = PyBytes_FromStringAndSize(NULL, entity_count)
    cdef uint8_t* marks = <uint8_t*>PyBytes_AS_STRING(result)
    if <size_t>PyBytes_GET_SIZE(borrowed) != merged.objects.files.count:
        raise ValueError("one byte per file")
    if selected.count and selected.count != entity_count:
        raise ValueError("one byte per entity")
    for i in range(entity_count):
        marks[i] = 0
        if entities[i].flags & EF_KERNEL:
            # Another image registers a borrowed file's module. Those of its kernels that device
            # code launches count, even if they are not selected; the others do not.
            if is_borrowed[symbols[entities[i].first].file]:
                marks[i] = entities[i].flags & EF_TAKEN != 0
            else:
                marks[i] = is_selected[i] if selected.count else 1
    return Marks(result)


def find_uncalled(MergedTables merged not None):
    """Return the functions (entities) whose address is taken and that `find_live` did not reach."""
    cdef const EntityRow* entities = merged.entities.rows
    return [i for i in range(merged.entities.count) if entities[i].flags & EF_UNCALLED]


def find_unselected(MergedTables merged not None):
    """Return the kernels (entities) that are removed since they are not selected."""
    cdef const EntityRow* entities = merged.entities.rows
    return [i for i in range(merged.entities.count)
            if entities[i].flags & (EF_UNSELECTED | EF_LIVE) == EF_UNSELECTED]


def find_undefined(MergedTables merged not None):
    """Return the entities that an executable needs but no input defines, in creation order."""
    cdef ObjectTables objects = merged.objects
    cdef const uint8_t* arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef size_t entity_count = merged.entities.count, i
    cdef const SymbolRow* symbols = objects.symbols.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef list undefined = []
    for i in range(entity_count):
        # A function whose address is taken is needed, even if only dead code takes it.
        if (entities[i].flags & (EF_DEFINED | EF_UNSIZED | EF_LOCAL)
                or not entities[i].flags & (EF_LIVE | EF_TAKEN)
                or entities[i].kind in (E_RESERVED, E_UNIFIED, E_CONST0_SIZE, E_OTHER)):
            continue
        if (entities[i].kind != E_FUNC
                or not is_runtime_function(arena + symbols[entities[i].first].name,
                                           symbols[entities[i].first].name_size)):
            undefined.append(i)
    return undefined
