# Creation, per input: functions, other symbols, and the sections that no symbol needed.
#
# These are events of docs/order.md. Each creates what does not exist yet, with the next number.
# A definition that lost creates nothing, except that its pool may (`create_lost_pool`). One that
# won later takes over the symbol and the sections of an earlier one: if `f` of a.cubin is replaced
# by `f` of b.cubin, `f` and `.text.f` have the numbers that they got while a.cubin was read, and
# the code of b.cubin.
#
# 1. `create_functions` goes through the functions of a file, in the order in which resolution met
#    them. For a dead function it only uses up the number that nvlink gives its code. For a dead
#    kernel, with -use-host-info, it also reserves number and name of .nv.shared.K.
# 2. `create_objects` goes through its other symbols in the same way.
# 3. `create_other_sections` goes through its sections: it creates those that no symbol needed, and
#    says where in the output their bytes are (`assign_output_section`).
# 4. `create_info_sections` creates .nv.info.F of functions that have none.
#
# `prepare_sections` comes before all this, for every file: it marks what step 3 has to visit.
# `create_pools` is called once, at the end of input: for kernels that get a pool only from device
# functions. A pool, .nv.constant2.F, has the literals and jump tables of a function. From sm_100 on
# it is called .nv.constant.optimizer.F until the second program renames it, and "optimizer" in
# names of functions here means such a pool.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport round_up
from base.nameindex cimport pool_allocate, pool_join_text
from base.prefetch cimport AHEAD, prefetch
from base.texts cimport put_text
from base.vector cimport vec_append
from elfnumbers cimport (
    SHF_ALLOC, SHF_BARRIERS, SHF_BARRIERS_FIRST, SHF_INFO_LINK, SHT_CUDA_CONSTANT_B0, STB_LOCAL,
    STB_WEAK, STT_FUNC,
)
from merge.newrows cimport (
    OPTIMIZER, OPTIMIZER_PREFIX, SectionHead, add_section_symbol, append_list_entry,
    create_debug_shared, create_function_section, create_link_section, create_named_section,
    create_pool_relocations, create_unnamed_section, find_or_create_file_section,
    find_or_create_optimizer_twin, head_of, head_of_kind, name_out, new_local, new_out, new_symbol,
    number_dead_section, reserve_name, reserve_number,
)
from merge.state cimport (
    DEAD_INFO, DEAD_PARAMETERS, DEAD_POOL, DEAD_TEXT, MARK_DEFINITION, MARK_OWN_BYTES, MARK_SYMBOL,
    MARK_TO_PLACE, Merge, code_of, entity_name, find_function_section, find_plain_section,
    function_if_current, function_if_linked, is_folded, out_row, pool_of,
)
from rownumbers cimport (
    EF_INNER, EF_INTERNAL, EF_KERNEL, EF_LIVE, EF_UNSELECTED, EF_UNSIZED, E_CONST0_SIZE, E_FUNC,
    E_GLOBAL, E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, LINK_DEBUG, LINK_HOST_INFO, LINK_KEEP_RELOCS,
    LINK_RELOCATABLE, RESOLUTION_NONE,
)
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_COMMON_SHARED, IS_DEBUG, IS_KERNEL_SHARED, IS_LITERALS, IS_PARAMETERS,
    KIND, K_COMPAT, K_CONSTANT_FUNC, K_INFO_FUNC, K_SHARED, PLACE_JOINED, POOL_BANK, KindFacts,
)
from tables.kinds cimport is_a, is_function_bank, is_function_info, is_merc, is_plain
from tables.poolrows cimport POOL_LOST, POOL_NEW, PoolRow
from tables.rows cimport (
    OF_OWN_BYTES, PART_GLOBAL, SYSTEM_RESERVE, EntityNumber, EntityRow, FileRow, OutNumber, OutRow,
    OutSymbolRow, SectionNumber, SectionRef, SectionRow, SymbolNumber, SymbolRow, has_lost,
    is_instance, is_root, was_current,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_LEAN_NAMES, TRAIT_WEAK_GLOBAL


cdef inline bint is_emitted(Merge* merge, EntityNumber entity) noexcept nogil:
    """Return whether the output's symbol table has a symbol for the entity."""
    cdef const EntityRow* entity_row = &merge.merged.entities[entity]
    cdef const SymbolRow* symbol = &merge.objects.symbols[entity_row.winner]
    if entity_row.kind == E_FUNC:
        return entity_row.flags & EF_LIVE != 0
    if entity_row.kind == E_SHARED:
        return is_shared_emitted(merge, entity)
    if merge.objects.mode & (LINK_RELOCATABLE | LINK_KEEP_RELOCS):
        if ((entity_row.kind == E_CONST0_SIZE or entity_row.kind == E_UNIFIED)
                and not merge.objects.mode & LINK_RELOCATABLE):
            return False
        return (symbol.name_size != 0 and not is_pooled(merge, entity_row)
                and not is_lost_pool(merge, symbol.section))
    if entity_row.kind == E_UNIFIED or entity_row.kind == E_CONST0_SIZE or symbol.name_size == 0:
        return False
    return not entity_row.flags & EF_INTERNAL


cdef inline bint is_pooled(Merge* merge, const EntityRow* entity) noexcept nogil:
    """Return whether an entity lies in a device function's pool, and its bytes go to kernels.

    With -r they do not.
    """
    cdef SectionNumber section = merge.objects.symbols[entity.winner].section
    return (section >= 0 and not merge.objects.mode & LINK_RELOCATABLE
            and is_plain(merge.objects.sections[section].kind, IS_LITERALS)
            and merge.merged.section_function[section] >= 0
            and not merge.merged.entities[merge.merged.section_function[section]].flags & EF_KERNEL)


cdef inline bint is_lost_pool(Merge* merge, SectionNumber section) noexcept nogil:
    """Return whether an input section is the pool of a function copy that lost.

    Such a pool has no symbols in the output.
    """
    return (section >= 0 and is_plain(merge.objects.sections[section].kind, IS_LITERALS)
            and has_lost(merge.merged.section_resolution[section]))


cdef inline bint is_shared_emitted(Merge* merge, EntityNumber entity) noexcept nogil:
    """Return whether a shared variable has a symbol: with -r, -g or --preserve-relocs only."""
    cdef const EntityRow* entity_row = &merge.merged.entities[entity]
    cdef const SymbolRow* symbol = &merge.objects.symbols[entity_row.winner]
    if merge.objects.mode & LINK_RELOCATABLE:
        return symbol.name_size != 0
    if not merge.objects.mode & (LINK_DEBUG | LINK_KEEP_RELOCS):
        return False
    if entity_row.flags & EF_UNSIZED:
        return (merge.arrays_stay
                or (merge.objects.mode & LINK_DEBUG and not is_instance(entity_row)))
    # A shared variable that belongs to no kernel, and to which no code refers, has no address, so
    # it needs no symbol.
    return (merge.columns.referenced[entity] or symbol.section < 0
            or is_a(merge.objects.sections[symbol.section].kind, IS_KERNEL_SHARED))


cdef inline SymbolNumber next_symbol_in_order(Merge* merge, const FileRow* file,
                                              bint functions) noexcept nogil:
    """Take the next symbol of the file in the order of resolution, if it is of the right sort.

    With `functions` that is a function, without it any other symbol. Returns -1 if the next symbol
    is of the other sort or of a later file, or if there is none.
    """
    cdef SymbolNumber symbol
    if merge.met_before == merge.merged.met_count:
        return -1
    if merge.met_before + AHEAD < merge.merged.met_count:
        prefetch(&merge.objects.symbols[merge.merged.met[merge.met_before + AHEAD]])
    symbol = merge.merged.met[merge.met_before]
    if (<uint32_t>symbol - file.first_symbol >= file.symbol_count
            or ((merge.objects.symbols[symbol].info & 15) == STT_FUNC) != functions):
        return -1
    merge.met_before += 1
    return symbol


cdef inline void create_functions(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the symbols of a file's live functions, each with the section of its code."""
    cdef SymbolNumber symbol
    cdef EntityNumber entity, null_entity
    cdef const SymbolRow* symbol_row
    cdef bint is_definition         # the symbol was the current copy when its file was read
    while True:
        symbol = next_symbol_in_order(merge, file, True)
        if symbol < 0:
            return
        symbol_row = &merge.objects.symbols[symbol]
        entity = merge.merged.symbol_entity[symbol]
        if not merge.merged.entities[entity].flags & EF_LIVE:
            if (merge.objects.mode & LINK_HOST_INFO
                    and merge.merged.entities[entity].flags & EF_KERNEL):
                reserve_shared_name(merge, entity)
            if was_current(merge.merged.symbol_resolution[symbol]):
                number_dead_section(merge, entity, DEAD_TEXT)
            continue
        is_definition = was_current(merge.merged.symbol_resolution[symbol])
        if merge.work.symbol_of[entity] < 0:
            create_symbol(merge, entity, is_listed_local(merge, symbol_row, is_definition))
            # Before 13.0, in an executable that keeps dead code, the null symbol of a file has an
            # entity if the file is the first to name some function, and does not define it. nvlink
            # makes a local symbol without a name of it (`assign_function_entity` of resolve).
            null_entity = merge.merged.symbol_entity[file.first_symbol]
            if (null_entity >= 0 and symbol_row.section < 0
                    and merge.work.symbol_of[null_entity] < 0):
                merge.work.symbol_of[null_entity] = new_local(merge, null_entity,
                                                              <const uint8_t*>b"", 0)
        if (is_definition and is_a(merge.objects.sections[symbol_row.section].kind, IS_CODE)
                and not merge.merged.entities[entity].flags & EF_INNER):
            create_code_section(merge, entity, &merge.objects.sections[symbol_row.section])
        if merge.failed:
            return


cdef inline void create_code_section(Merge* merge, EntityNumber function,
                                     const SectionRow* text) noexcept nogil:
    """Create a function's code section; for most kernels also .nv.info.K and .nv.shared.K."""
    cdef SectionHead head = head_of_kind(text.kind)
    cdef OutNumber out
    if code_of(merge, function) >= 0:
        return
    head.bank = text.bank
    head.source = <SectionNumber>(text - merge.objects.sections)
    out = create_named_section(merge, function, &head, merge.objects.arena + text.name,
                               text.name_size)
    if out < 0:
        return
    add_section_symbol(merge, out)
    # A kernel outside of the selection, which device code launches or which is idle, gets these two
    # sections later, if at all, except with -use-host-info.
    if (is_root(&merge.merged.entities[function])
            or (merge.objects.mode & LINK_HOST_INFO
                and merge.merged.entities[function].flags & EF_KERNEL)):
        create_function_section(merge, function, K_INFO_FUNC)
        create_shared_section(merge, function)


cdef inline void create_shared_section(Merge* merge, EntityNumber kernel) noexcept nogil:
    """Create .nv.shared.K of a kernel, with its section symbol."""
    cdef OutNumber out = create_function_section(merge, kernel, K_SHARED)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline void reserve_shared_name(Merge* merge, EntityNumber kernel) noexcept nogil:
    """Reserve number and name of .nv.shared.K, for a dead kernel in a link with -use-host-info."""
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, kernel, &size)
    cdef uint8_t* text = pool_join_text(&merge.work.texts, b".nv.shared.", name, &size)
    reserve_name(merge, text, size)


cdef inline bint is_listed_local(Merge* merge, const SymbolRow* symbol,
                                 bint is_definition) noexcept nogil:
    """Return whether a new symbol enters the list of local symbols.

    Releases before 13.4 list weak definitions there, too.
    """
    cdef uint8_t binding = symbol.info >> 4
    return binding == STB_LOCAL or (binding == STB_WEAK and is_definition
                                    and not merge.objects.traits & TRAIT_WEAK_GLOBAL)


cdef inline void create_symbol(Merge* merge, EntityNumber entity, bint is_local) noexcept nogil:
    """Create an entity's symbol, as one of the local or one of the global symbols."""
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(merge, entity, &size)
    if is_local:
        merge.work.symbol_of[entity] = new_local(merge, entity, text, size)
    else:
        merge.work.symbol_of[entity] = new_symbol(merge, entity, -1, PART_GLOBAL)


cdef inline void create_optimizer_symbol(Merge* merge, EntityNumber entity, EntityNumber function,
                                         uint32_t number) noexcept nogil:
    """Create the symbol of a constant in the pool of `function`, from sm_100 on.

    nvlink names it `.nv.constant.optimizer.F.number`, where `number` counts the constants in all
    pools of its file. Releases from 13.5 on (TRAIT_LEAN_NAMES) keep the name that the input has.
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
    put_text(text, OPTIMIZER)
    memcpy(text + OPTIMIZER_PREFIX, name, size)
    text[OPTIMIZER_PREFIX + size] = c"."
    for i in range(digits):
        text[OPTIMIZER_PREFIX + size + digits - i] = <uint8_t>(c"0" + number % 10)
        number //= 10
    merge.work.symbol_of[entity] = new_local(merge, entity, text,
                                             OPTIMIZER_PREFIX + size + 1 + digits)


cdef inline void create_objects(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the symbols of a file that are not functions, each after the section it lies in."""
    cdef uint32_t number = 0            # constants of this file in pools, so far
    cdef SymbolNumber symbol
    cdef EntityNumber entity
    cdef const SymbolRow* symbol_row
    cdef const EntityRow* entity_row
    cdef bint lost
    while True:
        symbol = next_symbol_in_order(merge, file, False)
        if symbol < 0:
            return
        symbol_row = &merge.objects.symbols[symbol]
        entity = merge.merged.symbol_entity[symbol]
        entity_row = &merge.merged.entities[entity]
        if symbol_row.section >= 0:
            # A definition that lost creates nothing here. If its bytes need a section,
            # `create_other_sections` creates it.
            lost = has_lost(merge.merged.symbol_resolution[symbol])
            merge.work.section_marks[symbol_row.section] |= MARK_SYMBOL
            if not lost:
                merge.work.section_marks[symbol_row.section] |= MARK_DEFINITION
                create_section_of_object(merge, symbol_row.section)
            if (merge.has_finalizer and not merge.objects.traits & TRAIT_LEAN_NAMES
                    and merge.objects.mode & (LINK_RELOCATABLE | LINK_KEEP_RELOCS)
                    and is_plain(merge.objects.sections[symbol_row.section].kind, IS_LITERALS)):
                number += 1
                if merge.work.symbol_of[entity] < 0 and is_emitted(merge, entity):
                    create_optimizer_symbol(merge, entity,
                                            merge.merged.section_function[symbol_row.section],
                                            number)
                continue
        elif entity_row.kind == E_SHARED and entity_row.flags & EF_UNSIZED:
            create_debug_shared(merge, -1)
        if (merge.work.symbol_of[entity] < 0
                and (is_emitted(merge, entity)
                     or (entity_row.kind == E_UNIFIED and entity_row.flags & EF_LIVE))):
            create_symbol(merge, entity,
                          is_listed_local(merge, symbol_row,
                                          merge.merged.symbol_resolution[symbol] != RESOLUTION_NONE
                                          or is_instance(entity_row)))
            if merge.work.symbol_of[entity] >= 0:
                (<OutSymbolRow*>merge.columns.out_symbols.data
                 + merge.work.symbol_of[entity]).dropped = (not is_emitted(merge, entity))


cdef inline void create_section_of_object(Merge* merge, SectionNumber section) noexcept nogil:
    """Create the output section for `section`, in which an object lies, unless it exists.

    An object is any symbol except for functions.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef EntityNumber kernel
    if is_a(section_row.kind, IS_KERNEL_SHARED):
        kernel = merge.merged.section_function[section]
        if kernel < 0:
            return
        if not merge.merged.entities[kernel].flags & EF_LIVE:
            # The shared memory of a dead kernel leaves only this name, and a number.
            reserve_name(merge, merge.objects.arena + section_row.name, section_row.name_size)
        elif (merge.merged.entities[kernel].flags & EF_UNSELECTED
                and find_function_section(merge, kernel, section_row.kind, 0) < 0):
            create_shared_section(merge, kernel)
    elif is_a(section_row.kind, IS_COMMON_SHARED):
        create_debug_shared(merge, section)
    else:
        create_section(merge, section)


cdef inline void create_section(Merge* merge, SectionNumber section) noexcept nogil:
    """Create the output section for an input section, unless it exists or the output omits it.

    A dead function's constants only reserve numbers.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef EntityNumber function
    if is_function_bank(section_row.kind):
        function = function_if_current(merge, section)
        if function < 0:
            return
        if not merge.merged.entities[function].flags & EF_LIVE:
            reserve_dead_constants(merge, function, section_row)
            return
        if merge.has_finalizer and is_a(section_row.kind, IS_PARAMETERS):
            return
        if (is_a(section_row.kind, IS_LITERALS)
                and not merge.merged.entities[function].flags & EF_KERNEL
                and not merge.objects.mode & LINK_RELOCATABLE and not merge.work.own_pool[section]):
            return              # the bytes go to the pools of kernels
        if find_function_section(merge, function, section_row.kind, section_row.bank) >= 0:
            return
        create_constant_section(merge, function, section_row)
    elif KIND[section_row.kind].place == PLACE_JOINED:
        find_or_create_section(merge, section)


cdef inline void reserve_dead_constants(Merge* merge, EntityNumber function,
                                        const SectionRow* section) noexcept nogil:
    """Reserve numbers for the sections that a dead function's constants would create."""
    if is_a(section.kind, IS_PARAMETERS):
        if merge.has_finalizer:
            return              # the second program creates them
        if not merge.work.numbered_dead[function] & DEAD_PARAMETERS:
            reserve_number(merge)       # of .rel.nv.constant0.F
        number_dead_section(merge, function, DEAD_PARAMETERS)
    elif merge.merged.entities[function].flags & EF_KERNEL:
        number_dead_section(merge, function, DEAD_POOL)


cdef inline OutNumber find_or_create_section(Merge* merge, SectionNumber section) noexcept nogil:
    """Return the OutRow with the name and kind of a file-scope input section; -1 without memory.

    It is created if it is new.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef SectionHead head = head_of(merge, section_row)
    return find_or_create_file_section(merge, <const char*>(merge.objects.arena + section_row.name),
                                       section_row.name_size, &head)


cdef inline void create_constant_section(Merge* merge, EntityNumber function,
                                         const SectionRow* section) noexcept nogil:
    """Create the section of a function's constants, for the input section that has them."""
    cdef bint has_relocation_name = (is_a(section.kind, IS_PARAMETERS)
                                     and not merge.objects.mode & LINK_RELOCATABLE)
    cdef SectionHead head = head_of(merge, section)
    cdef uint8_t* text = NULL
    cdef uint32_t size = section.name_size
    cdef OutNumber out
    if merge.has_finalizer and is_a(section.kind, IS_LITERALS):
        head.kind = K_CONSTANT_FUNC
        create_optimizer_section(merge, function, &head)
        return
    if has_relocation_name:
        # Up to sm_90, there is also a name for a relocation section that never exists. It comes
        # before the section in the list of symbols, and after it in the section list.
        text = pool_join_text(&merge.work.texts, b".rel", merge.objects.arena + section.name, &size)
        if text == NULL:
            merge.failed = True
            return
        append_list_entry(merge, &merge.work.local_list, text, size, -1, -1)
    out = create_named_section(merge, function, &head, merge.objects.arena + section.name,
                               section.name_size)
    if has_relocation_name:
        append_list_entry(merge, &merge.work.section_list, text, size, -1, -1)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline OutNumber create_optimizer_section(Merge* merge, EntityNumber function,
                                               const SectionHead* head) noexcept nogil:
    """Create the pool `.nv.constant.optimizer.F` of a function, from sm_100 on; -1 without memory.

    The second program renames it to `.nv.constant2.F`.
    """
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, function, &size)
    cdef uint8_t* text = pool_join_text(&merge.work.texts, OPTIMIZER, name, &size)
    cdef OutNumber out
    if text == NULL:
        merge.failed = True
        return -1
    out = create_unnamed_section(merge, function, head)
    if out >= 0:
        out_row(merge, out).bank = POOL_BANK
        name_out(merge, out, text, size)
        add_section_symbol(merge, out)
    return out


