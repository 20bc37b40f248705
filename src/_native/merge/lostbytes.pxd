# The bytes of variables that lost against another file's definition: which relocations in them are
# removed.
#
# The bytes of such a variable stay in the output, since sections of inputs are never cut. Whether
# the relocations in them stay depends on the kind of the section:
#
# * In initialized data, an entry is removed if its field lies in the bytes of a weak variable that
#   lost against a weak one.
# * In a constant bank nvlink removes an entry if the file's own definition of the symbol that it
#   names lost. pylink removes it only if its field also lies in the bytes of a definition that lost
#   or was replaced. The program needs other entries (docs/nvlink-differences.md).
#
# `find_lost_bytes` walks over the symbols of the file, and lists the ranges of one section, once
# for all of its entries. `is_removed_with_lost_bytes` then looks for an entry's offset among them.
# With N ranges, M entries and S symbols, both take O(S + (N + M) log N).

from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.stdlib cimport qsort

from base.vector cimport Vec, vec_push
from elfnumbers cimport SHT_CUDA_GLOBAL_INIT
from merge.state cimport Merge
from rownumbers cimport EF_WEAK, RESOLUTION_LOST, RESOLUTION_LOST_EARLY, RESOLUTION_REPLACED
from sectionkinds cimport IS_VARIABLES, KIND
from tables.kinds cimport is_a
from tables.rows cimport FileRow, SectionNumber, SymbolCounter, SymbolNumber, SymbolRow, has_lost


# A range of bytes of an input section; `end` is the offset after the last one.
cdef struct LostRange:
    uint64_t start
    uint64_t end


cdef inline int compare_ranges(const void* a, const void* b) noexcept nogil:
    """Order LostRanges by their start, for qsort."""
    cdef uint64_t start = (<const LostRange*>a).start, other_start = (<const LostRange*>b).start
    return (start > other_start) - (start < other_start)


cdef inline bint is_initialized_data(uint16_t kind) noexcept nogil:
    """Return whether sections of a kind, or the plain form of these, hold initialized data."""
    return KIND[kind].type == SHT_CUDA_GLOBAL_INIT


cdef inline bint is_lost_definition(Merge* merge, SymbolCounter symbol,
                                    bint in_data) noexcept nogil:
    """Return whether relocations in the bytes of a definition, `symbol`, may be removed.

    In constants they may if it lost or was replaced, in initialized data (`in_data`) only if it
    lost against a weak one. That is so for RESOLUTION_LOST with a weak winner, and always for
    RESOLUTION_LOST_EARLY: the one that it lost against was replaced later, as only weak and
    common ones are, and initialized data never loses against a common one.
    """
    cdef uint8_t resolution = merge.merged.symbol_resolution[symbol]
    if in_data:
        return resolution == RESOLUTION_LOST_EARLY or (
            resolution == RESOLUTION_LOST
            and merge.merged.entities[merge.merged.symbol_entity[symbol]].flags & EF_WEAK != 0)
    return has_lost(resolution) or resolution == RESOLUTION_REPLACED


cdef inline void find_lost_bytes(Merge* merge, const FileRow* file, SectionNumber section,
                                 Vec* lost) noexcept nogil:
    """List in `lost` the ranges of `section` in which relocations may be removed.

    `lost` is empty before; the ranges are disjoint and in order. Only sections of initialized data
    and of constants have any. Symbols lie in plain sections, so a mercury section gets the ranges
    of the file's plain one.
    """
    cdef uint16_t kind = merge.objects.sections[section].kind
    cdef bint is_mercury = KIND[kind].mercury
    cdef const SymbolRow* symbol
    cdef LostRange* ranges
    cdef size_t i, kept_count = 0
    if not is_a(kind, IS_VARIABLES):
        return
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        symbol = &merge.objects.symbols[i]
        if (symbol.section != section
                and not (is_mercury and symbol.section >= 0
                         and KIND[merge.objects.sections[symbol.section].kind].twin == kind)):
            continue
        if not is_lost_definition(merge, i, is_initialized_data(kind)):
            continue
        ranges = <LostRange*>vec_push(lost)
        if ranges == NULL:
            merge.failed = True
            return
        ranges.start = symbol.value
        ranges.end = symbol.value + symbol.size
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
                                            uint64_t offset, SymbolNumber symbol) noexcept nogil:
    """Return whether a relocation entry is removed since its field is in bytes that nobody needs.

    These are bytes of definitions that lost or, in constants, were replaced. `lost` has their
    ranges in the section that the entry patches (`find_lost_bytes`), and `kind` is that section's.
    In constants, the file's definition of `symbol`, which the entry names, must also have lost.
    """
    return ((is_initialized_data(kind) or has_lost(merge.merged.symbol_resolution[symbol]))
            and is_in_lost_bytes(lost, offset))


cdef inline bint is_in_lost_bytes(const Vec* lost, uint64_t offset) noexcept nogil:
    """Return whether an offset lies in one of the ranges."""
    cdef const LostRange* ranges = <const LostRange*>lost.data
    cdef size_t low = 0, high = lost.count, middle
    while low < high:
        middle = (low + high) // 2
        if ranges[middle].end <= offset:
            low = middle + 1
        else:
            high = middle
    return low < lost.count and ranges[low].start <= offset
