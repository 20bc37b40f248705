# Rows of the inputs' call graphs as rows of the link's.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport strlen

from base.elf64 cimport STT_FUNC
from base.nameindex cimport NameSlot, index_find
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from base.vector cimport vec_push
from resolve.symbols cimport Resolver, add_clash
from rownumbers cimport (
    BLOCK_CANDIDATE, BLOCK_DIRECT, BLOCK_INDIRECT, BLOCK_PROTOTYPE, BLOCK_TAKEN, CLASH_NO_NODE,
    CLASH_PROTOTYPE, EF_DEFINED, EF_NAMED, EF_TAKEN, RESOLUTION_LOST, RESOLUTION_WON,
)
from sectionkinds cimport IS_CALLS, K_CALLGRAPH
from tables.kinds cimport is_a
from tables.rows cimport CallRow, EntityRow, FileRow, SectionRow


cdef inline bint is_node(Resolver* resolver, uint32_t symbol) noexcept nogil:
    """False for a function with the name of a variable that came before."""
    cdef int32_t entity = resolver.entity[symbol]
    if (resolver.objects.symbols[symbol].info & 15) != STT_FUNC or entity < 0:
        return True
    return (resolver.objects.symbols[(<EntityRow*>resolver.entities.data)[entity].first].info
            & 15) == STT_FUNC


cdef inline bint check_prototype(
        Resolver* resolver, int32_t symbol, int32_t number, int32_t block) noexcept nogil:
    """Compare the prototype of a function with the one that was given for it.

    nvlink compares rows of .nv.prototype alone: one of a function whose address is taken replaces
    what was given before.
    """
    cdef int32_t entity = resolver.entity[symbol]
    cdef const EntityRow* e = <EntityRow*>resolver.entities.data + entity
    if resolver.prototype_of[entity] == 0 or block == BLOCK_TAKEN:
        resolver.prototype_of[entity] = number + 1
    elif resolver.prototype_of[entity] != number + 1:
        return add_clash(resolver, CLASH_PROTOTYPE, symbol, e.winner if e.flags & EF_DEFINED
                         else e.first)
    return True


cdef inline int32_t find_or_add_prototype(Resolver* resolver, uint64_t name) noexcept nogil:
    """The number of a prototype string; -1 without memory."""
    cdef const uint8_t* text = resolver.objects.arena + name
    cdef uint32_t size = <uint32_t>strlen(<const char*>text)
    cdef NameSlot* slot
    cdef uint64_t* row
    slot = index_find(&resolver.prototype_names, text, size)
    if slot == NULL:
        return -1
    if slot.value < 0:
        row = <uint64_t*>vec_push(&resolver.prototypes)
        if row == NULL:
            return -1
        row[0] = name
        slot.value = <int32_t>(resolver.prototypes.count - 1)
        resolver.prototype_names.count += 1
    return slot.value


# A section with calls, being read.
ctypedef struct CallTable:
    const FileRow* file
    const uint32_t* pairs
    uint64_t count
    int32_t block               # of the pairs at hand
    bint has_clash              # no more rows of this file are read
    uint8_t* address_taken      # by symbol of the file, where a copy that lost needs it; or NULL
    Scratch* scratch            # of `address_taken`


cdef inline void mark_taken_by_winners(Resolver* resolver, CallTable* table) noexcept nogil:
    """Mark the symbols of the file whose address one of its functions that won takes.

    Rows of other blocks are ignored; what they name is checked elsewhere.
    """
    cdef uint32_t first = table.file.first_symbol
    cdef const uint32_t* pair = table.pairs
    cdef int32_t block = 0
    cdef uint64_t j
    for j in range(table.count):
        if pair[2 * j] == 0:
            block = <int32_t>pair[2 * j + 1]
        elif (block == BLOCK_CANDIDATE
                and resolver.resolution[first + pair[2 * j]] == RESOLUTION_WON):
            table.address_taken[pair[2 * j + 1]] = 1


