# The state of a merge, and the functions that create sections and symbols of the output.
#
# A section that is created gets a row of `outs` and an element of the section list; its name and
# the place of its symbol are an element of the list of local symbols. For a kernel `k`, `.text.k`:
#
#     outs            row 5: kind K_TEXT, entity k, created 7
#     section_list    element 6 (the 7th): text ".text.k", out 5
#     local_list      an element: text ".text.k", out 5
#     out_symbols     a row: section 5
#
# The number of a section among all sections created (`created`) is its place in the section list.
# The list also has elements without a row: sections that nvlink creates and later removes, so that
# their numbers stay unused (`reserve_number`), and some names with them (`reserve_name`).
#
# No name is in a string table yet: merge/names.pxd walks over both lists when they are complete,
# and writes the names (docs/order.md).
#
# A function that finds no memory sets `failed`. A `bint` function that is a verb then returns
# False, and a function that returns a row number returns -1, if its docstring does not say
# otherwise. In all of merge/, `out` is the number of an OutRow, which is a section of the output,
# while `section` is the number of a SectionRow, which is a section of an input.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport strlen

from base.elf64 cimport Rel
from base.nameindex cimport (
    NameIndex, NameSlot, StringTable, TextPool, index_find, pool_join, pool_join_text,
    strings_append,
)
from base.texts cimport MERC_PREFIX
from base.vector cimport Vec, vec_push
from elfnumbers cimport SHF_MERCURY, SHT_REL
from rownumbers cimport LINK_KEEP_RELOCS, RESOLUTION_WON
from sectionkinds cimport (
    KIND, K_CONSTANT_FUNC, K_DEBUG_SHARED, K_MERC_RELA, K_RELOC, K_RESOLVED_RELA, K_TEXT, PIC_BANK,
    POOL_BANK, USER_BANK, KindFacts,
)
from tables.graph cimport CallGraph
from tables.kinds cimport first_name, is_renamed
from tables.rows cimport (
    PART_LOCAL, EntityNumber, OutNumber, OutRow, OutSymbolNumber, OutSymbolRow, SectionNumber,
    SectionRow, SymbolRow, start_out_row, was_current,
)
from tables.views cimport MergedView, ObjectsView


# Names that more than one function gives.
cdef extern from *:
    """
    #define SHNDX ".symtab_shndx"
    #define INSTANCE "externsharedinstance"
    """
    const char* SHNDX
    const char* INSTANCE

cdef enum:
    OPTIMIZER_PREFIX = 23   # bytes of ".nv.constant.optimizer."


# An element of the section list or of the list of local symbols.
ctypedef struct ListEntry:
    const uint8_t* text         # the name, without NUL; NULL for a number without a name
    uint32_t size               # bytes of the name
    uint32_t tag                # hash of the name, then its offset; set when names are written
    OutNumber out               # -1: only a name or a number
    OutSymbolNumber symbol      # OutSymbolRow of a symbol that is not a section's, or -1


# Sections of a dead function that have got a number already. The output has none of them.
cdef enum DeadSection:
    DEAD_TEXT = 1
    DEAD_INFO = 2
    DEAD_PARAMETERS = 4
    DEAD_POOL = 8
    DEAD_RELA = 16
    DEAD_REL = 32


# Facts about an input section that the merge finds. For a mercury relocation section MARK_SYMBOL
# says that its entries have been decided.
cdef enum SectionMark:
    MARK_SYMBOL = 1            # a symbol lies in it
    MARK_DEFINITION = 2         # a symbol in it is a definition that did not lose


# The tables of the result while they grow; `MergedTables` in results.pyi says what each holds.
ctypedef struct Columns:
    Vec outs                    # OutRow
    Vec out_symbols             # OutSymbolRow
    Vec emitted                 # EmittedRow
    Vec fixups                  # FixupRow
    Vec rebuilds                # RebuildRow
    StringTable shstr           # .shstrtab
    StringTable str             # .strtab
    OutNumber* out_of           # by input section: OutRow that has its bytes, or -1
    uint64_t* base              # by input section: offset of its bytes in that OutRow
    uint8_t* referenced         # by entity: some code, dead code too, refers to it
    # By entity, with -r: alignment of the extern arrays that a kernel's own code uses, 1 if they
    # state none; 0 without such arrays.
    uint64_t* array_align


