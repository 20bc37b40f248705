# The choice between the definitions of an entity, and definitions that exclude each other.
#
# `resolve_repeated` compares each symbol of a known name with what its entity is by then:
#
# 1. Errors come first: one name for a kernel and another function, for two state spaces, for a
#    managed and another variable, or for two sizes. Each is a clash, a row that Python reports.
# 2. A mention without a definition changes at most the size and the binding of an undefined entity.
# 3. The first definition becomes the current one, which has won so far (`make_current`).
# 4. A strong definition replaces a weak one; two strong ones clash. The first of weak variables
#    stays. A weak function is replaced by a weak one with fewer registers, or with as many and
#    newer PTX (`is_preferred`).
# 5. Common symbols, which have a size but no bytes, yield to definitions. Here releases differ:
#    up to 13.2, a variable without initializer keeps its place among them (`replace_common`).

from libc.stdint cimport uint32_t, uint64_t

from elfnumbers cimport (
    SHN_COMMON, STB_LOCAL, STB_WEAK, STO_ENTRY, STO_MANAGED, STT_FUNC, STV_INTERNAL,
)
from resolve.symbols cimport Resolver, add_clash, is_inner, kind_of
from rownumbers cimport (
    CLASH_COMMON, CLASH_GLOBAL, CLASH_MANAGED, CLASH_MULTIPLE, CLASH_SIZE, CLASH_SPACE, EF_ALIAS,
    EF_COMMON, EF_DEFINED, EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LOCAL, EF_MAYBE_TAKEN, EF_TAKEN,
    EF_UNBOUNDED, EF_UNSIZED, EF_WEAK, E_CONSTANT, E_FUNC, E_GLOBAL, E_SHARED, RESOLUTION_LOST,
    RESOLUTION_REPLACED, RESOLUTION_WON,
)
from sectionkinds cimport KIND, K_GLOBAL
from tables.rows cimport EntityRow, SectionNumber, SymbolNumber, SymbolRow, virtual_sm
from traits cimport TRAIT_COMMON_YIELDS


cdef inline bint is_preferred(Resolver* resolver, SymbolNumber symbol,
                              const EntityRow* entity) noexcept nogil:
    """Return whether `symbol`, a weak definition of a function, replaces the one that won so far.

    It does if it needs fewer registers. If both need the same number, it does if its PTX is for a
    newer architecture than that of the first definition, which may have been replaced since.
    """
    if resolver.regcount[symbol] != entity.regcount:
        return resolver.regcount[symbol] < entity.regcount
    return (virtual_sm(&resolver.objects.files[resolver.objects.symbols[symbol].file])
            > resolver.first_sm[entity - <const EntityRow*>resolver.entities.data])


cdef inline void make_current(Resolver* resolver, SymbolNumber symbol,
                              EntityRow* entity) noexcept nogil:
    """Make the definition `symbol` the current one of its entity: the one that has won so far."""
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    if not entity.flags & EF_DEFINED:
        resolver.first_sm[entity - <EntityRow*>resolver.entities.data] = virtual_sm(
            &resolver.objects.files[symbol_row.file])
    entity.winner = symbol
    entity.kind = kind_of(resolver, symbol_row)
    entity.size = symbol_row.size
    entity.align = 0
    if entity.kind == E_SHARED or symbol_row.shndx == SHN_COMMON:
        entity.align = symbol_row.value
    entity.regcount = resolver.regcount[symbol]
    entity.frame = resolver.frame[symbol]
    entity.flags = (entity.flags & (EF_LOCAL | EF_TAKEN | EF_MAYBE_TAKEN)) | EF_DEFINED
    if entity.kind == E_FUNC and symbol_row.other & STO_ENTRY:
        entity.flags |= EF_KERNEL
    elif entity.kind == E_FUNC and is_inner(resolver, symbol):
        entity.flags |= EF_INNER
        if symbol_row.value == 0:
            entity.flags |= EF_ALIAS
    if resolver.unbounded[symbol]:
        entity.flags |= EF_UNBOUNDED
    if (symbol_row.info >> 4) == STB_WEAK:
        entity.flags |= EF_WEAK
    if symbol_row.shndx == SHN_COMMON:
        entity.flags |= EF_COMMON
    if entity.kind == E_SHARED and symbol_row.size == 0:
        entity.flags |= EF_UNSIZED      # an extern array that an earlier -r link defined
    if ((symbol_row.other & 3) == STV_INTERNAL
            and ((symbol_row.info >> 4) == STB_LOCAL or entity.kind == E_CONSTANT)):
        entity.flags |= EF_INTERNAL
    resolver.resolution_of[symbol] = RESOLUTION_WON


