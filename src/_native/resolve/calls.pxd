# Reading .nv.callgraph and .nv.prototype of the inputs as rows of one table, CallRow.
#
# A row of an input names symbols and strings of its file; a CallRow names entities, and prototypes
# by number. Calls in a definition that did not win when its file was read are dropped; its
# prototype and address-taken rows may stay (`read_prototype`). A row that names a variable as a
# function is the last that is read of its file. It adds a clash, which Python reports. So does a
# row that gives a function a second prototype.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport strlen

from base.nameindex cimport NameSlot, index_find
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from base.vector cimport vec_push
from elfnumbers cimport STT_FUNC
from resolve.symbols cimport Resolver, add_clash
from rownumbers cimport (
    BLOCK_CANDIDATE, BLOCK_DIRECT, BLOCK_INDIRECT, BLOCK_PROTOTYPE, BLOCK_TAKEN,
    CLASH_FUNCTION_AS_VARIABLE, CLASH_PROTOTYPE, EF_DEFINED, EF_MAYBE_TAKEN, EF_TAKEN,
    RESOLUTION_LOST, RESOLUTION_WON,
)
from sectionkinds cimport IS_CALLS, K_CALLGRAPH
from tables.kinds cimport is_a
from tables.rows cimport (
    CallRow, EntityNumber, EntityRef, EntityRow, FileRow, FileSymbolRef, SectionRef, SectionRow,
    SymbolNumber, SymbolRef,
)


cdef inline bint can_be_node(Resolver* resolver, SymbolRef symbol) noexcept nogil:
    """Return whether a symbol can be in the call graph.

    A function cannot if its name was that of a variable in an earlier file.
    """
    cdef EntityNumber entity = resolver.entity_of[symbol]
    if (resolver.objects.symbols[symbol].info & 15) != STT_FUNC or entity < 0:
        return True
    return (resolver.objects.symbols[(<EntityRow*>resolver.entities.data)[entity].first].info
            & 15) == STT_FUNC


cdef inline bint compare_prototypes(Resolver* resolver, SymbolNumber symbol, int32_t number,
                                    int32_t block) noexcept nogil:
    """Add a clash if a function has a second prototype; False without memory.

    nvlink compares only rows of .nv.prototype. A row of a function whose address is taken replaces
    the prototype that was known before. `number` is that of the prototype string, `block` the
    CallBlock of the row.
    """
    cdef EntityNumber entity = resolver.entity_of[symbol]
    cdef const EntityRow* entity_row = <EntityRow*>resolver.entities.data + entity
    if resolver.prototype_of[entity] == 0 or block == BLOCK_TAKEN:
        resolver.prototype_of[entity] = number + 1
    elif resolver.prototype_of[entity] != number + 1:
        return add_clash(resolver, CLASH_PROTOTYPE, symbol,
                         entity_row.winner if entity_row.flags & EF_DEFINED else entity_row.first)
    return True


cdef inline int32_t find_or_add_prototype(Resolver* resolver, uint64_t name) noexcept nogil:
    """Return the number of the prototype string at arena offset `name`; -1 without memory."""
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


# A section of calls or prototypes while it is read.
ctypedef struct CallTable:
    const FileRow* file
    const uint32_t* pairs       # its contents
    uint64_t count              # number of pairs
    int32_t block               # CallBlock of the current pair
    bint has_clash              # a row names a variable as a function: it is the last that is read
    # By symbol of the file: 1 if a definition that won so far takes its address. NULL until needed.
    uint8_t* address_taken
    Scratch* scratch            # memory of `address_taken`


cdef inline void mark_taken_by_winners(Resolver* resolver, CallTable* table) noexcept nogil:
    """Set `address_taken` of symbols whose address this file's winning definitions take."""
    cdef SymbolRef first = table.file.first_symbol
    cdef const uint32_t* pair = table.pairs
    cdef int32_t block = 0
    cdef uint64_t i
    for i in range(table.count):
        if pair[2 * i] == 0:
            block = <int32_t>pair[2 * i + 1]
        elif (block == BLOCK_CANDIDATE
                and resolver.resolution_of[first + pair[2 * i]] == RESOLUTION_WON):
            table.address_taken[<FileSymbolRef>pair[2 * i + 1]] = 1


