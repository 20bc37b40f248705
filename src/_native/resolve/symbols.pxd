# The entities of a link, and the definition that wins for each.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted, and only
# then.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_FRAME_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_REGCOUNT
from base.elf64 cimport (
    SHN_UNDEF, STB_LOCAL, STO_CONSTANT, STO_SHARED, STO_SPACE, STT_FUNC, STT_NOTYPE, load32,
)
from base.nameindex cimport NameIndex, hash_name, prefetch
from base.texts cimport has_prefix, is_named
from base.vector cimport Vec, vec_push
from rownumbers cimport (
    E_CONST0_SIZE, E_CONSTANT, E_FUNC, E_GLOBAL, E_OTHER, E_RESERVED, E_SHARED, E_SYSTEM_SHARED,
    E_UNIFIED, FILE_WHOLE_PROGRAM, NO_STACK_BOUND,
)
from sectionkinds cimport IS_CODE, KIND, K_INFO
from tables.attributes cimport record_size
from tables.kinds cimport is_a
from tables.rows cimport ClashRow, FileRow, SectionRow, SymbolRow
from tables.views cimport ObjectsView


ctypedef struct Resolver:
    ObjectsView objects
    int32_t* entity         # by symbol row
    uint8_t* resolution     # by symbol row
    int32_t* met            # symbol rows in the order in which they get their entities
    size_t met_count
    bint replaced           # some definition was replaced
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
    Vec prototypes          # uint64_t: arena offset of each distinct prototype string
    NameIndex names
    NameIndex prototype_names


cdef inline void hash_names(Resolver* resolver, const FileRow* file) noexcept nogil:
    """Hash the names that other files may have."""
    cdef const SymbolRow* s
    cdef uint32_t i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &resolver.objects.symbols[i]
        if (s.info >> 4) != STB_LOCAL:
            resolver.tag[i] = <uint32_t>hash_name(resolver.objects.arena + s.name, s.name_size)


cdef inline void fetch_names(const Resolver* resolver, const FileRow* file) noexcept nogil:
    """Fetch where the index may have the names of a file.

    Each is at a place that only its hash knows: a cache miss that is waited for alone otherwise.
    """
    cdef uint32_t i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        if resolver.tag[i]:
            prefetch(&resolver.names.slots[resolver.tag[i] & resolver.names.mask])


cdef inline void read_function_facts(Resolver* resolver, const FileRow* file) noexcept nogil:
    """REGCOUNT and FRAME_SIZE of each function, from .nv.info, and recursion in whole programs.

    The call graph of these has calls of other files' functions alone.
    """
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint64_t offset
    cdef uint32_t i, symbol
    cdef bint is_whole_program = file.flags & FILE_WHOLE_PROGRAM != 0
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &resolver.objects.sections[i]
        data = resolver.objects.arena + s.offset
        if s.kind != K_INFO:
            continue
        offset = 0
        while offset < s.size:
            if data[offset + 1] == EIATTR_REGCOUNT or data[offset + 1] == EIATTR_FRAME_SIZE:
                symbol = file.first_symbol + load32(data + offset + 4)
                if data[offset + 1] == EIATTR_REGCOUNT:
                    resolver.regcount[symbol] = load32(data + offset + 8)
                else:
                    resolver.frame[symbol] = load32(data + offset + 8)
            elif is_whole_program and data[offset + 1] == EIATTR_MIN_STACK_SIZE:
                symbol = file.first_symbol + load32(data + offset + 4)
                resolver.unbounded[symbol] = load32(data + offset + 8) == NO_STACK_BOUND
            offset += record_size(data + offset)


cdef enum:
    UNIFIED_PREFIX = 5      # bytes of "__UFT" and "__UDT"


cdef inline bint is_unified(const uint8_t* name, uint32_t size) noexcept nogil:
    """__UFT, __UDT, and these with _OFFSET, _CANONICAL or _END."""
    if not has_prefix(name, size, b"__UFT") and not has_prefix(name, size, b"__UDT"):
        return False
    name += UNIFIED_PREFIX
    size -= UNIFIED_PREFIX
    return (size == 0 or is_named(name, size, b"_END") or is_named(name, size, b"_OFFSET")
            or is_named(name, size, b"_CANONICAL"))


cdef inline bint is_const0_size(Resolver* resolver, const SymbolRow* s) noexcept nogil:
    return is_named(resolver.objects.arena + s.name, s.name_size, b".nv.ptx.const0.size")


cdef inline uint32_t kind_of(Resolver* resolver, const SymbolRow* s) noexcept nogil:
    """The EntityKind of a symbol."""
    cdef const uint8_t* name = resolver.objects.arena + s.name
    cdef uint8_t kind
    if (s.info & 15) == STT_FUNC:
        return E_FUNC
    if s.section >= 0:
        kind = KIND[resolver.objects.sections[s.section].kind].holds
        if kind != E_OTHER:
            return kind
    if has_prefix(name, s.name_size, b".nv.reservedSmem."):
        return E_RESERVED
    if is_const0_size(resolver, s):
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


cdef inline bint is_system_alias(Resolver* resolver, const SymbolRow* s) noexcept nogil:
    """A whole program's name for where the system's shared memory begins: a link drops it."""
    return (s.section >= 0 and (s.info & 15) == STT_NOTYPE
            and KIND[resolver.objects.sections[s.section].kind].holds == E_SYSTEM_SHARED)


cdef inline bint add_clash(Resolver* resolver, uint32_t kind, int32_t symbol,
                           int32_t first) noexcept nogil:
    """Add a clash of two symbols; False without memory."""
    cdef ClashRow* row = <ClashRow*>vec_push(&resolver.clashes)
    if row == NULL:
        return False
    row.kind = kind
    row.symbol = symbol
    row.first = first
    return True


cdef inline bint is_inner(const Resolver* resolver, int32_t symbol) noexcept nogil:
    """Whether a function lies in the code of another one, which the section is named after."""
    cdef int32_t section = resolver.objects.symbols[symbol].section
    return (section >= 0 and is_a(resolver.objects.sections[section].kind, IS_CODE)
            and resolver.objects.sections[section].target != symbol)