cdef inline void create_pools(Merge* merge) noexcept nogil:
    """Create pools of kernels whose constants all come from device functions they reach.

    The PoolRows of one function follow each other. First each kernel whose pool begins with one of
    them (POOL_NEW) gets the section, unless it exists. Then, from sm_100 on, each pool that begins
    with one of them gets the relocation sections that it lacks.
    """
    cdef const PoolRow* pools = merge.merged.pools
    cdef size_t first = 0, end, i
    while first < merge.merged.pool_count and not merge.failed:
        end = first
        while end < merge.merged.pool_count and pools[end].function == pools[first].function:
            if pools[end].flags & POOL_NEW and pool_of(merge, pools[end].kernel) < 0:
                create_pool(merge, pools[end].kernel)
            end += 1
        for i in range(first, end):
            if not merge.has_finalizer or merge.failed or not pools[i].flags & POOL_NEW:
                continue
            create_pool_relocations(merge, pools[i].kernel)
        first = end


cdef inline void create_pool(Merge* merge, EntityNumber kernel) noexcept nogil:
    """Create the pool of a kernel that has no literals of its own."""
    cdef SectionHead head = head_of_kind(K_CONSTANT_FUNC)
    cdef OutNumber out
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    head.type = SHT_CUDA_CONSTANT_B0 + POOL_BANK
    head.align = 1
    if merge.has_finalizer:
        head.flags = SHF_ALLOC | SHF_INFO_LINK
        out = create_optimizer_section(merge, kernel, &head)
        if out >= 0:
            find_or_create_optimizer_twin(merge, out, -1)
        return
    name = entity_name(merge, kernel, &size)
    text = pool_join_text(&merge.work.texts, b".nv.constant2.", name, &size)
    if text == NULL:
        merge.failed = True
        return
    out = create_named_section(merge, kernel, &head, text, size)
    if out >= 0:
        out_row(merge, out).bank = POOL_BANK
        add_section_symbol(merge, out)


