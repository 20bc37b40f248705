"""Merging: which sections and symbols the output has, and what becomes of each relocation.

Sections and symbols are born one after the other while the inputs are read in command-line order,
and enter one list of sections and two of symbols (docs/order.md). Per input:

1. functions in symbol order, each with its .text section, kernels also .nv.info and .nv.shared;
2. the other symbols, each after the section that holds it;
3. the sections not yet born, in three passes: all others, .nv.info.F, relocations.

Walks over the lists then write the names, and from sm_100 on a second program makes the final file
of what is there. Afterwards no section or symbol appears.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strlen

from elf64 cimport *
from graph cimport *
from kinds cimport *
from mergebirths cimport *
from mergefinal cimport *
from mergeidle cimport idle_sections
from mergelists cimport *
from mergenames cimport write_names
from mergestate cimport *
from mergeusers cimport asks_for_users, find_users
from names cimport *
from poolrows cimport POOL_BORN, PoolRow
from pylink._native.tables cimport (
    Fixes, Indices, Keeps, Marks, MergedTables, Numbers, ObjectTables, OutSymbols, Outs,
    Rebuilds, Values, new_rows, take_rows,
)
from rows cimport *
from traits cimport *
from vec cimport *


def merge(MergedTables merged not None):
    """Give birth to every section and symbol of the output and sort the relocations.

    Kernels without a pool get a section for those of device functions that `pools` has. Fills all
    columns of the output, .shstrtab and .strtab as far as they are known.
    """
    merged.fill()
    cdef ObjectTables objects = merged.objects
    cdef Merge m
    memset(&m, 0, sizeof(Merge))
    m.arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    m.files = objects.files.rows
    m.sections = objects.sections.rows
    m.symbols = objects.symbols.rows
    m.entities = <EntityRow*>merged.entities.rows
    m.entity = merged.symbol_entity.rows
    m.role = merged.symbol_role.rows
    m.met = merged.met.rows
    m.met_count = merged.met.count
    m.function = merged.section_function.rows
    m.copy = merged.section_role.rows
    m.analysis = merged.functions.rows
    m.file_count = objects.files.count
    m.section_count = objects.sections.count
    m.symbol_count = objects.symbols.count
    m.entity_count = merged.entities.count
    m.mode = objects.mode
    m.traits = objects.traits
    m.second = objects.traits & TRAIT_MERCURY != 0
    vec_init(&m.outs, sizeof(OutRow))
    vec_init(&m.section_list, sizeof(Listed))
    vec_init(&m.array_kernels, sizeof(int32_t))
    vec_init(&m.local_list, sizeof(Listed))
    vec_init(&m.out_symbols, sizeof(OutSymbolRow))
    vec_init(&m.keeps, sizeof(KeepRow))
    vec_init(&m.fixes, sizeof(FixRow))
    vec_init(&m.rebuilds, sizeof(RebuildRow))
    if merged.symbol_entity.count != m.symbol_count or merged.symbol_role.count != m.symbol_count:
        raise ValueError("one entity and one role per symbol")
    if (merged.section_function.count != m.section_count
            or merged.section_role.count != m.section_count):
        raise ValueError("one function and one role per section")
    if merged.stand_ins.count:
        if merged.stand_ins.count != m.section_count:
            raise ValueError("one stand-in per section")
        m.stand_in = merged.stand_ins.rows
    cdef Numbers out_of = Numbers(new_rows(4 * m.section_count))
    cdef Values base = Values(new_rows(8 * m.section_count))
    cdef Marks referenced = Marks(new_rows(m.entity_count))
    cdef const PoolRow* pool_rows = merged.pools.rows
    cdef size_t pool_count = merged.pools.count, i
    for i in range(pool_count):
        if pool_rows[i].kernel < 0 or <size_t>pool_rows[i].kernel >= m.entity_count:
            raise IndexError(f"pool {i} names an unknown entity")
        if pool_rows[i].section < 0 or <size_t>pool_rows[i].section >= m.section_count:
            raise IndexError(f"pool {i} names an unknown section")
    m.out_of = <int32_t*>out_of.rows
    m.base = <uint64_t*>base.rows
    memset(m.out_of, 0xff, 4 * m.section_count)
    memset(m.base, 0, 8 * m.section_count)
    m.referenced = <uint8_t*>referenced.rows
    memset(m.referenced, 0, m.entity_count)
    cdef Values array_align = Values(new_rows(8 * m.entity_count))
    m.array_align = <uint64_t*>array_align.rows
    memset(m.array_align, 0, 8 * m.entity_count)
    m.wanted = <uint8_t*>calloc(m.section_count + 1, 1)
    m.own_pool = <uint8_t*>calloc(m.section_count + 1, 1)
    m.pool_end = <uint64_t*>calloc(m.entity_count + 1, 8)
    m.patched = <uint8_t*>calloc(m.section_count + 1, 1)
    m.buried = <uint8_t*>calloc(m.entity_count + 1, 1)
    m.born = <int32_t*>calloc(m.entity_count + 1, 4)
    m.sections_of = <int32_t*>calloc(m.entity_count + 1, 4)
    cdef CallGraph graph
    memset(&graph, 0, sizeof(CallGraph))
    cdef bint ok = (m.wanted != NULL and m.own_pool != NULL and m.pool_end != NULL
                    and m.patched != NULL and m.buried != NULL
                    and m.born != NULL and m.sections_of != NULL
                    and strings_init(&m.shstr) and strings_init(&m.str)
                    and vec_reserve(&m.section_list, m.section_count)
                    and vec_reserve(&m.local_list, m.section_count)
                    and index_init(&m.by_name, 64)
                    and (not asks_for_users(&m)
                         or graph_init(&graph, merged.calls.rows, merged.calls.count,
                                       m.entity_count,
                                       m.entity_count + merged.prototypes.count)))
    if ok:
        with nogil:
            memset(m.born, 0xff, 4 * m.entity_count)
            memset(m.sections_of, 0xff, 4 * m.entity_count)
            for i in range(pool_count):
                m.pool_end[pool_rows[i].kernel] = pool_rows[i].end
                if (pool_rows[i].flags & POOL_BORN
                        and pool_rows[i].kernel == <int32_t>pool_rows[i].function):
                    m.own_pool[pool_rows[i].section] = <uint8_t>pool_rows[i].flags
            merge_all(&m, pool_rows, pool_count, &graph)
        ok = not m.failed
    shstr = strs = b""
    cdef size_t prototype_count = merged.prototypes.count
    cdef bytes prototype_offsets = PyBytes_FromStringAndSize(NULL, 4 * prototype_count)
    if ok:
        prototype_names(&m, merged.prototypes.rows, prototype_count,
                        <uint32_t*>PyBytes_AS_STRING(prototype_offsets))
        shstr = PyBytes_FromStringAndSize(<char*>m.shstr.data, m.shstr.size)
        strs = PyBytes_FromStringAndSize(<char*>m.str.data, m.str.size)
    graph_free(&graph)
    strings_free(&m.shstr)
    strings_free(&m.str)
    index_free(&m.by_name)
    pool_free(&m.pool)
    free(m.wanted)
    free(m.own_pool)
    free(m.pool_end)
    free(m.patched)
    free(m.buried)
    free(m.users)
    vec_free(&m.section_list)
    vec_free(&m.array_kernels)
    vec_free(&m.local_list)
    free(m.born)
    free(m.sections_of)
    merged.outs = Outs(take_rows(&m.outs))
    merged.out_symbols = OutSymbols(take_rows(&m.out_symbols))
    merged.keeps = Keeps(take_rows(&m.keeps))
    merged.fixes = Fixes(take_rows(&m.fixes))
    merged.rebuilds = Rebuilds(take_rows(&m.rebuilds))
    merged.out_of = out_of
    merged.base = base
    merged.shstrtab = shstr
    merged.strtab = strs
    merged.prototype_offsets = Indices(prototype_offsets)
    merged.referenced = referenced
    merged.array_align = array_align
    if not ok:
        raise MemoryError


cdef void merge_all(Merge* m, const PoolRow* pools, size_t pool_count,
                    const CallGraph* graph) noexcept nogil:
    cdef size_t f, i
    cdef bint wide
    for f in range(m.file_count):
        prototype_strings(m, &m.files[f])
        find_referenced(m, &m.files[f])
    if asks_for_users(m):
        find_users(m, graph)
    start(m)
    for f in range(m.file_count):
        functions(m, &m.files[f])
        objects(m, &m.files[f])
        rest(m, &m.files[f])
        info_sections(m, &m.files[f])
        relocations(m, &m.files[f])
        if m.failed:
            return
    for i in range(m.outs.count):
        # Inputs without code have an empty .debug_frame.
        if out_row(m, i).size == 0 and is_a(out_row(m, i).kind, IS_DEBUG):
            out_row(m, i).marks |= OF_NO_SYMBOL
    for i in range(m.entity_count):
        m.has_commons = m.has_commons or m.entities[i].flags & EF_COMMON != 0
    if m.has_commons:
        # Common symbols get room in .nv.global; no input's section need exist.
        made_file_section(m, K_GLOBAL, -1)
    simple(m, K_CALLGRAPH)
    simple(m, K_PROTOTYPE)
    instances(m)
    idle_sections(m)
    born_pools(m, pools, pool_count)
    if not m.second and not m.mode & M_RELOCATABLE:
        simple(m, K_REL_ACTION)
    wide = m.section_list.count + 1 >= SHN_LORESERVE
    if wide:
        wide_indices(m, False)
    # From here on, no section or symbol of the first program appears.
    write_names(m)
    if m.second and not m.failed:
        rename_sections(m)
        if not wide and mercury_count(m) >= SHN_LORESERVE:
            wide_indices(m, True)
        late_constants(m)
    if not m.failed:
        find_text(m)
        if m.second:
            mercury_twins(m)


cdef void start(Merge* m) noexcept nogil:
    own_section(m, K_SHSTRTAB)
    own_section(m, K_STRTAB)
    own_section(m, K_SYMTAB)
    m.wide_place = m.section_list.count
    keep_name(m, <const uint8_t*>b".symtab_shndx", 13)
    if m.traits & TRAIT_EARLY_FILES:
        early_notes(m)
    else:
        simple(m, K_TKINFO)
        simple(m, K_CUINFO)
        if not m.traits & TRAIT_COMPAT and not m.failed:
            out_row(m, <int32_t>m.outs.count - 1).flags &= ~<uint64_t>SHF_INFO_LINK
    own_section(m, K_INFO)
    if m.traits & TRAIT_COMPAT and not m.traits & TRAIT_EARLY_FILES:
        own_section(m, K_COMPAT)
    if not m.mode & M_RELOCATABLE:
        list_number(m)          # without name or trace


cdef void early_notes(Merge* m) noexcept nogil:
    """The notes of releases before 13.0: from sm_100 on, one of another name, without symbols."""
    cdef int32_t out
    if not m.traits & TRAIT_MERCURY:
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
                    size = <uint32_t>strlen(<const char*>text)
                    if size == 0:
                        # That of kernels launched from the device: a string of its own.
                        empty_string(m)
                    elif strings_intern(&m.str, text, size) < 0:
                        m.failed = True


cdef void prototype_names(Merge* m, const uint64_t* prototypes, size_t count,
                          uint32_t* offsets) noexcept nogil:
    cdef size_t i
    cdef uint32_t size
    for i in range(count):
        size = <uint32_t>strlen(<const char*>m.arena + prototypes[i])
        offsets[i] = (strings_find(&m.str, m.arena + prototypes[i], size).at if size
                      else m.nameless)


cdef void instances(Merge* m) noexcept nogil:
    """-r: each kernel that uses extern arrays itself has one symbol for them all.

    They are made when relocations are gone through, which follow the code of the inputs, not the
    symbols: a weak kernel is born before others, but its array need not be named before theirs.
    """
    cdef const int32_t* kernel = <const int32_t*>m.array_kernels.data
    cdef size_t i
    cdef int32_t row
    for i in range(m.array_kernels.count):
        if m.traits & TRAIT_WEAK_GLOBAL:
            row = new_symbol(m, -1, -1, PART_GLOBAL)
        else:
            row = new_local(m, -1, <const uint8_t*>b"externsharedinstance", 20)
        if row < 0:
            return
        (<OutSymbolRow*>m.out_symbols.data)[row].instance = kernel[i]


cdef void wide_indices(Merge* m, bint late) noexcept nogil:
    """.symtab_shndx, for section numbers that do not fit 16 bits.

    It has had its number and its name from the start, unless only the final file is `late` in need
    of it.
    """
    cdef OutRow* row = <OutRow*>vec_push(&m.outs)
    cdef int64_t name
    if row == NULL:
        m.failed = True
        return
    start_made(row, K_SYMTAB_SHNDX)
    row.birth = <uint32_t>m.wide_place + 1
    if not late:
        listed(m, <int32_t>(m.outs.count - 1)).out = <int32_t>(m.outs.count - 1)
        return
    name = strings_append(&m.shstr, <const uint8_t*>b".symtab_shndx", 13)
    m.failed |= name < 0
    row.marks = OF_LATE
    row.name = <uint32_t>name


cdef void find_text(Merge* m) noexcept nogil:
    cdef size_t i
    cdef OutRow* row
    for i in range(m.outs.count):
        row = out_row(m, <int32_t>i)
        if row.entity >= 0:
            row.text = code_of(m, row.entity)