cdef inline bint read_calls(Resolver* resolver, const FileRow* file) noexcept nogil:
    """Collect the rows of .nv.callgraph and .nv.prototype."""
    cdef Scratch scratch
    cdef CallTable table
    cdef const SectionRow* s
    cdef uint32_t i
    cdef bint graph, done = True
    scratch_init(&scratch)
    table.file = file
    table.has_clash = False
    table.address_taken = NULL
    table.scratch = &scratch
    for i in range(file.first_note, file.note_end):
        s = &resolver.objects.sections[i]
        if done and not table.has_clash and is_a(s.kind, IS_CALLS):
            table.pairs = <const uint32_t*>(resolver.objects.arena + s.offset)
            table.count = s.size // 8
            graph = s.kind == K_CALLGRAPH
            table.block = 0 if graph else BLOCK_PROTOTYPE
            done = read_rows(resolver, &table, graph)
    scratch_free(&scratch)
    return done


cdef inline bint read_rows(Resolver* resolver, CallTable* table, bint graph) noexcept nogil:
    """Read the rows of one section, up to a function that clashes; False without memory."""
    cdef uint32_t first = table.file.first_symbol, symbol
    cdef const uint32_t* pair
    cdef uint64_t j
    cdef int32_t block, second
    cdef CallRow* call
    for j in range(table.count):
        pair = &table.pairs[2 * j]
        if pair[0] == 0:
            if graph:
                table.block = <int32_t>pair[1]
            continue
        block = table.block
        symbol = first + pair[0]
        if resolver.entity[symbol] < 0 or block == 0:
            continue
        if (not is_node(resolver, symbol)
                or (block in (BLOCK_DIRECT, BLOCK_CANDIDATE)
                    and not is_node(resolver, first + pair[1]))):
            table.has_clash = True
            return add_clash(resolver, CLASH_NO_NODE, <int32_t>symbol, <int32_t>symbol)
        if block == BLOCK_DIRECT or block == BLOCK_CANDIDATE:
            second = resolver.entity[first + pair[1]]
            if resolver.resolution[symbol] != RESOLUTION_WON:
                continue
        elif not read_prototype(resolver, table, pair, &second):
            return False
        if second < 0:
            continue
        call = <CallRow*>vec_push(&resolver.calls)
        if call == NULL:
            return False
        call.caller = <uint32_t>resolver.entity[symbol]
        call.callee = <uint32_t>second
        call.block = block
        call.won = symbol           # the copy, until its resolution is settled
    return True


cdef inline bint read_prototype(Resolver* resolver, CallTable* table, const uint32_t* pair,
                                int32_t* number) noexcept nogil:
    """The number of the prototype in a pair, -1 if the link has no such row; False without memory.

    A function whose address is taken is flagged.
    """
    cdef uint32_t symbol = table.file.first_symbol + pair[0]
    cdef EntityRow* e = &(<EntityRow*>resolver.entities.data)[resolver.entity[symbol]]
    number[0] = find_or_add_prototype(resolver, table.file.strtab + pair[1])
    if number[0] < 0:
        return False
    if table.block != BLOCK_INDIRECT and not check_prototype(resolver, <int32_t>symbol, number[0],
                                                             table.block):
        return False
    if table.block == BLOCK_TAKEN and resolver.resolution[symbol] == RESOLUTION_LOST:
        if table.address_taken == NULL:
            table.address_taken = <uint8_t*>scratch_zeros(table.scratch, table.file.symbol_count, 1)
            if table.address_taken == NULL:
                return False
            mark_taken_by_winners(resolver, table)
        if not table.address_taken[pair[0]]:
            # No row of the link; but a table of that file may well hold the address.
            e.flags |= EF_NAMED
            number[0] = -1
            return True
    if table.block == BLOCK_TAKEN:
        e.flags |= EF_TAKEN
    elif table.block == BLOCK_INDIRECT and resolver.resolution[symbol] != RESOLUTION_WON:
        number[0] = -1
    return True
