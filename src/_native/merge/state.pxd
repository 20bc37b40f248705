# The merge in progress: the lists that events append to, and how they make sections and symbols.
#
# Nothing has a name in a string table yet: names are written by walks over the lists, when all is
# there (merge/names.pxd, docs/order.md).
#
# A function without memory sets `failed`; a `bint` function that is a verb then returns False, and
# a function that returns a row number returns -1, if its docstring does not say otherwise.

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
    PART_LOCAL, OutRow, OutSymbolRow, SectionRow, SymbolRow, start_out, was_current,
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
    const uint8_t* text         # the name; NULL for a number without a name
    uint32_t size
    uint32_t tag                # hash of the name, from when names are written
    int32_t out                 # OutRow; -1: only a name or a number
    int32_t symbol              # OutSymbolRow of a symbol that is not a section's, or -1


# Sections of dead functions, of which only the number counts; by entity.
cdef enum DeadSection:
    DEAD_TEXT = 1
    DEAD_INFO = 2
    DEAD_PARAMETERS = 4
    DEAD_POOL = 8
    DEAD_RELA = 16
    DEAD_REL = 32


# Why an input section without an output section is not omitted.
cdef enum KeepReason:
    KEEP_SYMBOLS = 1            # has symbols, or is listed already
    KEEP_DEFINITION = 2         # one of its symbols counts


# The rows that become columns of the result.
ctypedef struct Columns:
    Vec outs
    Vec out_symbols
    Vec emitted
    Vec fixups
    Vec rebuilds
    StringTable shstr
    StringTable str
    int32_t* out_of             # by input section
    uint64_t* base              # by input section
    uint8_t* referenced         # by entity: some code, dead code too, refers to it
    uint64_t* array_align       # by entity: -r, kernels whose code uses extern arrays, else 0


# The memory that the merge alone needs.
ctypedef struct Work:
    Vec section_list            # ListEntry: every section that has a number
    Vec local_list              # ListEntry: every section's symbol and the local symbols
    Vec lost_ranges             # LostRange of the current relocation section
    Vec array_kernels           # int32_t: those with `array_align`, in order of their relocations
    Vec capsules                # int32_t: input sections
    NameIndex by_name           # file-scope sections
    TextPool texts
    uint8_t* keep_reasons       # by input section: KeepReason bits
    uint8_t* own_pool           # by input section: PoolFlag bits of a pool that its function gets
    uint8_t* has_relocations    # by input section: code that has relocations
    uint64_t* pool_end          # by entity: the size of its pool with what other functions bring
    uint8_t* numbered_dead      # by entity: DeadSection bits
    int32_t* symbol_of          # by entity: out symbol, or -1
    int32_t* sections_of        # by entity: newest OutRow, or -1
    int32_t* parameters_of      # by entity, on family C: input section of a kernel's parameters
    int32_t* users              # by entity: its users (merge/sharedusers.pxd), or NULL
    int32_t* reaching_kernel    # by node of the call graph: who reaches it
    uint32_t* work_list         # nodes that a walk of the call graph has before it
    CallGraph calls             # for these, or empty


# State of a merge: inputs, columns of the result, scratch memory, position.
ctypedef struct Merge:
    ObjectsView objects
    MergedView merged
    Columns columns
    Work work
    size_t met_before               # rows of `met` that the walk over the files has passed
    uint32_t empty_string_offset    # offset of an empty string of its own, or 0
    uint32_t first_mercury          # input section: before it, no mercury relocations wait
    int32_t merc_shndx              # .nv.merc.symtab_shndx of the file at hand, or -1
    size_t symtab_shndx_position    # index of .symtab_shndx in the section list
    bint has_finalizer              # a second program makes the final file (docs/order.md)
    bint arrays_stay                # extern arrays keep symbols (merge/sharedusers.pxd)
    bint needs_symtab_shndx         # section numbers do not fit 16 bits
    bint has_compat                 # .nv.compat was created (early releases)
    bint failed                     # memory is exhausted


cdef inline bint is_folded(Merge* merge, int32_t section) noexcept nogil:
    """Whether the output has another input's copy of the section instead."""
    return merge.merged.stand_ins != NULL and merge.merged.stand_ins[section] >= 0


