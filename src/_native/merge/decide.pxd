# The decision about one relocation: emitted, resolved or dropped, and why.
#
# The link knows offsets in shared memory and in constant banks, and resolves what refers to them.
# The addresses of functions and global variables are known when the driver loads the output. So
# these relocations are emitted. An entry in code that refers to one of these, in an executable:
#
#     a live function, a global variable   EMIT
#     a shared variable                    RESOLVE
#     a constant variable                  RESOLVE, but EMIT for the types that the driver resolves
#     a function that is not live          VANISHES
#
# With -r more is emitted: a later stage may define the symbol, or have a strong definition of it.
#
# Debug data has rules of its own. It describes copies of functions that lost, were replaced or are
# dead, and nvlink removes their entries at different times. An entry that it removes late has
# already created a relocation section, whose number stays, or counts for the rule of two forms
# (docs/order.md, "Which relocation entries count"). DROP, VANISHES, CLEAR and DEAD are four ways to
# remove an entry, which differ in what is left.
#
# `decide_action` decides by the kind of the symbol, with `decide_function`, `decide_shared` and
# `decide_nameless`; merge/relocations.pxd does what it decides.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport SHN_XINDEX, Rela, Sym
from base.texts cimport MERC_PREFIX, is_named
from merge.state cimport Merge, out_row
from relocationtypes cimport (
    R_CUDA_32, R_CUDA_ABS56_16_34, R_CUDA_UNIFIED, R_CUDA_UNIFIED_32, R_MERCURY_CODE_OFFSET32,
    RelocationFacts, facts_of,
)
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, EF_WEAK, E_CONST0_SIZE, E_CONSTANT, E_FUNC,
    E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, FIXUP_INSTANCE, FIXUP_ZERO, LINK_DEBUG, LINK_RELOCATABLE,
    RESOLUTION_REPLACED,
)
from sectionkinds cimport IS_DEBUG, KIND, K_CONSTANT
from tables.kinds cimport is_a, is_merc
from tables.rows cimport EntityRow, FileRow, SectionRow, SymbolRow, has_lost
from traits cimport TRAIT_ALIGNS_ARRAYS, TRAIT_KEEPS_SHARED


cdef enum Action:
    DROP = 0                    # leaves no trace
    EMIT = 1
    RESOLVE = 2
    CLEAR = 3                   # writes zeros and names the section
    VANISHES = 4                # counts for the rule of two forms, then vanishes
    DEAD = 5                    # debug data of a dead function: counts and names the section


cdef inline bint is_removed_from_debug(Merge* merge, int32_t symbol, bint cleaned) noexcept nogil:
    """Whether the frames and lines of a copy are removed.

    True if it lost, or if it was replaced, has relocations and the output section is `is_cleaned`.
    """
    cdef uint8_t resolution = merge.merged.symbol_resolution[symbol]
    return (has_lost(resolution)
            or (resolution == RESOLUTION_REPLACED and cleaned
                and merge.work.has_relocations[merge.objects.symbols[symbol].section]))


cdef inline bint is_cleaned(Merge* merge, int32_t out, bint explicit) noexcept nogil:
    """Whether entries against replaced code leave this debug section: its first list is RELA.

    `explicit` is the form of the current entries, which make the first list if there is no list
    yet.
    """
    cdef int32_t rela = out_row(merge, out).rela, rel = out_row(merge, out).rel
    if rela < 0:
        return explicit and rel < 0
    return rel < 0 or out_row(merge, rela).created < out_row(merge, rel).created


cdef inline bint is_line(Merge* merge, const SectionRow* s) noexcept nogil:
    """Whether a section is the plain `.debug_line`."""
    return is_named(merge.objects.arena + s.name, s.name_size, b".debug_line")


cdef inline bint is_debug_info(Merge* merge, const SectionRow* target) noexcept nogil:
    """Whether a section is `.debug_info` or its mercury twin."""
    cdef const uint8_t* name = merge.objects.arena + target.name
    if is_merc(target.kind, IS_DEBUG):
        return is_named(name, target.name_size, b".nv.merc.debug_info")
    return is_named(name, target.name_size, b".debug_info")


cdef inline bint is_frame_or_line(Merge* merge, const SectionRow* target) noexcept nogil:
    """.debug_frame, .debug_line, .nv_debug_line_sass and their mercury twins."""
    cdef const uint8_t* name = merge.objects.arena + target.name
    cdef uint32_t size = target.name_size
    if is_merc(target.kind, IS_DEBUG):
        name += MERC_PREFIX
        size -= MERC_PREFIX
    elif not is_a(target.kind, IS_DEBUG):
        return False
    return ((is_named(name, size, b".debug_frame"))
            or (is_named(name, size, b".debug_line"))
            or (is_named(name, size, b".nv_debug_line_sass")))