# The memory that the merge alone needs.
ctypedef struct Work:
    Vec section_list                # ListEntry: every section that has a number
    Vec local_list                  # ListEntry: every section's symbol and the local symbols
    Vec lost_ranges                 # LostRange: bytes that lost of the section being relocated
    Vec array_kernels               # EntityNumber: kernels with `array_align`, by first relocation
    Vec capsules                    # SectionNumber: sections that are capsules
    NameIndex by_name               # OutRow of each file-scope section
    TextPool texts                  # names that the link makes
    uint8_t* section_marks          # by input section: SectionMark bits
    uint8_t* own_pool               # by input section: PoolFlag bits, if its function gets a pool
    uint8_t* has_relocations        # by input section: it is code that has relocations
    uint64_t* pool_end              # by entity: bytes of its pool with what other functions add
    uint8_t* numbered_dead          # by entity: DeadSection bits
    OutSymbolNumber* symbol_of      # by entity: its OutSymbolRow, or -1
    OutNumber* sections_of          # by entity: its newest section, or -1; then follow `next`
    SectionNumber* parameters_of    # by entity, on family C: input section of a kernel's parameters
    EntityNumber* users             # by entity: see merge/sharedusers.pxd; NULL if not needed
    EntityNumber* reaching_kernel   # by node of the call graph: the kernels that reach it
    uint32_t* work_list             # nodes that a walk of the call graph still has to visit
    CallGraph calls                 # the call graph, if `users` are needed


# State of a merge: inputs, tables of the result, working memory, and where it is in the inputs.
ctypedef struct Merge:
    ObjectsView objects
    MergedView merged
    Columns columns
    Work work
    size_t met_before               # rows of `met` that the walk over the files has passed
    uint32_t empty_string_offset    # .strtab offset of the second empty string, 0 before it exists
    # Input section: the first of the file that may be mercury relocations not yet decided.
    uint32_t first_mercury
    SectionNumber merc_shndx        # .nv.merc.symtab_shndx of the file, or -1
    size_t symtab_shndx_position    # index of .symtab_shndx in the section list
    bint has_finalizer              # family C: a second program makes the final file
    bint arrays_stay                # extern arrays keep symbols (merge/sharedusers.pxd)
    bint needs_symtab_shndx         # section numbers do not fit 16 bits
    bint has_compat                 # .nv.compat was created (release 12.9)
    bint failed                     # memory is exhausted


cdef inline bint is_folded(Merge* merge, SectionNumber section) noexcept nogil:
    """Whether a fold omits an input section: the output has an earlier input's copy of it."""
    return merge.merged.stand_ins != NULL and merge.merged.stand_ins[section] >= 0


cdef inline ListEntry* append_list_entry(Merge* merge, Vec* list, const uint8_t* text,
                                         uint32_t size, OutNumber out,
                                         OutSymbolNumber symbol) noexcept nogil:
    """Append an element to the section list or the list of local symbols; NULL without memory."""
    cdef ListEntry* entry = <ListEntry*>vec_push(list)
    if entry == NULL:
        merge.failed = True
        return NULL
    entry.text = text
    entry.size = size
    entry.out = out
    entry.symbol = symbol
    return entry


cdef inline uint32_t intern_empty_string(Merge* merge) noexcept nogil:
    """Return the .strtab offset of the empty name of prototypes and nameless symbols.

    It is a second empty string, beside the one at offset 0, and is added at the first call.
    """
    if merge.empty_string_offset == 0:
        merge.empty_string_offset = <uint32_t>merge.columns.str.text.count
        if strings_append(&merge.columns.str, <const uint8_t*>b"", 0) < 0:
            merge.failed = True
    return merge.empty_string_offset


