# The entities of a link, and the definition that wins for each.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from sectionkinds cimport IS_CODE, KIND, K_GLOBAL, K_INFO
from tables.attributes cimport record_size
from attributetypes cimport EIATTR_FRAME_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_REGCOUNT
from base.elf64 cimport (
    SHN_COMMON, SHN_UNDEF, STB_LOCAL, STB_WEAK, STO_CONSTANT, STO_ENTRY, STO_MANAGED, STO_SHARED,
    STO_SPACE, STT_FUNC, STT_NOTYPE, STV_INTERNAL, load32,
)
from tables.kinds cimport is_a
from base.nameindex cimport NameIndex, NameSlot, hash_name, index_find_hashed, prefetch
from tables.rows cimport (
    CLASH_COMMON, CLASH_GLOBAL, CLASH_MANAGED, CLASH_MULTIPLE, CLASH_SIZE, CLASH_SPACE, EF_ALIAS,
    EF_COMMON, EF_DEFINED, EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LOCAL, EF_NAMED, EF_TAKEN,
    EF_UNBOUNDED, EF_UNSIZED, EF_WEAK, E_CONST0_SIZE, E_CONSTANT, E_FUNC, E_GLOBAL, E_NULL, E_OTHER,
    E_RESERVED, E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, M_KEEP_CODE, M_RELOCATABLE, NO_STACK_BOUND,
    RESOLUTION_LOST, RESOLUTION_REPLACED, RESOLUTION_WON, SAYS_WHOLE, ClashRow, EntityRow, FileRow,
    SectionRow, SymbolRow, virtual_sm,
)
from traits cimport TRAIT_COMMON_YIELDS, TRAIT_NULL_FUNCTIONS
from base.vector cimport Vec, vec_push
from tables.views cimport ObjectsView


ctypedef struct Resolver:
    ObjectsView objects
    int32_t* entity         # by symbol row
    uint8_t* resolution           # by symbol row
    int32_t* met            # symbol rows in the order in which they get their entities
    size_t met_count
    bint replaced           # some definition was
    int32_t const0_size     # the entity of .nv.ptx.const0.size, or -1
    uint32_t* regcount      # by symbol row, from the file's .nv.info
    uint32_t* frame
    uint8_t* unbounded      # by symbol row: a whole program's, without a bound on its stack
    int32_t* prototype_of   # by entity: 1 + the number of its prototype string
    uint16_t* first_sm      # by entity: that of the file of its first definition
    uint32_t* tag           # by symbol row: hash of the name, if other files may have it
    Vec entities
    Vec calls
    Vec clashes
    Vec prototypes          # uint64 arena offset of each distinct prototype string
    NameIndex names
    NameIndex prototype_names


cdef inline void fetch_names(Resolver* r, const FileRow* file) noexcept nogil:
    """Hash the names that other files may have, and fetch where the index may have them.

    Each is at a place that only its hash knows: a cache miss that is waited for alone otherwise.
    """
    cdef const SymbolRow* s
    cdef uint32_t i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &r.objects.symbols[i]
        if (s.info >> 4) != STB_LOCAL:
            r.tag[i] = <uint32_t>hash_name(r.objects.arena + s.name, s.name_size)
            prefetch(&r.names.slots[r.tag[i] & r.names.mask])


cdef inline void read_function_facts(Resolver* r, const FileRow* file) noexcept nogil:
    """REGCOUNT and FRAME_SIZE of each function, from .nv.info, and recursion in whole programs.

    The call graph of these has calls of other files' functions alone.
    """
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint64_t at
    cdef uint32_t i, symbol
    cdef bint whole = file.says & SAYS_WHOLE != 0
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &r.objects.sections[i]
        data = r.objects.arena + s.offset
        if s.kind != K_INFO:
            continue
        at = 0
        while at < s.size:
            if data[at + 1] == EIATTR_REGCOUNT or data[at + 1] == EIATTR_FRAME_SIZE:
                symbol = file.first_symbol + load32(data + at + 4)
                if data[at + 1] == EIATTR_REGCOUNT:
                    r.regcount[symbol] = load32(data + at + 8)
                else:
                    r.frame[symbol] = load32(data + at + 8)
            elif whole and data[at + 1] == EIATTR_MIN_STACK_SIZE:
                symbol = file.first_symbol + load32(data + at + 4)
                r.unbounded[symbol] = load32(data + at + 8) == NO_STACK_BOUND
            at += record_size(data + at)


