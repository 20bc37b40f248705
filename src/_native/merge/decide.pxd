# The decision about one relocation: emitted, resolved or dropped, and why.
#
# The link knows offsets in shared memory and in constant banks, and resolves what refers to them.
# The addresses of functions and global variables are known when the driver loads the output. So
# these relocations are emitted. In an executable, entries in code have these Actions:
#
#     symbol                               Action
#     a live function, a global variable   EMIT
#     a shared variable                    RESOLVE
#     a constant variable                  RESOLVE, but EMIT for the types that the driver resolves
#     a function that is not live          DROP_LATE
#
# With -r more is emitted: a later stage may define the symbol, or have a strong definition of it.
#
# Debug data has rules of its own. It also describes code that is not linked: that of dead
# functions, and copies (definitions of a weak function in several files) that lost or were
# replaced. nvlink removes the entries that name such code at different times. An entry that it
# removes late has already created a relocation section, whose number stays. It may also count for
# the rule of two forms (docs/order.md, "Which relocation entries count"): some RELA entries also
# create .rel. DROP, DROP_LATE, DROP_DEAD and CLEAR are four ways to remove an entry, which differ
# in what is left.
# Frames are `.debug_frame`; lines are `.debug_line` and `.nv_debug_line_sass`.
#
# The Action of an entry mostly follows from its symbol and its relocation type alone. The part that
# follows from the symbol is the symbol's Fate. `fate_of` finds it for each symbol before any
# relocation is decided, file by file on any thread. If it leaves the Action open, `decide_action`
# decides by the kind of the symbol, with `decide_function`, `decide_shared` and
# `decide_without_entity`. merge/relocations.pxd then carries the Action out.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport Rela, Sym
from base.texts cimport MERC_PREFIX, is_named
from elfnumbers cimport SHN_XINDEX
from merge.state cimport Merge, out_row
from relocationtypes cimport (
    R_CUDA_32, R_CUDA_ABS56_16_34, R_CUDA_UNIFIED, R_CUDA_UNIFIED_32, R_MERCURY_CODE_OFFSET32,
    RelocationFacts,
)
from rownumbers cimport (
    EF_ALIAS, EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, EF_WEAK, E_CONST0_SIZE, E_CONSTANT,
    E_FUNC, E_GLOBAL, E_SHARED, E_SYSTEM_SHARED, E_UNIFIED, FIXUP_INSTANCE, FIXUP_ZERO, LINK_DEBUG,
    LINK_RELOCATABLE, RESOLUTION_NONE, RESOLUTION_REPLACED, RESOLUTION_WON,
)
from sectionkinds cimport IS_DEBUG, KIND, K_CONSTANT
from tables.kinds cimport is_a, is_merc
from tables.rows cimport (
    EmittedNumber, EntityNumber, EntityRow, FileRow, OutNumber, SectionNumber, SectionRow,
    SymbolCounter, SymbolNumber, SymbolRow, has_lost,
)
from traits cimport TRAIT_ALIGNS_ARRAYS, TRAIT_KEEPS_SHARED


# The outcome of a relocation entry. "Its section" is the relocation section of the output that the
# entry creates. By the rule of two forms, a RELA entry can make nvlink create the REL section, too.
# In a debug section that the link computes again (`is_rebuilt`), an entry becomes a RebuildRow for
# EMIT, RESOLVE and DROP_DEAD.
cdef enum Action:
    DROP = 0                    # leaves no trace
    EMIT = 1                    # the output has the entry
    RESOLVE = 2                 # the link writes the value into the field
    CLEAR = 3                   # the link writes zeros; a plain entry creates its section
    DROP_LATE = 4               # its section is created and the rule of two forms counts the entry
    DROP_DEAD = 5               # like DROP_LATE, but an entry of mercury data creates no section


# The part of the outcome that follows from the symbol. Except for FATE_OPEN, it gives, with the
# relocation type, the Action of all entries that name the symbol. Only entries in bytes of a
# definition that lost, or cut off a pool, are dropped instead (`is_of_lost_bytes`).
cdef enum Fate:
    FATE_OPEN = 0               # the Action depends on more: see `decide_action`
    FATE_EMITTED = 1            # a global variable: emitted
    FATE_FUNCTION = 2           # a live function: emitted, unless the type clears the field
    FATE_CONSTANT = 3           # a constant of an executable: resolved, unless the driver does it
    FATE_RESOLVED = 4           # a shared variable of an executable, .nv.ptx.const0.size


