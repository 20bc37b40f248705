# The entities of a link, numbered in the order in which symbols are met.

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset
from tables.rows cimport (
    EF_LOCAL, EF_UNSIZED, EF_WEAK, E_NULL, E_SHARED, M_KEEP_CODE, M_RELOCATABLE, EntityRow, FileRow,
    SymbolRow,
)
from base.nameindex cimport NameSlot, index_find_hashed
from resolve.symbols cimport (
    Resolver, is_inner, is_label, is_system_alias, kind_of, names_const0_size,
)
from base.elf64 cimport SHN_COMMON, STB_LOCAL, STB_WEAK, STT_FUNC, STT_SECTION
from traits cimport TRAIT_LEAN_NAMES, TRAIT_MERCURY, TRAIT_NULL_FUNCTIONS
from resolve.definitions cimport resolve_repeated, choose
from base.vector cimport vec_push


cdef inline bint enter(Resolver* r, int32_t at) noexcept nogil:
    """Give symbol `at` its entity; decide between it and the definition that stood before."""
    cdef const SymbolRow* s = &r.objects.symbols[at]
    cdef bint defined = s.section >= 0 or s.shndx == SHN_COMMON
    cdef bint local = (s.info >> 4) == STB_LOCAL
    cdef NameSlot* slot = NULL
    cdef EntityRow* e
    r.met[r.met_count] = at
    r.met_count += 1
    if not local:
        slot = index_find_hashed(&r.names, r.objects.arena + s.name, s.name_size, r.tag[at])
        if slot == NULL:
            return False
        if slot.value >= 0:
            r.entity[at] = slot.value
            return resolve_repeated(r, at, <EntityRow*>r.entities.data + slot.value, defined)
    elif names_const0_size(r, s):
        # Local in each file, but the link's own, which has one.
        if r.const0_size >= 0:
            r.entity[at] = r.const0_size
            return True
        r.const0_size = <int32_t>r.entities.count
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
        if (s.info >> 4) == STB_WEAK:
            e.flags |= EF_WEAK
        if e.kind == E_SHARED and s.size == 0:
            e.flags |= EF_UNSIZED
    return True


cdef inline bint enter_function(Resolver* r, uint32_t first, int32_t at) noexcept nogil:
    """Give a function of the file whose symbols begin at `first` its entity.

    Releases before 13.0 take one that is new and not defined for one of section 0, and make a
    function of that section's symbol, the null symbol. It goes with the dead code, if that goes.
    Those releases have no -r; here it brings none of these.
    """
    cdef size_t before = r.entities.count
    cdef EntityRow* e
    if not enter(r, at):
        return False
    if (not r.objects.traits & TRAIT_NULL_FUNCTIONS or not r.objects.mode & M_KEEP_CODE
            or r.objects.mode & M_RELOCATABLE or r.entities.count == before
            or r.objects.symbols[at].section >= 0 or r.entity[first] >= 0):
        return True
    e = <EntityRow*>vec_push(&r.entities)
    if e == NULL:
        return False
    memset(e, 0, sizeof(EntityRow))
    r.entity[first] = <int32_t>(r.entities.count - 1)
    e.first = e.winner = <int32_t>first
    e.kind = E_NULL
    e.flags = EF_LOCAL
    return True


cdef inline int symbol_turns(uint32_t traits) noexcept nogil:
    """How often a file's symbols are walked over.

    nvlink 13.5 sorts the table of a file for sm_100 and later when it reads it, local symbols
    first. Objects of 13.4 and later are sorted already.
    """
    return 2 if traits & TRAIT_LEAN_NAMES and traits & TRAIT_MERCURY else 1


cdef inline bint waits(const SymbolRow* symbol, int turn, int turns) noexcept nogil:
    """The symbol is met in another turn than this."""
    return turns == 2 and (symbol.info >> 4 == STB_LOCAL) != (turn == 0)


cdef inline bint enter_functions(Resolver* r, const FileRow* file, int turn,
                                 int turns) noexcept nogil:
    """Functions as they stand, but a function in whose code others lie ahead of these."""
    cdef const SymbolRow* s
    cdef uint32_t i
    cdef int32_t owner
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &r.objects.symbols[i]
        if (s.info & 15) != STT_FUNC or waits(s, turn, turns) or r.entity[i] >= 0:
            continue
        if is_inner(r, <int32_t>i):
            owner = r.objects.sections[s.section].target
            if r.entity[owner] < 0 and not enter_function(r, file.first_symbol, owner):
                return False
        if not enter_function(r, file.first_symbol, <int32_t>i):
            return False
    return True


cdef inline bint enter_others(Resolver* r, const FileRow* file, int turn, int turns) noexcept nogil:
    cdef const SymbolRow* s
    cdef uint32_t i
    for i in range(file.first_symbol + 1, file.first_symbol + file.symbol_count):
        s = &r.objects.symbols[i]
        if ((s.info & 15) != STT_FUNC and (s.info & 15) != STT_SECTION and not is_label(s)
                and not is_system_alias(r, s) and not waits(s, turn, turns)
                and not enter(r, <int32_t>i)):
            return False
    return True
