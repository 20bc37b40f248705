"""Merging: which sections and symbols the output has, and what becomes of each relocation.

Sections and symbols are created one after the other while the inputs are read in command-line
order, and enter one list of sections and two of symbols (docs/order.md). Per input:

1. functions in symbol order, each with its .text section, kernels also .nv.info and .nv.shared;
2. the other symbols, each after the section that holds it;
3. the sections not yet created, in three passes: all others, .nv.info.F, relocations.

Walks over the lists then write the names, and from sm_100 on a second program makes the final file
of what is there. Afterwards no section or symbol appears.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from elfnumbers cimport SHF_INFO_LINK
from sectionkinds cimport (
    IS_DEBUG, K_CALLGRAPH, K_COMPAT, K_CUINFO, K_GLOBAL, K_INFO, K_PROTOTYPE, K_REL_ACTION,
    K_SHSTRTAB, K_STRTAB, K_SYMTAB, K_TKINFO,
)
from base.elf64 cimport SHN_LORESERVE
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_reserve, scratch_vector,
    scratch_zeros,
)
from tables.graph cimport CallRows, calls_of, graph_init
from tables.kinds cimport is_a
from merge.creation cimport (
    create_functions, create_info_sections, create_objects, create_other_sections, create_pools,
)
from merge.final cimport make_final_file, wide_indices
from merge.idle cimport idle_sections
from merge.relocations cimport find_referenced, sort_relocations
from merge.lostbytes cimport Range
from merge.names cimport write_names
from merge.state cimport (
    Listed, Merge, empty_string, keep_name, list_number, made_file_section, name_out, new_local,
    new_made, new_symbol, out_row, own_section, own_section_with_symbol,
)
from merge.sharedusers cimport asks_for_users, keeps_arrays, start_users, take_users
from base.threads cimport for_each
from base.nameindex cimport (
    scratch_index, scratch_strings, scratch_texts, strings_find, strings_intern,
)
from tables.poolrows cimport POOL_NEW, PoolRow
from pylink._native.tables cimport (
    Blob, Emitted, Fixups, Indices, Marks, MergedTables, Numbers, OutSymbols, Outs, Rebuilds,
    Values, new_rows, take_rows,
)
from tables.rows cimport (
    BLOCK_INDIRECT, BLOCK_TAKEN, EF_COMMON, M_RELOCATABLE, OF_NO_SYMBOL, PART_GLOBAL, EmittedRow,
    FileRow, FixupRow, OutRow, OutSymbolRow, RebuildRow, SectionRow,
)
from traits cimport TRAIT_COMPAT, TRAIT_EARLY_FILES, TRAIT_MERCURY, TRAIT_WEAK_GLOBAL


def merge(MergedTables merged not None):
    """Create every section and symbol of the output and sort the relocations.

    Kernels without a pool get a section for those of device functions that `pools` has. Fills all
    columns of the output, .shstrtab and .strtab as far as they are known.
    """
    merged.fill()
    check_inputs(merged)
    cdef Merge m
    memset(&m, 0, sizeof(Merge))
    merged.objects.view(&m.objects)
    merged.view(&m.merged)
    m.second = m.objects.traits & TRAIT_MERCURY != 0
    columns = start_columns(&m)
    cdef bytes prototype_offsets = PyBytes_FromStringAndSize(NULL, 4 * merged.prototypes.count)
    cdef uint32_t* offset_of = <uint32_t*>PyBytes_AS_STRING(prototype_offsets)
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        take_room(&m, &scratch, merged)
        m.failed = scratch.failed
        if not m.failed:
            with nogil:
                read_inputs(&m)
                if not m.failed:
                    # From here on, no section or symbol of the first program appears.
                    write_names(&m)
                    prototype_names(&m, offset_of)
                if m.second and not m.failed:
                    make_final_file(&m)
        if m.failed:
            raise MemoryError
        merged.shstrtab = Blob(take_rows(&m.columns.shstr.text))
        merged.strtab = Blob(take_rows(&m.columns.str.text))
        merged.outs = Outs(take_rows(&m.columns.outs))
        merged.out_symbols = OutSymbols(take_rows(&m.columns.out_symbols))
        merged.emitted = Emitted(take_rows(&m.columns.emitted))
        merged.fixups = Fixups(take_rows(&m.columns.fixups))
        merged.rebuilds = Rebuilds(take_rows(&m.columns.rebuilds))
        merged.out_of, merged.base, merged.referenced, merged.array_align = columns
        merged.prototype_offsets = Indices(prototype_offsets)
    finally:
        scratch_free(&scratch)


cdef int check_inputs(MergedTables merged) except -1:
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


cdef tuple start_columns(Merge* m):
    """The columns of the result that have a row for each of what is known before."""
    cdef Numbers out_of = Numbers(new_rows(4 * m.objects.section_count))
    cdef Values base = Values(new_rows(8 * m.objects.section_count))
    cdef Marks referenced = Marks(new_rows(m.merged.entity_count))
    cdef Values array_align = Values(new_rows(8 * m.merged.entity_count))
    m.columns.out_of = <int32_t*>out_of.rows
    m.columns.base = <uint64_t*>base.rows
    m.columns.referenced = <uint8_t*>referenced.rows
    m.columns.array_align = <uint64_t*>array_align.rows
    memset(m.columns.out_of, 0xff, 4 * m.objects.section_count)
    memset(m.columns.base, 0, 8 * m.objects.section_count)
    memset(m.columns.referenced, 0, m.merged.entity_count)
    memset(m.columns.array_align, 0, 8 * m.merged.entity_count)
    return out_of, base, referenced, array_align


cdef void take_room(Merge* m, Scratch* scratch, MergedTables merged) noexcept:
    """What the merge alone needs."""
    cdef CallRows calls
    scratch_vector(scratch, &m.columns.outs, sizeof(OutRow))
    scratch_vector(scratch, &m.work.section_list, sizeof(Listed))
    scratch_vector(scratch, &m.work.array_kernels, sizeof(int32_t))
    scratch_vector(scratch, &m.work.local_list, sizeof(Listed))
    scratch_vector(scratch, &m.columns.out_symbols, sizeof(OutSymbolRow))
    scratch_vector(scratch, &m.columns.emitted, sizeof(EmittedRow))
    scratch_vector(scratch, &m.columns.fixups, sizeof(FixupRow))
    scratch_vector(scratch, &m.columns.rebuilds, sizeof(RebuildRow))
    scratch_vector(scratch, &m.work.lost, sizeof(Range))
    scratch_strings(scratch, &m.columns.shstr)
    scratch_strings(scratch, &m.columns.str)
    scratch_index(scratch, &m.work.by_name, 64)
    scratch_texts(scratch, &m.work.texts)
    m.work.wanted = <uint8_t*>scratch_zeros(scratch, m.objects.section_count, 1)
    m.work.own_pool = <uint8_t*>scratch_zeros(scratch, m.objects.section_count, 1)
    m.work.patched = <uint8_t*>scratch_zeros(scratch, m.objects.section_count, 1)
    m.work.pool_end = <uint64_t*>scratch_zeros(scratch, m.merged.entity_count, 8)
    m.work.buried = <uint8_t*>scratch_zeros(scratch, m.merged.entity_count, 1)
    m.work.symbol_of = scratch_nones(scratch, m.merged.entity_count)
    m.work.sections_of = scratch_nones(scratch, m.merged.entity_count)
    scratch_reserve(scratch, &m.work.section_list, m.objects.section_count)
    scratch_reserve(scratch, &m.work.local_list, m.objects.section_count)
    if asks_for_users(m):
        calls = calls_of(merged)
        graph_init(&m.work.calls, scratch, &calls)
        take_users(m, scratch)


cdef enum:
    FILE_AS_BYTES = 16 << 10    # moved in the time that `find_referenced` takes


cdef void find_referenced_by(void* context, size_t number) noexcept nogil:
    cdef Merge* m = <Merge*>context
    find_referenced(m, &m.objects.files[number])


cdef void read_inputs(Merge* m) noexcept nogil:
    """The events of docs/order.md up to the end of input."""
    cdef size_t f
    cdef const FileRow* file
    find_own_pools(m)
    if asks_for_users(m):
        start_users(m)
    for f in range(m.objects.file_count):
        prototype_strings(m, &m.objects.files[f])
        if m.work.users != NULL:
            find_referenced(m, &m.objects.files[f])
    if m.work.users == NULL:
        for_each(find_referenced_by, m, m.objects.file_count, m.objects.file_count * FILE_AS_BYTES)
    m.arrays_stay = keeps_arrays(m)
    create_first_sections(m)
    for f in range(m.objects.file_count):
        file = &m.objects.files[f]
        create_functions(m, file)
        create_objects(m, file)
        create_other_sections(m, file)
        create_info_sections(m, file)
        sort_relocations(m, file)
        if m.failed:
            return
    end_of_input(m)


cdef void find_own_pools(Merge* m) noexcept nogil:
    cdef size_t i
    cdef const PoolRow* pool
    for i in range(m.merged.pool_count):
        pool = &m.merged.pools[i]
        m.work.pool_end[pool.kernel] = pool.end
        if pool.flags & POOL_NEW and pool.kernel == <int32_t>pool.function:
            m.work.own_pool[pool.section] = <uint8_t>pool.flags


cdef void end_of_input(Merge* m) noexcept nogil:
    cdef size_t i
    for i in range(m.columns.outs.count):
        # Inputs without code have an empty .debug_frame.
        if out_row(m, i).size == 0 and is_a(out_row(m, i).kind, IS_DEBUG):
            out_row(m, i).marks |= OF_NO_SYMBOL
    for i in range(m.merged.entity_count):
        if m.merged.entities[i].flags & EF_COMMON:
            # Common symbols get room in .nv.global; no input's section need exist.
            made_file_section(m, K_GLOBAL, -1)
            break
    own_section_with_symbol(m, K_CALLGRAPH)
    own_section_with_symbol(m, K_PROTOTYPE)
    create_array_instances(m)
    idle_sections(m)
    create_pools(m)
    if not m.second and not m.objects.mode & M_RELOCATABLE:
        own_section_with_symbol(m, K_REL_ACTION)
    m.wide = m.work.section_list.count + 1 >= SHN_LORESERVE
    if m.wide:
        wide_indices(m, False)


cdef void create_first_sections(Merge* m) noexcept nogil:
    own_section(m, K_SHSTRTAB)
    own_section(m, K_STRTAB)
    own_section(m, K_SYMTAB)
    m.wide_place = m.work.section_list.count
    keep_name(m, <const uint8_t*>b".symtab_shndx", 13)
    if m.objects.traits & TRAIT_EARLY_FILES:
        early_notes(m)
    else:
        own_section_with_symbol(m, K_TKINFO)
        own_section_with_symbol(m, K_CUINFO)
        if not m.objects.traits & TRAIT_COMPAT and not m.failed:
            out_row(m, <int32_t>m.columns.outs.count - 1).flags &= ~<uint64_t>SHF_INFO_LINK
    own_section(m, K_INFO)
    if m.objects.traits & TRAIT_COMPAT and not m.objects.traits & TRAIT_EARLY_FILES:
        own_section(m, K_COMPAT)
    if not m.objects.mode & M_RELOCATABLE:
        list_number(m)          # without name or trace


cdef void early_notes(Merge* m) noexcept nogil:
    """The notes of releases before 13.0: from sm_100 on, one of another name, without symbols."""
    cdef int32_t out
    if not m.objects.traits & TRAIT_MERCURY:
        return
    own_section(m, K_TKINFO)
    out = new_made(m, K_CUINFO)
    if out >= 0:
        name_out(m, out, <const uint8_t*>b".note.nv.cuver", 14)


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
        for i in range(file.first_note, file.note_end):
            s = &m.objects.sections[i]
            if s.kind != (K_PROTOTYPE if pass_ else K_CALLGRAPH):
                continue
            pair = <const uint32_t*>(m.objects.arena + s.offset)
            block = 0
            for j in range(s.size // 8):
                if not pass_ and pair[2 * j] == 0:
                    block = <int32_t>pair[2 * j + 1]
                elif pass_ or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
                    text = m.objects.arena + file.strtab + pair[2 * j + 1]
                    size = <uint32_t>strlen(<const char*>text)
                    if size == 0:
                        # That of kernels launched from the device: a string of its own.
                        empty_string(m)
                    elif strings_intern(&m.columns.str, text, size) < 0:
                        m.failed = True


cdef void prototype_names(Merge* m, uint32_t* offsets) noexcept nogil:
    cdef size_t i
    cdef uint32_t size
    cdef const uint8_t* text
    for i in range(m.merged.prototype_count):
        text = m.objects.arena + m.merged.prototypes[i]
        size = <uint32_t>strlen(<const char*>text)
        offsets[i] = strings_find(&m.columns.str, text, size).at if size else m.nameless


cdef void create_array_instances(Merge* m) noexcept nogil:
    """-r: each kernel that uses extern arrays itself has one symbol for them all.

    They are made when relocations are gone through, which follow the code of the inputs, not the
    symbols: a weak kernel is created before others, but its array need not be named before theirs.
    """
    cdef const int32_t* kernel = <const int32_t*>m.work.array_kernels.data
    cdef size_t i
    cdef int32_t row
    for i in range(m.work.array_kernels.count):
        if m.objects.traits & TRAIT_WEAK_GLOBAL:
            row = new_symbol(m, -1, -1, PART_GLOBAL)
        else:
            row = new_local(m, -1, <const uint8_t*>b"externsharedinstance", 20)
        if row < 0:
            return
        (<OutSymbolRow*>m.columns.out_symbols.data)[row].instance = kernel[i]