cdef inline ListEntry* add_listed(Merge* merge, Vec* list, const uint8_t* text, uint32_t size,
                                  int32_t out, int32_t symbol) noexcept nogil:
    """Append an element to a list; NULL without memory."""
    cdef ListEntry* row = <ListEntry*>vec_push(list)
    if row == NULL:
        merge.failed = True
        return NULL
    row.text = text
    row.size = size
    row.out = out
    row.symbol = symbol
    return row


cdef inline uint32_t intern_empty_string(Merge* merge) noexcept nogil:
    """The .strtab offset of the empty string of prototypes and nameless symbols, added once."""
    if merge.empty_string_offset == 0:
        merge.empty_string_offset = <uint32_t>merge.columns.str.text.count
        if strings_append(&merge.columns.str, <const uint8_t*>b"", 0) < 0:
            merge.failed = True
    return merge.empty_string_offset


cdef inline void list_number(Merge* merge) noexcept nogil:
    """Number a section that the output does not have."""
    add_listed(merge, &merge.work.section_list, NULL, 0, -1, -1)


cdef inline void list_dead(Merge* merge, int32_t entity, DeadSection which) noexcept nogil:
    """Number a section of a dead function, once."""
    if not merge.work.numbered_dead[entity] & which:
        merge.work.numbered_dead[entity] |= which
        list_number(merge)


cdef inline ListEntry* section_entry(Merge* merge, int32_t out) noexcept nogil:
    """The entry of a plain section in the section list."""
    return <ListEntry*>merge.work.section_list.data + out_row(merge, out).created - 1


cdef inline void create_resolved_section(Merge* merge, int32_t out) noexcept nogil:
    """Create the named section of the relocations resolved in `out` (--preserve-relocs)."""
    cdef const ListEntry* entry = section_entry(merge, out)
    cdef uint32_t size = entry.size
    cdef uint8_t* text = pool_join_text(&merge.work.texts, b".nv.resolvedrela", entry.text, &size)
    cdef int32_t row = new_section_of_kind(merge, K_RESOLVED_RELA)
    if text == NULL or row < 0:
        merge.failed = True
        return
    out_row(merge, row).target = out
    name_out(merge, row, text, size)


cdef inline OutRow* out_row(Merge* merge, int32_t out) noexcept nogil:
    return <OutRow*>merge.columns.outs.data + out


cdef inline int32_t new_out(Merge* merge, uint16_t kind, uint32_t type, uint64_t flags,
                            uint32_t align, uint32_t entsize) noexcept nogil:
    """A nameless section row; -1 without memory."""
    cdef OutRow* row = <OutRow*>vec_push(&merge.columns.outs)
    if row == NULL:
        merge.failed = True
        return -1
    start_out(row, kind, type, flags, align, entsize)
    if not flags & SHF_MERCURY:
        add_listed(merge, &merge.work.section_list, NULL, 0,
                   <int32_t>(merge.columns.outs.count - 1), -1)
        row.created = <uint32_t>merge.work.section_list.count
    return <int32_t>(merge.columns.outs.count - 1)


