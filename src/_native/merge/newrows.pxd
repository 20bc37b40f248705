# Functions that create one section or one symbol of the output.
#
# merge/state.pxd says in which rows and lists a section or symbol is entered, and what a function
# returns without memory. Which of them an input creates, and in what order, is decided by the
# callers (docs/order.md).

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport strlen

from base.elf64 cimport Rel
from base.nameindex cimport NameSlot, index_find, pool_join, pool_join_text
from base.vector cimport Vec, vec_push
from elfnumbers cimport SHF_MERCURY, SHT_REL
from merge.state cimport (
    DeadSection, ListEntry, Merge, code_of, entity_name, out_row, pool_of, section_entry,
)
from rownumbers cimport LINK_KEEP_RELOCS
from sectionkinds cimport KIND, K_DEBUG_SHARED, K_MERC_RELA, K_RELOC, K_RESOLVED_RELA, KindFacts
from tables.kinds cimport first_name, is_renamed
from tables.rows cimport (
    PART_LOCAL, EntityNumber, OutNumber, OutRow, OutSymbolNumber, OutSymbolRow, SectionNumber,
    SectionRow, start_out_row,
)


# Names, or beginnings of names, that several functions give to sections and symbols.
cdef extern from *:
    """
    #define SHNDX ".symtab_shndx"
    #define INSTANCE "externsharedinstance"
    #define OPTIMIZER ".nv.constant.optimizer."
    #define OPTIMIZER_RELA ".rela" OPTIMIZER
    #define OPTIMIZER_RESOLVED ".nv.resolvedrela" OPTIMIZER
    #define OPTIMIZER_PREFIX ((uint32_t)sizeof OPTIMIZER - 1)
    """
    const char* SHNDX
    const char* INSTANCE        # name of the symbol that stands for a kernel's extern arrays
    # From sm_100 on, the first name of a function's pool of constants begins so, and the names of
    # its relocations. A second program gives these sections their final names (merge/final.pxd).
    const char* OPTIMIZER
    const char* OPTIMIZER_RELA
    const char* OPTIMIZER_RESOLVED
    uint32_t OPTIMIZER_PREFIX   # bytes of OPTIMIZER


cdef inline ListEntry* append_list_entry(Merge* merge, Vec* list, const uint8_t* text,
                                         uint32_t size, OutNumber out,
                                         OutSymbolNumber symbol) noexcept nogil:
    """Append an element to the section list or the list of local symbols; NULL without memory.

    The arguments after `list` are its fields.
    """
    cdef ListEntry* entry = <ListEntry*>vec_push(list)
    if entry == NULL:
        merge.failed = True
        return NULL
    entry.text = text
    entry.size = size
    entry.out = out
    entry.symbol = symbol
    return entry


cdef inline void reserve_number(Merge* merge) noexcept nogil:
    """Leave the next section number unused, for example that of a section that nvlink removes."""
    append_list_entry(merge, &merge.work.section_list, NULL, 0, -1, -1)


cdef inline void number_dead_section(Merge* merge, EntityNumber entity,
                                     DeadSection which) noexcept nogil:
    """Reserve a number for the section `which` of a dead function, unless it has one."""
    if not merge.work.numbered_dead[entity] & which:
        merge.work.numbered_dead[entity] |= which
        reserve_number(merge)


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
                          <OutNumber>(merge.columns.outs.count - 1), -1)
        row.created = <uint32_t>merge.work.section_list.count
    return <OutNumber>(merge.columns.outs.count - 1)