cdef inline Fate fate_of(const Merge* merge, SymbolCounter symbol) noexcept nogil:
    """Return the Fate of a symbol: what it alone decides about the entries that name it."""
    cdef EntityNumber entity = merge.merged.symbol_entity[symbol]
    cdef uint8_t resolution = merge.merged.symbol_resolution[symbol]
    cdef const EntityRow* row
    if entity < 0:
        return FATE_OPEN
    row = &merge.merged.entities[entity]
    if row.flags & EF_ALIAS:
        return FATE_OPEN
    if row.kind == E_GLOBAL:
        return FATE_EMITTED
    if row.kind == E_FUNC:
        return (FATE_FUNCTION if row.flags & EF_LIVE
                and resolution in (RESOLUTION_NONE, RESOLUTION_WON) else FATE_OPEN)
    if row.kind == E_CONST0_SIZE:
        return FATE_RESOLVED
    if merge.objects.mode & LINK_RELOCATABLE:
        return FATE_OPEN
    if row.kind == E_CONSTANT:
        return FATE_CONSTANT
    return FATE_RESOLVED if row.kind == E_SHARED else FATE_OPEN


cdef inline Action action_of_fate(Fate fate, const RelocationFacts* facts) noexcept nogil:
    """Return the Action for an entry whose symbol decides it; `facts` are those of its type."""
    if facts.mark:
        return DROP_LATE        # marks an instruction
    if fate == FATE_FUNCTION:
        return DROP_LATE if facts.clear else EMIT
    if fate == FATE_CONSTANT:
        return EMIT if facts.loader else RESOLVE
    return RESOLVE if fate == FATE_RESOLVED else EMIT


cdef inline bint is_removed_from_debug(Merge* merge, SymbolNumber symbol,
                                       bint is_cleared) noexcept nogil:
    """Return whether frames and lines lose the entries that name `symbol`, a function's copy.

    They do if the copy lost against another file's. They also do if a later file's copy replaced
    it and its code has relocations, but only in a debug section that loses its entries for replaced
    code (`is_cleared`).
    """
    cdef uint8_t resolution = merge.merged.symbol_resolution[symbol]
    return (has_lost(resolution)
            or (resolution == RESOLUTION_REPLACED and is_cleared
                and merge.work.has_relocations[merge.objects.symbols[symbol].section]))


cdef inline bint is_cleared_of_replaced(Merge* merge, OutNumber out, bint is_rela) noexcept nogil:
    """Return whether a debug section of the output loses its relocations that name replaced code.

    It does if the first relocation section created for it is RELA. If it has none yet, the entries
    that are decided now create it: `is_rela` says whether these are RELA.
    """
    cdef OutNumber rela = out_row(merge, out).rela, rel = out_row(merge, out).rel
    if rela < 0:
        return is_rela and rel < 0
    return rel < 0 or out_row(merge, rela).created < out_row(merge, rel).created


cdef inline bint is_line(Merge* merge, const SectionRow* section) noexcept nogil:
    """Return whether a section is the plain `.debug_line`."""
    return is_named(merge.objects.arena + section.name, section.name_size, b".debug_line")


cdef inline bint is_debug_info(Merge* merge, const SectionRow* target) noexcept nogil:
    """Return whether a section is `.debug_info` or its mercury twin."""
    cdef const uint8_t* name = merge.objects.arena + target.name
    if is_merc(target.kind, IS_DEBUG):
        return is_named(name, target.name_size, b".nv.merc.debug_info")
    return is_named(name, target.name_size, b".debug_info")


cdef inline bint is_frame_or_line(Merge* merge, const SectionRow* target) noexcept nogil:
    """Return whether a section has debug frames or line tables, in the plain or mercury form."""
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
    """Return whether the link computes this debug section again, instead of joining the inputs'.

    That is so from sm_100 on, for plain frames and lines.
    """
    return merge.has_finalizer and not KIND[target.kind].mercury and is_frame_or_line(merge, target)


cdef inline bint can_be_defined_later(const EntityRow* entity) noexcept nogil:
    """Return whether a later stage of linking may define an entity: it has no definition yet.

    A later stage defines no extern arrays: with -r and -g, this link gives them an address.
    """
    return not entity.flags & (EF_DEFINED | EF_UNSIZED)


# One input relocation section while its entries are decided.
ctypedef struct RelocList:
    const FileRow* file
    SectionNumber section           # this input section
    const SectionRow* target        # the input section that it patches
    OutNumber out                   # OutRow of `target`; its plain form for a mercury `target`
    OutNumber patched_out           # OutRow with the bytes to patch, in the form of `target`
    uint64_t base                   # offset of the file's bytes in `patched_out`
    EntityNumber function           # function whose code or constants `target` has, or -1
    bint is_rela                    # entries have an addend
    bint is_mercury                 # entries patch the mercury form
    bint is_of_replaced_code        # `target` is code of a copy that was replaced later
    bint is_rebuilt                 # the link computes `target` again (from sm_100 on)
    bint is_capsule                 # `target` is a capsule
    bint is_counted                 # entries count for the rule of two forms; a capsule's always do
    bint is_cleared_of_replaced     # see the function of this name
    bint may_lose_bytes             # `is_of_lost_bytes` may be true of an entry
    OutNumber listed_in             # relocation section of these entries; -1 before the first
    EmittedNumber head              # `head` of `listed_in`, while these entries are decided
    uint32_t emitted_count          # entries added to that list
    OutNumber counter               # OutRow that counts these entries; -1 before the first
    uint32_t rela_count             # `rela_count` of `counter`, while these entries are decided
    SectionNumber twin              # input section: the mercury form of this one, or -1


