# The merge in progress: the lists that events append to, and how they make sections and symbols.
#
# Nothing has a name in a string table yet: names are written by walks over the lists, when all is
# there (merge/names.pxd, docs/order.md).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport strlen

from elfnumbers cimport SHF_MERCURY, SHT_REL
from sectionkinds cimport (
    KIND, K_CONSTANT_FUNC, K_DEBUG_SHARED, K_MERC_RELA, K_RELOC, K_RESOLVED_RELA, K_TEXT,
    PIC_BANK, POOL_BANK, USER_BANK, KindFacts,
)
from base.elf64 cimport Rel
from tables.graph cimport CallGraph
from tables.kinds cimport first_name, is_renamed
from base.nameindex cimport (
    NameIndex, NameSlot, StringTable, TextPool, index_find, pool_join, strings_append,
)
from tables.rows cimport (
    M_KEEP_RELOCS, PART_LOCAL, RESOLUTION_WON, OutRow, OutSymbolRow, SectionRow, SymbolRow,
    start_out, was_current,
)
from tables.views cimport MergedView, ObjectsView
from base.vector cimport Vec, vec_push


# An element of the section list or of the list of local symbols.
ctypedef struct Listed:
    const uint8_t* text         # its name; NULL has a number alone
    uint32_t size
    uint32_t tag                # hash of the name, from when names are written
    int32_t out                 # OutRow; -1 for a section that leaves its name or number alone
    int32_t symbol              # OutSymbolRow of a symbol that is not a section's, or -1


# Sections of dead functions, of which only the number counts; by entity.
cdef enum Buried:
    BURIED_TEXT = 1
    BURIED_INFO = 2
    BURIED_PARAMETERS = 4
    BURIED_POOL = 8
    BURIED_RELA = 16
    BURIED_REL = 32


# Why a section that nobody has created yet is not omitted.
cdef enum Wanted:
    WANTED_SYMBOLS = 1          # it has symbols, or it is listed already
    WANTED_DEFINITION = 2       # one of its symbols counts


# What becomes columns of the result.
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


# What the merge alone needs.
ctypedef struct Work:
    Vec section_list            # Listed: every section that has a number
    Vec local_list              # Listed: every section's symbol and the local symbols
    Vec lost                    # Range: of the relocation section at hand, see merge/lostbytes.pxd
    Vec array_kernels           # int32_t: those with `array_align`, in order of their relocations
    NameIndex by_name           # file-scope sections
    TextPool texts
    uint8_t* wanted             # by input section: Wanted bits
    uint8_t* own_pool           # by input section: PoolFlag bits of a pool that its function gets
    uint8_t* patched            # by input section: code that has relocations
    uint64_t* pool_end          # by entity: the size of its pool with what other functions bring
    uint8_t* buried             # by entity: Buried bits
    int32_t* symbol_of          # by entity: out symbol, or -1
    int32_t* sections_of        # by entity: newest OutRow, or -1
    int32_t* users              # by entity: its users (merge/sharedusers.pxd), or NULL
    int32_t* reached            # by node of the call graph: who reaches it
    uint32_t* waiting           # nodes that a walk of the call graph has before it
    CallGraph calls             # for these, or empty


# What it reads, what it makes, its working memory, and how far it is.
ctypedef struct Merge:
    ObjectsView objects
    MergedView merged
    Columns columns
    Work work
    size_t met_before           # rows of `met` that the walk over the files has passed
    uint32_t nameless           # offset of an empty string of its own, or 0
    uint32_t first_mercury      # input section: before it, no mercury relocations wait
    int32_t merc_shndx          # .nv.merc.symtab_shndx of the file at hand, or -1
    size_t wide_place           # of .symtab_shndx in the section list
    bint second                 # a second program makes the final file (docs/order.md)
    bint arrays_stay            # extern arrays keep symbols (merge/sharedusers.pxd)
    bint wide                   # section numbers do not fit 16 bits
    bint has_compat             # of releases that write it where inputs do
    bint failed                 # memory is exhausted


cdef inline bint is_folded(Merge* m, int32_t at) noexcept nogil:
    """Whether the output has another input's copy of the section instead."""
    return m.merged.stand_ins != NULL and m.merged.stand_ins[at] >= 0


cdef inline Listed* add_listed(Merge* m, Vec* list, const uint8_t* text, uint32_t size,
                               int32_t out, int32_t symbol) noexcept nogil:
    cdef Listed* row = <Listed*>vec_push(list)
    if row == NULL:
        m.failed = True
        return NULL
    row.text = text
    row.size = size
    row.out = out
    row.symbol = symbol
    return row