cdef inline OutNumber new_section_of_kind(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section without a name, with the header fields of its kind; -1 without memory."""
    cdef const KindFacts* facts = &KIND[kind]
    return new_out(merge, kind, facts.type, facts.flags, facts.align, facts.entsize)


cdef inline void name_out(Merge* merge, OutNumber out, const uint8_t* text,
                          uint32_t size) noexcept nogil:
    """Give a section its name, and append the name of its symbol to the list of local symbols."""
    cdef ListEntry* symbol = append_list_entry(merge, &merge.work.local_list, text, size, out, -1)
    cdef ListEntry* section = section_entry(merge, out)
    if symbol == NULL:
        return
    section.text = text
    section.size = size


cdef inline void name_out_text(Merge* merge, OutNumber out, const char* text) noexcept nogil:
    """Call `name_out` with a string literal."""
    name_out(merge, out, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline void reserve_name(Merge* merge, const uint8_t* text, uint32_t size) noexcept nogil:
    """Reserve a section number, and the names of that section and its symbol.

    The output has the names in its string tables, except for lean files (docs/glossary.md). It has
    neither the section nor the symbol, but .symtab_shndx may be created for its number later.
    """
    if text == NULL:
        merge.failed = True
        return
    append_list_entry(merge, &merge.work.section_list, text, size, -1, -1)
    append_list_entry(merge, &merge.work.local_list, text, size, -1, -1)


cdef inline OutSymbolNumber new_symbol(Merge* merge, EntityNumber entity, OutNumber section,
                                       uint32_t part) noexcept nogil:
    """Create a symbol of the output; -1 without memory.

    It is the symbol of `entity`, or the section symbol of the OutRow `section`; the other one is
    -1. Both are -1 for an instance, which stands for the extern arrays of a kernel.
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
    return <OutSymbolNumber>(merge.columns.out_symbols.count - 1)


cdef inline void add_section_symbol(Merge* merge, OutNumber out) noexcept nogil:
    """Create the section symbol of a section."""
    new_symbol(merge, -1, out, PART_LOCAL)


cdef inline OutSymbolNumber new_local(Merge* merge, EntityNumber entity, const uint8_t* text,
                                      uint32_t size) noexcept nogil:
    """Create the local symbol of an entity (-1: of an instance), with this name of `size` bytes.

    An instance stands for the extern arrays of a kernel. Returns -1 without memory.
    """
    cdef OutSymbolNumber row = new_symbol(merge, entity, -1, PART_LOCAL)
    append_list_entry(merge, &merge.work.local_list, text, size, -1, row)
    return row


cdef inline OutNumber create_link_section(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section of a kind of which the output has only one; -1 without memory."""
    cdef OutNumber out = new_section_of_kind(merge, kind)
    if out >= 0:
        name_out(merge, out, <const uint8_t*>KIND[kind].name, KIND[kind].stem)
    return out


cdef inline void create_link_section_with_symbol(Merge* merge, uint16_t kind) noexcept nogil:
    """Create a section of a kind of which the output has only one, with its section symbol."""
    cdef OutNumber out = create_link_section(merge, kind)
    if out >= 0:
        add_section_symbol(merge, out)


# The fields of a new OutRow that come from an input section or from the section's kind.
ctypedef struct SectionHead:
    uint16_t kind
    uint16_t bank
    uint32_t type
    uint64_t flags
    uint32_t align
    SectionNumber source        # input section that it is created for, or -1


cdef inline SectionHead head_of(Merge* merge, const SectionRow* source) noexcept nogil:
    """Return the fields that an output section takes over from `source`, a section of an input."""
    cdef SectionHead head
    head.kind = source.kind
    head.bank = source.bank
    head.type = source.type
    head.flags = source.flags
    head.align = source.align
    head.source = <SectionNumber>(source - merge.objects.sections)
    return head


cdef inline SectionHead head_of_kind(uint16_t kind) noexcept nogil:
    """Return the fields that the link gives sections of a kind: bank 0, no input section."""
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


cdef inline OutNumber create_function_section(Merge* merge, EntityNumber entity,
                                              uint16_t kind) noexcept nogil:
    """Create a section of a function, such as `.nv.info.F`; -1 without memory."""
    cdef const KindFacts* facts = &KIND[kind]
    cdef SectionHead head = head_of_kind(kind)
    cdef uint32_t size
    cdef const uint8_t* name = entity_name(merge, entity, &size)
    cdef uint8_t* text = pool_join(&merge.work.texts, facts.name, facts.stem, name, size)
    if text == NULL:
        merge.failed = True
        return -1
    return create_named_section(merge, entity, &head, text, facts.stem + size)


cdef inline OutNumber ensure_file_section(Merge* merge, uint16_t kind,
                                          SectionNumber source) noexcept nogil:
    """Return the file-scope section of a kind, created if it is new; -1 without memory.

    `source` is the input section that it is created for, or -1. No input needs to have one.
    """
    cdef SectionHead head = head_of_kind(kind)
    head.source = source
    return find_or_create_file_section(merge, KIND[kind].name, KIND[kind].stem, &head)


cdef inline OutNumber find_or_create_file_section(Merge* merge, const char* name, uint32_t size,
                                                  const SectionHead* head) noexcept nogil:
    """Return the file-scope section of that name, created if it is new; -1 without memory.

    A new section has alignment 1: that of `head` is not used. From sm_100 on, a constant bank gets
    its first name, which the second program replaces by `name`.
    """
    cdef NameSlot* slot = index_find(&merge.work.by_name, <const uint8_t*>name, size)
    cdef OutNumber out
    if slot == NULL:
        merge.failed = True
        return -1
    if slot.value >= 0:
        return <OutNumber>slot.value
    out = new_out(merge, head.kind, head.type, head.flags, 1, 0)
    if out < 0:
        return -1
    slot.value = <int32_t>out
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


cdef inline void create_debug_shared(Merge* merge, SectionNumber source) noexcept nogil:
    """Create .nv_debug.shared, unless it exists; `source` is an input's section for it, or -1."""
    ensure_file_section(merge, K_DEBUG_SHARED, source)


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
    """Return the relocation section of the pool `out` from sm_100 on; -1 without memory.

    It is created if it is new, as .rela.nv.constant.optimizer.F, which the second program renames
    to .rela.nv.constant2.F.
    """
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    cdef OutNumber relocations = out_row(merge, out).rela
    if relocations >= 0:
        return relocations
    name = entity_name(merge, out_row(merge, out).entity, &size)
    text = pool_join_text(&merge.work.texts, OPTIMIZER_RELA, name, &size)
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
    """Return the mercury twin of a pool, created for section `source` if new; -1 without memory."""
    cdef OutNumber out = out_row(merge, plain).merc
    if out < 0:
        out = create_twin(merge, plain)
        if out >= 0:
            out_row(merge, out).source = source
    return out


cdef inline OutNumber new_mercury_relocations(Merge* merge, OutNumber plain,
                                              SectionNumber source) noexcept nogil:
    """Create the mercury twin of the relocation section `plain`; -1 without memory.

    `source` is the input section that it is created for, or -1.
    """
    cdef OutNumber relocations = new_section_of_kind(merge, K_MERC_RELA)
    if relocations >= 0:
        out_row(merge, relocations).source = source
        out_row(merge, relocations).twin = plain
        out_row(merge, plain).merc = relocations
    return relocations


cdef inline void create_pool_relocations(Merge* merge, EntityNumber function) noexcept nogil:
    """Create the plain and the mercury relocation section of a function's pool, from sm_100 on.

    A section that exists stays. The function must have a pool.
    """
    cdef OutNumber relocations = find_or_create_optimizer_relocations(merge,
                                                                      pool_of(merge, function))
    if relocations >= 0 and out_row(merge, relocations).merc < 0:
        new_mercury_relocations(merge, relocations, -1)
