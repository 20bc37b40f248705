# The choice between the definitions of an entity, and definitions that exclude each other.
#
# `resolve_repeated` compares each symbol of a known name with what its entity is by then:
#
# 1. Errors come first: a kernel and a function, two state spaces, or two sizes of one name. Each is
#    a clash, a row that Python reports.
# 2. A mention without a definition changes at most the size and the binding of an undefined entity.
# 3. The first definition becomes the current one (`make_current`).
# 4. A strong definition replaces a weak one; two strong ones clash. The first of weak variables
#    stays, while a weak function is replaced by one with fewer registers (`is_preferred`).
# 5. Common symbols, which have a size but no bytes, yield to definitions. Here releases differ:
#    up to 13.2, a variable without initializer keeps its place among them (`replace_common`).

from libc.stdint cimport int32_t, uint32_t, uint64_t

from base.elf64 cimport (
    SHN_COMMON, STB_LOCAL, STB_WEAK, STO_ENTRY, STO_MANAGED, STT_FUNC, STV_INTERNAL,
)
from resolve.symbols cimport Resolver, add_clash, is_inner, kind_of
from rownumbers cimport (
    CLASH_COMMON, CLASH_GLOBAL, CLASH_MANAGED, CLASH_MULTIPLE, CLASH_SIZE, CLASH_SPACE, EF_ALIAS,
    EF_COMMON, EF_DEFINED, EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LOCAL, EF_NAMED, EF_TAKEN,
    EF_UNBOUNDED, EF_UNSIZED, EF_WEAK, E_CONSTANT, E_FUNC, E_GLOBAL, E_SHARED, RESOLUTION_LOST,
    RESOLUTION_REPLACED, RESOLUTION_WON,
)
from sectionkinds cimport KIND, K_GLOBAL
from tables.rows cimport EntityRow, SymbolRow, virtual_sm
from traits cimport TRAIT_COMMON_YIELDS


cdef inline bint is_preferred(Resolver* resolver, int32_t symbol,
                              const EntityRow* e) noexcept nogil:
    """Whether a weak function copy replaces the current one.

    The copy that needs fewer registers replaces the other. If both need as many, it does so if it
    was compiled for a newer virtual architecture than the first of all copies (not than the current
    one).
    """
    if resolver.regcount[symbol] != e.regcount:
        return resolver.regcount[symbol] < e.regcount
    return (virtual_sm(&resolver.objects.files[resolver.objects.symbols[symbol].file])
            > resolver.first_sm[e - <const EntityRow*>resolver.entities.data])


cdef inline void make_current(Resolver* resolver, int32_t symbol, EntityRow* e) noexcept nogil:
    """Make the definition `symbol` the current one of its entity."""
    cdef const SymbolRow* s = &resolver.objects.symbols[symbol]
    if not e.flags & EF_DEFINED:
        resolver.first_sm[e - <EntityRow*>resolver.entities.data] = virtual_sm(
            &resolver.objects.files[s.file])
    e.winner = symbol
    e.kind = kind_of(resolver, s)
    e.size = s.size
    e.align = s.value if e.kind == E_SHARED or s.shndx == SHN_COMMON else 0
    e.regcount = resolver.regcount[symbol]
    e.frame = resolver.frame[symbol]
    e.flags = (e.flags & (EF_LOCAL | EF_TAKEN | EF_NAMED)) | EF_DEFINED
    if e.kind == E_FUNC and s.other & STO_ENTRY:
        e.flags |= EF_KERNEL
    elif e.kind == E_FUNC and is_inner(resolver, symbol):
        e.flags |= EF_INNER
        if s.value == 0:
            e.flags |= EF_ALIAS
    if resolver.unbounded[symbol]:
        e.flags |= EF_UNBOUNDED
    if (s.info >> 4) == STB_WEAK:
        e.flags |= EF_WEAK
    if s.shndx == SHN_COMMON:
        e.flags |= EF_COMMON
    if e.kind == E_SHARED and s.size == 0:
        e.flags |= EF_UNSIZED       # an extern array that an earlier -r link defined
    if (s.other & 3) == STV_INTERNAL and ((s.info >> 4) == STB_LOCAL or e.kind == E_CONSTANT):
        e.flags |= EF_INTERNAL
    resolver.resolution[symbol] = RESOLUTION_WON


cdef inline bint replace_definition(Resolver* resolver, int32_t symbol,
                                    EntityRow* e) noexcept nogil:
    """Make a later definition the current one. Returns True."""
    resolver.resolution[e.winner] = RESOLUTION_REPLACED
    resolver.replaced = True
    make_current(resolver, symbol, e)
    return True


cdef inline bint replace_common(Resolver* resolver, int32_t symbol, EntityRow* e) noexcept nogil:
    """Replace a common symbol by a definition. Returns True.

    Up to 13.2 the variable keeps its place among the common ones, unless it has an initializer; the
    room of its definition stays empty. Such a global has an alignment although it is not common.
    """
    cdef uint64_t align = e.align if e.align else 1
    cdef const SymbolRow* s = &resolver.objects.symbols[symbol]
    replace_definition(resolver, symbol, e)
    if (not resolver.objects.traits & TRAIT_COMMON_YIELDS and s.section >= 0
            and resolver.objects.sections[s.section].kind == K_GLOBAL):
        e.align = align
    return True