cdef inline void prepare_sections(Merge* merge, const FileRow* file) noexcept nogil:
    """Mark the sections for which `create_other_sections` may have something to do.

    Also marks mercury debug sections with bytes of their own. `file` has all these sections.
    """
    cdef SectionRef i, first = file.first_section, end = file.first_section + file.section_count
    cdef SectionRef debug_end = first         # number after the last plain section with debug data
    cdef uint16_t kind
    for i in range(first, end):
        kind = merge.objects.sections[i].kind
        if is_plain(kind, IS_DEBUG):
            debug_end = i + 1
        if is_to_place(kind) or merge.work.own_pool[i] or is_folded(merge, <SectionNumber>i):
            merge.work.section_marks[i] |= MARK_TO_PLACE
    for i in range(first, end):
        if (is_merc(merge.objects.sections[i].kind, IS_DEBUG)
                and not is_repeat_of_plain(merge, <SectionNumber>i, first, debug_end)):
            merge.work.section_marks[i] |= MARK_OWN_BYTES


cdef inline bint is_to_place(uint16_t kind) noexcept nogil:
    """Return whether `create_other_sections` may have something to do for sections of a kind."""
    return (is_a(kind, IS_CAPSULE | IS_DEBUG | IS_LITERALS | IS_COMMON_SHARED)
            or is_plain(kind, IS_CODE | IS_PARAMETERS) or KIND[kind].place == PLACE_JOINED)


