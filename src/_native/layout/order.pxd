# The order of sections and symbols in the output file, and which of them it omits.

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from base.scratch cimport Scratch, scratch_room, scratch_zeros
from base.vector cimport Vec, vec_extend
from sectionkinds cimport (
    IS_ENTRIES, IS_KERNEL_SHARED, KIND, LEAN_PLACE, OMIT_UNUSED, OMIT_WITHOUT_ENTRIES,
    OMIT_WITHOUT_PROTOTYPES, OMIT_WITHOUT_RECORDS, RANK_MERC_LATE, RANK_NOBITS,
)
from tables.kinds cimport is_a
from tables.rows cimport (
    OF_EMPTY_STAYS, OF_LATE, OF_NO_SYMBOL, OF_STAYS, PART_LOCAL, PART_TAIL, OutNumber, OutRow,
    OutSymbolNumber, OutSymbolRow,
)
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_LEAN_NAMES, TRAIT_MERCURY


cdef inline int32_t rank_of(const OutRow* row, uint32_t family) noexcept nogil:
    """Return the rank of a section: in which part of the output file, from 0, its kind stands.

    .symtab_shndx and its twin stand in a later part if only the final file needs them (OF_LATE).
    """
    if row.marks & OF_LATE:
        return RANK_MERC_LATE if KIND[row.kind].mercury else RANK_NOBITS
    return KIND[row.kind].ranks[family]


# The order of sections and symbols, and all that it depends on.
ctypedef struct Ordering:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    bint is_lean                    # without names that only the mercury file needs
    bint has_prototypes             # .nv.prototype will have rows
    bint has_file_records           # .nv.info will have records
    Vec sections                    # OutNumber, in the order of the file
    Vec symbols                     # OutSymbolNumber, in the order of the symbol table
    uint32_t* section_index         # by OutRow: header index, 0 if the output omits it
    uint32_t* section_symbol_index  # by OutRow: symbol index of its section symbol, or 0
    uint32_t* symbol_index          # by entity: symbol index, or 0
    uint32_t* instance_index        # by entity, of a kernel: symbol index of its instance, or 0


cdef inline bint is_omitted(const Ordering* ordering, const OutRow* row) noexcept nogil:
    """Return whether the output omits a section that was created, by the rule of its kind.

    A relocation section without entries stays, from sm_100 on, if it is marked (OF_EMPTY_STAYS) or
    if its mercury form has entries. The name of an omitted section stays in the string tables,
    except in lean files (`has_lean_names`).
    """
    cdef uint8_t omit = KIND[row.kind].omit
    if omit == OMIT_WITHOUT_RECORDS:
        return not ordering.has_file_records
    if omit == OMIT_WITHOUT_ENTRIES:
        return (row.count == 0
                and not (ordering.objects.traits & TRAIT_MERCURY and is_a(row.kind, IS_ENTRIES)
                         and (row.marks & OF_EMPTY_STAYS
                              or (row.merc >= 0 and ordering.placed.outs[row.merc].count))))
    if omit == OMIT_WITHOUT_PROTOTYPES:
        return not ordering.has_prototypes
    return omit == OMIT_UNUSED and row.marks & OF_STAYS == 0


cdef inline bint has_lean_names(uint32_t traits) noexcept nogil:
    """Return whether outputs omit the names and sections that only the mercury file needs.

    `traits` are those of the release and the target. Such outputs are called lean here;
    docs/format-notes/releases.md has the differences.
    """
    return traits & TRAIT_MERCURY != 0 and traits & TRAIT_LEAN_NAMES != 0


cdef enum:
    RANK_ROOM = 64              # ranks for which `order_sections` has room; fewer are in use


# A section while the sections of its rank are sorted.
ctypedef struct SectionPlace:
    OutNumber created           # the sort key: a mercury section's plain section, else the section
    OutNumber out               # the section


cdef inline int compare_places(const void* a, const void* b) noexcept nogil:
    """Order SectionPlaces by `created`, for qsort."""
    cdef OutNumber x = (<const SectionPlace*>a).created, y = (<const SectionPlace*>b).created
    return -1 if x < y else x > y


