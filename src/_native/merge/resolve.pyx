"""Symbol resolution and dead-code removal.

Every distinct symbol of the link becomes one entity, numbered in order of birth. For each
entity one definition wins; from the kernels the call graph decides which functions live.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from blocks cimport block_free, block_zeros
from elf64 cimport *
from graph cimport *
from kernelnames cimport *
from kinds cimport *
from names cimport *
from pylink._native.tables cimport (
    Calls, Clashes, Entities, Marks, MergedTables, Numbers, ObjectTables, Table, Values, new_rows,
    take_rows,
)
from resolvecalls cimport *
from resolvesymbols cimport *
from rows cimport *
from runtime cimport is_runtime_function
from traits cimport *
from vec cimport *


def resolve(MergedTables merged not None):
    """Find the entities of the link and the definition that wins for each.

    Fills `entities`, `calls`, `prototypes`, and by symbol `symbol_entity` (-1: a section, a label
    or the null symbol), `symbol_role` and their order in `met`; by section, which function a copy
    with it defines and what became of that copy. Returns the clashes of the first file that has
    any.
    """
    merged.fill()
    cdef ObjectTables objects = merged.objects
    cdef Resolver r
    cdef size_t symbol_count = objects.symbols.count
    cdef bint ok
    r.arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    r.traits = objects.traits
    r.mode = objects.mode
    r.files = objects.files.rows
    r.sections = objects.sections.rows
    r.symbols = objects.symbols.rows
    r.file_count = objects.files.count
    cdef Numbers entity = Numbers(new_rows(symbol_count * 4))
    cdef Marks role = Marks(new_rows(symbol_count))
    cdef Numbers met = Numbers(new_rows(symbol_count * 4))
    cdef Numbers section_function = Numbers(new_rows(objects.sections.count * 4))
    cdef Marks section_role = Marks(new_rows(objects.sections.count))
    cdef int32_t* function_of = <int32_t*>section_function.rows
    cdef uint8_t* role_of = <uint8_t*>section_role.rows
    r.entity = <int32_t*>entity.rows
    r.role = <uint8_t*>role.rows
    r.met = <int32_t*>met.rows
    r.met_count = 0
    r.replaced = False
    r.const0_size = -1
    memset(r.entity, 0xff, symbol_count * 4)
    memset(r.role, ROLE_NONE, symbol_count)
    cdef bint known = take_known(&r, symbol_count)
    vec_init(&r.entities, sizeof(EntityRow))
    vec_init(&r.calls, sizeof(CallRow))
    vec_init(&r.clashes, sizeof(ClashRow))
    vec_init(&r.prototypes, 8)
    r.names.slots = r.prototype_names.slots = NULL
    ok = (known and index_init(&r.names, symbol_count // 2)
          and index_init(&r.prototype_names, 64))
    if ok:
        with nogil:
            ok = resolve_all(&r)
            settle_roles(&r, symbol_count)
            assign_sections(&r, objects.sections.count, function_of, role_of)
    index_free(&r.names)
    index_free(&r.prototype_names)
    if known:
        block_free(r.known, (symbol_count + 1) * KNOWN)
    if not ok:
        vec_free(&r.entities)
        vec_free(&r.calls)
        vec_free(&r.clashes)
        vec_free(&r.prototypes)
        raise MemoryError
    merged.entities = Entities(take_rows(&r.entities))
    merged.symbol_entity = entity
    merged.symbol_role = role
    merged.met = <Numbers>met.first(r.met_count)
    merged.section_function = section_function
    merged.section_role = section_role
    merged.calls = Calls(take_rows(&r.calls))
    merged.prototypes = Values(vec_take(&r.prototypes))
    return Clashes(vec_take(&r.clashes))


cdef enum:
    KNOWN = 4 + 4 + 4 + 2 + 4       # bytes of a row of all columns in `known`


cdef bint take_known(Resolver* r, size_t symbol_count) noexcept:
    """Columns of zeros; False without memory."""
    r.known = <uint8_t*>block_zeros((symbol_count + 1) * KNOWN)
    r.regcount = <uint32_t*>r.known
    r.frame = r.regcount + symbol_count
    r.prototype_of = <int32_t*>(r.frame + symbol_count)
    r.tag = <uint32_t*>(r.prototype_of + symbol_count)
    r.first_sm = <uint16_t*>(r.tag + symbol_count)
    return r.known != NULL


cdef bint resolve_all(Resolver* r) noexcept nogil:
    cdef size_t f
    cdef int turns = symbol_turns(r.traits), turn
    for f in range(r.file_count):
        fetch_names(r, &r.files[f])
        read_function_facts(r, &r.files[f])
        for turn in range(turns):
            if not enter_functions(r, &r.files[f], turn, turns):
                return False
        for turn in range(turns):
            if not enter_others(r, &r.files[f], turn, turns):
                return False
        if not read_calls(r, &r.files[f]):
            return False
        if r.clashes.count:
            return True             # of the first file that has any
    return True


cdef void settle_roles(Resolver* r, size_t symbol_count) noexcept nogil:
    """What only the last file can say: against which definition one lost, whose calls count."""
    cdef const EntityRow* e = <const EntityRow*>r.entities.data
    cdef CallRow* calls = <CallRow*>r.calls.data
    cdef size_t i
    for i in range(symbol_count if r.replaced else 0):
        if r.role[i] == ROLE_LOST and e[r.entity[i]].winner > <int32_t>i:
            r.role[i] = ROLE_LOST_EARLY
    for i in range(r.calls.count):
        calls[i].won = e[calls[i].caller].winner == <int32_t>calls[i].won


cdef void assign_sections(const Resolver* r, size_t section_count, int32_t* function,
                          uint8_t* role) noexcept nogil:
    """Give each section of a function the copy that it is part of."""
    cdef const SectionRow* s
    cdef size_t i
    for i in range(section_count):
        s = &r.sections[i]
        if not is_function(s.kind) and s.target >= 0:
            s = &r.sections[s.target]
        function[i] = -1
        role[i] = ROLE_NONE
        if is_function(s.kind) and s.target >= 0:
            function[i] = r.entity[s.target]
            role[i] = r.role[s.target]


cdef int symbol_turns(uint32_t traits) noexcept nogil:
    """How often a file's symbols are walked over.

    nvlink 13.5 sorts the table of a file for sm_100 and later when it reads it, local symbols
    first. Objects of 13.4 and later are sorted already.
    """
    return 2 if traits & TRAIT_LEAN_NAMES and traits & TRAIT_MERCURY else 1


cdef inline bint waits(const SymbolRow* symbol, int turn, int turns) noexcept nogil:
    """The symbol is met in another turn than this."""
    return turns == 2 and (symbol.info >> 4 == STB_LOCAL) != (turn == 0)


cdef bint enter_functions(Resolver* r, const FileRow* file, int turn, int turns) noexcept nogil:
    cdef uint32_t i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        if ((r.symbols[i].info & 15) == STT_FUNC and not waits(&r.symbols[i], turn, turns)
                and not enter_function(r, file.first_symbol, <int32_t>i)):
            return False
    return True


cdef bint enter_others(Resolver* r, const FileRow* file, int turn, int turns) noexcept nogil:
    cdef uint32_t i
    for i in range(file.first_symbol + 1, file.first_symbol + file.symbol_count):
        if ((r.symbols[i].info & 15) != STT_FUNC and (r.symbols[i].info & 15) != STT_SECTION
                and not is_label(&r.symbols[i]) and not waits(&r.symbols[i], turn, turns)
                and not enter(r, <int32_t>i)):
            return False
    return True


def find_live(MergedTables merged not None, Marks selected not None, bint keep_all):
    """Mark the entities that reach the output, in `entities`.

    Roots are the kernels; with `selected` (by entity, or empty for all) only those it marks and,
    unless that is a single one, those whose address is taken, as device code launches them. An
    indirect call reaches every function of that prototype whose address is taken, in any
    file. Such a function is kept in any case, but keeps nothing alive by itself; one whose address
    only copies that lost take is kept with all that it calls. With `keep_all`
    nothing is removed. Data always stays. What would live without `selected` is flagged.
    """
    merged.fill()
    cdef size_t n = merged.entities.count
    cdef size_t nodes = n + merged.prototypes.count
    cdef Entities entities = <Entities>Table.opened(<PyObject*>merged.entities)
    cdef EntityRow* e = <EntityRow*>entities.rows
    cdef const uint8_t* chosen = selected.rows
    cdef bint choosy = selected.count != 0
    cdef CallGraph graph
    cdef uint32_t* stack
    cdef uint8_t* seen
    cdef size_t i, depth = 0, selections = 0
    cdef uint32_t j, to
    cdef bint launches
    if choosy and selected.count != n:
        raise ValueError("one byte per entity")
    if not graph_init(&graph, merged.calls.rows,
                      merged.calls.count, n, nodes):
        raise MemoryError
    stack = <uint32_t*>calloc(nodes + 1, 4)
    seen = <uint8_t*>calloc(nodes + 1, 1)
    if stack == NULL or seen == NULL:
        graph_free(&graph)
        free(stack)
        free(seen)
        raise MemoryError
    with nogil:
        if choosy:
            for i in range(n):
                selections += e[i].flags & EF_KERNEL and chosen[i]
        launches = selections != 1
        for i in range(n):
            if e[i].kind != E_FUNC or keep_all:
                e[i].flags |= EF_LIVE
            elif e[i].flags & EF_KERNEL and (
                    not choosy or chosen[i] or (launches and e[i].flags & EF_TAKEN)):
                seen[i] = True
                stack[depth] = <uint32_t>i
                depth += 1
            elif e[i].flags & EF_TAKEN and e[i].flags & EF_DEFINED:
                e[i].flags |= EF_LIVE
            elif e[i].flags & EF_NAMED and e[i].flags & EF_DEFINED:
                seen[i] = True          # nvlink drops it: see docs/nvlink-differences.md
                stack[depth] = <uint32_t>i
                depth += 1
        reach(&graph, e, n, seen, stack, depth, EF_LIVE)
        # Run-time functions stay for everything that is kept, reached or not.
        for i in range(n):
            if e[i].kind == E_FUNC and e[i].flags & EF_LIVE:
                for j in range(graph.start[i], graph.start[i + 1]):
                    to = graph.edges[j]
                    if to < n and not e[to].flags & EF_DEFINED:
                        e[to].flags |= EF_LIVE
        depth = 0
        for i in range(n):
            if e[i].flags & EF_KERNEL and choosy and not chosen[i]:
                e[i].flags |= EF_UNSELECTED
            if e[i].flags & EF_KERNEL and not seen[i] and not keep_all:
                seen[i] = True
                stack[depth] = <uint32_t>i
                depth += 1
        reach(&graph, e, n, seen, stack, depth, EF_DESELECTED)
    graph_free(&graph)
    free(stack)
    free(seen)
    merged.entities = entities


cdef void reach(const CallGraph* graph, EntityRow* e, size_t n, uint8_t* seen, uint32_t* stack,
                size_t depth, uint32_t flags) noexcept nogil:
    """Flag what the `depth` nodes on the stack reach and what was not yet seen."""
    cdef uint32_t j, at, to
    while depth:
        depth -= 1
        at = stack[depth]
        if at < n:
            e[at].flags |= flags
        for j in range(graph.start[at], graph.start[at + 1]):
            to = graph.edges[j]
            if not seen[to]:
                seen[to] = True
                stack[depth] = to
                depth += 1


def select_kernels(MergedTables merged not None, list patterns):
    """A byte per entity: 1 for kernels whose name contains one of the patterns.

    A star in a pattern stands for any characters, also none.
    """
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count, i
    cdef const SymbolRow* s = objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, n)
    cdef uint8_t* chosen = <uint8_t*>PyBytes_AS_STRING(result)
    cdef const SymbolRow* symbol
    memset(chosen, 0, n)
    for pattern in patterns:
        for i in range(n):
            symbol = &s[e[i].first]
            if e[i].flags & EF_KERNEL and contains(base + symbol.name, symbol.name_size,
                                                   PyBytes_AS_STRING(pattern),
                                                   PyBytes_GET_SIZE(pattern)):
                chosen[i] = True
    return Marks(result)


def select_referenced(MergedTables merged not None, list external, list internal):
    """A byte per entity: 1 for kernels that host code names.

    `external` are names of kernels visible to other files and `internal` those of the others. A
    star in a name stands for any characters, also none; the name matches as a whole.
    """
    cdef bytes result = bytes(merged.entities.count)
    mark_referenced(merged, external, 0, <uint8_t*>PyBytes_AS_STRING(result))
    mark_referenced(merged, internal, EF_LOCAL, <uint8_t*>PyBytes_AS_STRING(result))
    return Marks(result)


cdef void mark_referenced(MergedTables merged, list names, uint32_t local,
                          uint8_t* chosen) except *:
    """Mark the kernels with this EF_LOCAL flag that one of the names matches.

    Names are found by the bytes before their first star, whose sizes are few: N kernels and P
    names cost N lookups for each size, not N * P comparisons.
    """
    cdef size_t count = len(names), n = merged.entities.count, i
    cdef uint32_t longest = 0, stem
    cdef bytes rows = PyBytes_FromStringAndSize(NULL, count * sizeof(Pattern))
    cdef Pattern* patterns = <Pattern*>PyBytes_AS_STRING(rows)
    cdef bytes name, sizes
    cdef NameIndex index
    cdef NameSlot* slot = NULL
    cdef const SymbolRow* s = merged.objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(merged.objects.arena)
    cdef uint8_t* used
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
    if not index_init(&index, count):
        raise MemoryError
    for i in range(count):
        slot = index_find(&index, patterns[i].text, patterns[i].stem)
        if slot == NULL:
            index_free(&index)
            raise MemoryError
        patterns[i].next = slot.value
        if slot.value < 0:
            index.count += 1
        slot.value = <int32_t>i
        used[patterns[i].stem] = True
    with nogil:
        for i in range(n):
            if e[i].flags & EF_KERNEL and (e[i].flags & EF_LOCAL) == local and not chosen[i]:
                chosen[i] = is_referenced(&index, patterns, used, longest,
                                          base + s[e[i].first].name, s[e[i].first].name_size)
    index_free(&index)


def find_undefined(MergedTables merged not None):
    """Entities that an executable needs but no input defines, in order of birth."""
    cdef ObjectTables objects = merged.objects
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef size_t n = merged.entities.count, i
    cdef const SymbolRow* s = objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef list found = []
    for i in range(n):
        # A function whose address is taken counts, even where only dead code takes it.
        if (e[i].flags & (EF_DEFINED | EF_UNSIZED | EF_LOCAL)
                or not e[i].flags & (EF_LIVE | EF_TAKEN)
                or e[i].kind in (E_RESERVED, E_UNIFIED, E_CONST0_SIZE, E_OTHER)):
            continue
        if e[i].kind != E_FUNC or not is_runtime_function(
                base + s[e[i].first].name, s[e[i].first].name_size):
            found.append(i)
    return found
