"""Merging: which sections and symbols the output has, and what becomes of each relocation.

The output behaves as if its sections and symbols were born one after the other while the inputs
are read in command-line order; string tables, symbol order and section order all follow from
these births (docs/format-notes.md). Per input:

1. functions in symbol order, each with its .text section, kernels also .nv.info and .nv.shared;
2. the other symbols, each after the section that holds it;
3. the sections not yet born, in three passes: all others, .nv.info.F, relocations.

Afterwards no section or symbol appears.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset, strlen

from elf64 cimport *
from names cimport *
from rows cimport *
from vec cimport *


ctypedef struct Merge:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    EntityRow* entities
    const int32_t* entity       # by symbol
    const uint8_t* role         # by symbol
    size_t file_count
    size_t section_count
    size_t symbol_count
    size_t entity_count
    uint32_t family
    uint32_t mode
    Vec outs
    Vec out_symbols
    Vec keeps
    Vec fixes
    Vec rebuilds
    StringTable shstr
    StringTable str
    NameIndex by_name           # file-scope sections
    NameIndex merc_names
    Pool pool
    int32_t* out_of             # by input section
    uint64_t* base              # by input section
    const int32_t* stand_in     # by input section: the one that stands for it, or NULL
    uint8_t* wanted             # by input section: 1 it has symbols, 2 one of them counts
    int32_t* born               # by entity: out symbol, or -1
    int32_t* sections_of        # by entity: newest OutRow, or -1
    uint8_t* referenced         # by entity: some code, dead code too, refers to it
    uint8_t* uses_array         # by entity: -r, a kernel whose own code uses extern arrays
    int32_t callgraph
    int32_t prototype
    int32_t rel_action
    uint32_t births             # sections born, those of which only a name stays too
    bint has_commons
    bint failed                 # memory is exhausted


def merge(bytes arena, bytes files, bytes sections, bytes symbols, bytes entities,
          bytes symbol_entity, bytes symbol_role, bytes prototypes, bytes pools,
          bytes stand_ins, int family, int mode):
    """Give birth to every section and symbol of the output and sort the relocations.

    Tables as `elfread.parse` and `resolve` return them. `pools` is a table of int32 entities:
    kernels whose literal-pool section is created by the pools of the device functions they call.
    `stand_ins` is an int32 per input section: the folded Mercury section's reference, or -1; it may
    be empty.
    Returns a tuple: OutRow, OutSymbolRow, KeepRow, FixRow and RebuildRow tables; per input
    section int32 OutRow and uint64 offset of its piece; .shstrtab and .strtab so far; the uint32
    .strtab offset of each prototype string; a byte per entity that any code refers to; a byte per
    kernel entity whose own code names extern arrays through an instance (-r).
    """
    cdef Merge m
    memset(&m, 0, sizeof(Merge))
    m.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    m.files = <const FileRow*>PyBytes_AS_STRING(files)
    m.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    m.symbols = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    m.entities = <EntityRow*>PyBytes_AS_STRING(entities)
    m.entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    m.role = <const uint8_t*>PyBytes_AS_STRING(symbol_role)
    m.file_count = PyBytes_GET_SIZE(files) // sizeof(FileRow)
    m.section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    m.symbol_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
    m.entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    m.family = family
    m.mode = mode
    vec_init(&m.outs, sizeof(OutRow))
    vec_init(&m.out_symbols, sizeof(OutSymbolRow))
    vec_init(&m.keeps, sizeof(KeepRow))
    vec_init(&m.fixes, sizeof(FixRow))
    vec_init(&m.rebuilds, sizeof(RebuildRow))
    if (<size_t>PyBytes_GET_SIZE(symbol_entity) != 4 * m.symbol_count
            or <size_t>PyBytes_GET_SIZE(symbol_role) != m.symbol_count):
        raise ValueError("one entity and one role per symbol")
    if stand_ins:
        if <size_t>PyBytes_GET_SIZE(stand_ins) != 4 * m.section_count:
            raise ValueError("one stand-in per section")
        m.stand_in = <const int32_t*>PyBytes_AS_STRING(stand_ins)
    cdef bytes out_of = PyBytes_FromStringAndSize(NULL, 4 * m.section_count)
    cdef bytes base = PyBytes_FromStringAndSize(NULL, 8 * m.section_count)
    cdef bytes referenced = PyBytes_FromStringAndSize(NULL, m.entity_count)
    cdef const int32_t* pool_births = <const int32_t*>PyBytes_AS_STRING(pools)
    cdef size_t pool_count = PyBytes_GET_SIZE(pools) // 4, i
    for i in range(pool_count):
        if pool_births[i] < 0 or <size_t>pool_births[i] >= m.entity_count:
            raise IndexError(f"pool {i} names an unknown entity")
    m.out_of = <int32_t*>PyBytes_AS_STRING(out_of)
    m.base = <uint64_t*>PyBytes_AS_STRING(base)
    memset(m.out_of, 0xff, 4 * m.section_count)
    memset(m.base, 0, 8 * m.section_count)
    m.referenced = <uint8_t*>PyBytes_AS_STRING(referenced)
    memset(m.referenced, 0, m.entity_count)
    cdef bytes uses_array = PyBytes_FromStringAndSize(NULL, m.entity_count)
    m.uses_array = <uint8_t*>PyBytes_AS_STRING(uses_array)
    memset(m.uses_array, 0, m.entity_count)
    m.wanted = <uint8_t*>calloc(m.section_count + 1, 1)
    m.born = <int32_t*>calloc(m.entity_count + 1, 4)
    m.sections_of = <int32_t*>calloc(m.entity_count + 1, 4)
    cdef bint ok = (m.wanted != NULL and m.born != NULL and m.sections_of != NULL
                    and strings_init(&m.shstr) and strings_init(&m.str)
                    and index_init(&m.by_name, 64) and index_init(&m.merc_names, 64))
    if ok:
        with nogil:
            memset(m.born, 0xff, 4 * m.entity_count)
            memset(m.sections_of, 0xff, 4 * m.entity_count)
            merge_all(&m, pool_births, pool_count)
        ok = not m.failed
    shstr = strs = b""
    cdef size_t prototype_count = PyBytes_GET_SIZE(prototypes) // 8
    cdef bytes prototype_offsets = PyBytes_FromStringAndSize(NULL, 4 * prototype_count)
    if ok:
        prototype_names(&m, <const uint64_t*>PyBytes_AS_STRING(prototypes), prototype_count,
                        <uint32_t*>PyBytes_AS_STRING(prototype_offsets))
        shstr = PyBytes_FromStringAndSize(<char*>m.shstr.data, m.shstr.size)
        strs = PyBytes_FromStringAndSize(<char*>m.str.data, m.str.size)
    strings_free(&m.shstr)
    strings_free(&m.str)
    index_free(&m.by_name)
    index_free(&m.merc_names)
    pool_free(&m.pool)
    free(m.wanted)
    free(m.born)
    free(m.sections_of)
    tables = (vec_take(&m.outs), vec_take(&m.out_symbols), vec_take(&m.keeps),
              vec_take(&m.fixes), vec_take(&m.rebuilds), out_of, base, shstr, strs,
              prototype_offsets, referenced, uses_array)
    if not ok:
        raise MemoryError
    return tables


cdef void merge_all(Merge* m, const int32_t* pools, size_t pool_count) noexcept nogil:
    cdef size_t f, i
    cdef int32_t out
    for f in range(m.file_count):
        prototype_strings(m, &m.files[f])
        find_referenced(m, &m.files[f])
    start(m)
    for f in range(m.file_count):
        functions(m, &m.files[f])
        objects(m, &m.files[f])
        rest(m, &m.files[f])
        info_sections(m, &m.files[f])
        relocations(m, &m.files[f])
        if m.failed:
            return
    for i in range(m.entity_count):
        m.has_commons = m.has_commons or m.entities[i].flags & EF_COMMON != 0
    if m.has_commons:
        # Common symbols get room in .nv.global; no input's section need exist.
        file_section(m, b".nv.global", 10, K_GLOBAL, 0, SHT_CUDA_GLOBAL, 3, -1)
    m.callgraph = simple(m, b".nv.callgraph", 13, K_CALLGRAPH, SHT_CUDA_CALLGRAPH, 0, 4, 8)
    m.prototype = simple(m, b".nv.prototype", 13, K_PROTOTYPE, SHT_CUDA_PROTOTYPE, 0, 4, 8)
    instances(m)
    for i in range(pool_count):
        born_pool(m, pools[i])
    if m.family != FAMILY_C and not m.mode & M_RELOCATABLE:
        m.rel_action = simple(m, b".nv.rel.action", 14, K_REL_ACTION, SHT_CUDA_RELOCINFO, 0, 8, 8)
    if m.births + 1 >= SHN_LORESERVE:
        wide_indices(m, False)
    global_names(m)
    if m.family == FAMILY_C:
        final_names(m)
        if m.births + 1 < SHN_LORESERVE and mercury_count(m) >= SHN_LORESERVE:
            wide_indices(m, True)
        late_constants(m)
    if not m.failed:
        find_text(m)
        if m.family == FAMILY_C:
            mercury_twins(m)


cdef enum:
    SYSTEM_RESERVE = 0x40       # bytes before the variables of .nv.shared.reserved.0


# --- births ---------------------------------------------------------------------------------

cdef OutRow* out_row(Merge* m, int32_t at) noexcept nogil:
    return <OutRow*>m.outs.data + at


cdef int32_t new_out(Merge* m, uint16_t kind, uint32_t type, uint64_t flags, uint32_t align,
                     uint32_t entsize) noexcept nogil:
    """A nameless section row; -1 without memory."""
    cdef OutRow* row = <OutRow*>vec_push(&m.outs)
    if row == NULL:
        m.failed = True
        return -1
    memset(row, 0, sizeof(OutRow))
    row.kind = kind
    row.type = type
    row.flags = flags
    row.align = align
    row.entsize = entsize
    row.entity = row.target = row.rel = row.rela = row.merc = row.twin = -1
    row.next = row.head = row.source = row.text = -1
    if not flags & SHF_MERCURY:
        m.births += 1
        row.birth = m.births
    return <int32_t>(m.outs.count - 1)


cdef void name_out(Merge* m, int32_t out, const uint8_t* text, uint32_t size) noexcept nogil:
    cdef int64_t a = strings_intern(&m.shstr, text, size)
    cdef int64_t b = strings_intern(&m.str, text, size)
    if a < 0 or b < 0:
        m.failed = True
        return
    out_row(m, out).name = <uint32_t>a
    out_row(m, out).symbol_name = <uint32_t>b


cdef int32_t new_symbol(Merge* m, int32_t entity, int32_t section, uint32_t part,
                        uint32_t name) noexcept nogil:
    cdef OutSymbolRow* row = <OutSymbolRow*>vec_push(&m.out_symbols)
    if row == NULL:
        m.failed = True
        return -1
    row.name = name
    row.entity = entity
    row.section = section
    row.instance = -1
    row.part = part
    row.dropped = False
    return <int32_t>(m.out_symbols.count - 1)


cdef void section_symbol(Merge* m, int32_t out) noexcept nogil:
    new_symbol(m, -1, out, PART_LOCAL, out_row(m, out).symbol_name)


cdef int32_t simple(Merge* m, const char* name, uint32_t size, uint16_t kind, uint32_t type,
                    uint64_t flags, uint32_t align, uint32_t entsize) noexcept nogil:
    """A section that the linker itself makes, with its section symbol."""
    cdef int32_t out = new_out(m, kind, type, flags, align, entsize)
    if out >= 0:
        name_out(m, out, <const uint8_t*>name, size)
        if kind != K_INFO and kind != K_COMPAT:
            section_symbol(m, out)
    return out


cdef void start(Merge* m) noexcept nogil:
    cdef const char* names[4]
    cdef uint32_t i
    cdef uint32_t sizes[4]
    names[0] = b".shstrtab"
    names[1] = b".strtab"
    names[2] = b".symtab"
    names[3] = b".symtab_shndx"
    sizes[0] = 9
    sizes[1] = 7
    sizes[2] = 7
    sizes[3] = 13
    for i in range(4):
        if i < 3:
            name_out(m, new_out(m, <uint16_t>(K_SHSTRTAB + i),
                                SHT_SYMTAB if i == 2 else SHT_STRTAB, 0, 8 if i == 2 else 1,
                                24 if i == 2 else 0),
                     <const uint8_t*>names[i], sizes[i])
        elif (strings_intern(&m.shstr, <const uint8_t*>names[i], sizes[i]) < 0
              or strings_intern(&m.str, <const uint8_t*>names[i], sizes[i]) < 0):
            m.failed = True
    m.births += 1               # .symtab_shndx
    simple(m, b".note.nv.tkinfo", 15, K_TKINFO, 7, 0x2000000, 4, 0)
    simple(m, b".note.nv.cuinfo", 15, K_CUINFO, 7,
           0x1000000 if m.family == FAMILY_A else 0x1000040, 4, 0)
    simple(m, b".nv.info", 8, K_INFO, SHT_CUDA_INFO, 0, 4, 0)
    if m.family != FAMILY_A:
        simple(m, b".nv.compat", 10, K_COMPAT, SHT_CUDA_COMPAT, 0, 4, 0)
    if not m.mode & M_RELOCATABLE:
        m.births += 1           # without name or trace


cdef int32_t function_section(Merge* m, int32_t entity, uint16_t kind,
                              uint16_t bank) noexcept nogil:
    """The section of that kind that the function already has, or -1."""
    cdef int32_t at = m.sections_of[entity]
    while at >= 0:
        if out_row(m, at).kind == kind and out_row(m, at).bank == bank:
            return at
        at = out_row(m, at).next
    return -1


cdef int32_t unnamed_function_section(Merge* m, int32_t entity, const SectionRow* source,
                                      uint16_t kind, uint32_t type, uint64_t flags,
                                      uint32_t align) noexcept nogil:
    cdef int32_t out = new_out(m, kind, type, flags, align, 0)
    cdef OutRow* row
    if out < 0:
        return -1
    row = out_row(m, out)
    row.entity = entity
    row.next = m.sections_of[entity]
    m.sections_of[entity] = out
    if source != NULL:
        row.source = <int32_t>(source - m.sections)
        row.bank = source.bank
    return out


cdef int32_t new_function_section(Merge* m, int32_t entity, const SectionRow* source,
                                  uint16_t kind, uint32_t type, uint64_t flags, uint32_t align,
                                  const uint8_t* name, uint32_t size) noexcept nogil:
    cdef int32_t out = unnamed_function_section(m, entity, source, kind, type, flags, align)
    if out >= 0:
        name_out(m, out, name, size)
    return out


cdef const uint8_t* entity_name(Merge* m, int32_t entity, uint32_t* size) noexcept nogil:
    cdef const SymbolRow* s = &m.symbols[m.entities[entity].first]
    size[0] = s.name_size
    return m.arena + s.name


cdef int32_t joined_section(Merge* m, int32_t entity, const char* prefix, uint32_t prefix_size,
                            uint16_t kind, uint32_t type, uint64_t flags,
                            uint32_t align) noexcept nogil:
    """A per-function section named by the linker: `prefix` and the function's name."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, entity, &size)
    cdef uint8_t* text = pool_join(&m.pool, prefix, prefix_size, name, size)
    if text == NULL:
        m.failed = True
        return -1
    return new_function_section(m, entity, NULL, kind, type, flags, align, text,
                                prefix_size + size)