cdef inline void reserve_number(Merge* merge) noexcept nogil:
    """Let the next number of a section stay unused: nvlink creates one that it later removes."""
    append_list_entry(merge, &merge.work.section_list, NULL, 0, -1, -1)


cdef inline void number_dead_section(Merge* merge, EntityNumber entity,
                                     DeadSection which) noexcept nogil:
    """Reserve a number for a section of a dead function, unless that section has one."""
    if not merge.work.numbered_dead[entity] & which:
        merge.work.numbered_dead[entity] |= which
        reserve_number(merge)


cdef inline ListEntry* section_entry(Merge* merge, OutNumber out) noexcept nogil:
    """Return the element of a section in the section list; mercury twins have none."""
    return <ListEntry*>merge.work.section_list.data + out_row(merge, out).created - 1


cdef inline void create_resolved_section(Merge* merge, OutNumber out) noexcept nogil:
    """Create .nv.resolvedrela.S, which lists relocations resolved in section S, the OutRow `out`.

    Only --preserve-relocs has such sections.
    """
    cdef const ListEntry* entry = section_entry(merge, out)
    cdef uint32_t size = entry.size
    cdef uint8_t* text = pool_join_text(&merge.work.texts, b".nv.resolvedrela", entry.text, &size)
    cdef OutNumber row = new_section_of_kind(merge, K_RESOLVED_RELA)
    if text == NULL or row < 0:
        merge.failed = True
        return
    out_row(merge, row).target = out
    name_out(merge, row, text, size)


cdef inline OutRow* out_row(Merge* merge, OutNumber out) noexcept nogil:
    """Return the row of a section of the output; it moves when the next section is created."""
    return <OutRow*>merge.columns.outs.data + out


cdef inline OutNumber new_out(Merge* merge, uint16_t kind, uint32_t type, uint64_t flags,
                              uint32_t align, uint32_t entsize) noexcept nogil:
    """Create a section of the output without a name; -1 without memory.

    A mercury section does not enter the section list and gets no number.
    """
    cdef OutRow* row = <OutRow*>vec_push(&merge.columns.outs)
    if row == NULL:
        merge.failed = True
        return -1
    start_out_row(row, kind, type, flags, align, entsize)
    if not flags & SHF_MERCURY:
        append_list_entry(merge, &merge.work.section_list, NULL, 0,
                          <int32_t>(merge.columns.outs.count - 1), -1)
        row.created = <uint32_t>merge.work.section_list.count
    return <int32_t>(merge.columns.outs.count - 1)