cdef inline uint32_t empty_string(Merge* m) noexcept nogil:
    """The offset in .strtab of the empty string that prototypes and nameless symbols share."""
    if m.nameless == 0:
        m.nameless = <uint32_t>m.columns.str.text.count
        if strings_append(&m.columns.str, <const uint8_t*>b"", 0) < 0:
            m.failed = True
    return m.nameless


cdef inline void list_number(Merge* m) noexcept nogil:
    """A section of which nothing but its number stays."""
    add_listed(m, &m.work.section_list, NULL, 0, -1, -1)


cdef inline void list_dead(Merge* m, int32_t entity, Buried which) noexcept nogil:
    """A section of a dead function, numbered when it was made."""
    if not m.work.buried[entity] & which:
        m.work.buried[entity] |= which
        list_number(m)


cdef inline Listed* listed(Merge* m, int32_t out) noexcept nogil:
    """The place of a plain section in the section list."""
    return <Listed*>m.work.section_list.data + out_row(m, out).created - 1


cdef inline void resolved_row(Merge* m, int32_t out) noexcept nogil:
    """--preserve-relocs: the section that will list what was resolved, named as `out` was."""
    cdef const Listed* named = listed(m, out)
    cdef uint32_t size = named.size
    cdef uint8_t* text = pool_join(&m.work.texts, b".nv.resolvedrela", 16, named.text, size)
    cdef int32_t row = new_made(m, K_RESOLVED_RELA)
    if text == NULL or row < 0:
        m.failed = True
        return
    out_row(m, row).target = out
    name_out(m, row, text, 16 + size)


cdef inline OutRow* out_row(Merge* m, int32_t at) noexcept nogil:
    return <OutRow*>m.columns.outs.data + at


cdef inline int32_t new_out(Merge* m, uint16_t kind, uint32_t type, uint64_t flags, uint32_t align,
                     uint32_t entsize) noexcept nogil:
    """A nameless section row; -1 without memory."""
    cdef OutRow* row = <OutRow*>vec_push(&m.columns.outs)
    if row == NULL:
        m.failed = True
        return -1
    start_out(row, kind, type, flags, align, entsize)
    if not flags & SHF_MERCURY:
        add_listed(m, &m.work.section_list, NULL, 0, <int32_t>(m.columns.outs.count - 1), -1)
        row.created = <uint32_t>m.work.section_list.count
    return <int32_t>(m.columns.outs.count - 1)


cdef inline int32_t new_made(Merge* m, uint16_t kind) noexcept nogil:
    """A nameless row of a section that the link itself makes, with the header of its kind."""
    cdef const KindFacts* facts = &KIND[kind]
    return new_out(m, kind, facts.type, facts.flags, facts.align, facts.entsize)


cdef inline void name_out(Merge* m, int32_t out, const uint8_t* text, uint32_t size) noexcept nogil:
    """Give a section the name that the walks will find; its symbol is listed now."""
    cdef Listed* symbol = add_listed(m, &m.work.local_list, text, size, out, -1)
    cdef Listed* section = listed(m, out)
    if symbol == NULL:
        return
    section.text = text
    section.size = size


cdef inline void keep_name(Merge* m, const uint8_t* text, uint32_t size) noexcept nogil:
    """A section that leaves its names and its number, and nothing else."""
    if text == NULL:
        m.failed = True
        return
    add_listed(m, &m.work.section_list, text, size, -1, -1)
    add_listed(m, &m.work.local_list, text, size, -1, -1)


cdef inline int32_t new_symbol(Merge* m, int32_t entity, int32_t section,
                               uint32_t part) noexcept nogil:
    cdef OutSymbolRow* row = <OutSymbolRow*>vec_push(&m.columns.out_symbols)
    if row == NULL:
        m.failed = True
        return -1
    row.name = 0
    row.entity = entity
    row.section = section
    row.instance = -1
    row.part = part
    row.dropped = False
    return <int32_t>(m.columns.out_symbols.count - 1)


cdef inline void section_symbol(Merge* m, int32_t out) noexcept nogil:
    new_symbol(m, -1, out, PART_LOCAL)


cdef inline int32_t new_local(Merge* m, int32_t entity, const uint8_t* text,
                              uint32_t size) noexcept nogil:
    """A local symbol that is not a section's."""
    cdef int32_t row = new_symbol(m, entity, -1, PART_LOCAL)
    add_listed(m, &m.work.local_list, text, size, -1, row)
    return row