cdef inline void create_other_sections(Merge* merge, const FileRow* file) noexcept nogil:
    """Create the sections that no symbol needed; assign output sections to those of the input."""
    cdef const KindFacts* facts
    cdef SectionRef i
    for i in range(file.first_section, file.first_section + file.section_count):
        if not merge.work.section_marks[i] & MARK_TO_PLACE:
            continue
        facts = &KIND[merge.objects.sections[i].kind]
        if (merge.work.section_marks[i] & (MARK_SYMBOL | MARK_DEFINITION) == MARK_SYMBOL
                and facts.nobits and facts.entity_kind in (E_GLOBAL, E_SYSTEM_SHARED)):
            continue            # every symbol in the section lost: it takes no memory
        if facts.entity_kind == E_SYSTEM_SHARED and merge.objects.sections[i].size == 0:
            continue            # whole programs have such a section even without variables
        if merge.work.own_pool[i] & POOL_LOST:
            create_lost_pool(merge, <SectionNumber>i)
        elif is_function_bank(merge.objects.sections[i].kind):
            create_section(merge, <SectionNumber>i)
        elif is_a(merge.objects.sections[i].kind, IS_COMMON_SHARED):
            create_debug_shared(merge, <SectionNumber>i)
        if merge.failed:
            return
        assign_output_section(merge, <SectionNumber>i)