cdef inline OutNumber new_section_of_kind(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section without a name, with the header fields of its kind; -1 without memory."""
    cdef const KindFacts* facts = &KIND[kind]
    return new_out(merge, kind, facts.type, facts.flags, facts.align, facts.entsize)


cdef inline void name_out(Merge* merge, OutNumber out, const uint8_t* text,
                          uint32_t size) noexcept nogil:
    """Give a section its name, and append its symbol to the list of local symbols."""
    cdef ListEntry* symbol = append_list_entry(merge, &merge.work.local_list, text, size, out, -1)
    cdef ListEntry* section = section_entry(merge, out)
    if symbol == NULL:
        return
    section.text = text
    section.size = size


cdef inline void name_out_text(Merge* merge, OutNumber out, const char* text) noexcept nogil:
    """Call `name_out` with a text that stands in the source."""
    name_out(merge, out, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline void reserve_name(Merge* merge, const uint8_t* text, uint32_t size) noexcept nogil:
    """Reserve the number and the names of a section and its symbol, which the output has not."""
    if text == NULL:
        merge.failed = True
        return
    append_list_entry(merge, &merge.work.section_list, text, size, -1, -1)
    append_list_entry(merge, &merge.work.local_list, text, size, -1, -1)


cdef inline OutSymbolNumber new_symbol(Merge* merge, EntityNumber entity, OutNumber section,
                                       uint32_t part) noexcept nogil:
    """Create a symbol of the output for an entity or for an OutRow `section`; -1 without memory.

    The other one is -1; both are -1 for an instance.
    """
    cdef OutSymbolRow* row = <OutSymbolRow*>vec_push(&merge.columns.out_symbols)
    if row == NULL:
        merge.failed = True
        return -1
    row.name = 0
    row.entity = entity
    row.section = section
    row.instance = -1
    row.part = part
    row.dropped = False
    return <int32_t>(merge.columns.out_symbols.count - 1)


cdef inline void add_section_symbol(Merge* merge, OutNumber out) noexcept nogil:
    """Create the section symbol of a section."""
    new_symbol(merge, -1, out, PART_LOCAL)


cdef inline OutSymbolNumber new_local(Merge* merge, EntityNumber entity, const uint8_t* text,
                                      uint32_t size) noexcept nogil:
    """Create a local symbol of an entity, or of none for an instance; -1 without memory."""
    cdef OutSymbolNumber row = new_symbol(merge, entity, -1, PART_LOCAL)
    append_list_entry(merge, &merge.work.local_list, text, size, -1, row)
    return row


cdef inline OutNumber create_link_section(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section that the output has once; -1 without memory."""
    cdef OutNumber out = new_section_of_kind(merge, kind)
    if out >= 0:
        name_out(merge, out, <const uint8_t*>KIND[kind].name, KIND[kind].stem)
    return out


cdef inline void create_link_section_with_symbol(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section that the output has once, with its section symbol."""
    cdef OutNumber out = create_link_section(merge, kind)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline OutNumber find_function_section(Merge* merge, EntityNumber entity, uint16_t kind,
                                            uint16_t bank) noexcept nogil:
    """Return the OutRow of that kind and bank that the function already has, or -1."""
    cdef OutNumber section = merge.work.sections_of[entity]
    while section >= 0:
        if out_row(merge, section).kind == kind and out_row(merge, section).bank == bank:
            return section
        section = out_row(merge, section).next
    return -1


cdef inline OutNumber code_of(Merge* merge, EntityNumber entity) noexcept nogil:
    """Return the OutRow of a function's code, or -1."""
    return find_function_section(merge, entity, K_TEXT, 0)


cdef inline OutNumber pool_of(Merge* merge, EntityNumber entity) noexcept nogil:
    """Return the OutRow of a function's literals and jump tables, or -1."""
    return find_function_section(merge, entity, K_CONSTANT_FUNC, POOL_BANK)


# The fields with which a section of a function or of a file is created: those of an OutRow.
ctypedef struct SectionHead:
    uint16_t kind
    uint16_t bank
    uint32_t type
    uint64_t flags
    uint32_t align
    SectionNumber source        # that it is created for, or -1


cdef inline SectionHead head_of(Merge* merge, const SectionRow* source) noexcept nogil:
    """Return the fields of an input section."""
    cdef SectionHead head
    head.kind = source.kind
    head.bank = source.bank
    head.type = source.type
    head.flags = source.flags
    head.align = source.align
    head.source = <int32_t>(source - merge.objects.sections)
    return head


cdef inline SectionHead head_of_kind(uint16_t kind) noexcept nogil:
    """Return the fields of a section that the link makes, without an input section."""
    cdef SectionHead head
    head.kind = kind
    head.bank = 0
    head.type = KIND[kind].type
    head.flags = KIND[kind].flags
    head.align = KIND[kind].align
    head.source = -1
    return head


cdef inline OutNumber create_unnamed_section(Merge* merge, EntityNumber entity,
                                             const SectionHead* head) noexcept nogil:
    """Create a section of a function, still without a name; -1 without memory."""
    cdef OutNumber out = new_out(merge, head.kind, head.type, head.flags, head.align, 0)
    cdef OutRow* row
    if out < 0:
        return -1
    row = out_row(merge, out)
    row.entity = entity
    row.next = merge.work.sections_of[entity]
    merge.work.sections_of[entity] = out
    row.text = code_of(merge, entity)
    row.source = head.source
    row.bank = head.bank
    return out


cdef inline OutNumber create_named_section(Merge* merge, EntityNumber entity,
                                           const SectionHead* head, const uint8_t* name,
                                           uint32_t size) noexcept nogil:
    """Create a section of a function with a name of `size` bytes; -1 without memory."""
    cdef OutNumber out = create_unnamed_section(merge, entity, head)
    if out >= 0:
        name_out(merge, out, name, size)
    return out


cdef inline const uint8_t* entity_name(Merge* merge, EntityNumber entity,
                                       uint32_t* size) noexcept nogil:
    """Return the name of an entity in the arena, and set `size` to its bytes."""
    cdef const SymbolRow* symbol = &merge.objects.symbols[merge.merged.entities[entity].first]
    size[0] = symbol.name_size
    return merge.objects.arena + symbol.name


cdef inline OutNumber create_function_section(Merge* merge, EntityNumber entity,
                                              uint16_t kind) noexcept nogil:
    """Create a section of a function, named after kind and function; -1 without memory."""
    cdef const KindFacts* facts = &KIND[kind]
    cdef SectionHead head = head_of_kind(kind)
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, entity, &size)
    cdef uint8_t* text = pool_join(&merge.work.texts, facts.name, facts.stem, name, size)
    if text == NULL:
        merge.failed = True
        return -1
    return create_named_section(merge, entity, &head, text, facts.stem + size)


cdef inline OutNumber create_file_section(Merge* merge, uint16_t kind,
                                          SectionNumber source) noexcept nogil:
    """Find or create the file-scope section of a kind that no input needs to have."""
    cdef SectionHead head = head_of_kind(kind)
    head.source = source
    return find_or_create_file_section(merge, KIND[kind].name, KIND[kind].stem, &head)


cdef inline OutNumber find_or_create_file_section(Merge* merge, const char* name, uint32_t size,
                                                  const SectionHead* head) noexcept nogil:
    """Return the file-scope section of that name, created if it is new; -1 without memory."""
    cdef NameSlot* slot = index_find(&merge.work.by_name, <const uint8_t*>name, size)
    cdef OutNumber out
    if slot == NULL:
        merge.failed = True
        return -1
    if slot.value >= 0:
        return slot.value
    out = new_out(merge, head.kind, head.type, head.flags, 1, 0)
    if out < 0:
        return -1
    slot.value = out
    merge.work.by_name.count += 1
    out_row(merge, out).bank = head.bank
    out_row(merge, out).source = head.source
    if merge.has_finalizer and is_renamed(out_row(merge, out)):
        name_out(merge, out, <const uint8_t*>first_name(head.kind, head.bank),
                 <uint32_t>strlen(first_name(head.kind, head.bank)))
    else:
        name_out(merge, out, <const uint8_t*>name, size)
    add_section_symbol(merge, out)
    return out


cdef inline OutNumber find_plain_section(Merge* merge, const SectionRow* mercury) noexcept nogil:
    """Return the OutRow of the plain form of a file-scope mercury input section, or -1."""
    cdef NameSlot* slot
    cdef const uint8_t* name = merge.objects.arena + mercury.name + MERC_PREFIX
    cdef uint32_t size = mercury.name_size - MERC_PREFIX
    if mercury.bank == PIC_BANK or mercury.bank == USER_BANK:
        name = <const uint8_t*>(<const char*>b".nv.constant4" if mercury.bank == PIC_BANK
                                else <const char*>b".nv.constant3")
        size = <uint32_t>strlen(<const char*>name)
    slot = index_find(&merge.work.by_name, name, size)
    if slot == NULL:
        merge.failed = True
        return -1
    return slot.value


cdef inline void create_debug_shared(Merge* merge, SectionNumber source) noexcept nogil:
    """Find or create .nv_debug.shared."""
    create_file_section(merge, K_DEBUG_SHARED, source)


cdef inline EntityNumber function_if_current(Merge* merge, SectionNumber section) noexcept nogil:
    """Return the function of a section if its copy was current when its file was read, or -1.

    Only such a copy creates sections; it may be replaced by a copy of a later file.
    """
    if not was_current(merge.merged.section_resolution[section]):
        return -1
    return merge.merged.section_function[section]


cdef inline EntityNumber function_if_linked(Merge* merge, SectionNumber section) noexcept nogil:
    """Return the function of a section if its copy is the one that is linked, or -1."""
    if merge.merged.section_resolution[section] != RESOLUTION_WON:
        return -1
    return merge.merged.section_function[section]


cdef inline OutNumber create_twin(Merge* merge, OutNumber plain) noexcept nogil:
    """Create the mercury twin of the section `plain`; -1 without memory."""
    cdef OutNumber out = new_section_of_kind(merge, KIND[out_row(merge, plain).kind].twin)
    if out >= 0:
        if out_row(merge, out).align == 0:
            out_row(merge, out).align = out_row(merge, plain).align
        out_row(merge, out).twin = plain
        out_row(merge, out).entity = out_row(merge, plain).entity
        if KIND[out_row(merge, out).kind].first_bank:
            out_row(merge, out).type += (out_row(merge, plain).bank
                                         - KIND[out_row(merge, out).kind].first_bank)
        out_row(merge, plain).merc = out
    return out


cdef inline OutNumber new_relocations(Merge* merge, OutNumber out, bint is_rela) noexcept nogil:
    """Create the relocation section of `out`, RELA or REL, without a name; -1 without memory."""
    cdef OutNumber relocations = new_section_of_kind(merge, K_RELOC)
    if relocations < 0:
        return -1
    out_row(merge, relocations).target = out
    if is_rela:
        out_row(merge, out).rela = relocations
    else:
        out_row(merge, relocations).type = SHT_REL
        out_row(merge, relocations).entsize = sizeof(Rel)
        out_row(merge, out).rel = relocations
    return relocations


cdef inline OutNumber find_or_create_optimizer_relocations(Merge* merge,
                                                           OutNumber out) noexcept nogil:
    """Find or create .rela.nv.constant2.F of family C; -1 without memory.

    Its first name is .rela.nv.constant.optimizer.F: the second program renames it.
    """
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    cdef OutNumber relocations = out_row(merge, out).rela
    if relocations >= 0:
        return relocations
    name = entity_name(merge, out_row(merge, out).entity, &size)
    text = pool_join_text(&merge.work.texts, b".rela.nv.constant.optimizer.", name, &size)
    relocations = new_relocations(merge, out, True)
    if text == NULL or relocations < 0:
        merge.failed = True
        return -1
    name_out(merge, relocations, text, size)
    if merge.objects.mode & LINK_KEEP_RELOCS:
        create_resolved_section(merge, out)
    return relocations


cdef inline OutNumber find_or_create_optimizer_twin(Merge* merge, OutNumber plain,
                                                    SectionNumber source) noexcept nogil:
    """Return the mercury twin of a pool, created if it is new; -1 without memory."""
    cdef OutNumber out = out_row(merge, plain).merc
    if out < 0:
        out = create_twin(merge, plain)
        if out >= 0:
            out_row(merge, out).source = source
    return out


cdef inline OutNumber new_mercury_relocations(Merge* merge, OutNumber plain,
                                              SectionNumber source) noexcept nogil:
    """Create the mercury twin of the relocation section `plain`; -1 without memory."""
    cdef OutNumber relocations = new_section_of_kind(merge, K_MERC_RELA)
    if relocations >= 0:
        out_row(merge, relocations).source = source
        out_row(merge, relocations).twin = plain
        out_row(merge, plain).merc = relocations
    return relocations


cdef inline void create_pool_relocations(Merge* merge, EntityNumber function) noexcept nogil:
    """Create the relocation sections of a function's pool in both forms, on family C."""
    cdef OutNumber relocations = find_or_create_optimizer_relocations(merge,
                                                                      pool_of(merge, function))
    if relocations >= 0 and out_row(merge, relocations).merc < 0:
        new_mercury_relocations(merge, relocations, -1)