cdef inline bint read_calls(Resolver* resolver, const FileRow* file) noexcept nogil:
    """Add the rows of a file's .nv.callgraph and .nv.prototype; False without memory."""
    cdef Scratch scratch
    cdef CallTable table
    cdef const SectionRow* section
    cdef SectionRef i
    cdef bint is_call_graph, done = True
    scratch_init(&scratch)
    table.file = file
    table.has_clash = False
    table.address_taken = NULL
    table.scratch = &scratch
    for i in range(file.first_note, file.note_end):
        section = &resolver.objects.sections[i]
        if done and not table.has_clash and is_a(section.kind, IS_CALLS):
            table.pairs = <const uint32_t*>(resolver.objects.arena + section.offset)
            table.count = section.size // 8
            is_call_graph = section.kind == K_CALLGRAPH
            table.block = 0 if is_call_graph else BLOCK_PROTOTYPE
            done = read_rows(resolver, &table, is_call_graph)
    scratch_free(&scratch)
    return done


cdef inline bint read_rows(Resolver* resolver, CallTable* table, bint is_call_graph) noexcept nogil:
    """Add the rows of one section, until one names a variable as a function; False without memory.

    `is_call_graph` says whether the section is .nv.callgraph; else it is .nv.prototype.
    """
    cdef SymbolRef first = table.file.first_symbol, symbol
    cdef const uint32_t* pair
    cdef uint64_t j
    cdef int32_t block
    cdef EntityNumber callee    # or the number of a prototype
    cdef CallRow* call
    for j in range(table.count):
        pair = &table.pairs[2 * j]
        if pair[0] == 0:
            if is_call_graph:
                table.block = <int32_t>pair[1]
            continue
        block = table.block
        symbol = first + pair[0]
        if resolver.entity_of[symbol] < 0 or block == 0:
            continue
        if (not can_be_node(resolver, symbol)
                or (block in (BLOCK_DIRECT, BLOCK_CANDIDATE)
                    and not can_be_node(resolver, first + pair[1]))):
            table.has_clash = True
            return add_clash(resolver, CLASH_FUNCTION_AS_VARIABLE, <SymbolNumber>symbol,
                             <SymbolNumber>symbol)
        if block == BLOCK_DIRECT or block == BLOCK_CANDIDATE:
            callee = resolver.entity_of[first + pair[1]]
            if resolver.resolution_of[symbol] != RESOLUTION_WON:
                continue
        elif not read_prototype(resolver, table, pair, <int32_t*>&callee):
            return False
        if callee < 0:
            continue
        call = <CallRow*>vec_push(&resolver.calls)
        if call == NULL:
            return False
        call.caller = <EntityRef>resolver.entity_of[symbol]
        call.callee = <uint32_t>callee
        call.block = block
        # The symbol of the definition that calls. After the last file, `settle_resolutions`
        # replaces it by 1 if that is the linked one, else by 0.
        call.of_linked_copy = <uint32_t>symbol
    return True


cdef inline bint read_prototype(Resolver* resolver, CallTable* table, const uint32_t* pair,
                                int32_t* number) noexcept nogil:
    """Set `number` to that of a pair's prototype, -1 if the row is dropped; False without memory.

    A function whose address is taken gets EF_TAKEN, or EF_MAYBE_TAKEN if the row is dropped.
    """
    cdef SymbolRef symbol = table.file.first_symbol + pair[0]
    cdef EntityRow* entity = &(<EntityRow*>resolver.entities.data)[resolver.entity_of[symbol]]
    number[0] = find_or_add_prototype(resolver, table.file.strtab + pair[1])
    if number[0] < 0:
        return False
    if (table.block != BLOCK_INDIRECT
            and not compare_prototypes(resolver, <SymbolNumber>symbol, number[0], table.block)):
        return False
    if table.block == BLOCK_TAKEN and resolver.resolution_of[symbol] == RESOLUTION_LOST:
        if table.address_taken == NULL:
            table.address_taken = <uint8_t*>scratch_zeros(table.scratch, table.file.symbol_count, 1)
            if table.address_taken == NULL:
                return False
            mark_taken_by_winners(resolver, table)
        if not table.address_taken[<FileSymbolRef>pair[0]]:
            # The row is dropped, but a table of the file may contain the address.
            entity.flags |= EF_MAYBE_TAKEN
            number[0] = -1
            return True
    if table.block == BLOCK_TAKEN:
        entity.flags |= EF_TAKEN
    elif table.block == BLOCK_INDIRECT and resolver.resolution_of[symbol] != RESOLUTION_WON:
        number[0] = -1
    return True