cdef inline void create_lost_pool(Merge* merge, SectionNumber section) noexcept nogil:
    """Create a function's pool, unless it exists, for `section`, the pool of a copy that lost."""
    cdef EntityNumber function = merge.merged.section_function[section]
    cdef OutNumber out
    if pool_of(merge, function) < 0:
        create_constant_section(merge, function, &merge.objects.sections[section])
    out = pool_of(merge, function)
    if out >= 0 and merge.has_finalizer:
        find_or_create_optimizer_twin(merge, out, -1)


cdef inline void assign_output_section(Merge* merge, SectionNumber section) noexcept nogil:
    """Set the output section of an input section and the offset of its bytes there.

    File-scope and mercury sections that no symbol has created are created here.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef OutNumber out
    cdef EntityNumber function
    cdef OutRow* row
    if is_a(section_row.kind, IS_CAPSULE):
        merge.failed |= not vec_append(&merge.work.capsules, &section, 1)
    if is_plain(section_row.kind, IS_CODE | IS_PARAMETERS | IS_LITERALS):
        function = function_if_linked(merge, section)
        if function < 0 or not merge.merged.entities[function].flags & EF_LIVE:
            return
        if merge.has_finalizer and is_a(section_row.kind, IS_PARAMETERS):
            merge.work.parameters_of[function] = section    # for `create_parameter_sections`
            return
        out = find_function_section(merge, function, section_row.kind, section_row.bank)
        if out < 0:
            return
        row = out_row(merge, out)
        row.source = section
        row.size = section_row.size
        row.align = section_row.align
        row.type = section_row.type
        row.flags = section_row.flags
        if is_a(section_row.kind, IS_CODE) and not merge.objects.mode & LINK_RELOCATABLE:
            set_text_barriers(merge, function, row)
        elif is_a(section_row.kind, IS_LITERALS):
            row.flags |= KIND[section_row.kind].flags       # objects before 12.1 lack one of these
        merge.columns.out_of[section] = out
        return
    if KIND[section_row.kind].place == PLACE_JOINED:
        out = find_or_create_section(merge, section)
        if out < 0:
            return
        if (KIND[section_row.kind].entity_kind == E_SYSTEM_SHARED and out_row(merge, out).size == 0
                and not merge.objects.mode & LINK_RELOCATABLE):
            out_row(merge, out).size = SYSTEM_RESERVE
        append_piece(merge, section, out)
    elif is_folded(merge, section):
        merge.columns.out_of[section] = merge.columns.out_of[merge.merged.stand_ins[section]]
        merge.columns.base[section] = merge.columns.base[merge.merged.stand_ins[section]]
    elif is_merc(section_row.kind, IS_DEBUG):
        out = find_or_create_mercury_section(merge, section)
        if out >= 0:
            append_piece(merge, section, out)
            if merge.work.section_marks[section] & MARK_OWN_BYTES:
                out_row(merge, out).marks |= OF_OWN_BYTES
    elif is_merc(section_row.kind, IS_LITERALS):
        function = function_if_linked(merge, section)
        out = pool_of(merge, function) if function >= 0 else -1
        if out >= 0:
            out = find_or_create_optimizer_twin(merge, out, section)
            if out >= 0:
                merge.columns.out_of[section] = out
                out_row(merge, out).size = section_row.size


cdef inline void set_text_barriers(Merge* merge, EntityNumber function, OutRow* row) noexcept nogil:
    """Set the number of barriers in the sh_flags of a function's code.

    Only release 12.9 has it there, for kernels; later ones have an attribute record instead
    (`make_barriers_record`), and the bits are cleared.
    """
    cdef uint64_t barriers
    if not merge.objects.traits & TRAIT_EARLY_FILES:
        row.flags &= ~<uint64_t>SHF_BARRIERS
    elif merge.merged.entities[function].flags & EF_KERNEL:
        barriers = merge.merged.functions[function].barriers
        row.flags = row.flags & ~<uint64_t>SHF_BARRIERS | barriers << SHF_BARRIERS_FIRST


cdef inline bint is_repeat_of_plain(Merge* merge, SectionNumber section, SectionRef first,
                                    SectionRef end) noexcept nogil:
    """Return whether the mercury debug section `section` has the bytes of a plain one.

    The file's plain debug sections are among the sections from `first` to `end` - 1.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef const SectionRow* plain
    cdef SectionRef i
    for i in range(first, end):
        plain = &merge.objects.sections[i]
        if (is_plain(plain.kind, IS_DEBUG) and plain.offset == section_row.offset
                and plain.size == section_row.size):
            return True
    return False


