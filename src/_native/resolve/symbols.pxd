# The state of symbol resolution, and what symbols are.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_FRAME_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_REGCOUNT
from base.elf64 cimport load32
from base.nameindex cimport NameIndex, hash_name
from base.prefetch cimport AHEAD, prefetch
from base.texts cimport has_prefix, is_named
from base.vector cimport Vec, vec_push
from elfnumbers cimport (
    SHN_UNDEF, STB_LOCAL, STO_CONSTANT, STO_SHARED, STO_SPACE, STT_FUNC, STT_NOTYPE,
)
from rownumbers cimport (
    E_CONST0_SIZE, E_CONSTANT, E_FUNC, E_GLOBAL, E_OTHER, E_RESERVED, E_SHARED, E_SYSTEM_SHARED,
    E_UNIFIED, FILE_WHOLE_PROGRAM, NO_STACK_BOUND,
)
from sectionkinds cimport IS_CODE, KIND, K_INFO
from tables.attributes cimport record_size
from tables.kinds cimport is_a
from tables.rows cimport (
    ClashRow, EntityNumber, FileRow, SectionNumber, SectionRef, SectionRow, SymbolNumber, SymbolRef,
    SymbolRow, function_symbol,
)
from tables.views cimport ObjectsView


# The state of symbol resolution: the inputs, the tables that it makes, and facts about symbols. An
# entity is one distinct symbol of the link (resolve/entities.pxd).
ctypedef struct Resolver:
    ObjectsView objects
    EntityNumber* entity_of     # by input symbol: its entity, or -1
    uint8_t* resolution_of      # by input symbol: Resolution of the definition in it
    SymbolNumber* met           # symbols in the order in which they get their entities
    size_t met_count
    bint has_replaced           # some definition was replaced
    EntityNumber const0_size    # the entity of .nv.ptx.const0.size, or -1
    uint32_t* regcount          # by input symbol, of a function: its registers, from .nv.info
    uint32_t* frame             # by input symbol, of a function: bytes of its stack frame
    uint8_t* unbounded          # by input symbol, of a whole program: its stack has no bound
    int32_t* prototype_of       # by entity: 1 + the number of its prototype string, or 0
    uint16_t* first_sm          # by entity: SM number of the PTX of the file that first defines it
    uint32_t* hash_of           # by input symbol: low half of its name's hash, 0 if it is local
    Vec entities                # EntityRow
    Vec calls                   # CallRow
    Vec clashes                 # ClashRow
    Vec prototypes              # uint64_t: arena offset of each distinct prototype string
    NameIndex names             # entity of each global name
    NameIndex prototype_names   # number of each prototype string


cdef inline void hash_names(Resolver* resolver, const FileRow* file) noexcept nogil:
    """Set the hashes of a file's names that are not local, since other files may have them."""
    cdef const SymbolRow* symbol
    cdef SymbolRef i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        symbol = &resolver.objects.symbols[i]
        if i + AHEAD < file.first_symbol + file.symbol_count:
            prefetch(resolver.objects.arena + symbol[AHEAD].name)
        if (symbol.info >> 4) != STB_LOCAL:
            resolver.hash_of[i] = <uint32_t>hash_name(resolver.objects.arena + symbol.name,
                                                      symbol.name_size)


cdef inline void fetch_names(const Resolver* resolver, const FileRow* file) noexcept nogil:
    """Fetch the slots of a file's names in the index `names` into the cache.

    A slot follows from the name's hash, so most are cache misses. Together these take less time
    than one after the other.
    """
    cdef SymbolRef i
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        if resolver.hash_of[i]:
            prefetch(&resolver.names.slots[resolver.hash_of[i] & resolver.names.mask])


cdef inline void read_function_facts(Resolver* resolver, const FileRow* file) noexcept nogil:
    """Read registers and stack frames of a file's functions from .nv.info.

    In whole programs, also read which functions have no bound on their stack: recursion that their
    call graph does not show, since it only has calls of other files' functions.
    """
    cdef const SectionRow* section
    cdef const uint8_t* data
    cdef uint64_t offset
    cdef SectionRef i
    cdef SymbolRef symbol
    cdef bint is_whole_program = file.flags & FILE_WHOLE_PROGRAM != 0
    for i in range(file.first_section, file.first_section + file.section_count):
        section = &resolver.objects.sections[i]
        data = resolver.objects.arena + section.offset
        if section.kind != K_INFO:
            continue
        offset = 0
        while offset < section.size:
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
    UNIFIED_PREFIX = 5      # bytes of "__UFT", and of "__UDT"