cdef inline int32_t own_section(Merge* m, uint16_t kind) noexcept nogil:
    """A section that the link makes once."""
    cdef int32_t out = new_made(m, kind)
    if out >= 0:
        name_out(m, out, <const uint8_t*>KIND[kind].name, KIND[kind].stem)
    return out


cdef inline void own_section_with_symbol(Merge* m, uint16_t kind) noexcept nogil:
    """A section that the link makes once, with its section symbol."""
    cdef int32_t out = own_section(m, kind)
    if out >= 0:
        section_symbol(m, out)


cdef inline int32_t function_section(Merge* m, int32_t entity, uint16_t kind,
                              uint16_t bank) noexcept nogil:
    """The section of that kind that the function already has, or -1."""
    cdef int32_t at = m.work.sections_of[entity]
    while at >= 0:
        if out_row(m, at).kind == kind and out_row(m, at).bank == bank:
            return at
        at = out_row(m, at).next
    return -1


cdef inline int32_t code_of(Merge* m, int32_t entity) noexcept nogil:
    return function_section(m, entity, K_TEXT, 0)


cdef inline int32_t pool_of(Merge* m, int32_t entity) noexcept nogil:
    return function_section(m, entity, K_CONSTANT_FUNC, POOL_BANK)


# What a section of a function or of a file is created with.
ctypedef struct Head:
    uint16_t kind
    uint16_t bank
    uint32_t type
    uint64_t flags
    uint32_t align
    int32_t source              # input section, or -1


cdef inline Head head_of(Merge* m, const SectionRow* source) noexcept nogil:
    """The head of an input section."""
    cdef Head head
    head.kind = source.kind
    head.bank = source.bank
    head.type = source.type
    head.flags = source.flags
    head.align = source.align
    head.source = <int32_t>(source - m.objects.sections)
    return head


cdef inline Head made_head(uint16_t kind) noexcept nogil:
    """The head of a section that the link makes."""
    cdef Head head
    head.kind = kind
    head.bank = 0
    head.type = KIND[kind].type
    head.flags = KIND[kind].flags
    head.align = KIND[kind].align
    head.source = -1
    return head


cdef inline int32_t unnamed_function_section(Merge* m, int32_t entity,
                                             const Head* head) noexcept nogil:
    cdef int32_t out = new_out(m, head.kind, head.type, head.flags, head.align, 0)
    cdef OutRow* row
    if out < 0:
        return -1
    row = out_row(m, out)
    row.entity = entity
    row.next = m.work.sections_of[entity]
    m.work.sections_of[entity] = out
    row.text = code_of(m, entity)
    row.source = head.source
    row.bank = head.bank
    return out


cdef inline int32_t new_function_section(Merge* m, int32_t entity, const Head* head,
                                         const uint8_t* name, uint32_t size) noexcept nogil:
    cdef int32_t out = unnamed_function_section(m, entity, head)
    if out >= 0:
        name_out(m, out, name, size)
    return out


cdef inline const uint8_t* entity_name(Merge* m, int32_t entity, uint32_t* size) noexcept nogil:
    cdef const SymbolRow* s = &m.objects.symbols[m.merged.entities[entity].first]
    size[0] = s.name_size
    return m.objects.arena + s.name


cdef inline int32_t joined_section(Merge* m, int32_t entity, uint16_t kind) noexcept nogil:
    """A function's section that the link makes, named after kind and function."""
    cdef const KindFacts* facts = &KIND[kind]
    cdef Head head = made_head(kind)
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(m, entity, &size)
    cdef uint8_t* text = pool_join(&m.work.texts, facts.name, facts.stem, name, size)
    if text == NULL:
        m.failed = True
        return -1
    return new_function_section(m, entity, &head, text, facts.stem + size)


cdef inline int32_t made_file_section(Merge* m, uint16_t kind, int32_t source) noexcept nogil:
    """The file-scope section of a kind that needs none in the inputs."""
    cdef Head head = made_head(kind)
    head.source = source
    return file_section(m, KIND[kind].name, KIND[kind].stem, &head)


cdef inline int32_t file_section(Merge* m, const char* name, uint32_t size,
                                 const Head* head) noexcept nogil:
    """The file-scope section of that name, created now if it is new."""
    cdef NameSlot* slot = index_find(&m.work.by_name, <const uint8_t*>name, size)
    cdef int32_t out
    if slot == NULL:
        m.failed = True
        return -1
    if slot.value >= 0:
        return slot.value
    out = new_out(m, head.kind, head.type, head.flags, 1, 0)
    if out < 0:
        return -1
    slot.value = out
    m.work.by_name.count += 1
    out_row(m, out).bank = head.bank
    out_row(m, out).source = head.source
    if m.second and is_renamed(out_row(m, out)):
        name_out(m, out, <const uint8_t*>first_name(head.kind, head.bank),
                 <uint32_t>strlen(first_name(head.kind, head.bank)))
    else:
        name_out(m, out, <const uint8_t*>name, size)
    section_symbol(m, out)
    return out


