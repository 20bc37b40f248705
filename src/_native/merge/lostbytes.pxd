# The bytes of variables that lost against another file's definition, and which relocations in them
# are removed.
#
# In initialized data, those in the bytes of a weak variable that lost against a weak one go. In a
# constant bank nvlink looks at the symbol instead: an entry that names a weak definition of its
# file goes if that definition lost. Where the entry's own place counts it is kept here, as the
# program needs it (docs/nvlink-differences.md).

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.vector cimport Vec, vec_push
from elfnumbers cimport SHT_CUDA_GLOBAL_INIT
from merge.state cimport Merge
from rownumbers cimport EF_WEAK, RESOLUTION_LOST, RESOLUTION_LOST_EARLY, RESOLUTION_REPLACED
from sectionkinds cimport IS_VARIABLES, KIND
from tables.kinds cimport is_a
from tables.rows cimport FileRow, SymbolRow, has_lost


cdef struct LostRange:
    uint64_t start
    uint64_t end


cdef inline int compare_ranges(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const LostRange*>a).start, y = (<const LostRange*>b).start
    return (x > y) - (x < y)


cdef inline bint is_data(uint16_t kind) noexcept nogil:
    """Whether variables of a kind in either form are initialized data, not constants."""
    return KIND[kind].type == SHT_CUDA_GLOBAL_INIT


cdef inline bint is_lost_definition(Merge* merge, size_t symbol, bint data) noexcept nogil:
    """Whether the bytes of a definition are of the kind that loses relocations.

    In initialized data it lost against a weak one: any that was replaced later is weak.
    """
    cdef uint8_t resolution = merge.merged.symbol_resolution[symbol]
    if data:
        return resolution == RESOLUTION_LOST_EARLY or (
            resolution == RESOLUTION_LOST
            and merge.merged.entities[merge.merged.symbol_entity[symbol]].flags & EF_WEAK != 0)
    return has_lost(resolution) or resolution == RESOLUTION_REPLACED


cdef inline void find_lost_bytes(Merge* merge, const FileRow* file, int32_t section,
                                 Vec* lost) noexcept nogil:
    """The bytes of `section` in which relocations may go, as disjoint ranges in order.

    Only initialized data and constants have any; the mercury form is that of the file's plain
    section.
    """
    cdef uint16_t kind = merge.objects.sections[section].kind
    cdef bint mercury = KIND[kind].mercury
    cdef const SymbolRow* s
    cdef LostRange* ranges
    cdef size_t i, kept_count = 0
    if not is_a(kind, IS_VARIABLES):
        return
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        s = &merge.objects.symbols[i]
        if (s.section != section
                and not (mercury and s.section >= 0
                         and KIND[merge.objects.sections[s.section].kind].twin == kind)):
            continue
        if not is_lost_definition(merge, i, is_data(kind)):
            continue
        ranges = <LostRange*>vec_push(lost)
        if ranges == NULL:
            merge.failed = True
            return
        ranges.start = s.value
        ranges.end = s.value + s.size
    if lost.count < 2:
        return
    ranges = <LostRange*>lost.data
    qsort(ranges, lost.count, sizeof(LostRange), compare_ranges)
    for i in range(1, lost.count):
        if ranges[i].start > ranges[kept_count].end:
            kept_count += 1
            ranges[kept_count] = ranges[i]
        elif ranges[i].end > ranges[kept_count].end:
            ranges[kept_count].end = ranges[i].end
    lost.count = kept_count + 1


cdef inline bint is_removed_with_lost_bytes(Merge* merge, const Vec* lost, uint16_t kind,
                                            uint64_t offset, int32_t symbol) noexcept nogil:
    """Whether the entry of a section of that kind goes with the bytes that it patches."""
    return ((is_data(kind) or has_lost(merge.merged.symbol_resolution[symbol]))
            and is_in_lost_bytes(lost, offset))


cdef inline bint is_in_lost_bytes(const Vec* lost, uint64_t offset) noexcept nogil:
    """Whether an offset lies in one of the ranges."""
    cdef const LostRange* ranges = <const LostRange*>lost.data
    cdef size_t low = 0, high = lost.count, middle
    while low < high:
        middle = (low + high) // 2
        if ranges[middle].end <= offset:
            low = middle + 1
        else:
            high = middle
    return low < lost.count and ranges[low].start <= offset