# --- prototype strings, symbols ---------------------------------------------------------------

cdef void prototype_strings(Merge* m, const FileRow* file) noexcept nogil:
    """They open .strtab: blocks -2 and -3 of .nv.callgraph, then .nv.prototype, dead or not."""
    cdef uint32_t i, pass_
    cdef const SectionRow* s
    cdef const uint32_t* pair
    cdef const uint8_t* text
    cdef uint64_t j
    cdef uint32_t size
    cdef int32_t block
    for pass_ in range(2):
        for i in range(file.first_section, file.first_section + file.section_count):
            s = &m.sections[i]
            if s.kind != (K_PROTOTYPE if pass_ else K_CALLGRAPH):
                continue
            pair = <const uint32_t*>(m.arena + s.offset)
            block = 0
            for j in range(s.size // 8):
                if not pass_ and pair[2 * j] == 0:
                    block = <int32_t>pair[2 * j + 1]
                elif pass_ or block == -2 or block == -3:
                    text = m.arena + file.strtab + pair[2 * j + 1]
                    size = 0
                    while text[size]:
                        size += 1
                    if strings_intern(&m.str, text, size) < 0:
                        m.failed = True


cdef void prototype_names(Merge* m, const uint64_t* prototypes, size_t count,
                          uint32_t* offsets) noexcept nogil:
    cdef size_t i
    cdef uint32_t size
    for i in range(count):
        size = 0
        while m.arena[prototypes[i] + size]:
            size += 1
        offsets[i] = strings_find(&m.str, m.arena + prototypes[i], size).at if size else 0


cdef bint stays(Merge* m, int32_t entity) noexcept nogil:
    """Whether the output's symbol table has the entity, by kind and state space."""
    cdef const EntityRow* e = &m.entities[entity]
    cdef const SymbolRow* s = &m.symbols[e.winner]
    if e.kind == E_FUNC:
        return e.flags & EF_LIVE != 0
    if e.kind == E_SHARED:
        return stays_shared(m, entity)
    if m.mode & (M_RELOCATABLE | M_KEEP_RELOCS):
        if e.kind == E_CONST0_SIZE or (e.kind == E_UNIFIED and not m.mode & M_RELOCATABLE):
            return False
        return s.name_size != 0 and not is_pooled(m, e)
    if e.kind == E_UNIFIED or e.kind == E_CONST0_SIZE or s.name_size == 0:
        return False
    return not e.flags & EF_INTERNAL


cdef bint is_pooled(Merge* m, const EntityRow* e) noexcept nogil:
    """A constant of a device function, whose section goes to the pools of kernels."""
    cdef int32_t section = m.symbols[e.winner].section, function
    if section < 0 or m.sections[section].kind != K_CONSTANT_FUNC or m.mode & M_RELOCATABLE:
        return False
    function = function_of(m, section)
    return function >= 0 and not m.entities[function].flags & EF_KERNEL


cdef bint stays_shared(Merge* m, int32_t entity) noexcept nogil:
    """Shared variables have symbols with -r, -g and --preserve-relocs only."""
    cdef const EntityRow* e = &m.entities[entity]
    cdef const SymbolRow* s = &m.symbols[e.winner]
    if m.mode & M_RELOCATABLE:
        return s.name_size != 0
    # An instance of an array is nothing to name.
    if not m.mode & (M_DEBUG | M_KEEP_RELOCS) or (
            not e.flags & EF_DEFINED and e.flags & EF_WEAK):
        return False
    if e.flags & EF_UNSIZED:
        return m.mode & M_DEBUG != 0
    # A common variable that no code refers to has no place to name.
    return (m.referenced[entity] or s.section < 0
            or m.sections[s.section].kind == K_SHARED)


cdef void functions(Merge* m, const FileRow* file) noexcept nogil:
    cdef uint32_t i
    cdef int32_t e, out
    cdef const SymbolRow* s
    cdef const SectionRow* text
    cdef bint defined
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &m.symbols[i]
        e = m.entity[i]
        if (s.info & 15) != STT_FUNC or e < 0 or not m.entities[e].flags & EF_LIVE:
            continue
        defined = m.role[i] == ROLE_WON or m.role[i] == ROLE_REPLACED
        if m.born[e] < 0:
            enter_symbol(m, e, (s.info >> 4) == STB_LOCAL or (defined and (s.info >> 4) == STB_WEAK))
        if not defined or m.sections[s.section].kind != K_TEXT:
            continue
        if function_section(m, e, K_TEXT, 0) >= 0:
            continue
        text = &m.sections[s.section]
        out = new_function_section(m, e, text, K_TEXT, SHT_PROGBITS, 6, 128, m.arena + text.name,
                                   text.name_size)
        if out < 0:
            return
        section_symbol(m, out)
        if m.entities[e].flags & EF_KERNEL:
            joined_section(m, e, b".nv.info.", 9, K_INFO_FUNC, SHT_CUDA_INFO, 0x40, 4)
            out = joined_section(m, e, b".nv.shared.", 11, K_SHARED, SHT_CUDA_SHARED, 0x43, 1)
            if out >= 0:
                section_symbol(m, out)


cdef void enter_symbol(Merge* m, int32_t e, bint early) noexcept nogil:
    """Birth of an entity's symbol. Local and weak ones are named at once, globals at the end."""
    cdef uint32_t size
    cdef const uint8_t* text
    cdef int64_t name = 0
    if early:
        text = entity_name(m, e, &size)
        name = strings_intern(&m.str, text, size)
        if name < 0:
            m.failed = True
            return
    m.born[e] = new_symbol(m, e, -1, PART_LOCAL if early else PART_GLOBAL, <uint32_t>name)


cdef void optimizer_symbol(Merge* m, int32_t e, int32_t function, uint32_t number) noexcept nogil:
    """Family C renames constants of a function that stay: the section's first name, a number."""
    cdef uint32_t size, digits = 1, i, rest = number
    cdef const uint8_t* name = entity_name(m, function, &size)
    cdef uint8_t* text
    cdef int64_t at
    while rest >= 10:
        rest //= 10
        digits += 1
    text = pool_take(&m.pool, 24 + size + digits)
    if text == NULL:
        m.failed = True
        return
    memcpy(text, <const char*>b".nv.constant.optimizer.", 23)
    memcpy(text + 23, name, size)
    text[23 + size] = 46
    for i in range(digits):
        text[23 + size + digits - i] = <uint8_t>(48 + number % 10)
        number //= 10
    at = strings_intern(&m.str, text, 24 + size + digits)
    if at < 0:
        m.failed = True
        return
    m.born[e] = new_symbol(m, e, -1, PART_LOCAL, <uint32_t>at)


cdef void objects(Merge* m, const FileRow* file) noexcept nogil:
    cdef uint32_t i, number = 0
    cdef int32_t e, last = -1
    cdef const SymbolRow* s
    cdef EntityRow* row
    for i in range(file.first_symbol + 1, file.first_symbol + file.symbol_count):
        s = &m.symbols[i]
        e = m.entity[i]
        if (s.info & 15) == STT_FUNC or e < 0:
            continue
        row = &m.entities[e]
        if s.section >= 0:
            m.wanted[s.section] |= 1 if m.role[i] == ROLE_LOST else 3
            if m.role[i] != ROLE_LOST or m.sections[s.section].kind not in (K_GLOBAL,
                                                                            K_SYSTEM_SHARED):
                section_of_object(m, s.section)
            if (m.family == FAMILY_C and m.mode & (M_RELOCATABLE | M_KEEP_RELOCS)
                    and m.sections[s.section].kind == K_CONSTANT_FUNC):
                number = number + 1 if s.section == last else 1
                last = s.section
                if m.born[e] < 0 and stays(m, e):
                    optimizer_symbol(m, e, function_of(m, s.section), number)
                continue
        elif row.kind == E_SHARED and row.flags & EF_UNSIZED:
            debug_shared(m, -1)
        if m.born[e] < 0 and (stays(m, e) or (row.kind == E_UNIFIED and row.flags & EF_LIVE)):
            # Weak definitions stand among the local symbols, as in the inputs.
            enter_symbol(m, e, (s.info >> 4) == STB_LOCAL
                         or ((s.info >> 4) == STB_WEAK and m.role[i] != ROLE_NONE))
            if m.born[e] >= 0:
                (<OutSymbolRow*>m.out_symbols.data)[m.born[e]].dropped = not stays(m, e)


cdef void section_of_object(Merge* m, int32_t at) noexcept nogil:
    """Birth of the section that holds an object, at the first object in it."""
    cdef const SectionRow* s = &m.sections[at]
    cdef int32_t e
    cdef int32_t out
    if s.kind == K_SHARED:
        e = function_of(m, at)
        if e < 0:
            return
        if not m.entities[e].flags & EF_LIVE:
            # A dead kernel with variables of its own leaves this name and nothing else.
            if (strings_intern(&m.shstr, m.arena + s.name, s.name_size) < 0
                    or strings_intern(&m.str, m.arena + s.name, s.name_size) < 0):
                m.failed = True
            m.births += 1
    elif s.kind == K_DEBUG_SHARED:
        debug_shared(m, at)
    else:
        birth(m, at)


cdef void debug_shared(Merge* m, int32_t source) noexcept nogil:
    file_section(m, b".nv_debug.shared", 16, K_DEBUG_SHARED, 0, SHT_CUDA_SHARED, 3, source)


cdef int32_t file_section(Merge* m, const char* name, uint32_t size, uint16_t kind,
                          uint16_t bank, uint32_t type, uint64_t flags,
                          int32_t source) noexcept nogil:
    """The file-scope section of that name, born now if it is new."""
    cdef NameSlot* slot = index_find(&m.by_name, <const uint8_t*>name, size)
    cdef int32_t out
    if slot == NULL:
        m.failed = True
        return -1
    if slot.value >= 0:
        return slot.value
    out = new_out(m, kind, type, flags, 1, 0)
    if out < 0:
        return -1
    slot.value = out
    m.by_name.count += 1
    out_row(m, out).bank = bank
    out_row(m, out).source = source
    if kind == K_CONSTANT and m.family == FAMILY_C and bank == 3:
        user_constant(m, out, b".nv.constant3", 13, b".nv.constant.user", 17)
    else:
        name_out(m, out, <const uint8_t*>name, size)
    section_symbol(m, out)
    return out


cdef void user_constant(Merge* m, int32_t out, const char* name, uint32_t size,
                        const char* old, uint32_t old_size) noexcept nogil:
    """Bank 3 of family C is born as "user" constants and renamed at the end of the link.

    In .shstrtab its slot keeps the length of the first name; .strtab keeps the first name.
    """
    cdef int64_t a = strings_append(&m.shstr, <const uint8_t*>name, size)
    cdef int64_t b = strings_intern(&m.str, <const uint8_t*>old, old_size)
    cdef uint8_t* gap = strings_grow(&m.shstr, old_size - size)
    if a < 0 or b < 0 or gap == NULL:
        m.failed = True
        return
    memset(gap, 0, old_size - size)
    out_row(m, out).name = <uint32_t>a
    out_row(m, out).symbol_name = <uint32_t>b


cdef int32_t function_of(Merge* m, int32_t section) noexcept nogil:
    """The entity of the function that a section belongs to, or -1."""
    cdef int32_t symbol = function_symbol(m, section)
    return m.entity[symbol] if symbol >= 0 else -1


cdef int32_t function_symbol(Merge* m, int32_t section) noexcept nogil:
    """The input symbol of the function that a section belongs to, or -1."""
    cdef const SectionRow* s = &m.sections[section]
    if s.kind != K_TEXT and s.kind != K_CAPMERC:
        if s.target < 0:
            return -1
        s = &m.sections[s.target]
        if s.kind != K_TEXT and s.kind != K_CAPMERC:
            return -1
    return s.target


cdef void birth(Merge* m, int32_t at) noexcept nogil:
    """Make sure the output has a section for input section `at`, if it is to have one."""
    cdef const SectionRow* s = &m.sections[at]
    cdef int32_t symbol, e, out
    if s.kind == K_CONSTANT0 or s.kind == K_CONSTANT_FUNC:
        symbol = function_symbol(m, at)
        if symbol < 0:
            return
        e = m.entity[symbol]
        if e < 0 or not m.entities[e].flags & EF_LIVE:
            return
        if m.role[symbol] != ROLE_WON and m.role[symbol] != ROLE_REPLACED:
            return
        if s.kind == K_CONSTANT0 and m.family == FAMILY_C:
            return
        if (s.kind == K_CONSTANT_FUNC and not m.entities[e].flags & EF_KERNEL
                and not m.mode & M_RELOCATABLE):
            return              # its bytes go to the pools of kernels
        if function_section(m, e, s.kind, s.bank) >= 0:
            return
        constant_section(m, e, s)
    elif s.kind in (K_CONSTANT, K_GLOBAL, K_GLOBAL_INIT, K_DEBUG, K_LOCAL, K_OTHER,
                    K_SYSTEM_SHARED):
        file_section(m, <const char*>(m.arena + s.name), s.name_size, s.kind, s.bank, s.type,
                     s.flags, at)


cdef int32_t constant_section(Merge* m, int32_t e, const SectionRow* s) noexcept nogil:
    cdef uint8_t* text
    cdef int32_t out
    cdef int64_t a, b
    if s.kind == K_CONSTANT_FUNC and m.family == FAMILY_C:
        return optimizer_section(m, e, s.type, s.flags, s.align, s)
    if s.kind != K_CONSTANT0 or m.mode & M_RELOCATABLE:
        out = new_function_section(m, e, s, s.kind, s.type, s.flags, s.align, m.arena + s.name,
                                   s.name_size)
        if out >= 0:
            section_symbol(m, out)
        return out
    # Families A and B also name a relocation section that never exists.
    text = pool_join(&m.pool, b".rel", 4, m.arena + s.name, s.name_size)
    if text == NULL or strings_intern(&m.str, text, 4 + s.name_size) < 0:
        m.failed = True
        return -1
    out = new_function_section(m, e, s, s.kind, s.type, s.flags, s.align, m.arena + s.name,
                               s.name_size)
    if strings_intern(&m.shstr, text, 4 + s.name_size) < 0:
        m.failed = True
    m.births += 1
    if out >= 0:
        section_symbol(m, out)
    return out


cdef int32_t optimizer_section(Merge* m, int32_t e, uint32_t type, uint64_t flags, uint32_t align,
                               const SectionRow* source) noexcept nogil:
    """Family C: bank 2 of a function is born as "optimizer" constants and renamed at the end."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, e, &size)
    cdef uint8_t* final = pool_join(&m.pool, b".nv.constant2.", 14, name, size)
    cdef uint8_t* first = pool_join(&m.pool, b".nv.constant.optimizer.", 23, name, size)
    cdef int32_t out
    if final == NULL or first == NULL:
        m.failed = True
        return -1
    out = unnamed_function_section(m, e, source, K_CONSTANT_FUNC, type, flags, align)
    if out >= 0:
        out_row(m, out).bank = 2
        user_constant(m, out, <const char*>final, 14 + size, <const char*>first, 23 + size)
        section_symbol(m, out)
    return out


cdef void born_pool(Merge* m, int32_t e) noexcept nogil:
    """A pool that only device functions fill."""
    cdef int32_t out, reloc
    if function_section(m, e, K_CONSTANT_FUNC, 2) >= 0:
        return
    if m.family == FAMILY_C:
        out = optimizer_section(m, e, SHT_CUDA_CONSTANT_B0 + 2, 0x42, 1, NULL)
        if out >= 0:
            optimizer_twin(m, out, -1)
            reloc = optimizer_relocations(m, out)
            if reloc >= 0:
                new_mercury_relocations(m, reloc, -1)
        return
    out = joined_section(m, e, b".nv.constant2.", 14, K_CONSTANT_FUNC, SHT_CUDA_CONSTANT_B0 + 2,
                         0x42, 1)
    if out >= 0:
        out_row(m, out).bank = 2
        section_symbol(m, out)


cdef int32_t optimizer_relocations(Merge* m, int32_t out) noexcept nogil:
    """`.rela.nv.constant2.F` of family C, born as `.rela.nv.constant.optimizer.F`."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, out_row(m, out).entity, &size)
    cdef uint8_t* final = pool_join(&m.pool, b".rela.nv.constant2.", 19, name, size)
    cdef uint8_t* first = pool_join(&m.pool, b".rela.nv.constant.optimizer.", 28, name, size)
    cdef int32_t row = out_row(m, out).rela
    if row >= 0:
        return row
    row = new_out(m, K_RELOC, SHT_RELA, 0x40, 8, 24)
    if final == NULL or first == NULL or row < 0:
        m.failed = True
        return -1
    out_row(m, row).target = out
    out_row(m, out).rela = row
    user_constant(m, row, <const char*>final, 19 + size, <const char*>first, 28 + size)
    if m.mode & M_KEEP_RELOCS:
        resolved_row(m, out)
    return row


cdef void rest(Merge* m, const FileRow* file) noexcept nogil:
    """Births of the sections that no symbol called for, and the place of every piece."""
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        if m.sections[i].kind in (K_GLOBAL, K_SYSTEM_SHARED) and m.wanted[i] == 1:
            continue            # every symbol in it lost: it takes no room
        if m.sections[i].kind != K_SHARED and m.sections[i].kind != K_DEBUG_SHARED:
            birth(m, <int32_t>i)
        elif m.sections[i].kind == K_DEBUG_SHARED:
            debug_shared(m, <int32_t>i)
        if m.failed:
            return
        place_piece(m, <int32_t>i)


cdef void place_piece(Merge* m, int32_t at) noexcept nogil:
    """Find the output section of input section `at` and the offset of its bytes there."""
    cdef const SectionRow* s = &m.sections[at]
    cdef int32_t out = -1, symbol, e
    cdef OutRow* row
    if s.kind in (K_TEXT, K_CONSTANT0, K_CONSTANT_FUNC):
        symbol = function_symbol(m, at)
        if symbol < 0 or m.entity[symbol] < 0 or m.role[symbol] != ROLE_WON:
            return
        e = m.entity[symbol]
        if not m.entities[e].flags & EF_LIVE:
            return
        out = function_section(m, e, s.kind, s.bank)
        if out < 0:
            return
        row = out_row(m, out)
        row.source = at
        row.size = s.size
        row.align = s.align
        row.type = s.type
        row.flags = s.flags
        m.out_of[at] = out
        return
    if s.kind in (K_CONSTANT, K_GLOBAL, K_GLOBAL_INIT, K_DEBUG, K_LOCAL, K_OTHER):
        out = file_section(m, <const char*>(m.arena + s.name), s.name_size, s.kind, s.bank,
                           s.type, s.flags, at)
        if out < 0:
            return
        append_piece(m, at, out)
    elif s.kind == K_SYSTEM_SHARED:
        out = file_section(m, <const char*>(m.arena + s.name), s.name_size, s.kind, s.bank,
                           s.type, s.flags, at)
        if out < 0:
            return
        if out_row(m, out).size == 0 and not m.mode & M_RELOCATABLE:
            out_row(m, out).size = SYSTEM_RESERVE
        append_piece(m, at, out)
    elif is_folded(m, at):
        m.out_of[at] = m.out_of[m.stand_in[at]]
        m.base[at] = m.base[m.stand_in[at]]
    elif s.kind == K_MERC_DEBUG:
        out = mercury_section(m, at)
        if out >= 0:
            append_piece(m, at, out)
    elif s.kind == K_MERC_CONSTANT_FUNC:
        symbol = function_symbol(m, at)
        if symbol >= 0 and m.entity[symbol] >= 0 and m.role[symbol] == ROLE_WON:
            out = function_section(m, m.entity[symbol], K_CONSTANT_FUNC, 2)
            if out >= 0:
                out = optimizer_twin(m, out, at)
                m.out_of[at] = out
                out_row(m, out).size = s.size


cdef inline bint is_folded(Merge* m, int32_t at) noexcept nogil:
    """Whether the output has another input's copy of the section instead."""
    return m.stand_in != NULL and m.stand_in[at] >= 0


cdef void append_piece(Merge* m, int32_t at, int32_t out) noexcept nogil:
    cdef const SectionRow* s = &m.sections[at]
    cdef OutRow* row = out_row(m, out)
    m.base[at] = (row.size + s.align - 1) & ~<uint64_t>(s.align - 1)
    row.size = m.base[at] + s.size
    if s.align > row.align:
        row.align = s.align
    m.out_of[at] = out


cdef int32_t optimizer_twin(Merge* m, int32_t plain, int32_t source) noexcept nogil:
    cdef int32_t out = out_row(m, plain).merc
    if out < 0:
        out = new_twin(m, plain, K_MERC_CONSTANT_FUNC, SHT_CUDA_CONSTANT_OPTIMIZER, 0x42, 4, 0)
        if out >= 0:
            out_row(m, out).source = source
    return out


cdef int32_t mercury_section(Merge* m, int32_t at) noexcept nogil:
    """The mercury twin of a debug section: `.nv.merc` and the plain name."""
    cdef const SectionRow* s = &m.sections[at]
    cdef const char* name = <const char*>(m.arena + s.name)
    cdef NameSlot* slot = index_find(&m.merc_names, <const uint8_t*>name, s.name_size)
    cdef NameSlot* plain
    cdef int32_t out
    if slot == NULL:
        m.failed = True
        return -1
    if slot.value >= 0:
        return slot.value
    plain = index_find(&m.by_name, <const uint8_t*>name + 8, s.name_size - 8)
    if plain == NULL or plain.value < 0:
        return -1
    out = new_out(m, s.kind, s.type, s.flags, 1, s.entsize)
    if out < 0:
        return -1
    m.births += 1               # the only kind of mercury section that has a number
    slot.value = out
    m.merc_names.count += 1
    out_row(m, out).source = at
    out_row(m, out).twin = plain.value
    out_row(m, plain.value).merc = out
    return out


cdef void info_sections(Merge* m, const FileRow* file) noexcept nogil:
    cdef uint32_t i
    cdef int32_t symbol, e
    cdef const SectionRow* s
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &m.sections[i]
        if s.kind != K_INFO_FUNC:
            continue
        symbol = function_symbol(m, <int32_t>i)
        if symbol < 0 or m.entity[symbol] < 0:
            continue
        e = m.entity[symbol]
        if (not m.entities[e].flags & EF_LIVE or m.role[symbol] == ROLE_LOST
                or m.role[symbol] == ROLE_NONE):
            continue
        if function_section(m, e, K_INFO_FUNC, 0) < 0:
            new_function_section(m, e, s, K_INFO_FUNC, SHT_CUDA_INFO, 0x40, 4,
                                 m.arena + s.name, s.name_size)
        if m.role[symbol] == ROLE_WON:
            m.out_of[i] = function_section(m, e, K_INFO_FUNC, 0)


cdef void global_names(Merge* m) noexcept nogil:
    """Names of global symbols follow everything else, in order of birth."""
    cdef size_t i
    cdef uint32_t size
    cdef const uint8_t* text
    cdef int64_t name
    cdef OutSymbolRow* row
    for i in range(m.out_symbols.count):
        row = <OutSymbolRow*>m.out_symbols.data + i
        if row.part == PART_GLOBAL:
            text = entity_name(m, row.entity, &size)
            name = strings_intern(&m.str, text, size)
            if name < 0:
                m.failed = True
                return
            row.name = <uint32_t>name


cdef void final_names(Merge* m) noexcept nogil:
    """Final names of the renamed constant banks, for their section symbols in .symtab."""
    cdef size_t i
    cdef OutSymbolRow* row
    cdef OutRow* out
    cdef const uint8_t* text
    cdef uint32_t size
    cdef int64_t name
    for i in range(m.out_symbols.count):
        row = <OutSymbolRow*>m.out_symbols.data + i
        if row.section < 0:
            continue
        out = out_row(m, row.section)
        if out.kind == K_CONSTANT and out.bank == 3:
            name = strings_intern(&m.str, <const uint8_t*>b".nv.constant3", 13)
        elif out.kind == K_CONSTANT_FUNC:
            text = entity_name(m, out.entity, &size)
            text = pool_join(&m.pool, b".nv.constant2.", 14, text, size)
            name = strings_intern(&m.str, text, 14 + size) if text != NULL else -1
        else:
            continue
        if name < 0:
            m.failed = True
            return
        row.name = <uint32_t>name


cdef void late_constants(Merge* m) noexcept nogil:
    """Family C: .nv.constant0.F come last of all, their section symbols after the globals."""
    cdef int32_t* source = <int32_t*>calloc(m.entity_count + 1, 4)
    cdef size_t i
    cdef int32_t symbol, out
    cdef const SectionRow* s
    if source == NULL:
        m.failed = True
        return
    for i in range(m.section_count):
        if m.sections[i].kind == K_CONSTANT0:
            symbol = function_symbol(m, <int32_t>i)
            if symbol >= 0 and m.role[symbol] == ROLE_WON and m.entity[symbol] >= 0:
                source[m.entity[symbol]] = <int32_t>i + 1
    for i in range(m.entity_count):
        if not source[i] or not m.entities[i].flags & EF_LIVE:
            continue
        s = &m.sections[source[i] - 1]
        out = new_function_section(m, <int32_t>i, s, K_CONSTANT0, s.type, s.flags, s.align,
                                   m.arena + s.name, s.name_size)
        if out < 0:
            break
        out_row(m, out).size = s.size
        m.out_of[source[i] - 1] = out
        new_symbol(m, -1, out, PART_TAIL, out_row(m, out).symbol_name)
    free(source)


cdef void instances(Merge* m) noexcept nogil:
    """-r: each kernel that uses extern arrays itself has one symbol for them all."""
    cdef size_t i
    cdef int64_t name
    cdef int32_t row
    for i in range(m.entity_count):
        if not m.uses_array[i]:
            continue
        name = strings_intern(&m.str, <const uint8_t*>b"externsharedinstance", 20)
        row = new_symbol(m, -1, -1, PART_LOCAL, <uint32_t>name)
        if name < 0 or row < 0:
            m.failed = True
            return
        (<OutSymbolRow*>m.out_symbols.data)[row].instance = <int32_t>i


cdef void wide_indices(Merge* m, bint late) noexcept nogil:
    """.symtab_shndx, for section numbers that do not fit 16 bits."""
    cdef int32_t out = new_out(m, K_SYMTAB_SHNDX, SHT_SYMTAB_SHNDX, 0, 4, 4)
    cdef int64_t name
    if out < 0:
        return
    if late:
        name = strings_append(&m.shstr, <const uint8_t*>b".symtab_shndx", 13)
        out_row(m, out).notes = OF_LATE
    else:
        name = strings_intern(&m.shstr, <const uint8_t*>b".symtab_shndx", 13)
    if name < 0:
        m.failed = True
    out_row(m, out).name = <uint32_t>name


cdef size_t mercury_count(Merge* m) noexcept nogil:
    """Sections of the output of family C, before .nv.constant0.F and most mercury exist."""
    cdef size_t i, count = 4
    cdef const OutRow* row
    for i in range(m.outs.count):
        row = out_row(m, <int32_t>i)
        if row.kind == K_TEXT:
            count += 2 + (m.entities[row.entity].flags & EF_KERNEL != 0)
        elif row.kind == K_INFO_FUNC:
            count += 2
        elif row.kind == K_RELOC or row.kind == K_MERC_RELA:
            count += row.count != 0
        elif row.kind != K_SHARED:
            count += 1
    return count


cdef void find_text(Merge* m) noexcept nogil:
    cdef size_t i
    cdef OutRow* row
    for i in range(m.outs.count):
        row = out_row(m, <int32_t>i)
        if row.entity >= 0:
            row.text = function_section(m, row.entity, K_TEXT, 0)


cdef int32_t new_twin(Merge* m, int32_t plain, uint16_t kind, uint32_t type, uint64_t flags,
                      uint32_t align, uint32_t entsize) noexcept nogil:
    cdef int32_t out = new_out(m, kind, type, SHF_MERCURY | flags, align, entsize)
    if out >= 0:
        out_row(m, out).twin = plain
        out_row(m, out).entity = out_row(m, plain).entity
        out_row(m, plain).merc = out
    return out


cdef void mercury_twins(Merge* m) noexcept nogil:
    """Family C: the mercury side of what has been born. Debug and relocation twins exist."""
    cdef size_t plain = m.outs.count, i
    cdef uint16_t kind
    cdef int32_t symbol, out
    for i in range(plain):
        kind = out_row(m, <int32_t>i).kind
        if kind == K_TEXT:
            new_twin(m, <int32_t>i, K_CAPMERC, SHT_CUDA_CAPMERC, 0, 16, 0)
        elif kind == K_INFO:
            new_twin(m, <int32_t>i, K_MERC_INFO, SHT_CUDA_MERC_INFO, 0, 4, 0)
        elif kind == K_INFO_FUNC:
            new_twin(m, <int32_t>i, K_MERC_INFO_FUNC, SHT_CUDA_MERC_INFO, 0x40, 4, 0)
        elif kind == K_CONSTANT and out_row(m, <int32_t>i).bank == 3:
            new_twin(m, <int32_t>i, K_MERC_CONSTANT, SHT_CUDA_CONSTANT_USER, 2,
                     out_row(m, <int32_t>i).align, 0)
        elif kind == K_GLOBAL_INIT:
            new_twin(m, <int32_t>i, K_MERC_GLOBAL_INIT, SHT_CUDA_GLOBAL_INIT, 3,
                     out_row(m, <int32_t>i).align, 0)
        elif kind == K_SYSTEM_SHARED:
            out = new_twin(m, <int32_t>i, K_MERC_SYSTEM_SHARED, SHT_CUDA_RESERVED_SHARED, 3,
                           out_row(m, <int32_t>i).align, 0)
            if out >= 0:
                out_row(m, out).size = out_row(m, <int32_t>i).size
                if not m.mode & M_RELOCATABLE:
                    out_row(m, out).size -= SYSTEM_RESERVE
        elif kind == K_SYMTAB:
            new_twin(m, <int32_t>i, K_MERC_SYMTAB, SHT_CUDA_MERC_SYMTAB, 0, 8, 24)
        elif kind == K_SYMTAB_SHNDX:
            out = new_twin(m, <int32_t>i, K_MERC_SYMTAB_SHNDX, SHT_SYMTAB_SHNDX, 0, 4, 4)
            if out >= 0:
                out_row(m, out).notes = out_row(m, <int32_t>i).notes
        if m.failed:
            return
    for i in range(m.section_count):
        if m.sections[i].kind != K_CAPMERC:
            continue
        symbol = m.sections[i].target
        if m.role[symbol] != ROLE_WON or m.entity[symbol] < 0:
            continue
        out = function_section(m, m.entity[symbol], K_TEXT, 0)
        if out >= 0 and m.entities[m.entity[symbol]].flags & EF_LIVE:
            out = out_row(m, out).merc
            m.out_of[i] = out
            out_row(m, out).size = m.sections[i].size
            out_row(m, out).source = <int32_t>i


# --- relocations ------------------------------------------------------------------------------

cdef enum Action:
    DROP = 0                    # leaves no trace
    KEEP = 1
    FIX = 2
    CLEAR = 3                   # writes zeros and leaves no trace
    GONE = 4                    # counts for the sibling rule, then vanishes
    DEAD = 5                    # debug data of a dead function: counts, but brings no section


cdef void relocations(Merge* m, const FileRow* file) noexcept nogil:
    """Each relocation section, a mercury twin right after its plain section."""
    cdef uint32_t i, end = file.first_section + file.section_count
    cdef int32_t twin
    for i in range(file.first_section, end):
        if m.sections[i].kind == K_RELOC:
            relocation_section(m, file, <int32_t>i, False)
            twin = mercury_relocations(m, file, <int32_t>i) if m.family == FAMILY_C else -1
            if twin >= 0:
                m.wanted[twin] = 1
                relocation_section(m, file, twin, True)
        if m.failed:
            return
    for i in range(file.first_section, end):
        if m.sections[i].kind == K_MERC_RELA and not m.wanted[i]:
            relocation_section(m, file, <int32_t>i, True)
        if m.failed:
            return


cdef int32_t mercury_relocations(Merge* m, const FileRow* file, int32_t plain) noexcept nogil:
    """The input section `.nv.merc.rela.S` for `.rela.S`, or -1."""
    cdef const SectionRow* s = &m.sections[plain]
    cdef const SectionRow* t
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        t = &m.sections[i]
        if t.kind == K_MERC_RELA and not m.wanted[i] and is_twin(m, s.target, t.target):
            return <int32_t>i
    return -1


cdef bint is_twin(Merge* m, int32_t plain, int32_t mercury) noexcept nogil:
    """Whether input section `mercury` is the mercury form of input section `plain`."""
    cdef const SectionRow* s = &m.sections[plain]
    cdef const SectionRow* t = &m.sections[mercury]
    if s.kind == K_TEXT:
        return t.kind == K_CAPMERC and s.target == t.target
    if s.kind == K_CONSTANT_FUNC:
        return (t.kind == K_MERC_CONSTANT_FUNC
                and function_symbol(m, plain) == function_symbol(m, mercury))
    if s.kind == K_CONSTANT:
        return t.kind == K_MERC_CONSTANT and s.bank == 3
    if s.kind == K_GLOBAL_INIT:
        return t.kind == K_MERC_GLOBAL_INIT
    return (s.kind == K_DEBUG and t.kind == K_MERC_DEBUG and t.name_size == s.name_size + 8
            and memcmp(m.arena + t.name + 8, m.arena + s.name, s.name_size) == 0)


cdef void relocation_section(Merge* m, const FileRow* file, int32_t at,
                             bint mercury) noexcept nogil:
    cdef const SectionRow* s = &m.sections[at]
    cdef const SectionRow* target = &m.sections[s.target]
    cdef int32_t symbol = -1, out, function = -1
    cdef bint replaced = False
    if is_folded(m, s.target):
        return
    if target.kind == K_TEXT or target.kind == K_CAPMERC:
        symbol = function_symbol(m, s.target)
        function = m.entity[symbol]
        if function < 0 or not m.entities[function].flags & EF_LIVE:
            return
        if m.role[symbol] == ROLE_LOST or m.role[symbol] == ROLE_NONE:
            return
        replaced = m.role[symbol] == ROLE_REPLACED
        out = function_section(m, function, K_TEXT, 0)
    elif target.kind == K_MERC_DEBUG or target.kind == K_MERC_CONSTANT \
            or target.kind == K_MERC_GLOBAL_INIT:
        out = plain_of_mercury(m, file, target)
    elif target.kind == K_MERC_CONSTANT_FUNC:
        out = m.out_of[s.target]
        if out >= 0:
            out = out_row(m, out).twin
    else:
        out = m.out_of[s.target]
        if target.kind == K_CONSTANT_FUNC or target.kind == K_CONSTANT0:
            function = function_of(m, s.target)
    if out < 0:
        return
    if m.family == FAMILY_C and not mercury and s.size == 0 and (
            target.kind == K_TEXT or target.kind == K_CONSTANT_FUNC):
        # Family C keeps a section that is empty already.
        symbol = relocation_row(m, at, out, True)
        if symbol >= 0:
            out_row(m, symbol).notes |= OF_EMPTY_STAYS
    entries(m, file, at, out, function, mercury, replaced)


cdef void find_referenced(Merge* m, const FileRow* file) noexcept nogil:
    """Mark what the code of function copies that count refers to, dead ones included."""
    cdef uint32_t i
    cdef uint64_t entsize, k
    cdef const SectionRow* s
    cdef int32_t e
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &m.sections[i]
        if (s.kind != K_RELOC or m.sections[s.target].kind != K_TEXT
                or m.role[m.sections[s.target].target] != ROLE_WON):
            continue
        entsize = 16 if s.type == SHT_REL else 24
        for k in range(s.size // entsize):
            e = m.entity[file.first_symbol
                         + (<const Rel*>(m.arena + s.offset + k * entsize)).r_sym]
            if e >= 0:
                m.referenced[e] = True


cdef int32_t plain_of_mercury(Merge* m, const FileRow* file, const SectionRow* s) noexcept nogil:
    """The output's plain section whose mercury twin an input relocation section patches."""
    cdef uint32_t i
    cdef NameSlot* slot
    if s.kind == K_MERC_CONSTANT:
        slot = index_find(&m.by_name, <const uint8_t*>b".nv.constant3", 13)
    else:
        slot = index_find(&m.by_name, m.arena + s.name + 8, s.name_size - 8)
    return slot.value if slot != NULL else -1


cdef void entries(Merge* m, const FileRow* file, int32_t at, int32_t out, int32_t function,
                  bint mercury, bint replaced) noexcept nogil:
    """Decide each entry of one input relocation section against output section `out`."""
    cdef const SectionRow* s = &m.sections[at]
    cdef const SectionRow* target = &m.sections[s.target]
    cdef bint explicit = s.type != SHT_REL
    cdef uint64_t entsize = 24 if explicit else 16
    cdef uint64_t i, base = m.base[s.target]
    cdef const Rela* r
    cdef int64_t addend
    cdef int32_t symbol, action, reloc = -1, e, section, twin = -2
    cdef uint32_t how
    cdef int32_t patched = out
    if mercury:
        if target.kind == K_MERC_DEBUG or target.kind == K_MERC_CONSTANT_FUNC:
            patched = out_row(m, out).merc
        elif target.kind != K_CAPMERC:
            # Constants and initialised data share their bytes with the plain section.
            base = 0
            for i in range(file.first_section, file.first_section + file.section_count):
                if m.out_of[i] == out:
                    base = m.base[i]
    for i in range(s.size // entsize):
        r = <const Rela*>(m.arena + s.offset + i * entsize)
        symbol = <int32_t>(file.first_symbol + r.r_sym)
        addend = r.r_addend if explicit else 0
        how = 0
        action = decide(m, s, target, symbol, r.r_type, function, mercury, &how)
        if action == DROP:
            continue
        if (action == DEAD or action == CLEAR) and is_deselected(m, m.entity[symbol]):
            trace(m, at, out, explicit, mercury, addend)
        if not mercury and rebuilt(m, target) and (action == DEAD or action == CLEAR):
            if action == DEAD:
                count_dead(m, at, out, addend, m.entity[symbol])
                add_rebuild(m, at, r, addend, out, symbol, m.entity[symbol], -1)
            continue
        if action == DEAD:
            if explicit and not mercury:
                count_dead(m, at, out, addend, m.entity[symbol])
            continue
        if target.kind == K_GLOBAL_INIT or target.kind == K_MERC_GLOBAL_INIT:
            if in_lost_bytes(m, file, s.target, r.r_offset):
                continue
        e = m.entity[symbol]
        section = -1
        if e < 0:
            section = mercury_home(m, file, r.r_sym) if mercury else m.symbols[symbol].section
        if action == CLEAR:
            if not replaced:
                add_fix(m, r, addend, patched, e, section, function,
                        FIX_CLEAR | (FIX_MERC if mercury else 0), base, -1)
            continue
        if not mercury:
            reloc = relocation_row(m, at, out, explicit)
            if reloc < 0:
                return
            count_entry(m, at, out, out, explicit,
                        addend + (<int64_t>m.base[section] if section >= 0 else 0))
        else:
            reloc = mercury_relocation_row(m, at, out)
            if reloc < 0:
                return
            if target.kind == K_CAPMERC:
                count_entry(m, at, reloc, out, True, addend)
        if replaced or action == GONE:
            continue
        if not mercury and rebuilt(m, target):
            add_rebuild(m, at, r, addend, out, symbol, e, section)
        elif action == KEEP:
            if (m.family == FAMILY_C and target.kind == K_DEBUG and addend > 0
                    and (m.role[symbol] == ROLE_LOST or m.role[symbol] == ROLE_REPLACED)):
                if twin == -2:
                    twin = mercury_relocations(m, file, at)
                addend = addend_of_winner(m, twin, i, r, addend, symbol)
            add_keep(m, r, addend, reloc, e, section, function, base, how, mercury)
        else:
            if mercury:
                how |= FIX_MERC
            add_fix(m, r, addend, patched, e, section, function,
                    how | (0 if explicit else FIX_REL), base, reloc)
    if replaced or target.kind in (K_GLOBAL_INIT, K_CONSTANT, K_DEBUG):
        # Data and debug data count file by file, code through all files.
        out_row(m, out).counted = 0


cdef inline bint is_deselected(Merge* m, int32_t entity) noexcept nogil:
    return m.entities[entity].flags & EF_DESELECTED != 0


cdef void trace(Merge* m, int32_t at, int32_t out, bint explicit, bint mercury,
                int64_t addend) noexcept nogil:
    """Debug data of code that only a selection removes: gone after its section's birth."""
    if not mercury:
        if relocation_row(m, at, out, explicit) >= 0:
            count_entry(m, at, out, out, explicit, addend)


cdef int64_t addend_of_winner(Merge* m, int32_t twin, uint64_t i, const Rela* r, int64_t addend,
                              int32_t symbol) noexcept nogil:
    """Debug data of a copy that is not in the output ends where the code of the winner does.

    Mercury offsets decide; between 0 and the end nvlink converts them with the winner's table,
    which is not in the file: such addends stay what the copy's own code makes them.
    """
    cdef const SymbolRow* winner = &m.symbols[m.entities[m.entity[symbol]].winner]
    cdef const SectionRow* s
    cdef const Rela* other
    cdef int64_t size
    if twin < 0 or winner.section < 0:
        return addend
    s = &m.sections[twin]
    size = <int64_t>m.sections[winner.section].size
    if i >= s.size // 24:
        return addend
    other = <const Rela*>(m.arena + s.offset) + i
    if other.r_sym != r.r_sym or other.r_offset != r.r_offset:
        return addend
    if <uint64_t>other.r_addend >= winner.merc_size or addend > size:
        return size
    return addend


cdef int32_t mercury_home(Merge* m, const FileRow* file, uint32_t symbol) noexcept nogil:
    """The input section of a section symbol as the mercury symbol table has it, or -1."""
    cdef const Sym* s
    cdef uint32_t section, i
    if symbol >= file.mercury_symbols:
        return -1
    s = <const Sym*>(m.arena + file.merc_symtab) + symbol
    section = s.st_shndx
    if section == SHN_XINDEX:
        section = 0
        for i in range(file.first_section, file.first_section + file.section_count):
            if (m.sections[i].kind == K_MERC_SYMTAB_SHNDX
                    and m.sections[i].size // 4 > symbol):
                memcpy(&section, m.arena + m.sections[i].offset + 4 * <uint64_t>symbol, 4)
    if section == 0 or section >= file.section_count:
        return -1
    return <int32_t>(file.first_section + section)


cdef bint in_lost_bytes(Merge* m, const FileRow* file, int32_t section,
                        uint64_t offset) noexcept nogil:
    """Whether an initialiser belongs to a weak variable whose definition lost."""
    cdef uint32_t i
    cdef const SymbolRow* s
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        if m.role[i] == ROLE_LOST or m.role[i] == ROLE_REPLACED:
            s = &m.symbols[i]
            if ((s.section == section or (s.section >= 0 and m.sections[section].kind
                    == K_MERC_GLOBAL_INIT and m.sections[s.section].kind == K_GLOBAL_INIT))
                    and s.value <= offset < s.value + s.size):
                return True
    return False


cdef bint rebuilt(Merge* m, const SectionRow* target) noexcept nogil:
    """Whether family C writes this debug section anew instead of joining the inputs'."""
    return m.family == FAMILY_C and target.kind == K_DEBUG and is_frame_or_line(m, target)


cdef bint is_frame_or_line(Merge* m, const SectionRow* target) noexcept nogil:
    """.debug_frame, .debug_line, .nv_debug_line_sass and their mercury twins."""
    cdef const uint8_t* name = m.arena + target.name
    cdef uint32_t size = target.name_size
    if target.kind == K_MERC_DEBUG:
        name += 8
        size -= 8
    elif target.kind != K_DEBUG:
        return False
    return ((size == 12 and memcmp(name, b".debug_frame", 12) == 0)
            or (size == 11 and memcmp(name, b".debug_line", 11) == 0)
            or (size == 19 and memcmp(name, b".nv_debug_line_sass", 19) == 0))


cdef bint is_debug_info(Merge* m, const SectionRow* target) noexcept nogil:
    cdef const uint8_t* name = m.arena + target.name
    if target.kind == K_MERC_DEBUG:
        return target.name_size == 19 and memcmp(name, b".nv.merc.debug_info", 19) == 0
    return target.name_size == 11 and memcmp(name, b".debug_info", 11) == 0


cdef inline bint is_clear(uint32_t type, bint mercury) noexcept nogil:
    if mercury:
        return type == 0x1000e or type == 0x1000f
    return type == 72 or type == 73


cdef inline bint loader_only(uint32_t type, bint mercury) noexcept nogil:
    """Types that the driver resolves, whatever the symbol (docs/format-notes.md)."""
    if mercury:
        return type == 0x10001
    return type in (3, 4, 6, 7, 8, 9, 52, 53, 58, 67, 75, 101, 114) or 84 <= type <= 99


cdef int32_t decide(Merge* m, const SectionRow* s, const SectionRow* target, int32_t symbol,
                    uint32_t type, int32_t function, bint mercury, uint32_t* how) noexcept nogil:
    cdef int32_t e = m.entity[symbol]
    cdef bint debug = target.kind == K_DEBUG or target.kind == K_MERC_DEBUG
    cdef const EntityRow* row
    cdef uint8_t role
    cdef uint16_t kind
    if not mercury and (type == 68 or type == 69):
        return GONE             # marks an instruction, for the null symbol
    if e < 0:
        if m.symbols[symbol].section < 0:
            return DROP
        kind = m.sections[m.symbols[symbol].section].kind
        if mercury and type == 0x10008:
            return KEEP
        if kind == K_DEBUG or kind == K_MERC_DEBUG:
            if (m.mode & M_RELOCATABLE and m.family == FAMILY_C and type == 1
                    and is_debug_info(m, target)
                    and is_line(m, &m.sections[m.symbols[symbol].section])):
                return KEEP
            return FIX
        return FIX if kind == K_CONSTANT else KEEP
    row = &m.entities[e]
    if row.kind == E_FUNC:
        role = m.role[symbol]
        if not row.flags & EF_LIVE:
            if not debug:
                return DROP
            if role == ROLE_LOST:
                if is_frame_or_line(m, target):
                    return KEEP if m.family == FAMILY_C and not mercury else DROP
                # The rest of a copy that lost names the winner, and goes with it only later.
                return GONE
            if role == ROLE_REPLACED and m.family == FAMILY_A and is_clear(type, mercury):
                return GONE     # as in a live copy that was replaced
            return CLEAR if is_clear(type, mercury) else DEAD
        if out_of_debug(row, role) and is_frame_or_line(m, target):
            return KEEP if m.family == FAMILY_C and not mercury else DROP
        if is_clear(type, mercury):
            return GONE
        return KEEP
    if row.kind == E_CONSTANT:
        return KEEP if loader_only(type, mercury) else FIX
    if row.kind == E_SHARED:
        if m.mode & M_RELOCATABLE and not m.mode & M_DEBUG and row.flags & EF_UNSIZED:
            # Kernels keep a reference to their own instance, device functions get 0.
            if function >= 0 and m.entities[function].flags & EF_KERNEL:
                how[0] |= FIX_INSTANCE
                return KEEP
            how[0] |= FIX_ZERO
            return FIX
        if m.mode & M_RELOCATABLE and row.flags & EF_WEAK:
            return KEEP
        return FIX
    if row.kind == E_UNIFIED:
        if m.family == FAMILY_C:
            return GONE
        if m.mode & M_RELOCATABLE and type not in (102, 103, 114):
            return KEEP
        how[0] |= FIX_ZERO
        return FIX
    if row.kind == E_CONST0_SIZE:
        return FIX
    return KEEP


cdef inline bint out_of_debug(const EntityRow* row, uint8_t role) noexcept nogil:
    """Whether a copy's frames and lines go: one that lost, and a kernel that was replaced."""
    return role == ROLE_LOST or (role == ROLE_REPLACED and row.flags & EF_KERNEL != 0)


cdef bint is_line(Merge* m, const SectionRow* s) noexcept nogil:
    return s.name_size == 11 and memcmp(m.arena + s.name, b".debug_line", 11) == 0


cdef int32_t relocation_row(Merge* m, int32_t at, int32_t out, bint explicit) noexcept nogil:
    """The output's relocation section of that form for `out`, born at its first entry."""
    cdef const SectionRow* s = &m.sections[at]
    cdef int32_t row = out_row(m, out).rela if explicit else out_row(m, out).rel
    cdef bint first = out_row(m, out).rela < 0 and out_row(m, out).rel < 0
    if row >= 0:
        return row
    if m.family == FAMILY_C and out_row(m, out).kind == K_CONSTANT_FUNC:
        return optimizer_relocations(m, out)
    row = new_out(m, K_RELOC, SHT_RELA if explicit else SHT_REL, 0x40, 8, 24 if explicit else 16)
    if row < 0:
        return -1
    out_row(m, row).target = out
    out_row(m, row).source = at
    if explicit:
        out_row(m, out).rela = row
    else:
        out_row(m, out).rel = row
    if m.family == FAMILY_C and out_row(m, out).kind == K_CONSTANT and out_row(m, out).bank == 3:
        user_constant(m, row, b".rela.nv.constant3", 18, b".rela.nv.constant.user", 22)
    else:
        name_out(m, row, m.arena + s.name, s.name_size)
    if first and m.mode & M_KEEP_RELOCS:
        resolved_row(m, out)
    return row


cdef void resolved_row(Merge* m, int32_t out) noexcept nogil:
    """--preserve-relocs: the section that will list what was resolved, named as `out` was born."""
    cdef const char* name = <const char*>m.str.data + out_row(m, out).symbol_name
    cdef uint32_t size = <uint32_t>strlen(name)
    cdef uint8_t* text = pool_join(&m.pool, b".nv.resolvedrela", 16, <const uint8_t*>name, size)
    cdef int32_t row = new_out(m, K_RESOLVED_RELA, SHT_CUDA_RESOLVED_RELA, 0x40, 8, 24)
    if text == NULL or row < 0:
        m.failed = True
        return
    out_row(m, row).target = out
    name_out(m, row, text, 16 + size)


cdef int32_t mercury_relocation_row(Merge* m, int32_t at, int32_t out) noexcept nogil:
    cdef int32_t plain = out_row(m, out).rela
    cdef int32_t row
    if plain < 0:
        plain = relocation_row_for_mercury(m, at, out)
        if plain < 0:
            return -1
    row = out_row(m, plain).merc
    return row if row >= 0 else new_mercury_relocations(m, plain, at)


cdef int32_t new_mercury_relocations(Merge* m, int32_t plain, int32_t source) noexcept nogil:
    cdef int32_t row = new_out(m, K_MERC_RELA, SHT_CUDA_MERC_RELA, SHF_MERCURY | 0x40, 8, 24)
    if row >= 0:
        out_row(m, row).source = source
        out_row(m, row).twin = plain
        out_row(m, plain).merc = row
    return row


cdef int32_t relocation_row_for_mercury(Merge* m, int32_t at, int32_t out) noexcept nogil:
    """A mercury relocation section without a plain one: the plain one is born all the same."""
    cdef const SectionRow* s = &m.sections[at]
    cdef int32_t row
    if out_row(m, out).kind == K_CONSTANT_FUNC:
        return optimizer_relocations(m, out)
    row = new_out(m, K_RELOC, SHT_RELA, 0x40, 8, 24)
    if row < 0:
        return -1
    out_row(m, row).target = out
    out_row(m, row).source = at
    out_row(m, out).rela = row
    name_out(m, row, m.arena + s.name + 8, s.name_size - 8)
    return row


cdef void count_entry(Merge* m, int32_t at, int32_t counter, int32_t out, bint explicit,
                      int64_t addend) noexcept nogil:
    """The sibling rule: a later explicit entry with addend 0 brings the other form's name.

    `counter` is the OutRow that counts: code has a count for each of its two lists.
    """
    cdef const SectionRow* s = &m.sections[at]
    cdef uint32_t skip = 13 if s.kind == K_MERC_RELA else 5
    cdef OutRow* row = out_row(m, counter)
    cdef uint8_t* text
    row.counted += explicit
    if not explicit or addend != 0 or row.counted < 2 or out_row(m, out).notes & OF_NAME_ONLY:
        return
    if m.family == FAMILY_C and out_row(m, out).kind == K_CONSTANT and out_row(m, out).bank == 3:
        text = pool_join(&m.pool, b".rel", 4, <const uint8_t*>b".nv.constant.user", 17)
        name_sibling(m, text, 21)
    else:
        text = pool_join(&m.pool, b".rel", 4, m.arena + s.name + skip, s.name_size - skip)
        name_sibling(m, text, 4 + s.name_size - skip)
    out_row(m, out).notes |= OF_NAME_ONLY       # once is enough


cdef void count_dead(Merge* m, int32_t at, int32_t out, int64_t addend,
                     int32_t function) noexcept nogil:
    """An entry for a dead function counts, and names the sibling of a section that is born."""
    if is_deselected(m, function):
        return
    if out_row(m, out).rela >= 0:
        count_entry(m, at, out, out, True, addend)
    else:
        out_row(m, out).counted += 1


cdef void name_sibling(Merge* m, const uint8_t* text, uint32_t size) noexcept nogil:
    cdef size_t before = m.shstr.size
    if (text == NULL or strings_intern(&m.shstr, text, size) < 0
            or strings_intern(&m.str, text, size) < 0):
        m.failed = True
    if m.shstr.size != before:
        m.births += 1


cdef uint32_t ordinary(uint32_t type, bint mercury) noexcept nogil:
    """The type that replaces a unified one when the link has no unified tables."""
    if mercury:
        if type == 0x10032:
            return 0x10002
        if type == 0x10033:
            return 0x10003
        if 0x10034 <= type <= 0x1003b:
            return type - 0x10034 + 0x10010
        if type == 0x1003e:
            return 0x10005
        if type == 0x1003f:
            return 0x10006
        return type
    if type == 102:
        return 2
    if type == 103:
        return 1
    if 104 <= type <= 111:
        return type - 104 + 76
    if type == 112:
        return 56
    if type == 113:
        return 57
    return type


cdef void add_keep(Merge* m, const Rela* r, int64_t addend, int32_t reloc, int32_t entity,
                   int32_t section, int32_t function, uint64_t base, uint32_t how,
                   bint mercury) noexcept nogil:
    cdef KeepRow* keep = <KeepRow*>vec_push(&m.keeps)
    cdef OutRow* row = out_row(m, reloc)
    if keep == NULL:
        m.failed = True
        return
    keep.offset = r.r_offset + base
    keep.addend = addend
    keep.type = r.r_type if m.mode & M_RELOCATABLE else ordinary(r.r_type, mercury)
    keep.entity = entity
    keep.section = -1
    if how & FIX_INSTANCE:
        m.uses_array[function] = True
        keep.entity = -1
        keep.section = -2 - function
    if section >= 0:
        keep.section = m.out_of[section]
        if keep.section >= 0 and out_row(m, keep.section).twin >= 0:
            keep.section = out_row(m, keep.section).twin    # mercury has no section symbols
        keep.addend += <int64_t>m.base[section]
    keep.next = row.head
    row.head = <int32_t>(m.keeps.count - 1)
    row.count += 1


cdef void add_fix(Merge* m, const Rela* r, int64_t addend, int32_t out, int32_t entity,
                  int32_t section, int32_t function, uint32_t how, uint64_t base,
                  int32_t reloc) noexcept nogil:
    cdef FixRow* fix = <FixRow*>vec_push(&m.fixes)
    if fix == NULL:
        m.failed = True
        return
    fix.offset = r.r_offset + base
    fix.addend = addend
    fix.type = r.r_type
    fix.out = out
    fix.entity = entity
    fix.section = section
    fix.function = function
    fix.how = how
    fix.order = 0
    fix.reloc = reloc
    if entity >= 0 and m.entities[entity].kind == E_SHARED and reloc >= 0:
        out_row(m, reloc).notes |= OF_EMPTY_STAYS


cdef void add_rebuild(Merge* m, int32_t at, const Rela* r, int64_t addend, int32_t out,
                      int32_t symbol, int32_t entity, int32_t section) noexcept nogil:
    cdef RebuildRow* row = <RebuildRow*>vec_push(&m.rebuilds)
    if row == NULL:
        m.failed = True
        return
    row.offset = r.r_offset
    row.addend = addend
    row.out = out
    row.piece = m.sections[at].target
    row.type = r.r_type
    row.entity = entity
    row.section = section
    row.spare = 0
    if entity < 0:
        row.outcome = OUTCOME_SECTION
    elif m.entities[entity].kind != E_FUNC:
        row.outcome = OUTCOME_OTHER
    elif out_of_debug(&m.entities[entity], m.role[symbol]):
        row.outcome = OUTCOME_LOST
    elif not m.entities[entity].flags & EF_LIVE:
        row.outcome = OUTCOME_DEAD
    else:
        row.outcome = OUTCOME_LIVE