cdef inline bint is_unified(const uint8_t* name, uint32_t size) noexcept nogil:
    """Return whether a name is __UFT or __UDT, alone or before _OFFSET, _CANONICAL or _END."""
    if not has_prefix(name, size, b"__UFT") and not has_prefix(name, size, b"__UDT"):
        return False
    name += UNIFIED_PREFIX
    size -= UNIFIED_PREFIX
    return (size == 0 or is_named(name, size, b"_END") or is_named(name, size, b"_OFFSET")
            or is_named(name, size, b"_CANONICAL"))


cdef inline bint is_const0_size(Resolver* resolver, const SymbolRow* symbol) noexcept nogil:
    """Return whether a symbol is .nv.ptx.const0.size, whose value the link computes."""
    return is_named(resolver.objects.arena + symbol.name, symbol.name_size, b".nv.ptx.const0.size")


cdef inline uint32_t kind_of(Resolver* resolver, const SymbolRow* symbol) noexcept nogil:
    """Return the EntityKind of a symbol."""
    cdef const uint8_t* name = resolver.objects.arena + symbol.name
    cdef uint8_t kind
    if (symbol.info & 15) == STT_FUNC:
        return E_FUNC
    if symbol.section >= 0:
        kind = KIND[resolver.objects.sections[symbol.section].kind].entity_kind
        if kind != E_OTHER:
            return kind
    if has_prefix(name, symbol.name_size, b".nv.reservedSmem."):
        return E_RESERVED
    if is_const0_size(resolver, symbol):
        return E_CONST0_SIZE
    if symbol.section < 0 and symbol.shndx == SHN_UNDEF and is_unified(name, symbol.name_size):
        return E_UNIFIED
    if (symbol.other & STO_SPACE) == STO_SHARED:
        return E_SHARED
    if (symbol.other & STO_SPACE) == STO_CONSTANT:
        return E_CONSTANT
    if symbol.name_size == 0:
        return E_OTHER
    return E_GLOBAL


cdef inline bint is_label(const SymbolRow* symbol) noexcept nogil:
    """Return whether a symbol is an undefined label of debug data, which no other file can define.

    It stands for the null symbol. Compilers leave such labels, `$L__tmp...` of .debug_loc, where
    they removed the code.
    """
    return symbol.info == STB_LOCAL << 4 | STT_NOTYPE and symbol.shndx == SHN_UNDEF


cdef inline bint is_system_alias(Resolver* resolver, const SymbolRow* symbol) noexcept nogil:
    """Return whether a symbol is a whole program's name for the system's shared memory.

    It names the beginning of that memory. A link drops it.
    """
    return (symbol.section >= 0 and (symbol.info & 15) == STT_NOTYPE
            and KIND[resolver.objects.sections[symbol.section].kind].entity_kind == E_SYSTEM_SHARED)


cdef inline bint add_clash(Resolver* resolver, uint32_t kind, SymbolNumber symbol,
                           SymbolNumber first) noexcept nogil:
    """Add a row: `symbol` contradicts an earlier one, `first`, as the Clash `kind` says.

    For CLASH_COMMON and CLASH_FUNCTION_AS_VARIABLE, both are one symbol. False without memory.
    """
    cdef ClashRow* row = <ClashRow*>vec_push(&resolver.clashes)
    if row == NULL:
        return False
    row.kind = kind
    row.symbol = symbol
    row.first = first
    return True


cdef inline bint is_inner(const Resolver* resolver, SymbolNumber symbol) noexcept nogil:
    """Return whether a function lies inside of another one, F: its code is in `.text.F`."""
    cdef SectionNumber section = resolver.objects.symbols[symbol].section
    return (section >= 0 and is_a(resolver.objects.sections[section].kind, IS_CODE)
            and function_symbol(&resolver.objects.sections[section]) != symbol)
