# Creation, per input: functions, other symbols, and the sections that no symbol needed.
#
# These are events of docs/order.md. Each creates what is not there yet, which gets the next number.
# A definition that lost creates nothing. One that won later takes over the symbol and the sections
# of an earlier one: if `f` of a.cubin is replaced by `f` of b.cubin, `f` and `.text.f` have the
# numbers that they got while a.cubin was read, and the code of b.cubin.
#
# 1. `create_functions` goes through the functions of a file, in the order in which resolution met
#    them. A dead one only gets numbers.
# 2. `create_objects` goes through its other symbols in the same way.
# 3. `create_other_sections` goes through its sections: it creates those that no symbol needed, and
#    says where in the output the bytes of each are (`assign_output_section`).
# 4. `create_info_sections` creates .nv.info.F of functions that have none.
#
# `create_pools` is called once, at the end of input: for kernels that get a pool only from device
# functions.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport STB_LOCAL, STB_WEAK, STT_FUNC
from base.nameindex cimport pool_allocate, pool_join_text
from base.texts cimport put_text
from base.vector cimport vec_append
from elfnumbers cimport (
    SHF_ALLOC, SHF_BARRIERS, SHF_BARRIERS_FIRST, SHF_INFO_LINK, SHT_CUDA_CONSTANT_B0,
)
from merge.state cimport (
    DEAD_INFO, DEAD_PARAMETERS, DEAD_POOL, DEAD_TEXT, KEEP_DEFINITION, KEEP_SYMBOLS,
    OPTIMIZER_PREFIX, Merge, SectionHead, add_listed, add_section_symbol, code_of,
    create_debug_shared, create_function_section, create_link_section, create_named_section,
    create_pool_relocations, create_unnamed_section, entity_name, find_function_section,
    find_or_create_file_section, find_or_create_optimizer_twin, find_plain_section, function_kept,
    function_read, head_of, head_of_kind, is_folded, keep_name, list_dead, list_number, name_out,
    new_local, new_out, new_symbol, out_row, pool_of,
)
from rownumbers cimport (
    EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LIVE, EF_UNSELECTED, EF_UNSIZED, E_CONST0_SIZE, E_FUNC,
    E_GLOBAL, E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, LINK_DEBUG, LINK_HOST_INFO, LINK_KEEP_RELOCS,
    LINK_RELOCATABLE, RESOLUTION_NONE,
)
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_COMMON_SHARED, IS_DEBUG, IS_KERNEL_SHARED, IS_LITERALS, IS_PARAMETERS,
    KIND, K_COMPAT, K_CONSTANT_FUNC, K_INFO_FUNC, K_SHARED, PLACE_JOINED, KindFacts,
)
from tables.kinds cimport is_a, is_function_bank, is_function_info, is_merc, is_plain
from tables.poolrows cimport POOL_LOST, POOL_NEW, PoolRow
from tables.rows cimport (
    OF_OWN_BYTES, PART_GLOBAL, SYSTEM_RESERVE, EntityRow, FileRow, OutRow, OutSymbolRow, SectionRow,
    SymbolRow, has_lost, is_instance, is_root, was_current,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_LEAN_NAMES, TRAIT_WEAK_GLOBAL


cdef inline bint is_emitted(Merge* merge, int32_t entity) noexcept nogil:
    """Whether the output's symbol table has the entity, by kind and state space."""
    cdef const EntityRow* e = &merge.merged.entities[entity]
    cdef const SymbolRow* s = &merge.objects.symbols[e.winner]
    if e.kind == E_FUNC:
        return e.flags & EF_LIVE != 0
    if e.kind == E_SHARED:
        return is_shared_emitted(merge, entity)
    if merge.objects.mode & (LINK_RELOCATABLE | LINK_KEEP_RELOCS):
        if ((e.kind == E_CONST0_SIZE or e.kind == E_UNIFIED)
                and not merge.objects.mode & LINK_RELOCATABLE):
            return False
        return s.name_size != 0 and not is_pooled(merge, e) and not is_lost_pool(merge, s.section)
    if e.kind == E_UNIFIED or e.kind == E_CONST0_SIZE or s.name_size == 0:
        return False
    return not e.flags & EF_INTERNAL


cdef inline bint is_pooled(Merge* merge, const EntityRow* e) noexcept nogil:
    """Whether it is a constant of a device function, whose section goes to the pools of kernels."""
    cdef int32_t section = merge.objects.symbols[e.winner].section
    return (section >= 0 and not merge.objects.mode & LINK_RELOCATABLE
            and is_plain(merge.objects.sections[section].kind, IS_LITERALS)
            and merge.merged.section_function[section] >= 0
            and not merge.merged.entities[merge.merged.section_function[section]].flags & EF_KERNEL)


cdef inline bint is_lost_pool(Merge* merge, int32_t section) noexcept nogil:
    """Whether a section is the pool of a copy that lost, which has no name of its own."""
    return (section >= 0 and is_plain(merge.objects.sections[section].kind, IS_LITERALS)
            and has_lost(merge.merged.section_resolution[section]))


cdef inline bint is_shared_emitted(Merge* merge, int32_t entity) noexcept nogil:
    """Whether a shared variable has a symbol: with -r, -g and --preserve-relocs only."""
    cdef const EntityRow* e = &merge.merged.entities[entity]
    cdef const SymbolRow* s = &merge.objects.symbols[e.winner]
    if merge.objects.mode & LINK_RELOCATABLE:
        return s.name_size != 0
    if not merge.objects.mode & (LINK_DEBUG | LINK_KEEP_RELOCS):
        return False
    if e.flags & EF_UNSIZED:
        return merge.arrays_stay or (merge.objects.mode & LINK_DEBUG and not is_instance(e))
    # A common variable that no code refers to has no place to name.
    return (merge.columns.referenced[entity] or s.section < 0
            or is_a(merge.objects.sections[s.section].kind, IS_KERNEL_SHARED))


cdef inline int32_t next_symbol_in_order(Merge* merge, const FileRow* file,
                                         bint functions) noexcept nogil:
    """The next symbol of the file if it is a function, with `functions` unset if not; else -1."""
    cdef int32_t symbol
    if merge.met_before == merge.merged.met_count:
        return -1
    symbol = merge.merged.met[merge.met_before]
    if (<uint32_t>symbol - file.first_symbol >= file.symbol_count
            or ((merge.objects.symbols[symbol].info & 15) == STT_FUNC) != functions):
        return -1
    merge.met_before += 1
    return symbol


cdef inline void create_functions(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the functions of a file, each with the sections that it alone needs."""
    cdef int32_t i, e, null
    cdef const SymbolRow* s
    cdef bint defined
    while True:
        i = next_symbol_in_order(merge, file, True)
        if i < 0:
            return
        s = &merge.objects.symbols[i]
        e = merge.merged.symbol_entity[i]
        if not merge.merged.entities[e].flags & EF_LIVE:
            if merge.objects.mode & LINK_HOST_INFO and merge.merged.entities[e].flags & EF_KERNEL:
                keep_name_of_shared(merge, e)
            if was_current(merge.merged.symbol_resolution[i]):
                list_dead(merge, e, DEAD_TEXT)
            continue
        defined = was_current(merge.merged.symbol_resolution[i])
        if merge.work.symbol_of[e] < 0:
            create_symbol(merge, e, is_listed_local(merge, s, defined))
            null = merge.merged.symbol_entity[file.first_symbol]
            if null >= 0 and s.section < 0 and merge.work.symbol_of[null] < 0:
                merge.work.symbol_of[null] = new_local(merge, null, <const uint8_t*>b"", 0)
        if (defined and is_a(merge.objects.sections[s.section].kind, IS_CODE)
                and not merge.merged.entities[e].flags & EF_INNER):
            create_code_section(merge, e, &merge.objects.sections[s.section])
        if merge.failed:
            return


cdef inline void create_code_section(Merge* merge, int32_t e,
                                     const SectionRow* text) noexcept nogil:
    """Create the section of a function's code, and the other sections of a kernel."""
    cdef SectionHead head = head_of_kind(text.kind)
    cdef int32_t out
    if code_of(merge, e) >= 0:
        return
    head.bank = text.bank
    head.source = <int32_t>(text - merge.objects.sections)
    out = create_named_section(merge, e, &head, merge.objects.arena + text.name, text.name_size)
    if out < 0:
        return
    add_section_symbol(merge, out)
    # A kernel that only device code launches gets its sections like a device function, except with
    # -use-host-info.
    if is_root(&merge.merged.entities[e]) or (
            merge.objects.mode & LINK_HOST_INFO and merge.merged.entities[e].flags & EF_KERNEL):
        create_function_section(merge, e, K_INFO_FUNC)
        create_shared_section(merge, e)


cdef inline void create_shared_section(Merge* merge, int32_t kernel) noexcept nogil:
    """Create .nv.shared.K of a kernel."""
    cdef int32_t out = create_function_section(merge, kernel, K_SHARED)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline void keep_name_of_shared(Merge* merge, int32_t kernel) noexcept nogil:
    """Keep only the name of the shared memory section of a kernel that host code does not name."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, kernel, &size)
    cdef uint8_t* text = pool_join_text(&merge.work.texts, b".nv.shared.", name, &size)
    keep_name(merge, text, size)


cdef inline bint is_listed_local(Merge* merge, const SymbolRow* s, bint defined) noexcept nogil:
    """Whether a new symbol is listed among the local ones: weak definitions once were, too."""
    cdef uint8_t binding = s.info >> 4
    return binding == STB_LOCAL or (binding == STB_WEAK and defined
                                    and not merge.objects.traits & TRAIT_WEAK_GLOBAL)


cdef inline void create_symbol(Merge* merge, int32_t e, bint early) noexcept nogil:
    """Create an entity's symbol, in the list of the local ones or in that of the global ones."""
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(merge, e, &size)
    if early:
        merge.work.symbol_of[e] = new_local(merge, e, text, size)
    else:
        merge.work.symbol_of[e] = new_symbol(merge, e, -1, PART_GLOBAL)


cdef inline void create_optimizer_symbol(Merge* merge, int32_t e, int32_t function,
                                         uint32_t number) noexcept nogil:
    """Create a function constant's symbol, on family C: the section's first name and a number.

    Releases with lean names keep those of the input.
    """
    cdef uint32_t size, digits = 1, i, remaining = number
    cdef const uint8_t* name = entity_name(merge, function, &size)
    cdef uint8_t* text
    while remaining >= 10:
        remaining //= 10
        digits += 1
    text = pool_allocate(&merge.work.texts, OPTIMIZER_PREFIX + size + 1 + digits)
    if text == NULL:
        merge.failed = True
        return
    put_text(text, b".nv.constant.optimizer.")
    memcpy(text + OPTIMIZER_PREFIX, name, size)
    text[OPTIMIZER_PREFIX + size] = c"."
    for i in range(digits):
        text[OPTIMIZER_PREFIX + size + digits - i] = <uint8_t>(c"0" + number % 10)
        number //= 10
    merge.work.symbol_of[e] = new_local(merge, e, text, OPTIMIZER_PREFIX + size + 1 + digits)


cdef inline void create_objects(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the other symbols of a file, each after the section that holds it."""
    cdef uint32_t number = 0
    cdef int32_t i, e
    cdef const SymbolRow* s
    cdef const EntityRow* row
    cdef bint lost
    while True:
        i = next_symbol_in_order(merge, file, False)
        if i < 0:
            return
        s = &merge.objects.symbols[i]
        e = merge.merged.symbol_entity[i]
        row = &merge.merged.entities[e]
        if s.section >= 0:
            # A definition that lost does nothing; its bytes find a section later, if it has any.
            lost = has_lost(merge.merged.symbol_resolution[i])
            merge.work.keep_reasons[s.section] |= KEEP_SYMBOLS | (0 if lost else KEEP_DEFINITION)
            if not lost:
                create_section_of_object(merge, s.section)
            if (merge.has_finalizer and not merge.objects.traits & TRAIT_LEAN_NAMES
                    and merge.objects.mode & (LINK_RELOCATABLE | LINK_KEEP_RELOCS)
                    and is_plain(merge.objects.sections[s.section].kind, IS_LITERALS)):
                number += 1
                if merge.work.symbol_of[e] < 0 and is_emitted(merge, e):
                    create_optimizer_symbol(merge, e, merge.merged.section_function[s.section],
                                            number)
                continue
        elif row.kind == E_SHARED and row.flags & EF_UNSIZED:
            create_debug_shared(merge, -1)
        if merge.work.symbol_of[e] < 0 and (
                is_emitted(merge, e) or (row.kind == E_UNIFIED and row.flags & EF_LIVE)):
            create_symbol(merge, e, is_listed_local(
                merge, s, merge.merged.symbol_resolution[i] != RESOLUTION_NONE or is_instance(row)))
            if merge.work.symbol_of[e] >= 0:
                (<OutSymbolRow*>merge.columns.out_symbols.data
                 + merge.work.symbol_of[e]).dropped = (not is_emitted(merge, e))


cdef inline void create_section_of_object(Merge* merge, int32_t section) noexcept nogil:
    """Create the section that holds an object, at the first object in it."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef int32_t e
    if is_a(s.kind, IS_KERNEL_SHARED):
        e = merge.merged.section_function[section]
        if e < 0:
            return
        if not merge.merged.entities[e].flags & EF_LIVE:
            # A dead kernel with variables of its own leaves this name and nothing else.
            keep_name(merge, merge.objects.arena + s.name, s.name_size)
        elif (merge.merged.entities[e].flags & EF_UNSELECTED
                and find_function_section(merge, e, s.kind, 0) < 0):
            create_shared_section(merge, e)
    elif is_a(s.kind, IS_COMMON_SHARED):
        create_debug_shared(merge, section)
    else:
        create_section(merge, section)


cdef inline void create_section(Merge* merge, int32_t section) noexcept nogil:
    """Create the output section for an input section, if it is needed and not there yet."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef int32_t e
    if is_function_bank(s.kind):
        e = function_read(merge, section)
        if e < 0:
            return
        if not merge.merged.entities[e].flags & EF_LIVE:
            number_dead_constants(merge, e, s)
            return
        if merge.has_finalizer and is_a(s.kind, IS_PARAMETERS):
            return
        if (is_a(s.kind, IS_LITERALS) and not merge.merged.entities[e].flags & EF_KERNEL
                and not merge.objects.mode & LINK_RELOCATABLE and not merge.work.own_pool[section]):
            return              # the bytes go to the pools of kernels
        if find_function_section(merge, e, s.kind, s.bank) >= 0:
            return
        create_constant_section(merge, e, s)
    elif KIND[s.kind].place == PLACE_JOINED:
        find_or_create_section(merge, section)


cdef inline void number_dead_constants(Merge* merge, int32_t e, const SectionRow* s) noexcept nogil:
    """Number the sections of a dead function's constants."""
    if is_a(s.kind, IS_PARAMETERS):
        if merge.has_finalizer:
            return              # the second program makes them
        if not merge.work.numbered_dead[e] & DEAD_PARAMETERS:
            list_number(merge)  # .rel.nv.constant0.F
        list_dead(merge, e, DEAD_PARAMETERS)
    elif merge.merged.entities[e].flags & EF_KERNEL:
        list_dead(merge, e, DEAD_POOL)


cdef inline int32_t find_or_create_section(Merge* merge, int32_t section) noexcept nogil:
    """The file-scope section of the name and kind of an input section; -1 without memory."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef SectionHead head = head_of(merge, s)
    return find_or_create_file_section(merge, <const char*>(merge.objects.arena + s.name),
                                       s.name_size, &head)


cdef inline void create_constant_section(Merge* merge, int32_t e,
                                         const SectionRow* s) noexcept nogil:
    """Create the section of a function's constants."""
    cdef bint has_relocation_name = (is_a(s.kind, IS_PARAMETERS)
                                     and not merge.objects.mode & LINK_RELOCATABLE)
    cdef SectionHead head = head_of(merge, s)
    cdef uint8_t* text = NULL
    cdef uint32_t size = s.name_size
    cdef int32_t out
    if merge.has_finalizer and is_a(s.kind, IS_LITERALS):
        head.kind = K_CONSTANT_FUNC
        create_optimizer_section(merge, e, &head)
        return
    if has_relocation_name:
        # Families A and B also name a relocation section that never exists: it comes before the
        # section among the symbols, and after it among the sections.
        text = pool_join_text(&merge.work.texts, b".rel", merge.objects.arena + s.name, &size)
        if text == NULL:
            merge.failed = True
            return
        add_listed(merge, &merge.work.local_list, text, size, -1, -1)
    out = create_named_section(merge, e, &head, merge.objects.arena + s.name, s.name_size)
    if has_relocation_name:
        add_listed(merge, &merge.work.section_list, text, size, -1, -1)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline int32_t create_optimizer_section(Merge* merge, int32_t e,
                                             const SectionHead* head) noexcept nogil:
    """Create bank 2 of a function, on family C as "optimizer" constants; -1 without memory.

    Those are renamed at the end.
    """
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, e, &size)
    cdef uint8_t* first = pool_join_text(&merge.work.texts, b".nv.constant.optimizer.", name, &size)
    cdef int32_t out
    if first == NULL:
        merge.failed = True
        return -1
    out = create_unnamed_section(merge, e, head)
    if out >= 0:
        out_row(merge, out).bank = 2
        name_out(merge, out, first, size)
        add_section_symbol(merge, out)
    return out


cdef inline void create_pools(Merge* merge) noexcept nogil:
    """Create pools that only device functions fill: of all kernels that reach one together."""
    cdef const PoolRow* rows = merge.merged.pools
    cdef size_t first = 0, last, i
    while first < merge.merged.pool_count and not merge.failed:
        last = first
        while last < merge.merged.pool_count and rows[last].function == rows[first].function:
            if rows[last].flags & POOL_NEW and pool_of(merge, rows[last].kernel) < 0:
                create_pool(merge, rows[last].kernel)
            last += 1
        for i in range(first, last):
            if not merge.has_finalizer or merge.failed or not rows[i].flags & POOL_NEW:
                continue
            create_pool_relocations(merge, rows[i].kernel)
        first = last


cdef inline void create_pool(Merge* merge, int32_t e) noexcept nogil:
    """Create the pool of a kernel that has no literals of its own."""
    cdef SectionHead head = head_of_kind(K_CONSTANT_FUNC)
    cdef int32_t out
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    head.type = SHT_CUDA_CONSTANT_B0 + 2
    head.align = 1
    if merge.has_finalizer:
        head.flags = SHF_ALLOC | SHF_INFO_LINK
        out = create_optimizer_section(merge, e, &head)
        if out >= 0:
            find_or_create_optimizer_twin(merge, out, -1)
        return
    name = entity_name(merge, e, &size)
    text = pool_join_text(&merge.work.texts, b".nv.constant2.", name, &size)
    if text == NULL:
        merge.failed = True
        return
    out = create_named_section(merge, e, &head, text, size)
    if out >= 0:
        out_row(merge, out).bank = 2
        add_section_symbol(merge, out)


cdef inline void create_other_sections(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the sections that no symbol needed; assign each input section its output section."""
    cdef const KindFacts* facts
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        facts = &KIND[merge.objects.sections[i].kind]
        if (merge.work.keep_reasons[i] == KEEP_SYMBOLS and facts.nobits
                and facts.holds in (E_GLOBAL, E_SYSTEM_SHARED)):
            continue            # every symbol in it lost: it takes no room
        if facts.holds == E_SYSTEM_SHARED and merge.objects.sections[i].size == 0:
            continue            # a whole program's, without variables
        if merge.work.own_pool[i] & POOL_LOST:
            create_lost_pool(merge, <int32_t>i)
        elif is_function_bank(merge.objects.sections[i].kind):
            create_section(merge, <int32_t>i)
        elif is_a(merge.objects.sections[i].kind, IS_COMMON_SHARED):
            create_debug_shared(merge, <int32_t>i)
        if merge.failed:
            return
        assign_output_section(merge, <int32_t>i)


cdef inline void create_lost_pool(Merge* merge, int32_t section) noexcept nogil:
    """Create the pool of a function whose copy lost, unless an earlier copy had one."""
    cdef int32_t e = merge.merged.section_function[section]
    cdef int32_t out
    if pool_of(merge, e) < 0:
        create_constant_section(merge, e, &merge.objects.sections[section])
    out = pool_of(merge, e)
    if out >= 0 and merge.has_finalizer:
        find_or_create_optimizer_twin(merge, out, -1)


cdef inline void assign_output_section(Merge* merge, int32_t section) noexcept nogil:
    """Set the output section of an input section and the offset of its bytes there.

    A section that all inputs share is created here, if no symbol needed it before.
    """
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef int32_t out, e
    cdef OutRow* row
    if is_a(s.kind, IS_CAPSULE):
        merge.failed |= not vec_append(&merge.work.capsules, &section, 1)
    if is_plain(s.kind, IS_CODE | IS_PARAMETERS | IS_LITERALS):
        e = function_kept(merge, section)
        if e < 0 or not merge.merged.entities[e].flags & EF_LIVE:
            return
        if merge.has_finalizer and is_a(s.kind, IS_PARAMETERS):
            merge.work.parameters_of[e] = section   # the second program makes theirs
            return
        out = find_function_section(merge, e, s.kind, s.bank)
        if out < 0:
            return
        row = out_row(merge, out)
        row.source = section
        row.size = s.size
        row.align = s.align
        row.type = s.type
        row.flags = s.flags
        if is_a(s.kind, IS_CODE) and not merge.objects.mode & LINK_RELOCATABLE:
            set_text_barriers(merge, e, row)
        elif is_a(s.kind, IS_LITERALS):
            row.flags |= KIND[s.kind].flags     # objects before 12.1 lack one
        merge.columns.out_of[section] = out
        return
    if KIND[s.kind].place == PLACE_JOINED:
        out = find_or_create_section(merge, section)
        if out < 0:
            return
        if (KIND[s.kind].holds == E_SYSTEM_SHARED and out_row(merge, out).size == 0
                and not merge.objects.mode & LINK_RELOCATABLE):
            out_row(merge, out).size = SYSTEM_RESERVE
        append_piece(merge, section, out)
    elif is_folded(merge, section):
        merge.columns.out_of[section] = merge.columns.out_of[merge.merged.stand_ins[section]]
        merge.columns.base[section] = merge.columns.base[merge.merged.stand_ins[section]]
    elif is_merc(s.kind, IS_DEBUG):
        out = find_or_create_mercury_section(merge, section)
        if out >= 0:
            append_piece(merge, section, out)
            if not is_repeat_of_plain(merge, section):
                out_row(merge, out).marks |= OF_OWN_BYTES
    elif is_merc(s.kind, IS_LITERALS):
        e = function_kept(merge, section)
        out = pool_of(merge, e) if e >= 0 else -1
        if out >= 0:
            out = find_or_create_optimizer_twin(merge, out, section)
            merge.columns.out_of[section] = out
            out_row(merge, out).size = s.size


cdef inline void set_text_barriers(Merge* merge, int32_t e, OutRow* row) noexcept nogil:
    """Clear the number of barriers, which is a record (`make_barriers_record`); early releases keep
    it in sh_flags.
    """
    cdef uint64_t barriers
    if not merge.objects.traits & TRAIT_EARLY_FILES:
        row.flags &= ~<uint64_t>SHF_BARRIERS
    elif merge.merged.entities[e].flags & EF_KERNEL:
        barriers = merge.merged.functions[e].barriers
        row.flags = row.flags & ~<uint64_t>SHF_BARRIERS | barriers << SHF_BARRIERS_FIRST


cdef inline bint is_repeat_of_plain(Merge* merge, int32_t section) noexcept nogil:
    """Whether a plain debug section of the file has the same bytes as this mercury section."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef const FileRow* file = &merge.objects.files[s.file]
    cdef const SectionRow* plain
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        plain = &merge.objects.sections[i]
        if is_plain(plain.kind, IS_DEBUG) and plain.offset == s.offset and plain.size == s.size:
            return True
    return False


cdef inline void append_piece(Merge* merge, int32_t section, int32_t out) noexcept nogil:
    """Append the bytes of an input section to an output section."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef OutRow* row = out_row(merge, out)
    merge.columns.base[section] = (row.size + s.align - 1) & ~<uint64_t>(s.align - 1)
    row.size = merge.columns.base[section] + s.size
    if s.align > row.align:
        row.align = s.align
    merge.columns.out_of[section] = out


cdef inline int32_t find_or_create_mercury_section(Merge* merge, int32_t section) noexcept nogil:
    """The mercury twin (`.nv.merc`) of a debug section, made if it is new; -1 without memory."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef int32_t plain = find_plain_section(merge, s), out
    if plain < 0 or out_row(merge, plain).merc >= 0:
        return out_row(merge, plain).merc if plain >= 0 else -1
    out = new_out(merge, s.kind, s.type, s.flags, 1, s.entsize)
    if out < 0:
        return -1
    list_number(merge)          # the only kind of mercury section that has one
    out_row(merge, out).source = section
    out_row(merge, out).twin = plain
    out_row(merge, plain).merc = out
    return out


cdef inline void create_info_sections(Merge* merge, const FileRow* file) noexcept nogil:
    """Create .nv.info.F of the functions of a file, and .nv.compat of early releases."""
    cdef uint32_t i
    cdef int32_t e, out
    cdef const SectionRow* s
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &merge.objects.sections[i]
        if s.kind == K_COMPAT and merge.objects.traits & TRAIT_EARLY_FILES and not merge.has_compat:
            create_link_section(merge, K_COMPAT)
            merge.has_compat = True
        if not is_function_info(s.kind):
            continue
        e = function_read(merge, <int32_t>i)
        if e < 0:
            continue
        if not merge.merged.entities[e].flags & EF_LIVE:
            list_dead(merge, e, DEAD_INFO)
            continue
        out = find_function_section(merge, e, s.kind, 0)
        if out < 0:
            out = create_function_section(merge, e, s.kind)
            if out >= 0:
                out_row(merge, out).source = <int32_t>i
        if function_kept(merge, <int32_t>i) >= 0:
            merge.columns.out_of[i] = out
