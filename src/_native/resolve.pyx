"""Symbol resolution and dead-code removal.

Every distinct symbol of the link becomes one entity, numbered in order of birth. For each
entity one definition wins; from the kernels the call graph decides which functions live.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from elf64 cimport *
from graph cimport *
from names cimport *
from rows cimport *
from runtime cimport is_runtime_function
from vec cimport *


cdef enum:
    CUINFO_SM = 26              # place of the number in .note.nv.cuinfo


ctypedef struct Resolver:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    size_t file_count
    int32_t* entity         # by symbol row
    uint8_t* role           # by symbol row
    uint32_t* regcount      # by symbol row, from the file's .nv.info
    uint32_t* frame
    uint16_t* virtual_sm    # by file: the SM number of the PTX that it was made from
    Vec entities
    Vec calls
    Vec clashes
    Vec prototypes          # uint64 arena offset of each distinct prototype string
    int32_t* prototype_of   # by entity: 1 + the number of its prototype string
    NameIndex names
    NameIndex prototype_names


def resolve(bytes arena, bytes files, bytes sections, bytes symbols):
    """Find the entities of the link and the definition that wins for each.

    Takes the tables of `elfread.parse`. Returns `(entities, symbol_entity, symbol_role, calls,
    prototypes, clashes)`: EntityRow table; int32 entity number and uint8 Role per symbol (-1: a
    section or null symbol); CallRow table in input order; uint64 arena offsets of the distinct
    prototype strings; ClashRow table of the first file that clashes.
    """
    cdef Resolver r
    cdef size_t symbol_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
    cdef bint ok
    r.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    r.files = <const FileRow*>PyBytes_AS_STRING(files)
    r.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    r.symbols = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    r.file_count = PyBytes_GET_SIZE(files) // sizeof(FileRow)
    cdef bytes entity = PyBytes_FromStringAndSize(NULL, symbol_count * 4)
    cdef bytes role = PyBytes_FromStringAndSize(NULL, symbol_count)
    r.entity = <int32_t*>PyBytes_AS_STRING(entity)
    r.role = <uint8_t*>PyBytes_AS_STRING(role)
    memset(r.entity, 0xff, symbol_count * 4)
    memset(r.role, 0, symbol_count)
    r.regcount = <uint32_t*>calloc(symbol_count + 1, 4)
    r.frame = <uint32_t*>calloc(symbol_count + 1, 4)
    r.prototype_of = <int32_t*>calloc(symbol_count + 1, 4)
    r.virtual_sm = <uint16_t*>calloc(r.file_count + 1, 2)
    vec_init(&r.entities, sizeof(EntityRow))
    vec_init(&r.calls, sizeof(CallRow))
    vec_init(&r.clashes, sizeof(ClashRow))
    vec_init(&r.prototypes, 8)
    r.names.slots = r.prototype_names.slots = NULL
    ok = (r.regcount != NULL and r.frame != NULL and r.prototype_of != NULL
          and r.virtual_sm != NULL and index_init(&r.names, symbol_count // 2)
          and index_init(&r.prototype_names, 64))
    if ok:
        with nogil:
            ok = resolve_all(&r)
    index_free(&r.names)
    index_free(&r.prototype_names)
    free(r.regcount)
    free(r.frame)
    free(r.prototype_of)
    free(r.virtual_sm)
    if not ok:
        vec_free(&r.entities)
        vec_free(&r.calls)
        vec_free(&r.clashes)
        vec_free(&r.prototypes)
        raise MemoryError
    return (vec_take(&r.entities), entity, role, vec_take(&r.calls), vec_take(&r.prototypes),
            vec_take(&r.clashes))


cdef bint resolve_all(Resolver* r) noexcept nogil:
    cdef size_t f
    cdef uint32_t i, first, end
    for f in range(r.file_count):
        read_function_facts(r, &r.files[f])
        first = r.files[f].first_symbol
        end = first + r.files[f].symbol_count
        for i in range(first, end):
            if (r.symbols[i].info & 15) == STT_FUNC and not enter(r, <int32_t>i):
                return False
        for i in range(first, end):
            if ((r.symbols[i].info & 15) != STT_FUNC and (r.symbols[i].info & 15) != STT_SECTION
                    and i != first and not enter(r, <int32_t>i)):
                return False
        if not read_calls(r, &r.files[f]):
            return False
        if r.clashes.count:
            return True             # of the first file that has any
    return mark_winning_calls(r)


cdef void read_function_facts(Resolver* r, const FileRow* file) noexcept nogil:
    """REGCOUNT and FRAME_SIZE of each function, from .nv.info, and for which PTX it was made."""
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint64_t at
    cdef uint32_t i, word, value
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &r.sections[i]
        data = r.arena + s.offset
        if s.kind == K_CUINFO and s.size >= CUINFO_SM + 2:
            memcpy(&r.virtual_sm[s.file], data + CUINFO_SM, 2)
        if s.kind != K_INFO:
            continue
        at = 0
        while at < s.size:
            if data[at] == 4:
                if data[at + 1] == EIATTR_REGCOUNT or data[at + 1] == EIATTR_FRAME_SIZE:
                    memcpy(&word, data + at + 4, 4)
                    memcpy(&value, data + at + 8, 4)
                    if data[at + 1] == EIATTR_REGCOUNT:
                        r.regcount[file.first_symbol + word] = value
                    else:
                        r.frame[file.first_symbol + word] = value
                at += <uint32_t>data[at + 2] | <uint32_t>data[at + 3] << 8
            at += 4


cdef uint32_t kind_of(Resolver* r, const SymbolRow* s) noexcept nogil:
    cdef const uint8_t* name = r.arena + s.name
    cdef uint16_t kind
    if (s.info & 15) == STT_FUNC:
        return E_FUNC
    if s.section >= 0:
        kind = r.sections[s.section].kind
        if kind == K_GLOBAL or kind == K_GLOBAL_INIT:
            return E_GLOBAL
        if kind == K_CONSTANT or kind == K_CONSTANT_FUNC or kind == K_CONSTANT0:
            return E_CONSTANT
        if kind == K_SHARED or kind == K_DEBUG_SHARED:
            return E_SHARED
        if kind == K_SYSTEM_SHARED:
            return E_SYSTEM_SHARED
    if s.name_size >= 17 and memcmp(name, b".nv.reservedSmem.", 17) == 0:
        return E_RESERVED
    if s.name_size == 19 and memcmp(name, b".nv.ptx.const0.size", 19) == 0:
        return E_CONST0_SIZE
    if s.section < 0 and s.shndx == SHN_UNDEF and is_unified(name, s.name_size):
        return E_UNIFIED
    if (s.other & STO_SPACE) == STO_SHARED:
        return E_SHARED
    if (s.other & STO_SPACE) == STO_CONSTANT:
        return E_CONSTANT
    if s.name_size == 0:
        return E_OTHER
    return E_GLOBAL


cdef bint is_unified(const uint8_t* name, uint32_t size) noexcept nogil:
    """__UFT, __UDT, and these with _OFFSET, _CANONICAL or _END."""
    if size < 5 or (memcmp(name, b"__UFT", 5) != 0 and memcmp(name, b"__UDT", 5) != 0):
        return False
    return (size == 5 or (size == 9 and memcmp(name + 5, b"_END", 4) == 0)
            or (size == 12 and memcmp(name + 5, b"_OFFSET", 7) == 0)
            or (size == 15 and memcmp(name + 5, b"_CANONICAL", 10) == 0))


cdef bint enter(Resolver* r, int32_t at) noexcept nogil:
    """Give symbol `at` its entity; decide between it and the definition that stood before."""
    cdef const SymbolRow* s = &r.symbols[at]
    cdef bint defined = s.section >= 0 or s.shndx == SHN_COMMON
    cdef bint local = (s.info >> 4) == STB_LOCAL
    cdef NameSlot* slot = NULL
    cdef EntityRow* e
    if not local:
        slot = index_find(&r.names, r.arena + s.name, s.name_size)
        if slot == NULL:
            return False
        if slot.value >= 0:
            r.entity[at] = slot.value
            return again(r, at, <EntityRow*>r.entities.data + slot.value, defined)
    e = <EntityRow*>vec_push(&r.entities)
    if e == NULL:
        return False
    memset(e, 0, sizeof(EntityRow))
    r.entity[at] = <int32_t>(r.entities.count - 1)
    if slot != NULL:
        slot.value = r.entity[at]
        r.names.count += 1
    e.first = at
    if local:
        e.flags = EF_LOCAL
    if defined:
        choose(r, at, e)
    else:
        e.winner = at
        e.kind = kind_of(r, s)
        e.size = s.size
        e.flags |= EF_WAS_UNDEFINED
        if (s.info >> 4) == STB_WEAK:
            e.flags |= EF_WEAK
        if e.kind == E_SHARED and s.size == 0:
            e.flags |= EF_UNSIZED
    return True


cdef void choose(Resolver* r, int32_t at, EntityRow* e) noexcept nogil:
    """Make the definition `at` the current one of its entity."""
    cdef const SymbolRow* s = &r.symbols[at]
    e.winner = at
    e.kind = kind_of(r, s)
    e.size = s.size
    e.align = s.value if e.kind == E_SHARED or s.shndx == SHN_COMMON else 0
    e.regcount = r.regcount[at]
    e.frame = r.frame[at]
    e.flags = (e.flags & (EF_LOCAL | EF_WAS_UNDEFINED | EF_TAKEN)) | EF_DEFINED
    if e.kind == E_FUNC and s.other & STO_ENTRY:
        e.flags |= EF_KERNEL
    if (s.info >> 4) == STB_WEAK:
        e.flags |= EF_WEAK
    if s.shndx == SHN_COMMON:
        e.flags |= EF_COMMON
    if e.kind == E_SHARED and s.size == 0:
        e.flags |= EF_UNSIZED       # an extern array that an earlier -r link defined
    if (s.info >> 4) == STB_LOCAL and (s.other & 3) == STV_INTERNAL:
        e.flags |= EF_INTERNAL
    r.role[at] = ROLE_WON


cdef bint again(Resolver* r, int32_t at, EntityRow* e, bint defined) noexcept nogil:
    """Symbol `at` names an entity that an earlier symbol named."""
    cdef const SymbolRow* s = &r.symbols[at]
    cdef bint weak = (s.info >> 4) == STB_WEAK
    cdef int32_t old = e.winner
    if kind_of(r, s) != e.kind and not clash(r, CLASH_SPACE, at, old):
        return False
    if (s.size != e.size and s.size and e.size and (s.info & 15) != STT_FUNC
            and not (s.shndx == SHN_COMMON or e.flags & EF_COMMON)):
        if not clash(r, CLASH_SIZE, at, old):
            return False
    if not defined:
        if not weak and not e.flags & EF_DEFINED:
            e.flags &= ~<uint32_t>EF_WEAK
        if s.size > e.size and not e.flags & EF_DEFINED:
            e.size = s.size
        return True
    if not e.flags & EF_DEFINED:
        if e.flags & EF_UNSIZED and (s.size == 0 or kind_of(r, s) != e.kind):
            # A mention counts as the definition of an array.
            return clash(r, CLASH_MULTIPLE, at, old)
        choose(r, at, e)
        return True
    r.role[at] = ROLE_LOST
    if s.shndx == SHN_COMMON:
        if not e.flags & (EF_COMMON | EF_WEAK):
            return clash(r, CLASH_MULTIPLE, at, old)
        if e.flags & EF_COMMON and s.size > e.size:
            e.size = s.size
        return True
    if e.flags & EF_COMMON:
        choose(r, at, e)
        return True
    if not weak and not e.flags & EF_WEAK:
        return clash(r, CLASH_MULTIPLE, at, old)
    if weak and e.flags & EF_WEAK and e.kind == E_FUNC:
        if not is_better(r, at, e):
            return True
    elif weak:
        return True
    r.role[old] = ROLE_REPLACED
    choose(r, at, e)
    return True


cdef bint is_better(Resolver* r, int32_t at, const EntityRow* e) noexcept nogil:
    """Whether a weak function copy replaces the current one.

    The one that needs fewer registers is the better citizen; among equals the one that was
    compiled for the newer virtual architecture.
    """
    if r.regcount[at] != e.regcount:
        return r.regcount[at] < e.regcount
    return r.virtual_sm[r.symbols[at].file] > r.virtual_sm[r.symbols[e.winner].file]


cdef bint clash(Resolver* r, uint32_t kind, int32_t symbol, int32_t first) noexcept nogil:
    cdef ClashRow* row = <ClashRow*>vec_push(&r.clashes)
    if row == NULL:
        return False
    row.kind = kind
    row.symbol = symbol
    row.first = first
    return True


cdef bint read_calls(Resolver* r, const FileRow* file) noexcept nogil:
    """Collect the rows of .nv.callgraph and .nv.prototype."""
    cdef const SectionRow* s
    cdef const uint32_t* pair
    cdef uint32_t i, symbol
    cdef uint64_t j
    cdef int32_t block, second
    cdef CallRow* call
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &r.sections[i]
        if s.kind != K_CALLGRAPH and s.kind != K_PROTOTYPE:
            continue
        pair = <const uint32_t*>(r.arena + s.offset)
        block = 0 if s.kind == K_CALLGRAPH else BLOCK_PROTOTYPE
        for j in range(s.size // 8):
            if pair[2 * j] == 0:
                if s.kind == K_CALLGRAPH:
                    block = <int32_t>pair[2 * j + 1]
                continue
            symbol = file.first_symbol + pair[2 * j]
            if r.entity[symbol] < 0 or block == 0:
                continue
            if not is_node(r, symbol) or ((block == -1 or block == -4) and not is_node(
                    r, file.first_symbol + pair[2 * j + 1])):
                return clash(r, CLASH_NO_NODE, <int32_t>symbol, <int32_t>symbol)
            if block == -1 or block == -4:
                second = r.entity[file.first_symbol + pair[2 * j + 1]]
                if r.role[symbol] != ROLE_WON:
                    continue
            else:
                second = prototype(r, file.strtab + pair[2 * j + 1])
                if second < 0:
                    return False
                if block != -3 and not same_prototype(r, <int32_t>symbol, second):
                    return False
                if block == -2:
                    (<EntityRow*>r.entities.data)[r.entity[symbol]].flags |= EF_TAKEN
                elif block == -3 and r.role[symbol] != ROLE_WON:
                    continue
            if second < 0:
                continue
            call = <CallRow*>vec_push(&r.calls)
            if call == NULL:
                return False
            call.caller = <uint32_t>r.entity[symbol]
            call.callee = <uint32_t>second
            call.block = block
            call.won = symbol           # the copy, until mark_winning_calls
    return True


cdef bint is_node(Resolver* r, uint32_t symbol) noexcept nogil:
    """False for a function with the name of a variable that came before."""
    cdef int32_t entity = r.entity[symbol]
    if (r.symbols[symbol].info & 15) != STT_FUNC or entity < 0:
        return True
    return (r.symbols[(<EntityRow*>r.entities.data)[entity].first].info & 15) == STT_FUNC


cdef bint same_prototype(Resolver* r, int32_t symbol, int32_t number) noexcept nogil:
    """Compare the prototype of a function with the first that was given for it."""
    cdef int32_t entity = r.entity[symbol]
    cdef const EntityRow* e = <EntityRow*>r.entities.data + entity
    if r.prototype_of[entity] == 0:
        r.prototype_of[entity] = number + 1
    elif r.prototype_of[entity] != number + 1:
        return clash(r, CLASH_PROTOTYPE, symbol, e.winner if e.flags & EF_DEFINED else e.first)
    return True


cdef int32_t prototype(Resolver* r, uint64_t name) noexcept nogil:
    """The number of a prototype string; -1 without memory."""
    cdef const uint8_t* text = r.arena + name
    cdef uint32_t size = 0
    cdef NameSlot* slot
    cdef uint64_t* row
    while text[size]:
        size += 1
    slot = index_find(&r.prototype_names, text, size)
    if slot == NULL:
        return -1
    if slot.value < 0:
        row = <uint64_t*>vec_push(&r.prototypes)
        if row == NULL:
            return -1
        row[0] = name
        slot.value = <int32_t>(r.prototypes.count - 1)
        r.prototype_names.count += 1
    return slot.value


cdef bint mark_winning_calls(Resolver* r) noexcept nogil:
    cdef CallRow* calls = <CallRow*>r.calls.data
    cdef EntityRow* entities = <EntityRow*>r.entities.data
    cdef size_t i
    for i in range(r.calls.count):
        calls[i].won = entities[calls[i].caller].winner == <int32_t>calls[i].won
    return True


def find_live(bytes entities, bytes calls, bytes prototypes, bytes selected, bint keep_all):
    """Mark the entities that reach the output; returns a new EntityRow table.

    Roots are the kernels; with `selected` (a byte per entity, or empty for all) only those it
    marks. An indirect call reaches every function of that prototype whose address is taken, in
    any file. Such a function is kept in any case, but keeps nothing alive by itself. With
    `keep_all` nothing is removed. Data always stays. What would live without `selected` is flagged.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef size_t nodes = n + PyBytes_GET_SIZE(prototypes) // 8
    cdef bytes result = PyBytes_FromStringAndSize(PyBytes_AS_STRING(entities),
                                                  PyBytes_GET_SIZE(entities))
    cdef EntityRow* e = <EntityRow*>PyBytes_AS_STRING(result)
    cdef const uint8_t* chosen = <const uint8_t*>PyBytes_AS_STRING(selected)
    cdef bint choosy = PyBytes_GET_SIZE(selected) != 0
    cdef CallGraph graph
    cdef uint32_t* stack
    cdef uint8_t* seen
    cdef size_t i, depth = 0
    cdef uint32_t j, at, to
    if choosy and <size_t>PyBytes_GET_SIZE(selected) != n:
        raise ValueError("one byte per entity")
    if not graph_init(&graph, <const CallRow*>PyBytes_AS_STRING(calls),
                      PyBytes_GET_SIZE(calls) // sizeof(CallRow), n, nodes):
        raise MemoryError
    stack = <uint32_t*>calloc(nodes + 1, 4)
    seen = <uint8_t*>calloc(nodes + 1, 1)
    if stack == NULL or seen == NULL:
        graph_free(&graph)
        free(stack)
        free(seen)
        raise MemoryError
    with nogil:
        for i in range(n):
            if e[i].kind != E_FUNC or keep_all:
                e[i].flags |= EF_LIVE | EF_REACHED
            elif e[i].flags & EF_KERNEL and (not choosy or chosen[i]):
                seen[i] = True
                stack[depth] = <uint32_t>i
                depth += 1
            elif e[i].flags & EF_TAKEN and e[i].flags & EF_DEFINED:
                e[i].flags |= EF_LIVE
        reach(&graph, e, n, seen, stack, depth, EF_LIVE | EF_REACHED)
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
    return result


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


def select_kernels(bytes arena, bytes symbols, bytes entities, list patterns):
    """A byte per entity: 1 for kernels whose name contains one of the patterns.

    A star in a pattern stands for any characters, also none.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef const SymbolRow* s = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
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
    return result


cdef bint contains(const uint8_t* text, size_t size, const char* pattern,
                   size_t length) noexcept nogil:
    """Whether the parts of `pattern` between its stars occur in `text`, one after the other.

    The first place is the best one for every part, so nothing is tried twice.
    """
    cdef size_t at = 0, start = 0, end
    while start <= length:
        end = start
        while end < length and pattern[end] != c'*':
            end += 1
        while at + (end - start) <= size and memcmp(text + at, pattern + start, end - start) != 0:
            at += 1
        if at + (end - start) > size:
            return False
        at += end - start
        start = end + 1
    return True


def select_referenced(bytes arena, bytes symbols, bytes entities, list external, list internal):
    """A byte per entity: 1 for kernels that host code names.

    `external` are names of kernels visible to other files and `internal` those of the others. A
    star in a name stands for any characters, also none; the name matches as a whole.
    """
    cdef bytes result = bytes(PyBytes_GET_SIZE(entities) // sizeof(EntityRow))
    mark_referenced(arena, symbols, entities, external, 0, <uint8_t*>PyBytes_AS_STRING(result))
    mark_referenced(arena, symbols, entities, internal, EF_LOCAL,
                    <uint8_t*>PyBytes_AS_STRING(result))
    return result


ctypedef struct Pattern:
    const uint8_t* text
    uint32_t size
    uint32_t stem               # bytes before the first star
    int32_t next                # pattern with the same stem, or -1


cdef void mark_referenced(bytes arena, bytes symbols, bytes entities, list names, uint32_t local,
                          uint8_t* chosen) except *:
    """Mark the kernels with this EF_LOCAL flag that one of the names matches.

    Names are found by the bytes before their first star, whose sizes are few: N kernels and P
    names cost N lookups for each size, not N * P comparisons.
    """
    cdef size_t count = len(names), n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef uint32_t longest = 0, stem
    cdef bytes rows = PyBytes_FromStringAndSize(NULL, count * sizeof(Pattern))
    cdef Pattern* patterns = <Pattern*>PyBytes_AS_STRING(rows)
    cdef bytes name, sizes
    cdef NameIndex index
    cdef NameSlot* slot = NULL
    cdef const SymbolRow* s = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
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


cdef bint is_referenced(NameIndex* index, const Pattern* patterns, const uint8_t* used,
                        uint32_t longest, const uint8_t* name, uint32_t size) noexcept nogil:
    cdef uint32_t stem
    cdef int32_t at
    cdef NameSlot* slot
    for stem in range(min(size, longest) + 1):
        if not used[stem]:
            continue
        slot = index_find(index, name, stem)
        at = slot.value if slot != NULL else -1
        while at >= 0:
            if matches(name, size, patterns[at].text, patterns[at].size):
                return True
            at = patterns[at].next
    return False


cdef bint matches(const uint8_t* text, uint32_t size, const uint8_t* pattern,
                  uint32_t length) noexcept nogil:
    """Whether the pattern with its stars is the whole text.

    Only the last star can need another try: what came before fits as early as it can.
    """
    cdef uint32_t at = 0, of = 0, retry = 0, star = 0
    cdef bint starred = False
    while at < size:
        if of < length and pattern[of] == c'*':
            starred = True
            star = of
            of += 1
            retry = at
        elif of < length and pattern[of] == text[at]:
            at += 1
            of += 1
        elif starred:
            retry += 1
            at = retry
            of = star + 1
        else:
            return False
    while of < length and pattern[of] == c'*':
        of += 1
    return of == length


def find_undefined(bytes arena, bytes symbols, bytes entities):
    """Entities that an executable needs but no input defines, in order of birth."""
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef const SymbolRow* s = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
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
