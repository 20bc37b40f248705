# The order of sections and symbols in the output file, and which of them it omits.

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from base.scratch cimport Scratch, scratch_room, scratch_zeros
from base.vector cimport Vec, vec_extend, vec_push
from elfnumbers cimport SHT_RELA
from sectionkinds cimport (
    IS_ENTRIES, IS_KERNEL_SHARED, KIND, LEAN_PLACE, OMIT_UNUSED, OMIT_WITHOUT_ENTRIES,
    OMIT_WITHOUT_PROTOTYPES, OMIT_WITHOUT_RECORDS, RANK_MERC_LATE, RANK_NOBITS,
)
from tables.kinds cimport is_a
from tables.rows cimport (
    OF_EMPTY_STAYS, OF_LATE, OF_NO_SYMBOL, OF_STAYS, PART_LOCAL, PART_TAIL, OutRow, OutSymbolRow,
)
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_LEAN_NAMES, TRAIT_MERCURY


cdef inline int32_t rank_of(const OutRow* row, uint32_t family) noexcept nogil:
    """The rank of a kind of section in the output; tables of indices may come late."""
    if row.marks & OF_LATE:
        return RANK_MERC_LATE if KIND[row.kind].mercury else RANK_NOBITS
    return KIND[row.kind].ranks[family]


ctypedef struct Ordering:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    bint lean                       # see `is_lean`
    bint prototypes                 # rows of .nv.prototype will be there
    bint records                    # attributes of the whole file will be there
    Vec sections                    # int32_t: OutRows in the order of the file
    Vec symbols                     # int32_t: OutSymbolRows in that of the symbol table
    uint32_t* section_index         # by OutRow; 0: omitted, as below
    uint32_t* section_symbol_index  # by OutRow
    uint32_t* symbol_index          # by entity
    uint32_t* instance_index        # by entity of a kernel


cdef inline bint is_omitted(const Ordering* ordering, const OutRow* row) noexcept nogil:
    """Whether a section that was created is omitted; its name stays in the string tables."""
    cdef uint8_t omit = KIND[row.kind].omit
    if omit == OMIT_WITHOUT_RECORDS:
        return not ordering.records
    if omit == OMIT_WITHOUT_ENTRIES:
        return (row.count == 0
                and not (ordering.objects.traits & TRAIT_MERCURY and is_a(row.kind, IS_ENTRIES)
                         and (row.marks & OF_EMPTY_STAYS
                              or (row.merc >= 0 and ordering.placed.outs[row.merc].count))))
    if omit == OMIT_WITHOUT_PROTOTYPES:
        return not ordering.prototypes
    return omit == OMIT_UNUSED and row.marks & OF_STAYS == 0


cdef inline bint is_lean(uint32_t traits) noexcept nogil:
    """Whether names and sections are those of the final file alone (format notes, releases)."""
    return traits & TRAIT_MERCURY != 0 and traits & TRAIT_LEAN_NAMES != 0


cdef enum:
    RANK_ROOM = 64              # more than there are ranks


ctypedef struct SectionPlace:
    int32_t created
    int32_t out


cdef inline int compare_places(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const SectionPlace*>a).created, y = (<const SectionPlace*>b).created
    return -1 if x < y else x > y


cdef inline void order_sections(Ordering* ordering, Scratch* scratch) noexcept nogil:
    """Rank by rank, in creation order; a mercury section ranks by its twin's creation.

    In lean files the ranks themselves stand in another order. Rows are in order of creation, except
    for twins; only ranks in which these come otherwise are sorted.
    """
    cdef const OutRow* row = ordering.placed.outs
    # From 1 on; 0: omitted.
    cdef uint8_t* ranks = <uint8_t*>scratch_zeros(scratch, ordering.placed.out_count, 1)
    cdef size_t ends[RANK_ROOM + 1]
    cdef SectionPlace* places
    cdef SectionPlace* place
    cdef size_t i, first = 0
    if ranks == NULL:
        return
    memset(ends, 0, sizeof(ends))
    for i in range(ordering.placed.out_count):
        if not is_omitted(ordering, &row[i]):
            ranks[i] = <uint8_t>(rank_of(&row[i], ordering.objects.family) + 1)
            if ordering.lean:
                ranks[i] = <uint8_t>(LEAN_PLACE[ranks[i] - 1] + 1)
            ends[ranks[i]] += 1
    for i in range(RANK_ROOM):
        ends[i + 1] += ends[i]
    places = <SectionPlace*>scratch_room(scratch, ends[RANK_ROOM], sizeof(SectionPlace))
    if places == NULL or vec_extend(&ordering.sections, ends[RANK_ROOM]) == NULL:
        scratch.failed = True
        return
    for i in range(ordering.placed.out_count):
        if ranks[i]:
            place = &places[ends[ranks[i] - 1]]
            ends[ranks[i] - 1] += 1
            place.created = row[i].twin if row[i].twin >= 0 else <int32_t>i
            place.out = <int32_t>i
    for i in range(RANK_ROOM):         # ends[i] is the end of rank i + 1 by now
        sort_places(places + first, ends[i] - first)
        first = ends[i]
    for i in range(first):
        (<int32_t*>ordering.sections.data)[i] = places[i].out
        ordering.section_index[places[i].out] = <uint32_t>(i + 1)


cdef inline void sort_places(SectionPlace* places, size_t count) noexcept nogil:
    cdef size_t i
    for i in range(1, count):
        if places[i - 1].created > places[i].created:
            qsort(places, count, sizeof(SectionPlace), compare_places)
            return


cdef inline int order_turn(const Ordering* ordering, const OutSymbolRow* symbol) noexcept nogil:
    """The number of the walk that writes a symbol: local, shared, global, of parameters.

    The second is that of lean executables (docs/format-notes/releases.md), for a kernel's shared
    variables, which are local by then.
    """
    cdef int32_t home
    if symbol.part == PART_LOCAL:
        return 0
    if symbol.part == PART_TAIL:
        return 3
    if ordering.lean and ordering.objects.executable and symbol.entity >= 0:
        home = ordering.placed.homes[symbol.entity]
        if home >= 0 and is_a(ordering.placed.outs[home].kind, IS_KERNEL_SHARED):
            return 1
    return 2


cdef inline bint order_symbols(Ordering* ordering) noexcept nogil:
    """Walk by walk, in creation order; False without memory."""
    cdef const OutSymbolRow* symbol
    cdef int32_t* row
    cdef uint32_t index
    cdef size_t i
    cdef int turn
    for turn in range(4):
        for i in range(ordering.merged.out_symbol_count):
            symbol = &ordering.merged.out_symbols[i]
            if symbol.dropped or order_turn(ordering, symbol) != turn:
                continue
            index = <uint32_t>ordering.symbols.count + 1
            if symbol.section >= 0:
                if (ordering.section_index[symbol.section] == 0
                        or ordering.placed.outs[symbol.section].marks & OF_NO_SYMBOL):
                    continue
                ordering.section_symbol_index[symbol.section] = index
            elif symbol.instance >= 0:
                ordering.instance_index[symbol.instance] = index
            else:
                ordering.symbol_index[symbol.entity] = index
            row = <int32_t*>vec_push(&ordering.symbols)
            if row == NULL:
                return False
            row[0] = <int32_t>i
    return True
