# Which of the definitions of an entity wins, and which of them exclude each other.

from libc.stdint cimport int32_t, uint32_t, uint64_t
from tables.rows cimport (
    CLASH_COMMON, CLASH_GLOBAL, CLASH_MANAGED, CLASH_MULTIPLE, CLASH_SIZE, CLASH_SPACE, EF_ALIAS,
    EF_COMMON, EF_DEFINED, EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LOCAL, EF_NAMED, EF_TAKEN,
    EF_UNBOUNDED, EF_UNSIZED, EF_WEAK, E_CONSTANT, E_FUNC, E_GLOBAL, E_SHARED, RESOLUTION_LOST,
    RESOLUTION_REPLACED, RESOLUTION_WON, EntityRow, SymbolRow, virtual_sm,
)
from sectionkinds cimport KIND, K_GLOBAL
from resolve.symbols cimport Resolver, clash, is_inner, kind_of
from base.elf64 cimport (
    SHN_COMMON, STB_LOCAL, STB_WEAK, STO_ENTRY, STO_MANAGED, STT_FUNC, STV_INTERNAL,
)
from traits cimport TRAIT_COMMON_YIELDS


cdef inline bint is_better(Resolver* r, int32_t at, const EntityRow* e) noexcept nogil:
    """Whether a weak function copy replaces the current one.

    The one that needs fewer registers is the better citizen; among equals one that was compiled
    for a newer virtual architecture than the first of all copies (not than the current one).
    """
    if r.regcount[at] != e.regcount:
        return r.regcount[at] < e.regcount
    return (virtual_sm(&r.objects.files[r.objects.symbols[at].file])
            > r.first_sm[e - <const EntityRow*>r.entities.data])


cdef inline void choose(Resolver* r, int32_t at, EntityRow* e) noexcept nogil:
    """Make the definition `at` the current one of its entity."""
    cdef const SymbolRow* s = &r.objects.symbols[at]
    if not e.flags & EF_DEFINED:
        r.first_sm[e - <EntityRow*>r.entities.data] = virtual_sm(&r.objects.files[s.file])
    e.winner = at
    e.kind = kind_of(r, s)
    e.size = s.size
    e.align = s.value if e.kind == E_SHARED or s.shndx == SHN_COMMON else 0
    e.regcount = r.regcount[at]
    e.frame = r.frame[at]
    e.flags = (e.flags & (EF_LOCAL | EF_TAKEN | EF_NAMED)) | EF_DEFINED
    if e.kind == E_FUNC and s.other & STO_ENTRY:
        e.flags |= EF_KERNEL
    elif e.kind == E_FUNC and is_inner(r, at):
        e.flags |= EF_INNER
        if s.value == 0:
            e.flags |= EF_ALIAS
    if r.unbounded[at]:
        e.flags |= EF_UNBOUNDED
    if (s.info >> 4) == STB_WEAK:
        e.flags |= EF_WEAK
    if s.shndx == SHN_COMMON:
        e.flags |= EF_COMMON
    if e.kind == E_SHARED and s.size == 0:
        e.flags |= EF_UNSIZED       # an extern array that an earlier -r link defined
    if (s.other & 3) == STV_INTERNAL and ((s.info >> 4) == STB_LOCAL or e.kind == E_CONSTANT):
        e.flags |= EF_INTERNAL
    r.resolution[at] = RESOLUTION_WON


cdef inline bint replace(Resolver* r, int32_t at, EntityRow* e) noexcept nogil:
    """Make a later definition the current one instead of that which is."""
    r.resolution[e.winner] = RESOLUTION_REPLACED
    r.replaced = True
    choose(r, at, e)
    return True


cdef inline bint replace_common(Resolver* r, int32_t at, EntityRow* e) noexcept nogil:
    """A definition in the place of a common symbol.

    Up to 13.2 the variable keeps its place among the common ones, unless it has a value; nothing
    is where its definition has room. A global that is not common and has an alignment says so.
    """
    cdef uint64_t align = e.align if e.align else 1
    cdef const SymbolRow* s = &r.objects.symbols[at]
    replace(r, at, e)
    if (not r.objects.traits & TRAIT_COMMON_YIELDS and s.section >= 0
            and r.objects.sections[s.section].kind == K_GLOBAL):
        e.align = align
    return True


