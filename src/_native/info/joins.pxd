# Records that a kernel inherits, one by one, and how a value joins the kernel's own. A link with
# several kernels (info/inherit.pxd) and a link with a lone kernel, i.e. with only one live root
# (info/lonekernel.pxd), differ in the order in which they ask for these records.
#
# `start` is the offset in the blob at which the kernel's own records begin; they end with the blob.
# `next_record` goes through the records of all functions that the kernel inherits from, and
# `drop_empty_lists` removes the lists that stay empty.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from attributetypes cimport (
    EIATTR_TCGEN05_1CTA_USED, EIATTR_TCGEN05_2CTA_USED, EIFMT_SVAL, JOIN_BITS, JOIN_COUNT,
    JOIN_LAST, JOIN_MAXIMUM, JOIN_NUMBERS, JOIN_OWN, JOIN_POSITIVE, JOIN_SUM, JOIN_SYMBOLS,
    JOIN_UNION, JOIN_WORDS,
)
from base.elf64 cimport load16, load32
from base.vector cimport vec_push
from info.records cimport (
    Info, append_bytes, find_external, find_own_record, make_barriers_record, source_of_info,
)
from tables.attributes cimport find_record, record_size
from tables.rows cimport EntityNumber, FileRef, FileSymbolRef, OutNumber, SectionRow


cdef enum:
    UNKNOWN_BITS = 0x8000       # value of SPARSE_MMA_MASK if its bits are unknown
    UNKNOWN_NUMBER = 0xffff     # value of NUM_MBARRIERS if the number is unknown


cdef inline int compare_numbers(const void* a, const void* b) noexcept nogil:
    """Order numbers of rows, for qsort."""
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return -1 if x < y else x > y


# A walk over the records of functions that a kernel inherits from.
ctypedef struct RecordWalk:
    EntityNumber kernel             # entity, whose own records are skipped
    size_t next                     # number in Info.reached_infos of the function after `function`
    EntityNumber function           # entity whose records are read
    const SectionRow* source        # its records; NULL before the first function
    uint64_t offset                 # of the next record in `source`
    const uint8_t* data             # the record; NULL: UNKNOWN_BITS, for which no input has bytes
    uint8_t attribute               # of the record
    uint16_t value                  # of the record; with EIFMT_SVAL its length
    bint has_reported               # `barriers` was returned as a record, or is not needed
    uint8_t barriers[4]             # a record of NUM_BARRIERS: see make_barriers_record


cdef inline void begin_walk(RecordWalk* walk, EntityNumber kernel) noexcept nogil:
    """Start a walk over Info.reached_infos."""
    memset(walk, 0, sizeof(RecordWalk))
    walk.kernel = kernel


cdef inline bint next_record(Info* info, RecordWalk* walk) noexcept nogil:
    """Go to the next record, function by function; False after the last one.

    If some functions say which bits they use (`unknown_bits`), the records of a function that does
    not say it, or has an alias, end with UNKNOWN_BITS.
    """
    cdef EntityNumber function
    cdef bint has_unknown_bits
    while True:
        if walk.source != NULL and walk.offset < walk.source.size:
            walk.data = info.objects.arena + walk.source.offset + walk.offset
            walk.offset += record_size(walk.data)
            walk.attribute = walk.data[1]
            walk.value = load16(walk.data + 2)
            return True
        if walk.source != NULL and not walk.has_reported:
            walk.has_reported = True
            if make_barriers_record(info, walk.source, walk.barriers):
                walk.data = walk.barriers
                walk.attribute = walk.data[1]
                walk.value = load16(walk.data + 2)
                return True
        if walk.source != NULL:
            has_unknown_bits = (info.unknown_bits
                                and (info.aliases[walk.function]
                                     or find_record(info.objects.arena + walk.source.offset,
                                                    walk.source.size, info.unknown_bits) == NULL))
            walk.source = NULL
            if has_unknown_bits:
                walk.data = NULL
                walk.attribute = info.unknown_bits
                walk.value = UNKNOWN_BITS
                return True
        if walk.next == info.reached_infos.count:
            return False
        function = info.placed.outs[(<OutNumber*>info.reached_infos.data)[walk.next]].entity
        walk.next += 1
        if function != walk.kernel:
            walk.function = function
            walk.source = source_of_info(info, function)
            walk.offset = 0
            walk.has_reported = False


cdef inline uint16_t join_values(uint8_t how, uint16_t own, uint16_t added) noexcept nogil:
    """Return `own` and `added` joined by the JOIN_ rule `how`; `own` is 0 without a record so far.
    """
    if how == JOIN_MAXIMUM or how == JOIN_POSITIVE or how == JOIN_OWN:
        return max(own, added)
    if how == JOIN_SUM or how == JOIN_COUNT:
        if own == UNKNOWN_NUMBER or added == UNKNOWN_NUMBER:
            return UNKNOWN_NUMBER
        return <uint16_t>(own + added)
    if how == JOIN_UNION or how == JOIN_BITS:
        return own | added
    return added if how == JOIN_LAST else own