# One entry of a RelocList.
ctypedef struct RelocEntry:
    const Rela* input               # as the file has it; a Rel, without addend, if not `is_rela`
    const RelocationFacts* facts    # of its type
    int64_t addend                  # 0 for a Rel
    int64_t new_addend              # of its new row, without the offset of a section symbol's piece
    SymbolNumber symbol             # SymbolRow that it names
    EntityNumber entity             # the symbol's entity, or -1
    SectionNumber section           # input section of a symbol without entity, or -1
    uint32_t how                    # FixupFlag bits


cdef inline Action decide_without_entity(Merge* merge, const RelocList* relocs,
                                         const RelocEntry* entry) noexcept nogil:
    """Return the Action for an entry that names a section symbol, a label or the null symbol."""
    cdef const SymbolRow* symbol = &merge.objects.symbols[entry.symbol]
    cdef const SectionRow* section
    if symbol.section < 0:
        return RESOLVE if symbol.name_size else DROP    # a label; the null symbol
    if entry.input.r_type == R_MERCURY_CODE_OFFSET32:
        return EMIT
    section = &merge.objects.sections[symbol.section]
    if not is_a(section.kind, IS_DEBUG):
        return RESOLVE if section.kind == K_CONSTANT else EMIT
    if (merge.objects.mode & LINK_RELOCATABLE and merge.has_finalizer
            and entry.input.r_type == R_CUDA_32 and is_debug_info(merge, relocs.target)
            and is_line(merge, section)):
        return EMIT
    return RESOLVE


cdef inline Action decide_function(Merge* merge, const RelocList* relocs, const RelocEntry* entry,
                                   bint clear) noexcept nogil:
    """Return the Action for an entry that names a function.

    `clear` says whether its relocation type makes the link clear the field (R_CUDA_UNUSED_CLEAR64).
    """
    cdef uint8_t resolution = merge.merged.symbol_resolution[entry.symbol]
    cdef const SectionRow* target = relocs.target
    if not merge.merged.entities[merge.merged.symbol_entity[entry.symbol]].flags & EF_LIVE:
        if not is_a(target.kind, IS_DEBUG):
            return DROP_LATE    # in data, whose relocations keep no function alive
        if has_lost(resolution):
            if is_frame_or_line(merge, target):
                return EMIT if merge.has_finalizer and not relocs.is_mercury else DROP
            # Other debug data of a copy that lost names the winner. Its entries are removed later,
            # with the winner, which is dead.
            return DROP_LATE
        if clear:
            # Fields are cleared when dead code is removed. The entries of a replaced copy that has
            # relocations are gone by then.
            return DROP_LATE if is_removed_from_debug(merge, entry.symbol, True) else CLEAR
        # Frames and lines lose these entries at once, before mercury ones would create a section;
        # .debug_info and .debug_loc lose them later.
        return DROP_DEAD if is_frame_or_line(merge, target) else DROP_LATE
    if (is_removed_from_debug(merge, entry.symbol, relocs.is_cleared_of_replaced)
            and is_frame_or_line(merge, target)):
        if merge.has_finalizer and not relocs.is_mercury:
            return EMIT
        # The entries of a replaced copy were created, and are removed with their code.
        return DROP_LATE if resolution == RESOLUTION_REPLACED else DROP
    return DROP_LATE if clear else EMIT


cdef inline Action decide_shared(Merge* merge, const RelocList* relocs, const EntityRow* entity,
                                 RelocEntry* entry) noexcept nogil:
    """Return the Action for an entry that names a shared variable."""
    if not merge.objects.mode & LINK_RELOCATABLE:
        return RESOLVE
    if not merge.objects.mode & LINK_DEBUG and entity.flags & EF_UNSIZED:
        # -r may remove the symbol of an extern array. A kernel then refers to its instance, one
        # symbol for all its arrays. Up to 13.0, a device function gets 0. In 13.1 it gets the value
        # of the array's symbol, which is its alignment; from 13.2 on it keeps the reference.
        if relocs.function >= 0 and merge.merged.entities[relocs.function].flags & EF_KERNEL:
            entry.how |= FIXUP_INSTANCE
            return EMIT
        if not merge.objects.traits & TRAIT_ALIGNS_ARRAYS:
            entry.how |= FIXUP_ZERO
            return RESOLVE
    if (entity.flags & EF_WEAK or can_be_defined_later(entity)
            or merge.objects.traits & TRAIT_KEEPS_SHARED):
        return EMIT
    return RESOLVE