cdef inline void append_piece(Merge* merge, SectionNumber section, OutNumber out) noexcept nogil:
    """Append the bytes of an input section to an output section, at their alignment."""
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef OutRow* row = out_row(merge, out)
    merge.columns.base[section] = round_up(row.size, section_row.align)
    row.size = merge.columns.base[section] + section_row.size
    if section_row.align > row.align:
        row.align = section_row.align
    merge.columns.out_of[section] = out


cdef inline OutNumber find_or_create_mercury_section(Merge* merge,
                                                     SectionNumber section) noexcept nogil:
    """Return the OutRow for a mercury debug section of an input; -1 without memory.

    It is the twin of the plain section's OutRow, and is created if it is new. -1 also if the output
    has no such plain section.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef OutNumber plain = find_plain_section(merge, section_row), out
    if plain < 0 or out_row(merge, plain).merc >= 0:
        return out_row(merge, plain).merc if plain >= 0 else -1
    out = new_out(merge, section_row.kind, section_row.type, section_row.flags, 1,
                  section_row.entsize)
    if out < 0:
        return -1
    reserve_number(merge)       # among mercury sections, only debug data uses up numbers
    out_row(merge, out).source = section
    out_row(merge, out).twin = plain
    out_row(merge, plain).merc = out
    return out


cdef inline void create_info_sections(Merge* merge, const FileRow* file) noexcept nogil:
    """Create .nv.info.F of the functions of a file, and .nv.compat of release 12.9."""
    cdef SectionRef i
    cdef EntityNumber function
    cdef OutNumber out
    cdef const SectionRow* section
    for i in range(file.first_note, file.note_end):
        section = &merge.objects.sections[i]
        if (section.kind == K_COMPAT and merge.objects.traits & TRAIT_EARLY_FILES
                and not merge.has_compat):
            create_link_section(merge, K_COMPAT)
            merge.has_compat = True
        if not is_function_info(section.kind):
            continue
        function = function_if_current(merge, <SectionNumber>i)
        if function < 0:
            continue
        if not merge.merged.entities[function].flags & EF_LIVE:
            number_dead_section(merge, function, DEAD_INFO)
            continue
        out = find_function_section(merge, function, section.kind, 0)
        if out < 0:
            out = create_function_section(merge, function, section.kind)
            if out >= 0:
                out_row(merge, out).source = <SectionNumber>i
        if function_if_linked(merge, <SectionNumber>i) >= 0:
            merge.columns.out_of[i] = out
