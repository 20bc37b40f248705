# The order of sections in the output file, and which of them it leaves out.

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, qsort

from elf64 cimport SHT_RELA
from kinds cimport *
from rows cimport *
from traits cimport *
from vec cimport *


cdef inline int32_t rank(const OutRow* row, uint32_t family) noexcept nogil:
    """Where a kind of section stands in the output; tables of indices may come late."""
    if row.marks & OF_LATE:
        return RANK_MERC_LATE if KIND[row.kind].mercury else RANK_NOBITS
    return KIND[row.kind].ranks[family]


cdef inline bint omitted(const OutRow* all_rows, const OutRow* row, bint prototypes, bint info,
                         uint32_t traits) noexcept nogil:
    """Whether a section that was born is left out; its name stays in the string tables."""
    cdef uint8_t omit = KIND[row.kind].omit
    if omit == OMIT_WITHOUT_RECORDS:
        return not info
    if omit == OMIT_WITHOUT_ENTRIES:
        return row.count == 0 and not (traits & TRAIT_MERCURY and is_a(row.kind, IS_ENTRIES) and (
            row.marks & OF_EMPTY_STAYS or (row.merc >= 0 and all_rows[row.merc].count)))
    if omit == OMIT_WITHOUT_PROTOTYPES:
        return not prototypes
    return omit == OMIT_UNUSED and row.marks & OF_STAYS == 0


cdef inline bint push_number(Vec* v, int32_t number) noexcept nogil:
    cdef int32_t* row = <int32_t*>vec_push(v)
    if row == NULL:
        return False
    row[0] = number
    return True


ctypedef struct Place:
    int32_t rank
    int32_t birth
    int32_t out


cdef inline int by_place(const void* a, const void* b) noexcept nogil:
    cdef const Place* x = <const Place*>a
    cdef const Place* y = <const Place*>b
    if x.rank != y.rank:
        return -1 if x.rank < y.rank else 1
    return -1 if x.birth < y.birth else x.birth > y.birth


cdef inline bint is_lean(uint32_t traits) noexcept nogil:
    """Whether names and sections are those of the final file alone (docs/releases.md)."""
    return traits & TRAIT_MERCURY != 0 and traits & TRAIT_LEAN_NAMES != 0


cdef inline bint order_sections(const OutRow* row, size_t n, uint32_t family, uint32_t traits,
                                bint prototypes, bint info, Vec* sections,
                                uint32_t* index) noexcept nogil:
    """Rank by rank, in order of birth; a mercury section ranks by its twin's birth.

    In lean files the ranks themselves stand in another order.
    """
    cdef Place* places = <Place*>calloc(n + 1, sizeof(Place))
    cdef size_t i, count = 0
    cdef bint ok = places != NULL
    if not ok:
        return False
    for i in range(n):
        if not omitted(row, &row[i], prototypes, info, traits):
            places[count].rank = rank(&row[i], family)
            if is_lean(traits):
                places[count].rank = LEAN_PLACE[places[count].rank]
            places[count].birth = row[i].twin if row[i].twin >= 0 else <int32_t>i
            places[count].out = <int32_t>i
            count += 1
    qsort(places, count, sizeof(Place), by_place)
    for i in range(count):
        ok = ok and push_number(sections, places[i].out)
        index[places[i].out] = <uint32_t>(i + 1)
    free(places)
    return ok
