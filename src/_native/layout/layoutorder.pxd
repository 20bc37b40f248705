# The order of sections in the output file, and which of them it leaves out.

from libc.stdint cimport int32_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, qsort

from rows cimport *
from vec cimport *


# The parts of the output file, in their order.
cdef enum Rank:
    RANK_TABLES = 0             # .shstrtab, .strtab, .symtab
    RANK_OTHER = 1              # debug data and what no rule names
    RANK_NOTES = 2
    RANK_INFO = 3
    RANK_CALLS = 4              # call graph, prototypes, .nv.rel.action
    RANK_RELOCATIONS = 5
    RANK_CONSTANTS = 6          # on families A and B, .nv.constant0.F too
    RANK_TEXT = 7
    RANK_DATA = 8
    RANK_NOBITS = 9             # sections without bytes in the file
    RANK_PARAMETERS = 10        # .nv.constant0.F, family C
    RANK_MERCURY = 11           # capsules; mercury starts here
    RANK_MERC_DEBUG = 12
    RANK_MERC_INFO = 13
    RANK_MERC_INFO_FUNC = 14
    RANK_MERC_RELA = 15
    RANK_MERC_CONSTANT = 16
    RANK_MERC_DATA = 17
    RANK_MERC_LATE = 18         # .nv.merc.nv.shared.reserved.0
    RANK_MERC_SYMTAB = 19


cdef inline int32_t rank(const OutRow* row, uint32_t family) noexcept nogil:
    """Where a kind of section stands in the output."""
    cdef uint16_t kind = row.kind
    if kind == K_SHSTRTAB or kind == K_STRTAB or kind == K_SYMTAB:
        return RANK_TABLES
    if kind == K_SYMTAB_SHNDX:
        return RANK_NOBITS if row.notes & OF_LATE else RANK_TABLES
    if kind == K_TKINFO or kind == K_CUINFO:
        return RANK_NOTES
    if kind == K_INFO or kind == K_COMPAT or kind == K_INFO_FUNC:
        return RANK_INFO
    if kind == K_CALLGRAPH or kind == K_PROTOTYPE or kind == K_REL_ACTION:
        return RANK_CALLS
    if kind == K_RELOC or kind == K_RESOLVED_RELA:
        return RANK_RELOCATIONS
    if kind == K_CONSTANT or kind == K_CONSTANT_FUNC:
        return RANK_CONSTANTS
    if kind == K_CONSTANT0:
        return RANK_PARAMETERS if family == FAMILY_C else RANK_CONSTANTS
    if kind == K_TEXT:
        return RANK_TEXT
    if kind == K_GLOBAL_INIT:
        return RANK_DATA
    if is_nobits(row):
        return RANK_NOBITS
    if kind == K_CAPMERC:
        return RANK_MERCURY
    if kind == K_MERC_SYMTAB_SHNDX:
        return RANK_MERC_LATE if row.notes & OF_LATE else RANK_MERCURY
    if kind == K_MERC_DEBUG:
        return RANK_MERC_DEBUG
    if kind == K_MERC_INFO:
        return RANK_MERC_INFO
    if kind == K_MERC_INFO_FUNC:
        return RANK_MERC_INFO_FUNC
    if kind == K_MERC_RELA:
        return RANK_MERC_RELA
    if kind == K_MERC_CONSTANT or kind == K_MERC_CONSTANT_FUNC:
        return RANK_MERC_CONSTANT
    if kind == K_MERC_GLOBAL_INIT:
        return RANK_MERC_DATA
    if kind == K_MERC_SYSTEM_SHARED:
        return RANK_MERC_LATE
    if kind == K_MERC_SYMTAB:
        return RANK_MERC_SYMTAB
    return RANK_OTHER


cdef inline bint omitted(const OutRow* all_rows, const OutRow* row, bint prototypes, bint info,
                  uint32_t family) noexcept nogil:
    """Whether a section that was born is left out; its name stays in the string tables."""
    if row.kind == K_INFO or row.kind == K_MERC_INFO:
        return not info
    if row.kind == K_RELOC and family == FAMILY_C and row.count == 0:
        return not (row.notes & OF_EMPTY_STAYS
                    or all_rows[row.target].kind == K_CONSTANT_FUNC)
    if row.kind == K_RELOC:
        return row.count == 0
    if row.kind == K_MERC_RELA or row.kind == K_RESOLVED_RELA:
        return row.count == 0
    if row.kind == K_PROTOTYPE:
        return not prototypes
    if row.kind == K_SHARED or row.kind == K_DEBUG_SHARED:
        return row.notes & OF_STAYS == 0
    return False


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


cdef inline bint order_sections(const OutRow* row, size_t n, uint32_t family, bint prototypes,
                                bint info, Vec* sections, uint32_t* index) noexcept nogil:
    """Rank by rank, in order of birth; a mercury section ranks by its twin's birth."""
    cdef Place* places = <Place*>calloc(n + 1, sizeof(Place))
    cdef size_t i, count = 0
    cdef bint ok = places != NULL
    if not ok:
        return False
    for i in range(n):
        if not omitted(row, &row[i], prototypes, info, family):
            places[count].rank = rank(&row[i], family)
            places[count].birth = row[i].twin if row[i].twin >= 0 else <int32_t>i
            places[count].out = <int32_t>i
            count += 1
    qsort(places, count, sizeof(Place), by_place)
    for i in range(count):
        ok = ok and push_number(sections, places[i].out)
        index[places[i].out] = <uint32_t>(i + 1)
    free(places)
    return ok
