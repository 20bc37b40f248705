# The state of a merge: its inputs, the tables of the result while they grow, and the lists of the
# sections and symbols that were created.
#
# merge/newrows.pxd creates them. A section that is created gets a row of `outs` and an element of
# the section list; its name and the place of its symbol are an element of the list of local
# symbols. For a kernel `k`, `.text.k`:
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
# A function that finds no memory sets `failed`. A `bint` function that is a verb then returns False
# (base/vector.pxd), and a function that returns a row number returns -1, if its docstring does not
# say otherwise. In all of merge/, `out` is the number of an OutRow, which is a section of the
# output, while `section` is the number of a SectionRow, which is a section of an input.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport strlen

from base.nameindex cimport NameIndex, NameSlot, StringTable, TextPool, index_find
from base.texts cimport MERC_PREFIX
from base.vector cimport Vec
from rownumbers cimport RESOLUTION_WON
from sectionkinds cimport K_CONSTANT_FUNC, K_TEXT, PIC_BANK, POOL_BANK, USER_BANK
from tables.graph cimport CallGraph, NodeRef
from tables.rows cimport (
    EntityNumber, OutNumber, OutRow, OutSymbolNumber, SectionNumber, SectionRef, SectionRow,
    SymbolRow, was_current,
)
from tables.views cimport MergedView, ObjectsView


# An element of the section list or of the list of local symbols.
ctypedef struct ListEntry:
    const uint8_t* text         # the name, without NUL; NULL for a number without a name
    uint32_t size               # bytes of the name
    uint32_t tag                # low half of the name's hash; set when names are written
    OutNumber out               # the section; -1 for a local symbol, or a reserved number or name
    OutSymbolNumber symbol      # OutSymbolRow of a symbol that is not a section's, or -1


# Sections of a dead function that have got a number already. The output has none of them.
cdef enum DeadSection:
    DEAD_TEXT = 1               # .text.F
    DEAD_INFO = 2               # .nv.info.F
    DEAD_PARAMETERS = 4         # .nv.constant0.F, and its relocation section
    DEAD_POOL = 8               # .nv.constant2.F
    DEAD_RELA = 16              # .rela.text.F
    DEAD_REL = 32               # .rel.text.F


# Facts about an input section that the merge finds. `prepare_file` sets those after MARK_DECIDED,
# before any section is created; nothing that is created later changes them.
cdef enum SectionMark:
    MARK_SYMBOL = 1             # a symbol lies in it
    MARK_DEFINITION = 2         # a symbol in it is a definition that did not lose
    MARK_DECIDED = 4            # its entries, which are mercury relocations, have been decided
    MARK_ENTRIES = 8            # it is a plain relocation section
    MARK_MERC_ENTRIES = 16      # it is a mercury relocation section
    MARK_MERC_SHNDX = 32        # it is .nv.merc.symtab_shndx
    MARK_TO_PLACE = 64          # `create_other_sections` may have something to do for it
    MARK_OWN_BYTES = 128        # it is mercury debug data; no plain section has the same bytes


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
    uint8_t* referenced         # by entity: 1 if some code, dead code too, refers to it
    # By entity, with -r: alignment of the extern arrays that a kernel's own code uses, 1 if it is
    # unknown; 0 without such arrays.
    uint64_t* array_align


# The memory that the merge alone needs.
ctypedef struct MergeWork:
    Vec section_list                # ListEntry: every section that has a number
    Vec local_list                  # ListEntry: every section's symbol and the local symbols
    # Definitions that lost, in the input section whose relocations are decided.
    Vec lost_ranges                 # LostRange: their bytes (merge/lostbytes.pxd)
    Vec array_kernels               # EntityNumber: kernels with `array_align`, by first relocation
    Vec capsules                    # SectionNumber: capsules, the mercury form of functions' code
    # Results of `survey_sections`, for the second program (from sm_100 on).
    Vec renamed                     # uint8_t, by OutRow: whether it gets another name
    Vec code_sections               # OutNumber: sections with code
    Vec twinned                     # OutNumber: sections that get a mercury twin
    NameIndex by_name               # the name of each file-scope section, with its OutRow
    TextPool texts                  # names that the link makes
    uint8_t* section_marks          # by input section: SectionMark bits
    uint8_t* fates                  # by input symbol: Fate of the relocations that name it
    uint8_t* own_pool               # by input section: PoolFlag bits of a pool that begins with it
    uint8_t* has_relocations        # by input section: 1 if it is code that has relocations
    uint64_t* pool_end              # by entity: bytes of its pool with what other functions add
    uint8_t* numbered_dead          # by entity: DeadSection bits
    OutSymbolNumber* symbol_of      # by entity: its OutSymbolRow, or -1
    OutNumber* sections_of          # by entity: its newest section, or -1; `next` has older ones
    # By entity, from sm_100 on: input section with the parameters of the function, or -1.
    SectionNumber* parameters_of
    # Sets of kernels, each one number (merge/sharedusers.pxd).
    EntityNumber* users             # by entity: kernels that use it; NULL if not needed
    EntityNumber* reaching_kernel   # by node: kernels that reach it in `calls`
    NodeRef* work_list              # nodes that a walk of the call graph still has to visit
    CallGraph calls                 # the call graph, if `users` are needed


# State of a merge: inputs, tables of the result, working memory, and where it is in the inputs.
ctypedef struct Merge:
    ObjectsView objects
    MergedView merged
    Columns columns
    MergeWork work
    size_t met_before               # rows of `merged.met` whose symbols have had their turn
    uint32_t empty_string_offset    # .strtab offset of the second empty string, 0 before it exists
    # Input section: the first of the file that may be mercury relocations not yet decided.
    SectionRef first_mercury
    SectionNumber merc_shndx        # .nv.merc.symtab_shndx of the file, or -1
    size_t symtab_shndx_position    # index of .symtab_shndx in the section list
    bint has_finalizer              # from sm_100 on: a second program makes the final file
    bint arrays_stay                # extern arrays keep symbols (merge/sharedusers.pxd)
    bint needs_symtab_shndx         # section numbers do not fit 16 bits
    bint has_compat                 # .nv.compat was created (release 12.9)
    bint failed                     # memory is exhausted


cdef inline bint is_folded(Merge* merge, SectionNumber section) noexcept nogil:
    """Return whether a fold omits an input section: the output has an earlier input's copy."""
    return merge.merged.stand_ins != NULL and merge.merged.stand_ins[section] >= 0


cdef inline ListEntry* section_entry(Merge* merge, OutNumber out) noexcept nogil:
    """Return the element of a section in the section list; not for mercury twins: they have none.
    """
    return <ListEntry*>merge.work.section_list.data + out_row(merge, out).created - 1


cdef inline OutRow* out_row(Merge* merge, OutNumber out) noexcept nogil:
    """Return the row of a section of the output; it moves when the next section is created."""
    return <OutRow*>merge.columns.outs.data + out


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


cdef inline const uint8_t* entity_name(Merge* merge, EntityNumber entity,
                                       uint32_t* size) noexcept nogil:
    """Return the name of an entity in the arena, and set `size` to its bytes."""
    cdef const SymbolRow* symbol = &merge.objects.symbols[merge.merged.entities[entity].first]
    size[0] = symbol.name_size
    return merge.objects.arena + symbol.name


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
    return <OutNumber>slot.value


cdef inline EntityNumber function_if_current(Merge* merge, SectionNumber section) noexcept nogil:
    """Return the function of a section if its copy had won when its file was read, or -1.

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