cdef inline bint is_unified(const uint8_t* name, uint32_t size) noexcept nogil:
    """__UFT, __UDT, and these with _OFFSET, _CANONICAL or _END."""
    if size < 5 or (memcmp(name, b"__UFT", 5) != 0 and memcmp(name, b"__UDT", 5) != 0):
        return False
    return (size == 5 or (size == 9 and memcmp(name + 5, b"_END", 4) == 0)
            or (size == 12 and memcmp(name + 5, b"_OFFSET", 7) == 0)
            or (size == 15 and memcmp(name + 5, b"_CANONICAL", 10) == 0))


cdef inline bint names_const0_size(Resolver* r, const SymbolRow* s) noexcept nogil:
    return s.name_size == 19 and memcmp(r.objects.arena + s.name, b".nv.ptx.const0.size", 19) == 0


cdef inline uint32_t kind_of(Resolver* r, const SymbolRow* s) noexcept nogil:
    cdef const uint8_t* name = r.objects.arena + s.name
    cdef uint8_t kind
    if (s.info & 15) == STT_FUNC:
        return E_FUNC
    if s.section >= 0:
        kind = KIND[r.objects.sections[s.section].kind].holds
        if kind != E_OTHER:
            return kind
    if s.name_size >= 17 and memcmp(name, b".nv.reservedSmem.", 17) == 0:
        return E_RESERVED
    if names_const0_size(r, s):
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


cdef inline bint is_label(const SymbolRow* s) noexcept nogil:
    """A name of debug data that the compiler left undefined: no other file can define it.

    It stands for the null symbol. (`$L__tmp` labels of .debug_loc, for code that is not there.)
    """
    return s.info == STB_LOCAL << 4 | STT_NOTYPE and s.shndx == SHN_UNDEF


cdef inline bint is_system_alias(Resolver* r, const SymbolRow* s) noexcept nogil:
    """A whole program's name for where the system's shared memory begins: a link drops it."""
    return (s.section >= 0 and (s.info & 15) == STT_NOTYPE
            and KIND[r.objects.sections[s.section].kind].holds == E_SYSTEM_SHARED)


cdef inline bint clash(Resolver* r, uint32_t kind, int32_t symbol, int32_t first) noexcept nogil:
    cdef ClashRow* row = <ClashRow*>vec_push(&r.clashes)
    if row == NULL:
        return False
    row.kind = kind
    row.symbol = symbol
    row.first = first
    return True


cdef inline bint is_better(Resolver* r, int32_t at, const EntityRow* e) noexcept nogil:
    """Whether a weak function copy replaces the current one.

    The one that needs fewer registers is the better citizen; among equals one that was compiled
    for a newer virtual architecture than the first of all copies (not than the current one).
    """
    if r.regcount[at] != e.regcount:
        return r.regcount[at] < e.regcount
    return (virtual_sm(&r.objects.files[r.objects.symbols[at].file])
            > r.first_sm[e - <const EntityRow*>r.entities.data])


cdef inline bint is_inner(const Resolver* r, int32_t at) noexcept nogil:
    """Whether a function lies in the code of another one, which the section is named after."""
    cdef int32_t section = r.objects.symbols[at].section
    return (section >= 0 and is_a(r.objects.sections[section].kind, IS_CODE)
            and r.objects.sections[section].target != at)


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


cdef inline bint again(Resolver* r, int32_t at, EntityRow* e, bint defined) noexcept nogil:
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
            return again(r, at, <EntityRow*>r.entities.data + slot.value, defined)
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