cdef inline bint is_rebuilt(Merge* merge, const SectionRow* target) noexcept nogil:
    """Whether family C writes this debug section anew instead of joining the inputs'."""
    return merge.has_finalizer and not KIND[target.kind].mercury and is_frame_or_line(merge, target)


cdef inline bint can_be_defined_later(const EntityRow* row) noexcept nogil:
    """Whether a later stage may define it; with -g nvlink places extern arrays in the first."""
    return not row.flags & (EF_DEFINED | EF_UNSIZED)


cdef enum:
    NOT_SOUGHT = -2


# One input relocation section while its entries are decided.
ctypedef struct RelocList:
    const FileRow* file
    int32_t section             # input section
    const SectionRow* target    # what it patches
    int32_t out                 # OutRow of that, in its plain form
    int32_t patched_out         # OutRow with the bytes
    uint64_t base               # where those of the file begin there
    int32_t function            # entity of the code that holds the fields, or -1
    bint explicit
    bint mercury
    bint of_replaced_code       # a later copy replaced the code
    bint is_rebuilt             # the debug data is made anew
    bint is_counted             # counts for the rule of two forms
    bint is_cleaned             # see `is_cleaned`
    int32_t reloc               # OutRow that the last entry was listed in, or -1
    int32_t twin                # input section: the mercury form, or -1, or NOT_SOUGHT


# One of its entries.
ctypedef struct RelocEntry:
    const Rela* r
    int64_t addend
    int32_t symbol
    int32_t entity              # the symbol's entity, or -1
    int32_t section             # input section of a symbol without entity, or -1
    uint32_t how                # FixupFlag bits


cdef inline int32_t decide_nameless(Merge* merge, const RelocList* relocs,
                                    const RelocEntry* x) noexcept nogil:
    """Decide for a symbol without an entity: a section, a label or the null symbol."""
    cdef const SymbolRow* symbol = &merge.objects.symbols[x.symbol]
    cdef const SectionRow* section
    if symbol.section < 0:
        return RESOLVE if symbol.name_size else DROP    # a label; the null symbol
    if x.r.r_type == R_MERCURY_CODE_OFFSET32:
        return EMIT
    section = &merge.objects.sections[symbol.section]
    if not is_a(section.kind, IS_DEBUG):
        return RESOLVE if section.kind == K_CONSTANT else EMIT
    if (merge.objects.mode & LINK_RELOCATABLE and merge.has_finalizer and x.r.r_type == R_CUDA_32
            and is_debug_info(merge, relocs.target) and is_line(merge, section)):
        return EMIT
    return RESOLVE


cdef inline int32_t decide_function(Merge* merge, const RelocList* relocs, const RelocEntry* x,
                                    bint clear) noexcept nogil:
    """Decide for a function; `clear` says whether the type of the entry clears the field."""
    cdef uint8_t resolution = merge.merged.symbol_resolution[x.symbol]
    cdef const SectionRow* target = relocs.target
    if not merge.merged.entities[merge.merged.symbol_entity[x.symbol]].flags & EF_LIVE:
        if not is_a(target.kind, IS_DEBUG):
            return VANISHES     # the function exists for its address alone
        if has_lost(resolution):
            if is_frame_or_line(merge, target):
                return EMIT if merge.has_finalizer and not relocs.mercury else DROP
            # The rest of a copy that lost names the winner, and goes with it only later.
            return VANISHES
        if clear:
            # An entry that was removed with a replaced copy clears nothing when its function dies.
            return VANISHES if is_removed_from_debug(merge, x.symbol, True) else CLEAR
        # .debug_info and .debug_loc lose their entries only later, frames and lines at once.
        return DEAD if is_frame_or_line(merge, target) else VANISHES
    if (is_removed_from_debug(merge, x.symbol, relocs.is_cleaned)
            and is_frame_or_line(merge, target)):
        if merge.has_finalizer and not relocs.mercury:
            return EMIT
        # The entries of a replaced copy were created, and removed with their code.
        return VANISHES if resolution == RESOLUTION_REPLACED else DROP
    return VANISHES if clear else EMIT


