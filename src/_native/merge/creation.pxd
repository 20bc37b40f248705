# Creation, per input: functions, other symbols, and the sections that no symbol called for.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from elfnumbers cimport (
    SHF_ALLOC, SHF_BARRIERS, SHF_BARRIERS_FIRST, SHF_INFO_LINK, SHT_CUDA_CONSTANT_B0,
)
from sectionkinds cimport (
    IS_CODE, IS_COMMON_SHARED, IS_DEBUG, IS_KERNEL_SHARED, IS_LITERALS, IS_PARAMETERS, KIND,
    K_COMPAT, K_CONSTANT_FUNC, K_INFO_FUNC, K_SHARED, PLACE_JOINED, KindFacts,
)
from base.elf64 cimport STB_LOCAL, STB_WEAK, STT_FUNC
from tables.kinds cimport is_a, is_function_bank, is_function_info, is_merc, is_plain
from merge.state cimport (
    BURIED_INFO, BURIED_PARAMETERS, BURIED_POOL, BURIED_TEXT, WANTED_DEFINITION, WANTED_SYMBOLS,
    Head, Merge, add_listed, code_of, debug_shared, entity_name, file_section, function_kept,
    function_read, function_section, head_of, is_folded, joined_section, keep_name, list_dead,
    list_number, made_head, name_out, new_function_section, new_local, new_out, new_symbol,
    optimizer_twin, out_row, own_section, plain_of_mercury, pool_of, pool_relocations,
    section_symbol, unnamed_function_section,
)
from base.nameindex cimport pool_join, pool_take
from tables.poolrows cimport POOL_LOST, POOL_NEW, PoolRow
from tables.rows cimport (
    EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LIVE, EF_UNSELECTED, EF_UNSIZED, E_CONST0_SIZE, E_FUNC,
    E_GLOBAL, E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, M_DEBUG, M_HOST_INFO, M_KEEP_RELOCS,
    M_RELOCATABLE, OF_OWN_BYTES, PART_GLOBAL, RESOLUTION_NONE, SYSTEM_RESERVE, EntityRow, FileRow,
    OutRow, OutSymbolRow, SectionRow, SymbolRow, has_lost, is_instance, is_root, was_current,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_LEAN_NAMES, TRAIT_WEAK_GLOBAL


cdef inline bint stays(Merge* m, int32_t entity) noexcept nogil:
    """Whether the output's symbol table has the entity, by kind and state space."""
    cdef const EntityRow* e = &m.merged.entities[entity]
    cdef const SymbolRow* s = &m.objects.symbols[e.winner]
    if e.kind == E_FUNC:
        return e.flags & EF_LIVE != 0
    if e.kind == E_SHARED:
        return stays_shared(m, entity)
    if m.objects.mode & (M_RELOCATABLE | M_KEEP_RELOCS):
        if ((e.kind == E_CONST0_SIZE or e.kind == E_UNIFIED)
                and not m.objects.mode & M_RELOCATABLE):
            return False
        return s.name_size != 0 and not is_pooled(m, e) and not is_lost_pool(m, s.section)
    if e.kind == E_UNIFIED or e.kind == E_CONST0_SIZE or s.name_size == 0:
        return False
    return not e.flags & EF_INTERNAL


cdef inline bint is_pooled(Merge* m, const EntityRow* e) noexcept nogil:
    """A constant of a device function, whose section goes to the pools of kernels."""
    cdef int32_t section = m.objects.symbols[e.winner].section
    return (section >= 0 and not m.objects.mode & M_RELOCATABLE
            and is_plain(m.objects.sections[section].kind, IS_LITERALS)
            and m.merged.section_function[section] >= 0
            and not m.merged.entities[m.merged.section_function[section]].flags & EF_KERNEL)


cdef inline bint is_lost_pool(Merge* m, int32_t section) noexcept nogil:
    """The pool of a copy that lost: it has no name of its own."""
    return (section >= 0 and is_plain(m.objects.sections[section].kind, IS_LITERALS)
            and has_lost(m.merged.section_resolution[section]))


cdef inline bint stays_shared(Merge* m, int32_t entity) noexcept nogil:
    """Shared variables have symbols with -r, -g and --preserve-relocs only."""
    cdef const EntityRow* e = &m.merged.entities[entity]
    cdef const SymbolRow* s = &m.objects.symbols[e.winner]
    if m.objects.mode & M_RELOCATABLE:
        return s.name_size != 0
    if not m.objects.mode & (M_DEBUG | M_KEEP_RELOCS):
        return False
    if e.flags & EF_UNSIZED:
        return m.arrays_stay or (m.objects.mode & M_DEBUG and not is_instance(e))
    # A common variable that no code refers to has no place to name.
    return (m.columns.referenced[entity] or s.section < 0
            or is_a(m.objects.sections[s.section].kind, IS_KERNEL_SHARED))


cdef inline int32_t next_met(Merge* m, const FileRow* file, bint functions) noexcept nogil:
    """The symbol of the file that is met next, if it is a function or, as asked, is none; or -1."""
    cdef int32_t symbol
    if m.met_before == m.merged.met_count:
        return -1
    symbol = m.merged.met[m.met_before]
    if (<uint32_t>symbol - file.first_symbol >= file.symbol_count
            or ((m.objects.symbols[symbol].info & 15) == STT_FUNC) != functions):
        return -1
    m.met_before += 1
    return symbol


cdef inline void create_functions(Merge* m, const FileRow* file) noexcept nogil:
    """Creation of functions, each with the sections that it alone calls for."""
    cdef int32_t i, e, null
    cdef const SymbolRow* s
    cdef bint defined
    while True:
        i = next_met(m, file, True)
        if i < 0:
            return
        s = &m.objects.symbols[i]
        e = m.merged.symbol_entity[i]
        if not m.merged.entities[e].flags & EF_LIVE:
            if m.objects.mode & M_HOST_INFO and m.merged.entities[e].flags & EF_KERNEL:
                name_shared(m, e)
            if was_current(m.merged.symbol_resolution[i]):
                list_dead(m, e, BURIED_TEXT)
            continue
        defined = was_current(m.merged.symbol_resolution[i])
        if m.work.symbol_of[e] < 0:
            enter_symbol(m, e, stands_early(m, s, defined))
            null = m.merged.symbol_entity[file.first_symbol]
            if null >= 0 and s.section < 0 and m.work.symbol_of[null] < 0:
                m.work.symbol_of[null] = new_local(m, null, <const uint8_t*>b"", 0)
        if (defined and is_a(m.objects.sections[s.section].kind, IS_CODE)
                and not m.merged.entities[e].flags & EF_INNER):
            code_section(m, e, &m.objects.sections[s.section])
        if m.failed:
            return


cdef inline void code_section(Merge* m, int32_t e, const SectionRow* text) noexcept nogil:
    """Creation of a function's code, and of what else a kernel has."""
    cdef Head head = made_head(text.kind)
    cdef int32_t out
    if code_of(m, e) >= 0:
        return
    head.bank = text.bank
    head.source = <int32_t>(text - m.objects.sections)
    out = new_function_section(m, e, &head, m.objects.arena + text.name, text.name_size)
    if out < 0:
        return
    section_symbol(m, out)
    # One that only other code launches has its sections as a device function has, unless it
    # was host code that did not name it.
    if is_root(&m.merged.entities[e]) or (
            m.objects.mode & M_HOST_INFO and m.merged.entities[e].flags & EF_KERNEL):
        joined_section(m, e, K_INFO_FUNC)
        shared_section(m, e)


cdef inline void shared_section(Merge* m, int32_t kernel) noexcept nogil:
    cdef int32_t out = joined_section(m, kernel, K_SHARED)
    if out >= 0:
        section_symbol(m, out)


cdef inline void name_shared(Merge* m, int32_t kernel) noexcept nogil:
    """Keep only the name of the shared memory section of a kernel that host code does not name."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, kernel, &size)
    keep_name(m, pool_join(&m.work.texts, b".nv.shared.", 11, name, size), 11 + size)


cdef inline bint stands_early(Merge* m, const SymbolRow* s, bint defined) noexcept nogil:
    """Whether a new symbol is listed among the local ones: weak definitions once were, too."""
    cdef uint8_t binding = s.info >> 4
    return binding == STB_LOCAL or (binding == STB_WEAK and defined
                                    and not m.objects.traits & TRAIT_WEAK_GLOBAL)


cdef inline void enter_symbol(Merge* m, int32_t e, bint early) noexcept nogil:
    """Create an entity's symbol, in the list of the local ones or in that of the global ones."""
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(m, e, &size)
    if early:
        m.work.symbol_of[e] = new_local(m, e, text, size)
    else:
        m.work.symbol_of[e] = new_symbol(m, e, -1, PART_GLOBAL)


cdef inline void optimizer_symbol(Merge* m, int32_t e, int32_t function,
                                  uint32_t number) noexcept nogil:
    """Family C renames constants of a function that stay: the section's first name, a number.

    Releases with lean names keep those of the input.
    """
    cdef uint32_t size, digits = 1, i, rest = number
    cdef const uint8_t* name = entity_name(m, function, &size)
    cdef uint8_t* text
    while rest >= 10:
        rest //= 10
        digits += 1
    text = pool_take(&m.work.texts, 24 + size + digits)
    if text == NULL:
        m.failed = True
        return
    memcpy(text, <const char*>b".nv.constant.optimizer.", 23)
    memcpy(text + 23, name, size)
    text[23 + size] = c"."
    for i in range(digits):
        text[23 + size + digits - i] = <uint8_t>(c"0" + number % 10)
        number //= 10
    m.work.symbol_of[e] = new_local(m, e, text, 24 + size + digits)


cdef inline void create_objects(Merge* m, const FileRow* file) noexcept nogil:
    """Creation of the other symbols, each after the section that holds it."""
    cdef uint32_t number = 0
    cdef int32_t i, e
    cdef const SymbolRow* s
    cdef const EntityRow* row
    cdef bint lost
    while True:
        i = next_met(m, file, False)
        if i < 0:
            return
        s = &m.objects.symbols[i]
        e = m.merged.symbol_entity[i]
        row = &m.merged.entities[e]
        if s.section >= 0:
            # A definition that lost does nothing; its bytes find a section later, if it has any.
            lost = has_lost(m.merged.symbol_resolution[i])
            m.work.wanted[s.section] |= WANTED_SYMBOLS | (0 if lost else WANTED_DEFINITION)
            if not lost:
                section_of_object(m, s.section)
            if (m.second and not m.objects.traits & TRAIT_LEAN_NAMES
                    and m.objects.mode & (M_RELOCATABLE | M_KEEP_RELOCS)
                    and is_plain(m.objects.sections[s.section].kind, IS_LITERALS)):
                number += 1
                if m.work.symbol_of[e] < 0 and stays(m, e):
                    optimizer_symbol(m, e, m.merged.section_function[s.section], number)
                continue
        elif row.kind == E_SHARED and row.flags & EF_UNSIZED:
            debug_shared(m, -1)
        if m.work.symbol_of[e] < 0 and (
                stays(m, e) or (row.kind == E_UNIFIED and row.flags & EF_LIVE)):
            enter_symbol(m, e, stands_early(
                m, s, m.merged.symbol_resolution[i] != RESOLUTION_NONE or is_instance(row)))
            if m.work.symbol_of[e] >= 0:
                (<OutSymbolRow*>m.columns.out_symbols.data + m.work.symbol_of[e]).dropped = (
                    not stays(m, e))


cdef inline void section_of_object(Merge* m, int32_t at) noexcept nogil:
    """Creation of the section that holds an object, at the first object in it."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t e
    if is_a(s.kind, IS_KERNEL_SHARED):
        e = m.merged.section_function[at]
        if e < 0:
            return
        if not m.merged.entities[e].flags & EF_LIVE:
            # A dead kernel with variables of its own leaves this name and nothing else.
            keep_name(m, m.objects.arena + s.name, s.name_size)
        elif m.merged.entities[e].flags & EF_UNSELECTED and function_section(m, e, s.kind, 0) < 0:
            shared_section(m, e)
    elif is_a(s.kind, IS_COMMON_SHARED):
        debug_shared(m, at)
    else:
        create_section(m, at)


cdef inline void create_section(Merge* m, int32_t at) noexcept nogil:
    """Make sure the output has a section for input section `at`, if it is to have one."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t e
    if is_function_bank(s.kind):
        e = function_read(m, at)
        if e < 0:
            return
        if not m.merged.entities[e].flags & EF_LIVE:
            dead_constants(m, e, s)
            return
        if m.second and is_a(s.kind, IS_PARAMETERS):
            return
        if (is_a(s.kind, IS_LITERALS) and not m.merged.entities[e].flags & EF_KERNEL
                and not m.objects.mode & M_RELOCATABLE and not m.work.own_pool[at]):
            return              # its bytes go to the pools of kernels
        if function_section(m, e, s.kind, s.bank) >= 0:
            return
        constant_section(m, e, s)
    elif KIND[s.kind].place == PLACE_JOINED:
        section_of_file(m, at)


cdef inline void dead_constants(Merge* m, int32_t e, const SectionRow* s) noexcept nogil:
    if is_a(s.kind, IS_PARAMETERS):
        if m.second:
            return              # it makes them
        if not m.work.buried[e] & BURIED_PARAMETERS:
            list_number(m)      # .rel.nv.constant0.F
        list_dead(m, e, BURIED_PARAMETERS)
    elif m.merged.entities[e].flags & EF_KERNEL:
        list_dead(m, e, BURIED_POOL)


cdef inline int32_t section_of_file(Merge* m, int32_t at) noexcept nogil:
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef Head head = head_of(m, s)
    return file_section(m, <const char*>(m.objects.arena + s.name), s.name_size, &head)


cdef inline void constant_section(Merge* m, int32_t e, const SectionRow* s) noexcept nogil:
    cdef bint named = is_a(s.kind, IS_PARAMETERS) and not m.objects.mode & M_RELOCATABLE
    cdef Head head = head_of(m, s)
    cdef uint8_t* text = NULL
    cdef int32_t out
    if m.second and is_a(s.kind, IS_LITERALS):
        head.kind = K_CONSTANT_FUNC
        optimizer_section(m, e, &head)
        return
    if named:
        # Families A and B also name a relocation section that never exists: it comes before the
        # section among the symbols, and after it among the sections.
        text = pool_join(&m.work.texts, b".rel", 4, m.objects.arena + s.name, s.name_size)
        if text == NULL:
            m.failed = True
            return
        add_listed(m, &m.work.local_list, text, 4 + s.name_size, -1, -1)
    out = new_function_section(m, e, &head, m.objects.arena + s.name, s.name_size)
    if named:
        add_listed(m, &m.work.section_list, text, 4 + s.name_size, -1, -1)
    if out >= 0:
        section_symbol(m, out)


cdef inline int32_t optimizer_section(Merge* m, int32_t e, const Head* head) noexcept nogil:
    """Family C: bank 2 of a function is created as "optimizer" constants and renamed at the end."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, e, &size)
    cdef uint8_t* first = pool_join(&m.work.texts, b".nv.constant.optimizer.", 23, name, size)
    cdef int32_t out
    if first == NULL:
        m.failed = True
        return -1
    out = unnamed_function_section(m, e, head)
    if out >= 0:
        out_row(m, out).bank = 2
        name_out(m, out, first, 23 + size)
        section_symbol(m, out)
    return out


cdef inline void create_pools(Merge* m) noexcept nogil:
    """The pools that only device functions fill: of all kernels that reach a function together."""
    cdef const PoolRow* rows = m.merged.pools
    cdef size_t first = 0, last, i
    while first < m.merged.pool_count and not m.failed:
        last = first
        while last < m.merged.pool_count and rows[last].function == rows[first].function:
            if rows[last].flags & POOL_NEW and pool_of(m, rows[last].kernel) < 0:
                create_pool(m, rows[last].kernel)
            last += 1
        for i in range(first, last):
            if not m.second or m.failed or not rows[i].flags & POOL_NEW:
                continue
            pool_relocations(m, rows[i].kernel)
        first = last


cdef inline void create_pool(Merge* m, int32_t e) noexcept nogil:
    cdef Head head = made_head(K_CONSTANT_FUNC)
    cdef int32_t out
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    head.type = SHT_CUDA_CONSTANT_B0 + 2
    head.align = 1
    if m.second:
        head.flags = SHF_ALLOC | SHF_INFO_LINK
        out = optimizer_section(m, e, &head)
        if out >= 0:
            optimizer_twin(m, out, -1)
        return
    name = entity_name(m, e, &size)
    text = pool_join(&m.work.texts, b".nv.constant2.", 14, name, size)
    if text == NULL:
        m.failed = True
        return
    out = new_function_section(m, e, &head, text, 14 + size)
    if out >= 0:
        out_row(m, out).bank = 2
        section_symbol(m, out)


cdef inline void create_other_sections(Merge* m, const FileRow* file) noexcept nogil:
    """Creation of the sections that no symbol called for, and the place of every piece."""
    cdef const KindFacts* facts
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        facts = &KIND[m.objects.sections[i].kind]
        if (m.work.wanted[i] == WANTED_SYMBOLS and facts.nobits
                and facts.holds in (E_GLOBAL, E_SYSTEM_SHARED)):
            continue            # every symbol in it lost: it takes no room
        if facts.holds == E_SYSTEM_SHARED and m.objects.sections[i].size == 0:
            continue            # a whole program's, without variables
        if m.work.own_pool[i] & POOL_LOST:
            lost_pool(m, <int32_t>i)
        elif is_function_bank(m.objects.sections[i].kind):
            create_section(m, <int32_t>i)
        elif is_a(m.objects.sections[i].kind, IS_COMMON_SHARED):
            debug_shared(m, <int32_t>i)
        if m.failed:
            return
        place_piece(m, <int32_t>i)


cdef inline void lost_pool(Merge* m, int32_t at) noexcept nogil:
    """A pool for the function of a copy that lost, if copies before it brought none."""
    cdef int32_t e = m.merged.section_function[at]
    cdef int32_t out
    if pool_of(m, e) < 0:
        constant_section(m, e, &m.objects.sections[at])
    out = pool_of(m, e)
    if out >= 0 and m.second:
        optimizer_twin(m, out, -1)


cdef inline void place_piece(Merge* m, int32_t at) noexcept nogil:
    """The output section of input section `at` and the offset of its bytes there.

    What all inputs have one section for is created here, if no symbol called for it before.
    """
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t out, e
    cdef OutRow* row
    if is_plain(s.kind, IS_CODE | IS_PARAMETERS | IS_LITERALS):
        e = function_kept(m, at)
        if e < 0 or not m.merged.entities[e].flags & EF_LIVE:
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
        if is_a(s.kind, IS_CODE) and not m.objects.mode & M_RELOCATABLE:
            text_barriers(m, e, row)
        elif is_a(s.kind, IS_LITERALS):
            row.flags |= KIND[s.kind].flags     # objects before 12.1 lack one
        m.columns.out_of[at] = out
        return
    if KIND[s.kind].place == PLACE_JOINED:
        out = section_of_file(m, at)
        if out < 0:
            return
        if (KIND[s.kind].holds == E_SYSTEM_SHARED and out_row(m, out).size == 0
                and not m.objects.mode & M_RELOCATABLE):
            out_row(m, out).size = SYSTEM_RESERVE
        append_piece(m, at, out)
    elif is_folded(m, at):
        m.columns.out_of[at] = m.columns.out_of[m.merged.stand_ins[at]]
        m.columns.base[at] = m.columns.base[m.merged.stand_ins[at]]
    elif is_merc(s.kind, IS_DEBUG):
        out = mercury_section(m, at)
        if out >= 0:
            append_piece(m, at, out)
            if not repeats_plain(m, at):
                out_row(m, out).marks |= OF_OWN_BYTES
    elif is_merc(s.kind, IS_LITERALS):
        e = function_kept(m, at)
        out = pool_of(m, e) if e >= 0 else -1
        if out >= 0:
            out = optimizer_twin(m, out, at)
            m.columns.out_of[at] = out
            out_row(m, out).size = s.size


cdef inline void text_barriers(Merge* m, int32_t e, OutRow* row) noexcept nogil:
    """The number of barriers is a record, see `has_barriers`; of early releases it stays here."""
    cdef uint64_t reached
    if not m.objects.traits & TRAIT_EARLY_FILES:
        row.flags &= ~<uint64_t>SHF_BARRIERS
    elif m.merged.entities[e].flags & EF_KERNEL:
        reached = m.merged.functions[e].barriers
        row.flags = row.flags & ~<uint64_t>SHF_BARRIERS | reached << SHF_BARRIERS_FIRST


cdef inline bint repeats_plain(Merge* m, int32_t at) noexcept nogil:
    """Whether a plain section of the file stands where this mercury one does."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef const FileRow* file = &m.objects.files[s.file]
    cdef const SectionRow* plain
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        plain = &m.objects.sections[i]
        if is_plain(plain.kind, IS_DEBUG) and plain.offset == s.offset and plain.size == s.size:
            return True
    return False


cdef inline void append_piece(Merge* m, int32_t at, int32_t out) noexcept nogil:
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef OutRow* row = out_row(m, out)
    m.columns.base[at] = (row.size + s.align - 1) & ~<uint64_t>(s.align - 1)
    row.size = m.columns.base[at] + s.size
    if s.align > row.align:
        row.align = s.align
    m.columns.out_of[at] = out


cdef inline int32_t mercury_section(Merge* m, int32_t at) noexcept nogil:
    """The mercury twin of a debug section, `.nv.merc` and the plain name, created if it is new."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t plain = plain_of_mercury(m, s), out
    if plain < 0 or out_row(m, plain).merc >= 0:
        return out_row(m, plain).merc if plain >= 0 else -1
    out = new_out(m, s.kind, s.type, s.flags, 1, s.entsize)
    if out < 0:
        return -1
    list_number(m)              # the only kind of mercury section that has one
    out_row(m, out).source = at
    out_row(m, out).twin = plain
    out_row(m, plain).merc = out
    return out


cdef inline void create_info_sections(Merge* m, const FileRow* file) noexcept nogil:
    cdef uint32_t i
    cdef int32_t e, out
    cdef const SectionRow* s
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &m.objects.sections[i]
        if s.kind == K_COMPAT and m.objects.traits & TRAIT_EARLY_FILES and not m.has_compat:
            own_section(m, K_COMPAT)
            m.has_compat = True
        if not is_function_info(s.kind):
            continue
        e = function_read(m, <int32_t>i)
        if e < 0:
            continue
        if not m.merged.entities[e].flags & EF_LIVE:
            list_dead(m, e, BURIED_INFO)
            continue
        out = function_section(m, e, s.kind, 0)
        if out < 0:
            out = joined_section(m, e, s.kind)
            if out >= 0:
                out_row(m, out).source = <int32_t>i
        if function_kept(m, <int32_t>i) >= 0:
            m.columns.out_of[i] = out