cdef inline void order_sections(Ordering* ordering, Scratch* scratch) noexcept nogil:
    """Fill `sections` and `section_index`: rank by rank, in creation order.

    A mercury section stands at the place of its plain section's creation. In lean files the ranks
    themselves are in another order (LEAN_PLACE). A counting sort by rank keeps the order of rows,
    which is creation order except for twins. Only ranks with twins out of order are sorted again.
    """
    cdef const OutRow* row = ordering.placed.outs
    # By OutRow: rank + 1; 0: omitted.
    cdef uint8_t* ranks = <uint8_t*>scratch_zeros(scratch, ordering.placed.out_count, 1)
    # By rank + 1: number of sections, then end of the rank's places. While `places` is filled, by
    # rank: its next free place.
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
            if ordering.is_lean:
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
            place.created = row[i].twin if row[i].twin >= 0 else <OutNumber>i
            place.out = <OutNumber>i
    # Each place that was taken moved an end on. So ends[i] is now the end of rank i's places.
    for i in range(RANK_ROOM):
        sort_places(places + first, ends[i] - first)
        first = ends[i]
    for i in range(first):
        (<OutNumber*>ordering.sections.data)[i] = places[i].out
        ordering.section_index[places[i].out] = <uint32_t>(i + 1)


cdef inline void sort_places(SectionPlace* places, size_t count) noexcept nogil:
    """Sort the places of one rank by creation, unless they are in order."""
    cdef size_t i
    for i in range(1, count):
        if places[i - 1].created > places[i].created:
            qsort(places, count, sizeof(SectionPlace), compare_places)
            return


# Groups of symbols, one after the other in the symbol table.
cdef enum SymbolGroup:
    GROUP_LOCAL
    GROUP_KERNEL_SHARED         # lean executables: kernels' shared variables, which are local
    GROUP_GLOBAL
    GROUP_TAIL                  # sm_100 and later: section symbols of .nv.constant0.K
    GROUP_COUNT


cdef inline int symbol_group(const Ordering* ordering, const OutSymbolRow* symbol) noexcept nogil:
    """Return the SymbolGroup of a symbol."""
    cdef OutNumber home
    if symbol.part == PART_LOCAL:
        return GROUP_LOCAL
    if symbol.part == PART_TAIL:
        return GROUP_TAIL
    if ordering.is_lean and ordering.objects.executable and symbol.entity >= 0:
        home = ordering.placed.homes[symbol.entity]
        if home >= 0 and is_a(ordering.placed.outs[home].kind, IS_KERNEL_SHARED):
            return GROUP_KERNEL_SHARED
    return GROUP_GLOBAL


cdef inline void order_symbols(Ordering* ordering, Scratch* scratch) noexcept nogil:
    """Fill `symbols` and the symbol indices: group by group, in creation order.

    Dropped symbols are omitted, and section symbols of sections that the output omits or that never
    have one (OF_NO_SYMBOL).
    """
    cdef size_t count = ordering.merged.out_symbol_count, i, group
    cdef const OutSymbolRow* symbol
    # By OutSymbolRow: group + 1; 0: omitted.
    cdef uint8_t* groups = <uint8_t*>scratch_zeros(scratch, count, 1)
    # By group + 1: number of symbols, then end of the group's places. While `symbols` is filled, by
    # group: its next free place.
    cdef size_t ends[GROUP_COUNT + 1]
    cdef uint32_t index
    if groups == NULL:
        return
    memset(ends, 0, sizeof(ends))
    for i in range(count):
        symbol = &ordering.merged.out_symbols[i]
        if symbol.dropped or (
                symbol.section >= 0
                and (ordering.section_index[symbol.section] == 0
                     or ordering.placed.outs[symbol.section].marks & OF_NO_SYMBOL)):
            continue
        groups[i] = <uint8_t>(symbol_group(ordering, symbol) + 1)
        ends[groups[i]] += 1
    for group in range(GROUP_COUNT):
        ends[group + 1] += ends[group]
    if vec_extend(&ordering.symbols, ends[<int>GROUP_COUNT]) == NULL:
        scratch.failed = True
        return
    for i in range(count):
        if groups[i] == 0:
            continue
        symbol = &ordering.merged.out_symbols[i]
        (<OutSymbolNumber*>ordering.symbols.data)[ends[groups[i] - 1]] = <OutSymbolNumber>i
        ends[groups[i] - 1] += 1
        index = <uint32_t>ends[groups[i] - 1]       # index 0 is the null symbol
        if symbol.section >= 0:
            ordering.section_symbol_index[symbol.section] = index
        elif symbol.instance >= 0:
            ordering.instance_index[symbol.instance] = index
        else:
            ordering.symbol_index[symbol.entity] = index