cdef inline bint replace_definition(Resolver* resolver, SymbolNumber symbol,
                                    EntityRow* entity) noexcept nogil:
    """Let a later definition replace the one that won so far. Returns True."""
    resolver.resolution_of[entity.winner] = RESOLUTION_REPLACED
    resolver.has_replaced = True
    make_current(resolver, symbol, entity)
    return True


cdef inline bint replace_common(Resolver* resolver, SymbolNumber symbol,
                                EntityRow* entity) noexcept nogil:
    """Replace a common symbol by a definition. Returns True.

    Up to 13.2 a variable without initializer keeps its place among the common symbols, and the room
    of its definition stays empty. Such an entity has an alignment although it is no longer common.
    """
    cdef uint64_t align = entity.align if entity.align else 1
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    replace_definition(resolver, symbol, entity)
    if (not resolver.objects.traits & TRAIT_COMMON_YIELDS and symbol_row.section >= 0
            and resolver.objects.sections[symbol_row.section].kind == K_GLOBAL):
        entity.align = align
    return True


cdef inline bint has_initializer(Resolver* resolver, SymbolNumber symbol) noexcept nogil:
    """Return whether the symbol defines a variable that has an initializer."""
    cdef SectionNumber section = resolver.objects.symbols[symbol].section
    return section >= 0 and KIND[resolver.objects.sections[section].kind].given


cdef inline SymbolNumber find_largest_common(Resolver* resolver, SymbolNumber symbol,
                                             const EntityRow* entity) noexcept nogil:
    """Return the common symbol that gave the entity of `symbol` its size.

    This searches all symbols before `symbol`, if a later common symbol was larger than the first.
    It is called only if `symbol` is not a common one, and has another size than its entity.
    """
    cdef SymbolNumber i
    for i in range(symbol if resolver.objects.symbols[entity.winner].size < entity.size else 0):
        if (resolver.entity_of[i] == resolver.entity_of[symbol]
                and resolver.objects.symbols[i].shndx == SHN_COMMON
                and resolver.objects.symbols[i].size == entity.size):
            return i
    return entity.winner


cdef inline bint compare_sizes(Resolver* resolver, SymbolNumber symbol,
                               EntityRow* entity) noexcept nogil:
    """Add a clash if it is an error that `symbol` has another size than its entity.

    Common symbols may differ from each other, and be smaller than a definition with an initializer.
    Other differences are errors. From 13.3 on nvlink also reports a common symbol if a later
    definition without an initializer is smaller. False without memory.
    """
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    cdef bint is_common = symbol_row.shndx == SHN_COMMON
    cdef SymbolNumber first = entity.winner
    if is_common and entity.flags & EF_COMMON:
        return True
    if entity.flags & EF_COMMON:
        first = find_largest_common(resolver, symbol, entity)
    if is_common and entity.flags & EF_DEFINED and has_initializer(resolver, entity.winner):
        return symbol_row.size < entity.size or add_clash(resolver, CLASH_COMMON, symbol, symbol)
    if entity.flags & EF_COMMON and symbol_row.section >= 0:
        if (entity.size > symbol_row.size
                and (has_initializer(resolver, symbol)
                     or resolver.objects.traits & TRAIT_COMMON_YIELDS)
                and not add_clash(resolver, CLASH_COMMON, first, first)):
            return False
        if has_initializer(resolver, symbol):
            return True
    return add_clash(resolver, CLASH_SIZE, symbol, first)