cdef inline int32_t plain_of_mercury(Merge* m, const SectionRow* s) noexcept nogil:
    """The output's plain section of a mercury section that all inputs have one of, or -1."""
    cdef NameSlot* slot
    if s.bank == PIC_BANK:
        slot = index_find(&m.work.by_name, <const uint8_t*>b".nv.constant4", 13)
    elif s.bank == USER_BANK:
        slot = index_find(&m.work.by_name, <const uint8_t*>b".nv.constant3", 13)
    else:
        slot = index_find(&m.work.by_name, m.objects.arena + s.name + 8, s.name_size - 8)
    if slot == NULL:
        m.failed = True
        return -1
    return slot.value


cdef inline void debug_shared(Merge* m, int32_t source) noexcept nogil:
    made_file_section(m, K_DEBUG_SHARED, source)


cdef inline int32_t function_read(Merge* m, int32_t section) noexcept nogil:
    """The function that a section comes to life for, or -1: copies that lose have none."""
    if not was_current(m.merged.section_resolution[section]):
        return -1
    return m.merged.section_function[section]


cdef inline int32_t function_kept(Merge* m, int32_t section) noexcept nogil:
    """The function whose final copy a section belongs to, or -1."""
    if m.merged.section_resolution[section] != RESOLUTION_WON:
        return -1
    return m.merged.section_function[section]


cdef inline int32_t new_twin(Merge* m, int32_t plain) noexcept nogil:
    """The mercury form of a section, as its kind has it."""
    cdef int32_t out = new_made(m, KIND[out_row(m, plain).kind].twin)
    if out >= 0:
        if out_row(m, out).align == 0:
            out_row(m, out).align = out_row(m, plain).align
        out_row(m, out).twin = plain
        out_row(m, out).entity = out_row(m, plain).entity
        if KIND[out_row(m, out).kind].first_bank:
            out_row(m, out).type += out_row(m, plain).bank - KIND[out_row(m, out).kind].first_bank
        out_row(m, plain).merc = out
    return out


cdef inline int32_t new_relocations(Merge* m, int32_t out, bint explicit) noexcept nogil:
    """The section with the relocations of `out` in one of the two forms, without a name."""
    cdef int32_t row = new_made(m, K_RELOC)
    if row < 0:
        return -1
    out_row(m, row).target = out
    if explicit:
        out_row(m, out).rela = row
    else:
        out_row(m, row).type = SHT_REL
        out_row(m, row).entsize = sizeof(Rel)
        out_row(m, out).rel = row
    return row


cdef inline int32_t optimizer_relocations(Merge* m, int32_t out) noexcept nogil:
    """`.rela.nv.constant2.F` of family C, created as `.rela.nv.constant.optimizer.F`."""
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* first
    cdef int32_t row = out_row(m, out).rela
    if row >= 0:
        return row
    name = entity_name(m, out_row(m, out).entity, &size)
    first = pool_join(&m.work.texts, b".rela.nv.constant.optimizer.", 28, name, size)
    row = new_relocations(m, out, True)
    if first == NULL or row < 0:
        m.failed = True
        return -1
    name_out(m, row, first, 28 + size)
    if m.objects.mode & M_KEEP_RELOCS:
        resolved_row(m, out)
    return row


cdef inline int32_t optimizer_twin(Merge* m, int32_t plain, int32_t source) noexcept nogil:
    cdef int32_t out = out_row(m, plain).merc
    if out < 0:
        out = new_twin(m, plain)
        if out >= 0:
            out_row(m, out).source = source
    return out


cdef inline int32_t new_mercury_relocations(Merge* m, int32_t plain, int32_t source) noexcept nogil:
    cdef int32_t row = new_made(m, K_MERC_RELA)
    if row >= 0:
        out_row(m, row).source = source
        out_row(m, row).twin = plain
        out_row(m, plain).merc = row
    return row


cdef inline void pool_relocations(Merge* m, int32_t e) noexcept nogil:
    """Family C: those of a function's pool, in both forms."""
    cdef int32_t reloc = optimizer_relocations(m, pool_of(m, e))
    if reloc >= 0 and out_row(m, reloc).merc < 0:
        new_mercury_relocations(m, reloc, -1)
