"""Merging: which sections and symbols the output has, and what becomes of each relocation.

nvlink numbers sections and symbols in the order in which it creates them, and creates them while it
reads the inputs in command-line order. It does so for dead code, too, whose numbers stay. So this
module repeats the events one after the other, with one list of sections and two of symbols
(docs/order.md). For a file with a kernel `k` and a variable `v` with an initial value, they are:

    step 1    symbol `k`, .text.k, .nv.info.k, .nv.shared.k
    step 2    .nv.global.init, symbol `v`
    step 3    .nv.constant0.k and .debug_frame, in the order of the input
    step 5    .rela.text.k, at the first entry that needs it

`prepare_file` marks, for each input on any thread, the sections that the steps below work on.
`create_first_sections` creates what precedes all inputs, such as the string tables. Then follow for
each input:

1. `create_functions`: functions in the order in which the link meets them (docs/order.md), each
   with its .text section. Kernels also get .nv.info and .nv.shared, unless a selection of kernels
   excludes them.
2. `create_objects`: the other symbols, each after the section that holds it.
3. `create_other_sections`: the sections that no symbol has created.
4. `create_info_sections`: .nv.info.F of other functions.
5. `decide_relocations`: each relocation entry is emitted, resolved, cleared or dropped.

`finish_input` creates what follows the last input, such as the call graph. `name_symbols` and
`name_sections` then walk over the lists and write the names. Dead code has numbers, but no names
except for those of `reserve_name`. After that, links up to sm_90 create no section or symbol. From
sm_100 on, a second program makes the final file from the result, and creates more of both
(`make_final_file`).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from base.memory cimport check_memory
from base.nameindex cimport (
    scratch_index, scratch_strings, scratch_texts, strings_find, strings_intern,
)
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_reserve, scratch_room,
    scratch_vector, scratch_zeros,
)
from base.threads cimport FILE_COST, run_each
from elfnumbers cimport SHF_INFO_LINK, SHN_LORESERVE
from merge.creation cimport (
    create_functions, create_info_sections, create_objects, create_other_sections, create_pools,
    prepare_sections,
)
from merge.final cimport create_symtab_shndx, make_final_file
from merge.idle cimport create_idle_sections
from merge.lostbytes cimport LostRange
from merge.names cimport intern_empty_string, name_sections, name_symbols
from merge.newrows cimport (
    INSTANCE, SHNDX, create_link_section, create_link_section_with_symbol, ensure_file_section,
    name_out_text, new_local, new_section_of_kind, new_symbol, reserve_name, reserve_number,
)
from merge.relocations cimport (
    decide_relocations, mark_referenced_entities, prepare_relocations,
)
from merge.sharedusers cimport (
    allocate_users, find_reaching_kernels, has_common_variable, needs_users,
)
from merge.state cimport ListEntry, Merge, out_row
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport (
    Blob, Emitted, Fixups, Indices, Marks, Numbers, OutSymbols, Outs, Rebuilds, Values, detach_rows,
    new_rows,
)
from rownumbers cimport BLOCK_INDIRECT, BLOCK_TAKEN, EF_COMMON, LINK_RELOCATABLE
from sectionkinds cimport (
    IS_DEBUG, K_CALLGRAPH, K_COMPAT, K_CUINFO, K_GLOBAL, K_INFO, K_PROTOTYPE, K_REL_ACTION,
    K_SHSTRTAB, K_STRTAB, K_SYMTAB, K_TKINFO,
)
from tables.graph cimport CallRows, calls_of, graph_init
from tables.kinds cimport is_a
from tables.poolrows cimport POOL_NEW, PoolRow
from tables.rows cimport (
    OF_NO_SYMBOL, PART_GLOBAL, EmittedRow, EntityNumber, FileCounter, FileRow, FixupRow, OutNumber,
    OutRow, OutSymbolNumber, OutSymbolRow, RebuildRow, SectionNumber, SectionRef, SectionRow,
)
from traits cimport TRAIT_COMPAT, TRAIT_EARLY_FILES, TRAIT_MERCURY, TRAIT_WEAK_GLOBAL


def merge(MergedTables merged not None):
    """Create the sections and symbols of the output, and decide about each relocation."""
    merged.fill()
    check_inputs(merged)
    cdef Merge merge
    memset(&merge, 0, sizeof(Merge))
    merged.objects.view(&merge.objects)
    merged.view(&merge.merged)
    merge.has_finalizer = merge.objects.traits & TRAIT_MERCURY != 0
    columns = make_columns(&merge)
    # By prototype (the signature of functions called through a pointer): its offset in .strtab.
    cdef bytes prototype_offsets = PyBytes_FromStringAndSize(NULL, 4 * merged.prototypes.count)
    cdef uint32_t* offset_of = <uint32_t*>PyBytes_AS_STRING(prototype_offsets)
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        allocate_merge(&merge, &scratch, merged)
        merge.failed = scratch.failed
        if not merge.failed:
            with nogil:
                read_inputs(&merge)
                if not merge.failed:
                    # All sections and symbols exist now, except some of files for sm_100 and later.
                    name_symbols(&merge)
                    name_sections(&merge)
                    resolve_prototype_offsets(&merge, offset_of)
                if merge.has_finalizer and not merge.failed:
                    make_final_file(&merge)
        check_memory(not merge.failed)
        merged.shstrtab = Blob(detach_rows(&merge.columns.shstr.text))
        merged.strtab = Blob(detach_rows(&merge.columns.str.text))
        merged.outs = Outs(detach_rows(&merge.columns.outs))
        merged.out_symbols = OutSymbols(detach_rows(&merge.columns.out_symbols))
        merged.emitted = Emitted(detach_rows(&merge.columns.emitted))
        merged.fixups = Fixups(detach_rows(&merge.columns.fixups))
        merged.rebuilds = Rebuilds(detach_rows(&merge.columns.rebuilds))
        merged.out_of, merged.base, merged.referenced, merged.array_align = columns
        merged.prototype_offsets = Indices(prototype_offsets)
    finally:
        scratch_free(&scratch)


cdef int check_inputs(MergedTables merged) except -1:
    """Raise ValueError or IndexError for tables that do not fit each other."""
    cdef size_t symbols = merged.objects.symbols.count, sections = merged.objects.sections.count
    cdef const PoolRow* pool = merged.pools.rows
    cdef size_t i
    if merged.symbol_entity.count != symbols or merged.symbol_resolution.count != symbols:
        raise ValueError("one entity and one resolution per symbol")
    if merged.section_function.count != sections or merged.section_resolution.count != sections:
        raise ValueError("one function and one resolution per section")
    if merged.stand_ins.count not in (0, sections):
        raise ValueError("one stand-in per section")
    for i in range(merged.pools.count):
        if not 0 <= pool[i].kernel < <int64_t>merged.entities.count:
            raise IndexError(f"pool {i} names an unknown entity")
        if not 0 <= pool[i].section < <int64_t>sections:
            raise IndexError(f"pool {i} names an unknown section")
    return 0


cdef tuple make_columns(Merge* merge):
    """Return the columns `out_of`, `base`, `referenced` and `array_align`, with initial values."""
    # By input section: the OutRow that has its bytes or -1, and their offset there. By entity: 1 if
    # code refers to it, and the alignment of the extern arrays that it uses as a kernel.
    cdef Numbers out_of = Numbers(new_rows(4 * merge.objects.section_count))
    cdef Values base = Values(new_rows(8 * merge.objects.section_count))
    cdef Marks referenced = Marks(new_rows(merge.merged.entity_count))
    cdef Values array_align = Values(new_rows(8 * merge.merged.entity_count))   # by entity
    merge.columns.out_of = <OutNumber*>out_of.rows
    merge.columns.base = <uint64_t*>base.rows
    merge.columns.referenced = <uint8_t*>referenced.rows
    merge.columns.array_align = <uint64_t*>array_align.rows
    memset(merge.columns.out_of, 0xff, 4 * merge.objects.section_count)
    memset(merge.columns.base, 0, 8 * merge.objects.section_count)
    memset(merge.columns.referenced, 0, merge.merged.entity_count)
    memset(merge.columns.array_align, 0, 8 * merge.merged.entity_count)
    return out_of, base, referenced, array_align


cdef void allocate_merge(Merge* merge, Scratch* scratch, MergedTables merged) noexcept:
    """Allocate the tables of the result that grow, and the memory that the merge alone needs."""
    cdef CallRows calls
    scratch_vector(scratch, &merge.columns.outs, sizeof(OutRow))
    scratch_vector(scratch, &merge.work.section_list, sizeof(ListEntry))
    scratch_vector(scratch, &merge.work.array_kernels, sizeof(EntityNumber))
    scratch_vector(scratch, &merge.work.local_list, sizeof(ListEntry))
    scratch_vector(scratch, &merge.columns.out_symbols, sizeof(OutSymbolRow))
    scratch_vector(scratch, &merge.columns.emitted, sizeof(EmittedRow))
    scratch_vector(scratch, &merge.columns.fixups, sizeof(FixupRow))
    scratch_vector(scratch, &merge.columns.rebuilds, sizeof(RebuildRow))
    scratch_vector(scratch, &merge.work.lost_ranges, sizeof(LostRange))
    scratch_vector(scratch, &merge.work.capsules, sizeof(SectionNumber))
    scratch_vector(scratch, &merge.work.renamed, 1)
    scratch_vector(scratch, &merge.work.code_sections, sizeof(OutNumber))
    scratch_vector(scratch, &merge.work.twinned, sizeof(OutNumber))
    scratch_strings(scratch, &merge.columns.shstr)
    scratch_strings(scratch, &merge.columns.str)
    scratch_index(scratch, &merge.work.by_name, 64)
    scratch_texts(scratch, &merge.work.texts)
    merge.work.section_marks = <uint8_t*>scratch_zeros(scratch, merge.objects.section_count, 1)
    merge.work.fates = <uint8_t*>scratch_room(scratch, merge.objects.symbol_count, 1)
    merge.work.own_pool = <uint8_t*>scratch_zeros(scratch, merge.objects.section_count, 1)
    merge.work.has_relocations = <uint8_t*>scratch_zeros(scratch, merge.objects.section_count, 1)
    merge.work.pool_end = <uint64_t*>scratch_zeros(scratch, merge.merged.entity_count, 8)
    merge.work.numbered_dead = <uint8_t*>scratch_zeros(scratch, merge.merged.entity_count, 1)
    merge.work.symbol_of = scratch_nones(scratch, merge.merged.entity_count)
    merge.work.sections_of = scratch_nones(scratch, merge.merged.entity_count)
    if merge.has_finalizer:
        merge.work.parameters_of = scratch_nones(scratch, merge.merged.entity_count)
    scratch_reserve(scratch, &merge.work.section_list, merge.objects.section_count)
    scratch_reserve(scratch, &merge.work.local_list, merge.objects.section_count)
    # Most links have more rows, but such a start saves time: a table that doubles from nothing
    # copies as many bytes as it has at the end, to new memory each time.
    scratch_reserve(scratch, &merge.columns.outs, merge.objects.section_count // 3)
    scratch_reserve(scratch, &merge.columns.out_symbols, merge.merged.entity_count)
    scratch_reserve(scratch, &merge.columns.emitted, merge.objects.symbol_count // 3)
    if needs_users(merge):
        calls = calls_of(merged)
        graph_init(&merge.work.calls, scratch, &calls)
        allocate_users(merge, scratch)


cdef void prepare_file(void* context, FileCounter number) noexcept nogil:
    """Mark the sections of one file, and find the Fate of its symbols; a task of `run_each`.

    The Fate is what a symbol alone decides about the relocations that name it. Nothing that is
    created later changes these facts.
    """
    cdef Merge* merge = <Merge*>context
    cdef const FileRow* file = &merge.objects.files[number]
    prepare_sections(merge, file)
    prepare_relocations(merge, file)
    if merge.work.users == NULL:
        mark_referenced_entities(merge, file)


cdef void read_inputs(Merge* merge) noexcept nogil:
    """Create sections and symbols in nvlink's order: before the inputs, for each one, at the end.
    """
    cdef size_t number
    cdef const FileRow* file
    find_own_pools(merge)
    if needs_users(merge):
        find_reaching_kernels(merge)
    for number in range(merge.objects.file_count):
        intern_prototypes(merge, &merge.objects.files[number])
        if merge.work.users != NULL:
            mark_referenced_entities(merge, &merge.objects.files[number])
    run_each(prepare_file, merge, merge.objects.file_count,
             merge.objects.file_count * FILE_COST)
    merge.arrays_stay = has_common_variable(merge)
    create_first_sections(merge)
    for number in range(merge.objects.file_count):
        file = &merge.objects.files[number]
        create_functions(merge, file)
        create_objects(merge, file)
        create_other_sections(merge, file)
        create_info_sections(merge, file)
        decide_relocations(merge, file)
        if merge.failed:
            return
    finish_input(merge)


cdef void find_own_pools(Merge* merge) noexcept nogil:
    """Set `pool_end`, and `own_pool` of each section with which the pool of its function begins.

    `pool_end` is the size of a pool in bytes, with the pools of other functions appended to it.
    """
    cdef size_t i
    cdef const PoolRow* pool
    for i in range(merge.merged.pool_count):
        pool = &merge.merged.pools[i]
        merge.work.pool_end[pool.kernel] = pool.end
        if pool.flags & POOL_NEW and pool.kernel == <EntityNumber>pool.function:
            merge.work.own_pool[pool.section] = <uint8_t>pool.flags


cdef void finish_input(Merge* merge) noexcept nogil:
    """Create the sections that follow the last input."""
    cdef size_t i
    cdef OutRow* row
    for i in range(merge.work.by_name.mask + 1):
        if merge.work.by_name.slots[i].value < 0:
            continue
        # Inputs without code have an empty .debug_frame. It and its twin get no section symbol.
        row = out_row(merge, <OutNumber>merge.work.by_name.slots[i].value)
        if row.size == 0 and is_a(row.kind, IS_DEBUG):
            row.marks |= OF_NO_SYMBOL
        row = out_row(merge, row.merc) if row.merc >= 0 else NULL
        if row != NULL and row.size == 0 and is_a(row.kind, IS_DEBUG):
            row.marks |= OF_NO_SYMBOL
    for i in range(merge.merged.entity_count):
        if merge.merged.entities[i].flags & EF_COMMON:
            # Common symbols get room in .nv.global, even if no input has such a section.
            ensure_file_section(merge, K_GLOBAL, -1)
            break
    create_link_section_with_symbol(merge, K_CALLGRAPH)
    create_link_section_with_symbol(merge, K_PROTOTYPE)
    create_array_instances(merge)
    create_idle_sections(merge)
    create_pools(merge)
    if not merge.has_finalizer and not merge.objects.mode & LINK_RELOCATABLE:
        create_link_section_with_symbol(merge, K_REL_ACTION)
    merge.needs_symtab_shndx = merge.work.section_list.count + 1 >= SHN_LORESERVE
    if merge.needs_symtab_shndx:
        create_symtab_shndx(merge, False)


cdef void create_first_sections(Merge* merge) noexcept nogil:
    """Create the sections that precede the first input."""
    create_link_section(merge, K_SHSTRTAB)
    create_link_section(merge, K_STRTAB)
    create_link_section(merge, K_SYMTAB)
    merge.symtab_shndx_position = merge.work.section_list.count
    reserve_name(merge, <const uint8_t*>SHNDX, <uint32_t>strlen(SHNDX))
    if merge.objects.traits & TRAIT_EARLY_FILES:
        create_early_notes(merge)
    else:
        create_link_section_with_symbol(merge, K_TKINFO)
        create_link_section_with_symbol(merge, K_CUINFO)
        if not merge.objects.traits & TRAIT_COMPAT and not merge.failed:
            out_row(merge, <int32_t>merge.columns.outs.count - 1).flags &= ~<uint64_t>SHF_INFO_LINK
    create_link_section(merge, K_INFO)
    if merge.objects.traits & TRAIT_COMPAT and not merge.objects.traits & TRAIT_EARLY_FILES:
        create_link_section(merge, K_COMPAT)
    if not merge.objects.mode & LINK_RELOCATABLE:
        reserve_number(merge)       # nvlink leaves this number unused


cdef void create_early_notes(Merge* merge) noexcept nogil:
    """Create the notes of releases before 13.0, which have no section symbols.

    Only files for sm_100 and later have these notes. The second one is called .note.nv.cuver.
    """
    cdef OutNumber out
    if not merge.objects.traits & TRAIT_MERCURY:
        return
    create_link_section(merge, K_TKINFO)
    out = new_section_of_kind(merge, K_CUINFO)
    if out >= 0:
        name_out_text(merge, out, b".note.nv.cuver")


cdef void intern_prototypes(Merge* merge, const FileRow* file) noexcept nogil:
    """Add the prototypes of a file, dead or not, to .strtab, where no other string is yet.

    First come those in the file's .nv.callgraph, in the blocks of functions whose address is taken
    and of indirect calls; then those in its .nv.prototype.
    """
    cdef SectionRef i
    cdef uint32_t walk                  # walk 0 is over .nv.callgraph, walk 1 over .nv.prototype
    cdef const SectionRow* section
    cdef const uint32_t* pair           # rows of two numbers: row j is pair[2 * j], pair[2 * j + 1]
    cdef const uint8_t* text
    cdef uint64_t j
    cdef uint32_t size
    cdef int32_t block                  # CallBlock: a row of 0 and this number begins the block
    for walk in range(2):
        for i in range(file.first_note, file.note_end):
            section = &merge.objects.sections[i]
            if section.kind != (K_PROTOTYPE if walk else K_CALLGRAPH):
                continue
            pair = <const uint32_t*>(merge.objects.arena + section.offset)
            block = 0
            for j in range(section.size // 8):
                if not walk and pair[2 * j] == 0:
                    block = <int32_t>pair[2 * j + 1]
                elif walk or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
                    text = merge.objects.arena + file.strtab + pair[2 * j + 1]
                    size = <uint32_t>strlen(<const char*>text)
                    if size == 0:
                        # Kernels that device code launches have an empty prototype.
                        intern_empty_string(merge)
                    elif strings_intern(&merge.columns.str, text, size) < 0:
                        merge.failed = True


cdef void resolve_prototype_offsets(Merge* merge, uint32_t* offsets) noexcept nogil:
    """Set the offset in .strtab of each prototype."""
    cdef size_t i
    cdef uint32_t size
    cdef const uint8_t* text
    for i in range(merge.merged.prototype_count):
        text = merge.objects.arena + merge.merged.prototypes[i]
        size = <uint32_t>strlen(<const char*>text)
        offsets[i] = (strings_find(&merge.columns.str, text, size).at if size
                      else merge.empty_string_offset)


cdef void create_array_instances(Merge* merge) noexcept nogil:
    """Create the instances of extern arrays with -r: one symbol for each kernel that uses arrays.

    The order is that of the relocations that use the arrays, not that of the kernels' symbols. A
    weak kernel is created before others, but its relocations may come after theirs.
    """
    cdef const EntityNumber* kernels = <const EntityNumber*>merge.work.array_kernels.data
    cdef size_t i
    cdef OutSymbolNumber row
    for i in range(merge.work.array_kernels.count):
        if merge.objects.traits & TRAIT_WEAK_GLOBAL:
            row = new_symbol(merge, -1, -1, PART_GLOBAL)
        else:
            row = new_local(merge, -1, <const uint8_t*>INSTANCE, <uint32_t>strlen(INSTANCE))
        if row < 0:
            return
        (<OutSymbolRow*>merge.columns.out_symbols.data)[row].instance = kernels[i]