cdef inline bint has_initializer(Resolver* resolver, int32_t symbol) noexcept nogil:
    """Whether the symbol defines a variable that has an initializer."""
    cdef int32_t section = resolver.objects.symbols[symbol].section
    return section >= 0 and KIND[resolver.objects.sections[section].kind].given


cdef inline int32_t find_largest_common(Resolver* resolver, int32_t symbol,
                                        const EntityRow* e) noexcept nogil:
    """The common symbol that gave the variable of symbol `symbol` its size.

    Reads all symbols, but only for an error about sizes, if a later common symbol was larger.
    """
    cdef int32_t i
    for i in range(symbol if resolver.objects.symbols[e.winner].size < e.size else 0):
        if (resolver.entity[i] == resolver.entity[symbol]
                and resolver.objects.symbols[i].shndx == SHN_COMMON
                and resolver.objects.symbols[i].size == e.size):
            return i
    return e.winner


cdef inline bint compare_sizes(Resolver* resolver, int32_t symbol, EntityRow* e) noexcept nogil:
    """Report that symbol `symbol` has another size than its entity, if that is an error.

    Common symbols may differ from each other, and have less bytes than a definition with bytes.
    From 13.3 on nvlink also reports a larger common symbol before any definition. False without
    memory.
    """
    cdef const SymbolRow* s = &resolver.objects.symbols[symbol]
    cdef bint common = s.shndx == SHN_COMMON
    cdef int32_t first = e.winner
    if common and e.flags & EF_COMMON:
        return True
    if e.flags & EF_COMMON:
        first = find_largest_common(resolver, symbol, e)
    if common and e.flags & EF_DEFINED and has_initializer(resolver, e.winner):
        return s.size < e.size or add_clash(resolver, CLASH_COMMON, symbol, symbol)
    if e.flags & EF_COMMON and s.section >= 0:
        if (e.size > s.size
                and (has_initializer(resolver, symbol)
                     or resolver.objects.traits & TRAIT_COMMON_YIELDS)
                and not add_clash(resolver, CLASH_COMMON, first, first)):
            return False
        if has_initializer(resolver, symbol):
            return True
    return add_clash(resolver, CLASH_SIZE, symbol, first)


cdef inline bint resolve_repeated(Resolver* resolver, int32_t symbol, EntityRow* e,
                                  bint defined) noexcept nogil:
    """Decide between `symbol`, which may define it, and its entity; False without memory."""
    cdef const SymbolRow* s = &resolver.objects.symbols[symbol]
    cdef bint is_weak = (s.info >> 4) == STB_WEAK
    cdef int32_t winner = e.winner
    cdef int32_t earlier = winner if e.flags & EF_DEFINED else e.first
    if (e.kind == E_FUNC and kind_of(resolver, s) == E_FUNC
            and (s.other ^ resolver.objects.symbols[earlier].other) & STO_ENTRY
            and not add_clash(resolver, CLASH_GLOBAL, symbol, earlier)):
        return False
    if kind_of(resolver, s) != e.kind and not add_clash(resolver, CLASH_SPACE, symbol, winner):
        return False
    if ((s.info & 15) != STT_FUNC
            and (s.other ^ resolver.objects.symbols[winner].other) & STO_MANAGED
            and not add_clash(resolver, CLASH_MANAGED, symbol, winner)):
        return False
    if (s.size != e.size and s.size and e.size and (s.info & 15) != STT_FUNC
            and not compare_sizes(resolver, symbol, e)):
        return False
    if not defined:
        if not is_weak and not e.flags & EF_DEFINED:
            e.flags &= ~<uint32_t>EF_WEAK
        if s.size > e.size and not e.flags & EF_DEFINED:
            e.size = s.size
        return True
    if not e.flags & EF_DEFINED:
        if e.flags & EF_UNSIZED and (s.size == 0 or kind_of(resolver, s) != e.kind):
            # A mention counts as the definition of an array.
            return add_clash(resolver, CLASH_MULTIPLE, symbol, winner)
        make_current(resolver, symbol, e)
        return True
    resolver.resolution[symbol] = RESOLUTION_LOST
    if s.shndx == SHN_COMMON:
        if (not e.flags & EF_COMMON
                and (resolver.objects.traits & TRAIT_COMMON_YIELDS
                     or has_initializer(resolver, e.winner))):
            return True
        if not e.flags & (EF_COMMON | EF_WEAK):
            return add_clash(resolver, CLASH_MULTIPLE, symbol, winner)
        if not e.flags & EF_COMMON:
            e.align = s.value if s.value else 1     # a weak one without a value, which moves
        elif s.size > e.size:
            e.size = s.size
        return True
    if e.flags & EF_COMMON:
        if (is_weak and not resolver.objects.traits & TRAIT_COMMON_YIELDS
                and not has_initializer(resolver, symbol)):
            return True
        return replace_common(resolver, symbol, e)
    if not is_weak and not e.flags & EF_WEAK:
        return add_clash(resolver, CLASH_MULTIPLE, symbol, winner)
    if is_weak and e.flags & EF_WEAK and e.kind == E_FUNC:
        if not is_preferred(resolver, symbol, e):
            return True
    elif is_weak:
        return True
    if e.kind == E_GLOBAL and e.align:      # a weak one that moves
        return replace_common(resolver, symbol, e)
    return replace_definition(resolver, symbol, e)