cdef inline bint resolve_later_common(Resolver* resolver, SymbolNumber symbol,
                                      EntityRow* entity) noexcept nogil:
    """Decide between a common symbol and the definition or common symbols before it.

    False without memory.
    """
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    if (not entity.flags & EF_COMMON
            and (resolver.objects.traits & TRAIT_COMMON_YIELDS
                 or has_initializer(resolver, entity.winner))):
        return True
    if not entity.flags & (EF_COMMON | EF_WEAK):
        return add_clash(resolver, CLASH_MULTIPLE, symbol, entity.winner)
    if not entity.flags & EF_COMMON:
        # A weak variable without initializer is placed among the common symbols.
        entity.align = symbol_row.value if symbol_row.value else 1
    elif symbol_row.size > entity.size:
        entity.size = symbol_row.size
    return True


cdef inline bint resolve_repeated(Resolver* resolver, SymbolNumber symbol, EntityRow* entity,
                                  bint is_definition) noexcept nogil:
    """Decide between `symbol` and what its entity has so far; False without memory.

    `is_definition` says whether the symbol defines the entity or only mentions it.
    """
    cdef const SymbolRow* symbol_row = &resolver.objects.symbols[symbol]
    cdef bint is_weak = (symbol_row.info >> 4) == STB_WEAK
    cdef SymbolNumber winner = entity.winner
    cdef SymbolNumber earlier = winner if entity.flags & EF_DEFINED else entity.first
    if (entity.kind == E_FUNC and kind_of(resolver, symbol_row) == E_FUNC
            and (symbol_row.other ^ resolver.objects.symbols[earlier].other) & STO_ENTRY
            and not add_clash(resolver, CLASH_GLOBAL, symbol, earlier)):
        return False
    if (kind_of(resolver, symbol_row) != entity.kind
            and not add_clash(resolver, CLASH_SPACE, symbol, winner)):
        return False
    if ((symbol_row.info & 15) != STT_FUNC
            and (symbol_row.other ^ resolver.objects.symbols[winner].other) & STO_MANAGED
            and not add_clash(resolver, CLASH_MANAGED, symbol, winner)):
        return False
    if (symbol_row.size != entity.size and symbol_row.size and entity.size
            and (symbol_row.info & 15) != STT_FUNC and not compare_sizes(resolver, symbol, entity)):
        return False
    if not is_definition:
        if not is_weak and not entity.flags & EF_DEFINED:
            entity.flags &= ~<uint32_t>EF_WEAK
        if symbol_row.size > entity.size and not entity.flags & EF_DEFINED:
            entity.size = symbol_row.size
        return True
    if not entity.flags & EF_DEFINED:
        if (entity.flags & EF_UNSIZED
                and (symbol_row.size == 0 or kind_of(resolver, symbol_row) != entity.kind)):
            # A mention of an extern array counts as a definition, so this is a second one.
            return add_clash(resolver, CLASH_MULTIPLE, symbol, winner)
        make_current(resolver, symbol, entity)
        return True
    resolver.resolution_of[symbol] = RESOLUTION_LOST
    if symbol_row.shndx == SHN_COMMON:
        return resolve_later_common(resolver, symbol, entity)
    if entity.flags & EF_COMMON:
        if (is_weak and not resolver.objects.traits & TRAIT_COMMON_YIELDS
                and not has_initializer(resolver, symbol)):
            return True
        return replace_common(resolver, symbol, entity)
    if not is_weak and not entity.flags & EF_WEAK:
        return add_clash(resolver, CLASH_MULTIPLE, symbol, winner)
    if is_weak and entity.flags & EF_WEAK and entity.kind == E_FUNC:
        if not is_preferred(resolver, symbol, entity):
            return True
    elif is_weak:
        return True
    if entity.kind == E_GLOBAL and entity.align:    # a weak variable among the common ones
        return replace_common(resolver, symbol, entity)
    return replace_definition(resolver, symbol, entity)