cdef inline bint put_value(Info* info, uint8_t attribute, uint16_t value) noexcept nogil:
    """Append a record of 4 bytes with a value, in the format of its rule; False without memory."""
    cdef uint8_t record[4]
    record[0] = info.rules[attribute].format
    record[1] = attribute
    memcpy(record + 2, &value, 2)
    return append_bytes(info, record, 4) != NULL


cdef inline bint is_list(uint8_t how) noexcept nogil:
    """Return whether attributes with the JOIN_ rule `how` are lists of u32."""
    return how == JOIN_SYMBOLS or how == JOIN_NUMBERS or how == JOIN_WORDS


cdef enum:
    # Bits of `cta_groups`: the kernel uses tcgen05 by single CTAs, or by pairs of CTAs.
    SINGLE_CTAS = 1
    PAIRED_CTAS = 2


cdef inline bint is_cta_group(uint8_t attribute) noexcept nogil:
    """Return whether an attribute says that tcgen05 is used by single CTAs, or by pairs of CTAs."""
    return attribute == EIATTR_TCGEN05_1CTA_USED or attribute == EIATTR_TCGEN05_2CTA_USED


cdef inline uint8_t cta_groups(Info* info, uint64_t start) noexcept nogil:
    """Return SINGLE_CTAS and PAIRED_CTAS bits: how a kernel uses tcgen05.

    That follows from its records so far, from `start` of the blob on.
    """
    return <uint8_t>(
        (SINGLE_CTAS if find_own_record(info, start, EIATTR_TCGEN05_1CTA_USED) >= 0 else 0)
        | (PAIRED_CTAS if find_own_record(info, start, EIATTR_TCGEN05_2CTA_USED) >= 0 else 0))


cdef inline bint is_excluded(uint8_t groups, uint8_t attribute) noexcept nogil:
    """Return whether a kernel cannot inherit `attribute`, since it uses only the other CTA group.

    `groups` is what `cta_groups` returns for the kernel.
    """
    return ((attribute == EIATTR_TCGEN05_1CTA_USED and groups == PAIRED_CTAS)
            or (attribute == EIATTR_TCGEN05_2CTA_USED and groups == SINGLE_CTAS))


cdef inline bint add_mixed_kernel(Info* info, EntityNumber kernel) noexcept nogil:
    """List a kernel that uses tcgen05 by single CTAs and would inherit use by pairs, or vice versa.

    False without memory.
    """
    cdef EntityNumber* row = <EntityNumber*>vec_push(&info.mixed_kernels)
    if row == NULL:
        return False
    row[0] = kernel
    return True


cdef inline uint32_t output_item(Info* info, const uint8_t* record, FileRef file, uint32_t i,
                                 bint* is_kept) noexcept nogil:
    """Return item `i` of an input's list as the output has it.

    A symbol becomes its number in the output. `is_kept` is set to False for a symbol that the
    output's EXTERNS does not name, else to True.
    """
    cdef uint32_t item = load32(record + 4 + 4 * i)
    is_kept[0] = True
    if info.rules[record[1]].how == JOIN_SYMBOLS:
        item = find_external(info, file, <FileSymbolRef>item)
        is_kept[0] = item != 0
    return item


cdef inline bint has_empty_list(Info* info, uint64_t start) noexcept nogil:
    """Return whether a list in the kernel's records, which begin at `start`, has no items."""
    cdef uint64_t offset = start
    cdef const uint8_t* data
    while offset < info.blob.count:
        data = info.blob.data + offset
        offset += record_size(data)
        if (data[0] == EIFMT_SVAL and record_size(data) == 4
                and info.rules[data[1]].format == EIFMT_SVAL):
            return True
    return False


cdef inline void drop_empty_lists(Info* info, uint64_t start) noexcept nogil:
    """Remove each attribute's first list from the kernel's records, from `start` on, if empty."""
    cdef size_t i
    cdef int64_t offset
    if not has_empty_list(info, start):
        return
    for i in range(info.rule_count):
        if info.rules[info.rule_order[i]].format != EIFMT_SVAL:
            continue
        offset = find_own_record(info, start, info.rule_order[i])
        if (offset >= 0 and info.blob.data[offset] == EIFMT_SVAL
                and record_size(info.blob.data + offset) == 4):
            cut_record(info, <uint64_t>offset)


cdef inline void cut_record(Info* info, uint64_t offset) noexcept nogil:
    """Remove the record at an offset of the blob."""
    cdef uint64_t size = record_size(info.blob.data + offset)
    info.blob.count -= size
    memmove(info.blob.data + offset, info.blob.data + offset + size, info.blob.count - offset)