cdef inline int32_t decide_shared(Merge* merge, const RelocList* relocs, const EntityRow* row,
                                  RelocEntry* x) noexcept nogil:
    """Decide for a shared variable."""
    if not merge.objects.mode & LINK_RELOCATABLE:
        return RESOLVE
    if not merge.objects.mode & LINK_DEBUG and row.flags & EF_UNSIZED:
        # Kernels keep a reference to their own instance. Device functions get the alignment of the
        # array's symbol, if that symbol is removed.
        if relocs.function >= 0 and merge.merged.entities[relocs.function].flags & EF_KERNEL:
            x.how |= FIXUP_INSTANCE
            return EMIT
        if not merge.objects.traits & TRAIT_ALIGNS_ARRAYS:
            x.how |= FIXUP_ZERO
            return RESOLVE
    if (row.flags & EF_WEAK or can_be_defined_later(row)
            or merge.objects.traits & TRAIT_KEEPS_SHARED):
        return EMIT
    return RESOLVE


cdef inline int32_t decide_action(Merge* merge, const RelocList* relocs,
                                  RelocEntry* x) noexcept nogil:
    """Return the Action for one entry, and add FixupFlag bits to its `how`."""
    cdef int32_t e = merge.merged.symbol_entity[x.symbol]
    cdef const RelocationFacts* facts = facts_of(x.r.r_type)
    cdef const EntityRow* row
    if facts.mark:
        return VANISHES         # marks an instruction, for the null symbol
    if e < 0:
        return decide_nameless(merge, relocs, x)
    row = &merge.merged.entities[e]
    if row.kind == E_FUNC:
        return decide_function(merge, relocs, x, facts.clear)
    if row.kind == E_CONSTANT:
        if (merge.objects.mode & LINK_RELOCATABLE
                and (row.flags & EF_WEAK or can_be_defined_later(row))):
            return EMIT         # a later stage may have a strong definition
        return EMIT if facts.loader else RESOLVE
    if row.kind == E_SHARED:
        return decide_shared(merge, relocs, row, x)
    if row.kind == E_UNIFIED:
        if merge.has_finalizer:
            return VANISHES
        if merge.objects.mode & LINK_RELOCATABLE and x.r.r_type not in (
                R_CUDA_UNIFIED, R_CUDA_UNIFIED_32, R_CUDA_ABS56_16_34):
            return EMIT
        x.how |= FIXUP_ZERO
        return RESOLVE
    if (row.kind == E_SYSTEM_SHARED and not merge.objects.mode & LINK_RELOCATABLE
            and not relocs.mercury):
        return RESOLVE
    if row.kind == E_CONST0_SIZE:
        return RESOLVE
    return EMIT


cdef inline int32_t find_mercury_section(Merge* merge, const FileRow* file,
                                         uint32_t symbol) noexcept nogil:
    """The input section of a section symbol in the mercury symbol table, or -1."""
    cdef const Sym* s
    cdef const SectionRow* wide
    cdef uint32_t section
    if symbol >= file.mercury_symbols:
        return -1
    s = <const Sym*>(merge.objects.arena + file.merc_symtab) + symbol
    section = s.st_shndx
    if section == SHN_XINDEX:
        section = 0
        wide = &merge.objects.sections[merge.merc_shndx] if merge.merc_shndx >= 0 else NULL
        if wide != NULL and wide.size // 4 > symbol:
            memcpy(&section, merge.objects.arena + wide.offset + 4 * <uint64_t>symbol, 4)
    if section == 0 or section >= file.section_count:
        return -1
    return <int32_t>(file.first_section + section)


cdef inline int64_t addend_of_winner(Merge* merge, int32_t twin, uint64_t i, const Rela* r,
                                     int64_t addend, int32_t symbol) noexcept nogil:
    """Debug data of a copy that is not in the output ends where the code of the winner does.

    Mercury offsets decide; between 0 and the end nvlink converts them with the winner's table,
    which is not in the file: such addends stay what the copy's own code makes them.
    """
    cdef const EntityRow* function = &merge.merged.entities[merge.merged.symbol_entity[symbol]]
    cdef const SymbolRow* winner = &merge.objects.symbols[function.winner]
    cdef const SectionRow* s
    cdef const Rela* other
    cdef int64_t size
    if twin < 0 or winner.section < 0:
        return addend
    s = &merge.objects.sections[twin]
    size = <int64_t>merge.objects.sections[winner.section].size
    if i >= s.size // sizeof(Rela):
        return addend
    other = <const Rela*>(merge.objects.arena + s.offset) + i
    if other.r_sym != r.r_sym or other.r_offset != r.r_offset:
        return addend
    if <uint64_t>other.r_addend >= winner.merc_size or addend > size:
        return size
    return addend