cdef inline bint has_bytes(Resolver* r, int32_t at) noexcept nogil:
    """Whether the symbol defines a variable that has an initializer."""
    cdef int32_t section = r.objects.symbols[at].section
    return section >= 0 and KIND[r.objects.sections[section].kind].given


cdef inline int32_t largest_common(Resolver* r, int32_t at, const EntityRow* e) noexcept nogil:
    """The common symbol that gave the variable of symbol `at` its size.

    Once for an error about sizes, and only where a later common symbol was larger: all symbols.
    """
    cdef int32_t i
    for i in range(at if r.objects.symbols[e.winner].size < e.size else 0):
        if (r.entity[i] == r.entity[at] and r.objects.symbols[i].shndx == SHN_COMMON
                and r.objects.symbols[i].size == e.size):
            return i
    return e.winner


cdef inline bint compare_sizes(Resolver* r, int32_t at, EntityRow* e) noexcept nogil:
    """Report that symbol `at` has another size than its entity, if that is an error.

    Common symbols may differ from each other, and have less bytes than a definition with bytes.
    From 13.3 on what is said of those that have more is said of one in front of any definition.
    """
    cdef const SymbolRow* s = &r.objects.symbols[at]
    cdef bint common = s.shndx == SHN_COMMON
    cdef int32_t first = e.winner
    if common and e.flags & EF_COMMON:
        return True
    if e.flags & EF_COMMON:
        first = largest_common(r, at, e)
    if common and e.flags & EF_DEFINED and has_bytes(r, e.winner):
        return s.size < e.size or clash(r, CLASH_COMMON, at, at)
    if e.flags & EF_COMMON and s.section >= 0:
        if (e.size > s.size and (has_bytes(r, at) or r.objects.traits & TRAIT_COMMON_YIELDS)
                and not clash(r, CLASH_COMMON, first, first)):
            return False
        if has_bytes(r, at):
            return True
    return clash(r, CLASH_SIZE, at, first)


cdef inline bint resolve_repeated(Resolver* r, int32_t at, EntityRow* e,
                                  bint defined) noexcept nogil:
    """Symbol `at` names an entity that an earlier symbol named."""
    cdef const SymbolRow* s = &r.objects.symbols[at]
    cdef bint weak = (s.info >> 4) == STB_WEAK
    cdef int32_t old = e.winner
    cdef int32_t said = old if e.flags & EF_DEFINED else e.first
    if (e.kind == E_FUNC and kind_of(r, s) == E_FUNC
            and (s.other ^ r.objects.symbols[said].other) & STO_ENTRY
            and not clash(r, CLASH_GLOBAL, at, said)):
        return False
    if kind_of(r, s) != e.kind and not clash(r, CLASH_SPACE, at, old):
        return False
    if ((s.info & 15) != STT_FUNC and (s.other ^ r.objects.symbols[old].other) & STO_MANAGED
            and not clash(r, CLASH_MANAGED, at, old)):
        return False
    if (s.size != e.size and s.size and e.size and (s.info & 15) != STT_FUNC
            and not compare_sizes(r, at, e)):
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
    r.resolution[at] = RESOLUTION_LOST
    if s.shndx == SHN_COMMON:
        if not e.flags & EF_COMMON and (
                r.objects.traits & TRAIT_COMMON_YIELDS or has_bytes(r, e.winner)):
            return True
        if not e.flags & (EF_COMMON | EF_WEAK):
            return clash(r, CLASH_MULTIPLE, at, old)
        if not e.flags & EF_COMMON:
            e.align = s.value if s.value else 1     # a weak one without a value, which moves
        elif s.size > e.size:
            e.size = s.size
        return True
    if e.flags & EF_COMMON:
        if weak and not r.objects.traits & TRAIT_COMMON_YIELDS and not has_bytes(r, at):
            return True
        return replace_common(r, at, e)
    if not weak and not e.flags & EF_WEAK:
        return clash(r, CLASH_MULTIPLE, at, old)
    if weak and e.flags & EF_WEAK and e.kind == E_FUNC:
        if not is_better(r, at, e):
            return True
    elif weak:
        return True
    if e.kind == E_GLOBAL and e.align:      # a weak one that moves
        return replace_common(r, at, e)
    return replace(r, at, e)
