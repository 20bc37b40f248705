# Numbering the entities of a link, in the order in which their symbols are met. An entity is one
# distinct symbol of the link: a global name in all files, or one local symbol of one file.

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from base.nameindex cimport NameSlot, index_find_hashed
from base.vector cimport vec_push
from elfnumbers cimport SHN_COMMON, STB_LOCAL, STB_WEAK, STT_FUNC, STT_SECTION
from resolve.definitions cimport make_current, resolve_repeated
from resolve.symbols cimport Resolver, is_const0_size, is_inner, is_label, is_system_alias, kind_of
from rownumbers cimport (
    EF_LOCAL, EF_UNSIZED, EF_WEAK, E_NULL, E_SHARED, LINK_KEEP_CODE, LINK_RELOCATABLE,
)
from tables.rows cimport (
    EntityNumber, EntityRow, FileRow, SymbolNumber, SymbolRef, SymbolRow, function_symbol,
)
from traits cimport TRAIT_LEAN_NAMES, TRAIT_MERCURY, TRAIT_NULL_FUNCTIONS


cdef inline bint assign_entity(Resolver* resolver, SymbolNumber symbol) noexcept nogil:
    """Give `symbol` its entity, a new one unless its name is known; False without memory."""
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    cdef bint is_definition = symbol_row.section >= 0 or symbol_row.shndx == SHN_COMMON
    cdef bint is_local = (symbol_row.info >> 4) == STB_LOCAL
    cdef NameSlot* slot = NULL
    cdef EntityRow* entity
    resolver.met[resolver.met_count] = symbol
    resolver.met_count += 1
    if not is_local:
        slot = index_find_hashed(&resolver.names, resolver.objects.arena + symbol_row.name,
                                 symbol_row.name_size, resolver.hash_of[symbol])
        if slot == NULL:
            return False
        if slot.value >= 0:
            resolver.entity_of[symbol] = <EntityNumber>slot.value
            return resolve_repeated(resolver, symbol,
                                    <EntityRow*>resolver.entities.data + <EntityNumber>slot.value,
                                    is_definition)
    elif is_const0_size(resolver, symbol_row):
        # `.nv.ptx.const0.size` is local in each file, but all files share one entity.
        if resolver.const0_size >= 0:
            resolver.entity_of[symbol] = resolver.const0_size
            return True
        resolver.const0_size = <EntityNumber>resolver.entities.count
    entity = <EntityRow*>vec_push(&resolver.entities)
    if entity == NULL:
        return False
    memset(entity, 0, sizeof(EntityRow))
    resolver.entity_of[symbol] = <EntityNumber>(resolver.entities.count - 1)
    if slot != NULL:
        slot.value = <int32_t>resolver.entity_of[symbol]
        resolver.names.count += 1
    entity.first = symbol
    if is_local:
        entity.flags = EF_LOCAL
    if is_definition:
        make_current(resolver, symbol, entity)
    else:
        entity.winner = symbol
        entity.kind = kind_of(resolver, symbol_row)
        entity.size = symbol_row.size
        if (symbol_row.info >> 4) == STB_WEAK:
            entity.flags |= EF_WEAK
        if entity.kind == E_SHARED and symbol_row.size == 0:
            entity.flags |= EF_UNSIZED
    return True


cdef inline bint assign_function_entity(Resolver* resolver, SymbolRef first,
                                        SymbolNumber function) noexcept nogil:
    """Give a function its entity; `first` is the null symbol of its file. False without memory.

    Releases before 13.0 take a function that is new and undefined for one that lies in section 0,
    and create an entity for the null symbol, as if it were a function. They remove it with other
    dead code, so only a link that keeps all code has it. With -r no such entity is created, since
    nothing shows that they do: only nvJitLink 12.9 was observed, which has no -r.
    """
    cdef size_t before = resolver.entities.count
    cdef EntityRow* entity
    if not assign_entity(resolver, function):
        return False
    if (not resolver.objects.traits & TRAIT_NULL_FUNCTIONS
            or not resolver.objects.mode & LINK_KEEP_CODE
            or resolver.objects.mode & LINK_RELOCATABLE or resolver.entities.count == before
            or resolver.objects.symbols[function].section >= 0 or resolver.entity_of[first] >= 0):
        return True
    entity = <EntityRow*>vec_push(&resolver.entities)
    if entity == NULL:
        return False
    memset(entity, 0, sizeof(EntityRow))
    resolver.entity_of[first] = <EntityNumber>(resolver.entities.count - 1)
    entity.first = entity.winner = <SymbolNumber>first
    entity.kind = E_NULL
    entity.flags = EF_LOCAL
    return True


cdef inline int count_symbol_walks(uint32_t traits) noexcept nogil:
    """Return how many walks over a file's symbols give them their entities: 1 or 2.

    nvlink 13.5 sorts the symbols of a file for sm_100 and later when it reads them, local ones
    first. So walk 0 is a walk over local symbols, walk 1 over the others. Objects of 13.4 and later
    are sorted already.
    """
    return 2 if traits & TRAIT_LEAN_NAMES and traits & TRAIT_MERCURY else 1


cdef inline bint is_of_other_walk(const SymbolRow* symbol, int walk, int walk_count) noexcept nogil:
    """Return whether there are two walks over a file's symbols, and `walk` is not that of `symbol`.

    Walk 0 is for local symbols, walk 1 for the others (`count_symbol_walks`).
    """
    return walk_count == 2 and (symbol.info >> 4 == STB_LOCAL) != (walk == 0)


cdef inline bint assign_function_entities(Resolver* resolver, const FileRow* file, int walk,
                                          int walk_count) noexcept nogil:
    """Assign entities to a file's functions of this walk, in symbol order; False without memory.

    A function comes before those that lie inside of its code, whatever their order in the file.
    `count_symbol_walks` says what a walk is.
    """
    cdef const SymbolRow* symbol
    cdef SymbolRef i
    cdef SymbolNumber owner
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        symbol = &resolver.objects.symbols[i]
        if ((symbol.info & 15) != STT_FUNC or is_of_other_walk(symbol, walk, walk_count)
                or resolver.entity_of[i] >= 0):
            continue
        if is_inner(resolver, <SymbolNumber>i):
            owner = function_symbol(&resolver.objects.sections[symbol.section])
            if (resolver.entity_of[owner] < 0
                    and not assign_function_entity(resolver, file.first_symbol, owner)):
                return False
        if not assign_function_entity(resolver, file.first_symbol, <SymbolNumber>i):
            return False
    return True


cdef inline bint assign_other_entities(Resolver* resolver, const FileRow* file, int walk,
                                       int walk_count) noexcept nogil:
    """Assign entities to a file's symbols of this walk that are not functions, in symbol order.

    The null symbol, section symbols, labels and names of the system's shared memory get none here.
    False without memory.
    """
    cdef const SymbolRow* symbol
    cdef SymbolRef i
    for i in range(file.first_symbol + 1, file.first_symbol + file.symbol_count):
        symbol = &resolver.objects.symbols[i]
        if ((symbol.info & 15) != STT_FUNC and (symbol.info & 15) != STT_SECTION
                and not is_label(symbol) and not is_system_alias(resolver, symbol)
                and not is_of_other_walk(symbol, walk, walk_count)
                and not assign_entity(resolver, <SymbolNumber>i)):
            return False
    return True
