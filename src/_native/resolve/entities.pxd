# The entities of a link, numbered in the order in which symbols are met.

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from base.elf64 cimport SHN_COMMON, STB_LOCAL, STB_WEAK, STT_FUNC, STT_SECTION
from base.nameindex cimport NameSlot, index_find_hashed
from base.vector cimport vec_push
from resolve.definitions cimport make_current, resolve_repeated
from resolve.symbols cimport Resolver, is_const0_size, is_inner, is_label, is_system_alias, kind_of
from rownumbers cimport (
    EF_LOCAL, EF_UNSIZED, EF_WEAK, E_NULL, E_SHARED, LINK_KEEP_CODE, LINK_RELOCATABLE,
)
from tables.rows cimport EntityRow, FileRow, SymbolRow
from traits cimport TRAIT_LEAN_NAMES, TRAIT_MERCURY, TRAIT_NULL_FUNCTIONS


cdef inline bint assign_entity(Resolver* resolver, int32_t symbol) noexcept nogil:
    """Give `symbol` its entity, decide between it and the current one; False without memory."""
    cdef const SymbolRow* s = &resolver.objects.symbols[symbol]
    cdef bint defined = s.section >= 0 or s.shndx == SHN_COMMON
    cdef bint local = (s.info >> 4) == STB_LOCAL
    cdef NameSlot* slot = NULL
    cdef EntityRow* e
    resolver.met[resolver.met_count] = symbol
    resolver.met_count += 1
    if not local:
        slot = index_find_hashed(&resolver.names, resolver.objects.arena + s.name, s.name_size,
                                 resolver.tag[symbol])
        if slot == NULL:
            return False
        if slot.value >= 0:
            resolver.entity[symbol] = slot.value
            return resolve_repeated(resolver, symbol,
                                    <EntityRow*>resolver.entities.data + slot.value, defined)
    elif is_const0_size(resolver, s):
        # Local in each file, but the link's own, which has one.
        if resolver.const0_size >= 0:
            resolver.entity[symbol] = resolver.const0_size
            return True
        resolver.const0_size = <int32_t>resolver.entities.count
    e = <EntityRow*>vec_push(&resolver.entities)
    if e == NULL:
        return False
    memset(e, 0, sizeof(EntityRow))
    resolver.entity[symbol] = <int32_t>(resolver.entities.count - 1)
    if slot != NULL:
        slot.value = resolver.entity[symbol]
        resolver.names.count += 1
    e.first = symbol
    if local:
        e.flags = EF_LOCAL
    if defined:
        make_current(resolver, symbol, e)
    else:
        e.winner = symbol
        e.kind = kind_of(resolver, s)
        e.size = s.size
        if (s.info >> 4) == STB_WEAK:
            e.flags |= EF_WEAK
        if e.kind == E_SHARED and s.size == 0:
            e.flags |= EF_UNSIZED
    return True


cdef inline bint assign_function(Resolver* resolver, uint32_t first,
                                 int32_t function) noexcept nogil:
    """Give a function of the file whose symbols begin at `first` its entity.

    Releases before 13.0 take one that is new and not defined for one of section 0, and make a
    function of that section's symbol, the null symbol. It goes with the dead code, if that goes.
    Those releases have no -r; here it brings none of these.
    """
    cdef size_t before = resolver.entities.count
    cdef EntityRow* e
    if not assign_entity(resolver, function):
        return False
    if (not resolver.objects.traits & TRAIT_NULL_FUNCTIONS
            or not resolver.objects.mode & LINK_KEEP_CODE
            or resolver.objects.mode & LINK_RELOCATABLE
            or resolver.entities.count == before or resolver.objects.symbols[function].section >= 0
            or resolver.entity[first] >= 0):
        return True
    e = <EntityRow*>vec_push(&resolver.entities)
    if e == NULL:
        return False
    memset(e, 0, sizeof(EntityRow))
    resolver.entity[first] = <int32_t>(resolver.entities.count - 1)
    e.first = e.winner = <int32_t>first
    e.kind = E_NULL
    e.flags = EF_LOCAL
    return True


cdef inline int count_symbol_turns(uint32_t traits) noexcept nogil:
    """The number of times that a file's symbols are read.

    nvlink 13.5 sorts the table of a file for sm_100 and later when it reads it, local symbols
    first. Objects of 13.4 and later are sorted already.
    """
    return 2 if traits & TRAIT_LEAN_NAMES and traits & TRAIT_MERCURY else 1


cdef inline bint is_of_other_turn(const SymbolRow* symbol, int turn, int turns) noexcept nogil:
    """Whether the symbol belongs to the other of two turns."""
    return turns == 2 and (symbol.info >> 4 == STB_LOCAL) != (turn == 0)


cdef inline bint assign_functions(Resolver* resolver, const FileRow* file, int turn,
                                  int turns) noexcept nogil:
    """Assign entities to a file's functions in symbol order; False without memory.

    An owner comes before its inner functions.
    """
    cdef const SymbolRow* s
    cdef uint32_t i
    cdef int32_t owner
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &resolver.objects.symbols[i]
        if (s.info & 15) != STT_FUNC or is_of_other_turn(s, turn, turns) or resolver.entity[i] >= 0:
            continue
        if is_inner(resolver, <int32_t>i):
            owner = resolver.objects.sections[s.section].target
            if (resolver.entity[owner] < 0
                    and not assign_function(resolver, file.first_symbol, owner)):
                return False
        if not assign_function(resolver, file.first_symbol, <int32_t>i):
            return False
    return True


cdef inline bint assign_others(Resolver* resolver, const FileRow* file, int turn,
                               int turns) noexcept nogil:
    """Assign entities to the other symbols of a file in symbol order; False without memory."""
    cdef const SymbolRow* s
    cdef uint32_t i
    for i in range(file.first_symbol + 1, file.first_symbol + file.symbol_count):
        s = &resolver.objects.symbols[i]
        if ((s.info & 15) != STT_FUNC and (s.info & 15) != STT_SECTION and not is_label(s)
                and not is_system_alias(resolver, s) and not is_of_other_turn(s, turn, turns)
                and not assign_entity(resolver, <int32_t>i)):
            return False
    return True
