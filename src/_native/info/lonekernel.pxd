# A lone kernel is the only live root of a link. It inherits from every live function, reached or
# not, attribute by attribute in the order of the table (pylink/facts/inheritance.py).
#
# `inherit_alone` goes through the attributes. `gather_values` joins the values of all functions,
# and `gather_list` makes a list of all their items.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from attributetypes cimport (
    EIFMT_SVAL, JOIN_COUNT, JOIN_FLAG, JOIN_MARK, JOIN_OWN, JOIN_POSITIVE, JOIN_SYMBOLS,
)
from base.elf64 cimport load16
from base.vector cimport vec_push
from info.joins cimport (
    RecordWalk, add_mixed_kernel, begin_walk, compare_numbers, cta_groups, cut_record,
    drop_empty_lists, is_excluded, is_list, join_values, next_record, output_item, put_value,
)
from info.records cimport Info, append_bytes, find_own_record, set_length, source_of_info
from tables.attributes cimport record_size
from tables.kinds cimport is_function_info
from tables.rows cimport EntityNumber, FileRef, OutRow, SectionNumber, SectionRow
from traits cimport TRAIT_EXTERNS_LAST


# The value of one attribute that a lone kernel inherits.
ctypedef struct Gathered:
    bint is_found               # a function other than the kernel has the attribute
    uint16_t value              # all values, the kernel's own among them, joined


cdef inline bint inherit_alone(Info* info, EntityNumber kernel, uint64_t start) noexcept nogil:
    """Add what the lone kernel inherits, attribute by attribute; False without memory."""
    cdef Gathered gathered[256]
    cdef uint8_t attribute, how
    cdef size_t i
    cdef int64_t offset
    # The kernel's own uses of tcgen05, before it inherits any: SINGLE_CTAS, PAIRED_CTAS.
    cdef uint8_t own_groups = cta_groups(info, start)
    gather_values(info, kernel, start, gathered)
    for i in range(info.rule_count):
        attribute = info.rule_order[i]
        how = info.rules[attribute].alone
        if is_list(how):
            if not gather_list(info, start, attribute):
                return False
        elif gathered[attribute].is_found and is_excluded(own_groups, attribute):
            if not add_mixed_kernel(info, kernel):
                return False
        elif gathered[attribute].is_found:
            if not gathered[attribute].value and (how == JOIN_POSITIVE or how == JOIN_COUNT):
                continue
            offset = find_own_record(info, start, attribute)
            if offset < 0:
                if not put_value(info, attribute, gathered[attribute].value):
                    return False
            elif how != JOIN_OWN and how != JOIN_FLAG and how != JOIN_MARK:
                memcpy(info.blob.data + offset + 2, &gathered[attribute].value, 2)
    drop_empty_lists(info, start)
    return True


cdef inline void gather_values(Info* info, EntityNumber kernel, uint64_t start,
                               Gathered* gathered) noexcept nogil:
    """Fill `gathered`, by attribute: the kernel's own values, joined with those it inherits."""
    cdef size_t i
    cdef int64_t offset
    cdef RecordWalk walk
    memset(gathered, 0, 256 * sizeof(Gathered))
    for i in range(info.rule_count):
        offset = find_own_record(info, start, info.rule_order[i])
        if offset >= 0:
            gathered[info.rule_order[i]].value = load16(info.blob.data + offset + 2)
    begin_walk(&walk, kernel)
    while next_record(info, &walk):
        gather_value(info, &gathered[walk.attribute], walk.attribute, walk.value)


cdef inline void gather_value(Info* info, Gathered* gathered, uint8_t attribute,
                              uint16_t value) noexcept nogil:
    """Join one function's value with `gathered`, by the rule for a link with one live kernel."""
    gathered.is_found = True
    gathered.value = join_values(info.rules[attribute].alone, gathered.value, value)


cdef inline bint find_record_sections(Info* info) noexcept nogil:
    """Fill `record_sections`: sections with the records of contributing functions, in input order.

    False without memory.
    """
    cdef size_t i
    cdef SectionNumber* row
    cdef const OutRow* out
    for i in range(info.placed.out_count):
        out = &info.placed.outs[i]
        if is_function_info(out.kind) and info.contributes[out.entity]:
            row = <SectionNumber*>vec_push(&info.record_sections)
            if row == NULL:
                return False
            row[0] = <SectionNumber>(source_of_info(info, out.entity) - info.objects.sections)
    qsort(info.record_sections.data, info.record_sections.count, 4, compare_numbers)
    return True


cdef inline bint gather_list(Info* info, uint64_t start, uint8_t attribute) noexcept nogil:
    """Make the lone kernel's list from those of all live functions, in the order of the input.

    Up to 13.1 lists of symbols are in reverse order. The kernel's own record stays if it has as
    many items as the list, or if the list is empty or too long for a record. Otherwise a record at
    the end replaces it. False without memory.
    """
    cdef size_t i, index
    cdef bint is_forward = (info.rules[attribute].alone != JOIN_SYMBOLS
                            or info.objects.traits & TRAIT_EXTERNS_LAST != 0)
    cdef const SectionRow* source
    cdef uint64_t offset, place
    cdef int64_t own_offset     # of the kernel's own record in the blob, or -1
    cdef uint32_t size          # bytes of the list
    cdef uint8_t head[4]
    cdef const uint8_t* record
    info.list_items.count = 0
    if not info.record_sections.count and not find_record_sections(info):
        return False
    for i in range(info.record_sections.count):
        source = &info.objects.sections[(<SectionNumber*>info.record_sections.data)[i]]
        offset = 0
        while offset < source.size:
            record = info.objects.arena + source.offset + offset
            if record[1] == attribute and not push_items(info, record, source.file):
                return False
            offset += record_size(record)
    size = <uint32_t>(4 * info.list_items.count)
    own_offset = find_own_record(info, start, attribute)
    if size == 0 or size > 0xffff:
        return True
    if own_offset >= 0:
        place = <uint64_t>own_offset
        if record_size(info.blob.data + place) == 4 + size:
            return True
        cut_record(info, place)
    head[0] = EIFMT_SVAL
    head[1] = attribute
    set_length(head, size)
    if append_bytes(info, head, 4) == NULL:
        return False
    for i in range(info.list_items.count):
        index = i if is_forward else info.list_items.count - 1 - i
        if append_bytes(info, info.list_items.data + 4 * index, 4) == NULL:
            return False
    return True


cdef inline bint push_items(Info* info, const uint8_t* record, FileRef file) noexcept nogil:
    """Append to `list_items` what it lacks of an input's list; False without memory.

    Symbols that the output's EXTERNS does not name are skipped (`output_item`).
    """
    cdef uint32_t i, item
    cdef uint32_t* row
    cdef size_t j
    cdef bint is_kept = False
    if record[0] != EIFMT_SVAL:
        return True
    for i in range((record_size(record) - 4) // 4):
        item = output_item(info, record, file, i, &is_kept)
        row = <uint32_t*>info.list_items.data
        j = 0
        while j < info.list_items.count and row[j] != item:
            j += 1
        if is_kept and j == info.list_items.count:
            row = <uint32_t*>vec_push(&info.list_items)
            if row == NULL:
                return False
            row[0] = item
    return True