cdef inline int32_t new_section_of_kind(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a nameless row with the header of its kind; -1 without memory."""
    cdef const KindFacts* facts = &KIND[kind]
    return new_out(merge, kind, facts.type, facts.flags, facts.align, facts.entsize)


cdef inline void name_out(Merge* merge, int32_t out, const uint8_t* text,
                          uint32_t size) noexcept nogil:
    """Give a section its name, and list its symbol."""
    cdef ListEntry* symbol = add_listed(merge, &merge.work.local_list, text, size, out, -1)
    cdef ListEntry* section = section_entry(merge, out)
    if symbol == NULL:
        return
    section.text = text
    section.size = size


cdef inline void name_out_text(Merge* merge, int32_t out, const char* text) noexcept nogil:
    """`name_out` with a text that stands in the source."""
    name_out(merge, out, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline void keep_name(Merge* merge, const uint8_t* text, uint32_t size) noexcept nogil:
    """List only the names and the number of a section that the output does not have."""
    if text == NULL:
        merge.failed = True
        return
    add_listed(merge, &merge.work.section_list, text, size, -1, -1)
    add_listed(merge, &merge.work.local_list, text, size, -1, -1)


cdef inline int32_t new_symbol(Merge* merge, int32_t entity, int32_t section,
                               uint32_t part) noexcept nogil:
    """Create a symbol of the output; -1 without memory."""
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


cdef inline void add_section_symbol(Merge* merge, int32_t out) noexcept nogil:
    """Create the section symbol of a section."""
    new_symbol(merge, -1, out, PART_LOCAL)


cdef inline int32_t new_local(Merge* merge, int32_t entity, const uint8_t* text,
                              uint32_t size) noexcept nogil:
    """Create a local symbol that is not a section's; -1 without memory."""
    cdef int32_t row = new_symbol(merge, entity, -1, PART_LOCAL)
    add_listed(merge, &merge.work.local_list, text, size, -1, row)
    return row


cdef inline int32_t create_link_section(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section that the output has once; -1 without memory."""
    cdef int32_t out = new_section_of_kind(merge, kind)
    if out >= 0:
        name_out(merge, out, <const uint8_t*>KIND[kind].name, KIND[kind].stem)
    return out


cdef inline void create_link_section_with_symbol(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section that the output has once, with its section symbol."""
    cdef int32_t out = create_link_section(merge, kind)
    if out >= 0:
        add_section_symbol(merge, out)


cdef inline int32_t find_function_section(Merge* merge, int32_t entity, uint16_t kind,
                                          uint16_t bank) noexcept nogil:
    """The section of that kind that the function already has, or -1."""
    cdef int32_t section = merge.work.sections_of[entity]
    while section >= 0:
        if out_row(merge, section).kind == kind and out_row(merge, section).bank == bank:
            return section
        section = out_row(merge, section).next
    return -1


cdef inline int32_t code_of(Merge* merge, int32_t entity) noexcept nogil:
    """The code section of a function, or -1."""
    return find_function_section(merge, entity, K_TEXT, 0)


cdef inline int32_t pool_of(Merge* merge, int32_t entity) noexcept nogil:
    """The section of a function's literals and jump tables, or -1."""
    return find_function_section(merge, entity, K_CONSTANT_FUNC, POOL_BANK)


# The fields with which a section of a function or of a file is created.
ctypedef struct SectionHead:
    uint16_t kind
    uint16_t bank
    uint32_t type
    uint64_t flags
    uint32_t align
    int32_t source              # input section, or -1


cdef inline SectionHead head_of(Merge* merge, const SectionRow* source) noexcept nogil:
    """The head of an input section."""
    cdef SectionHead head
    head.kind = source.kind
    head.bank = source.bank
    head.type = source.type
    head.flags = source.flags
    head.align = source.align
    head.source = <int32_t>(source - merge.objects.sections)
    return head


cdef inline SectionHead head_of_kind(uint16_t kind) noexcept nogil:
    """The head of a section that the link makes."""
    cdef SectionHead head
    head.kind = kind
    head.bank = 0
    head.type = KIND[kind].type
    head.flags = KIND[kind].flags
    head.align = KIND[kind].align
    head.source = -1
    return head


cdef inline int32_t create_unnamed_section(Merge* merge, int32_t entity,
                                           const SectionHead* head) noexcept nogil:
    """Create a section of a function without a name; -1 without memory."""
    cdef int32_t out = new_out(merge, head.kind, head.type, head.flags, head.align, 0)
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


cdef inline int32_t create_named_section(Merge* merge, int32_t entity, const SectionHead* head,
                                         const uint8_t* name, uint32_t size) noexcept nogil:
    """Create a section of a function with that name; -1 without memory."""
    cdef int32_t out = create_unnamed_section(merge, entity, head)
    if out >= 0:
        name_out(merge, out, name, size)
    return out


cdef inline const uint8_t* entity_name(Merge* merge, int32_t entity, uint32_t* size) noexcept nogil:
    """The name of an entity, of `size` bytes."""
    cdef const SymbolRow* s = &merge.objects.symbols[merge.merged.entities[entity].first]
    size[0] = s.name_size
    return merge.objects.arena + s.name


cdef inline int32_t create_function_section(Merge* merge, int32_t entity,
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


cdef inline int32_t create_file_section(Merge* merge, uint16_t kind, int32_t source) noexcept nogil:
    """Find or create the file-scope section of a kind that no input needs to have."""
    cdef SectionHead head = head_of_kind(kind)
    head.source = source
    return find_or_create_file_section(merge, KIND[kind].name, KIND[kind].stem, &head)


cdef inline int32_t find_or_create_file_section(Merge* merge, const char* name, uint32_t size,
                                                const SectionHead* head) noexcept nogil:
    """The file-scope section of that name, created if it is new; -1 without memory."""
    cdef NameSlot* slot = index_find(&merge.work.by_name, <const uint8_t*>name, size)
    cdef int32_t out
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


cdef inline int32_t find_plain_section(Merge* merge, const SectionRow* s) noexcept nogil:
    """The output's plain section for a file-scope mercury section, or -1."""
    cdef NameSlot* slot
    cdef const uint8_t* name = merge.objects.arena + s.name + MERC_PREFIX
    cdef uint32_t size = s.name_size - MERC_PREFIX
    if s.bank == PIC_BANK or s.bank == USER_BANK:
        name = <const uint8_t*>(<const char*>b".nv.constant4" if s.bank == PIC_BANK
                                else <const char*>b".nv.constant3")
        size = <uint32_t>strlen(<const char*>name)
    slot = index_find(&merge.work.by_name, name, size)
    if slot == NULL:
        merge.failed = True
        return -1
    return slot.value


cdef inline void create_debug_shared(Merge* merge, int32_t source) noexcept nogil:
    """Find or create .nv_debug.shared."""
    create_file_section(merge, K_DEBUG_SHARED, source)


cdef inline int32_t function_read(Merge* merge, int32_t section) noexcept nogil:
    """The function whose sections a section creates, or -1. A copy that loses creates no section.
    """
    if not was_current(merge.merged.section_resolution[section]):
        return -1
    return merge.merged.section_function[section]


cdef inline int32_t function_kept(Merge* merge, int32_t section) noexcept nogil:
    """The function whose final copy a section belongs to, or -1."""
    if merge.merged.section_resolution[section] != RESOLUTION_WON:
        return -1
    return merge.merged.section_function[section]


cdef inline int32_t create_twin(Merge* merge, int32_t plain) noexcept nogil:
    """Create the mercury form of a section; -1 without memory."""
    cdef int32_t out = new_section_of_kind(merge, KIND[out_row(merge, plain).kind].twin)
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


cdef inline int32_t new_relocations(Merge* merge, int32_t out, bint explicit) noexcept nogil:
    """Create the nameless section of relocations of `out` in one form; -1 without memory."""
    cdef int32_t row = new_section_of_kind(merge, K_RELOC)
    if row < 0:
        return -1
    out_row(merge, row).target = out
    if explicit:
        out_row(merge, out).rela = row
    else:
        out_row(merge, row).type = SHT_REL
        out_row(merge, row).entsize = sizeof(Rel)
        out_row(merge, out).rel = row
    return row


cdef inline int32_t find_or_create_optimizer_relocations(Merge* merge, int32_t out) noexcept nogil:
    """Find or create .rela.nv.constant2.F of family C, as .rela.nv.constant.optimizer.F.

    -1 without memory.
    """
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* first
    cdef int32_t row = out_row(merge, out).rela
    if row >= 0:
        return row
    name = entity_name(merge, out_row(merge, out).entity, &size)
    first = pool_join_text(&merge.work.texts, b".rela.nv.constant.optimizer.", name, &size)
    row = new_relocations(merge, out, True)
    if first == NULL or row < 0:
        merge.failed = True
        return -1
    name_out(merge, row, first, size)
    if merge.objects.mode & LINK_KEEP_RELOCS:
        create_resolved_section(merge, out)
    return row


cdef inline int32_t find_or_create_optimizer_twin(Merge* merge, int32_t plain,
                                                  int32_t source) noexcept nogil:
    """The mercury twin of a pool, created if it is new; -1 without memory."""
    cdef int32_t out = out_row(merge, plain).merc
    if out < 0:
        out = create_twin(merge, plain)
        if out >= 0:
            out_row(merge, out).source = source
    return out


cdef inline int32_t new_mercury_relocations(Merge* merge, int32_t plain,
                                            int32_t source) noexcept nogil:
    cdef int32_t row = new_section_of_kind(merge, K_MERC_RELA)
    if row >= 0:
        out_row(merge, row).source = source
        out_row(merge, row).twin = plain
        out_row(merge, plain).merc = row
    return row


cdef inline void create_pool_relocations(Merge* merge, int32_t e) noexcept nogil:
    """Create the relocation sections of a function's pool in both forms, on family C."""
    cdef int32_t reloc = find_or_create_optimizer_relocations(merge, pool_of(merge, e))
    if reloc >= 0 and out_row(merge, reloc).merc < 0:
        new_mercury_relocations(merge, reloc, -1)