cdef inline Action decide_action(Merge* merge, const RelocList* relocs,
                                 RelocEntry* entry) noexcept nogil:
    """Return the Action for an entry that its symbol alone does not decide; add bits to its `how`.
    """
    cdef EntityNumber entity = merge.merged.symbol_entity[entry.symbol]
    cdef const EntityRow* entity_row
    if entry.facts.mark:
        return DROP_LATE        # marks an instruction, and names the null symbol
    if entity < 0:
        return decide_without_entity(merge, relocs, entry)
    entity_row = &merge.merged.entities[entity]
    if entity_row.kind == E_FUNC:
        return decide_function(merge, relocs, entry, entry.facts.clear)
    if entity_row.kind == E_CONSTANT:
        if (merge.objects.mode & LINK_RELOCATABLE
                and (entity_row.flags & EF_WEAK or can_be_defined_later(entity_row))):
            return EMIT         # a later stage may have a strong definition
        return EMIT if entry.facts.loader else RESOLVE
    if entity_row.kind == E_SHARED:
        return decide_shared(merge, relocs, entity_row, entry)
    if entity_row.kind == E_UNIFIED:
        if merge.has_finalizer:
            return DROP_LATE
        if (merge.objects.mode & LINK_RELOCATABLE
                and entry.input.r_type not in (R_CUDA_UNIFIED, R_CUDA_UNIFIED_32,
                                               R_CUDA_ABS56_16_34)):
            return EMIT
        entry.how |= FIXUP_ZERO
        return RESOLVE
    if (entity_row.kind == E_SYSTEM_SHARED and not merge.objects.mode & LINK_RELOCATABLE
            and not relocs.is_mercury):
        return RESOLVE
    if entity_row.kind == E_CONST0_SIZE:
        return RESOLVE
    return EMIT


cdef inline SectionNumber find_mercury_section(Merge* merge, const FileRow* file,
                                               uint32_t symbol) noexcept nogil:
    """Return the input section of a section symbol in a file's mercury symbol table.

    `symbol` is an index into that table. Returns -1 if the table does not have the symbol, or the
    file does not have its section.
    """
    cdef const Sym* mercury_symbol
    cdef const SectionRow* index_table
    cdef uint32_t section
    if symbol >= file.mercury_symbols:
        return -1
    mercury_symbol = <const Sym*>(merge.objects.arena + file.merc_symtab) + symbol
    section = mercury_symbol.st_shndx
    if section == SHN_XINDEX:
        section = 0
        index_table = &merge.objects.sections[merge.merc_shndx] if merge.merc_shndx >= 0 else NULL
        if index_table != NULL and index_table.size // 4 > symbol:
            memcpy(&section, merge.objects.arena + index_table.offset + 4 * <uint64_t>symbol, 4)
    if section == 0 or section >= file.section_count:
        return -1
    return <SectionNumber>(file.first_section + section)


cdef inline int64_t correct_addend(Merge* merge, SectionNumber twin, uint64_t number,
                                   const Rela* plain, int64_t addend,
                                   SymbolNumber symbol) noexcept nogil:
    """Return the addend of a plain debug entry into a function copy that is not linked.

    The link points it into the code of the winner, where an offset at or after the end of that
    code becomes the end. The mercury entry with the same number says whether the offset is there,
    since plain code of the copies can differ in size. nvlink converts offsets before the end by a
    table of the winner that no input has; here these stay what they are in the copy's own code.

    `plain` is the entry, `number` its index, `addend` its addend, and `symbol` the copy that it
    names. `twin` is the input section with the mercury entries, or -1.
    """
    cdef const EntityRow* function = &merge.merged.entities[merge.merged.symbol_entity[symbol]]
    cdef const SymbolRow* winner = &merge.objects.symbols[function.winner]
    cdef const SectionRow* twin_section
    cdef const Rela* mercury
    cdef int64_t code_size
    if twin < 0 or winner.section < 0:
        return addend
    twin_section = &merge.objects.sections[twin]
    code_size = <int64_t>merge.objects.sections[winner.section].size
    if number >= twin_section.size // sizeof(Rela):
        return addend
    mercury = <const Rela*>(merge.objects.arena + twin_section.offset) + number
    if mercury.r_sym != plain.r_sym or mercury.r_offset != plain.r_offset:
        return addend
    if <uint64_t>mercury.r_addend >= winner.merc_size or addend > code_size:
        return code_size
    return addend
