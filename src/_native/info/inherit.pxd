# Values that a kernel's records inherit from those of the functions that it reaches.
#
# The list of a kernel, `.nv.info.K`, also says what the functions that it reaches need: barriers,
# symbols that are still undefined, bits of SPARSE_MMA_MASK. For each attribute that a kernel
# inherits, a row of pylink/facts/inheritance.py says how a function's record joins the kernel's. No
# other attribute moves (docs/format-notes.md, "Attributes of kernels").
#
# nvlink appends a record to the kernel's when it first meets one of that attribute. So the order of
# new records follows from the walk over the functions. In a link with two kernels or more, K has
# none of these records itself, and reaches z and x, whose lists stand in this order in the output:
#
#     z   EXTERNS with symbols that are all defined
#     x   NUM_BARRIERS, then EXTERNS with the undefined `printf`
#
# K gets EXTERNS with `printf`, then NUM_BARRIERS: the list of z adds no symbol, but its record is
# there when x comes. If K reaches x alone, it gets NUM_BARRIERS, then EXTERNS.
#
# A link with one live kernel has another rule: that kernel inherits from every live function,
# reached or not, attribute by attribute in the order of the table.
#
# 1. `mark_recursion` sets CRS_STACK_SIZE of a kernel that reaches recursion.
# 2. If any function has SPARSE_MMA_MASK, `put_unknown_bits` gives each function without it a record
#    which says that its bits are unknown, and one more for each alias.
# 3. `inherit` lists the functions that the kernel inherits from (`find_reached`). `inherit_in_turn`
#    then goes through their records one by one. For a lone kernel, `inherit_alone` goes through the
#    attributes: `gather_values` joins the values of all functions, and `gather_list` makes a list
#    of all their items.
# 4. `drop_empty_lists` removes the lists that stay empty.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from attributetypes cimport (
    EIATTR_CRS_STACK_SIZE, EIATTR_TCGEN05_1CTA_USED, EIATTR_TCGEN05_2CTA_USED, EIFMT_SVAL,
    JOIN_BITS, JOIN_COUNT, JOIN_FLAG, JOIN_LAST, JOIN_MARK, JOIN_MAXIMUM, JOIN_NOTHING,
    JOIN_NUMBERS, JOIN_OWN, JOIN_POSITIVE, JOIN_SUM, JOIN_SYMBOLS, JOIN_UNION, JOIN_WORDS,
)
from base.elf64 cimport load16, load32
from base.vector cimport vec_append, vec_extend, vec_push
from info.records cimport (
    Info, append_bytes, find_external, find_own_record, make_barriers_record, set_length,
    source_of_info,
)
from tables.attributes cimport find_record, record_size
from tables.kinds cimport is_function_info
from tables.rows cimport OutRow, SectionRow
from traits cimport TRAIT_EXTERNS_LAST

cdef enum:
    UNKNOWN_BITS = 0x8000       # value of SPARSE_MMA_MASK if its bits are unknown
    UNKNOWN_NUMBER = 0xffff     # value of NUM_MBARRIERS if the number is unknown


# The value of one attribute that a lone kernel inherits.
ctypedef struct Gathered:
    bint is_found               # a function has the attribute
    uint16_t value              # all values, the kernel's own among them, joined


cdef inline int compare_numbers(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return -1 if x < y else x > y


cdef inline bint find_reached(Info* info, int32_t kernel) noexcept nogil:
    """Fill `reached_infos`: OutRows of functions that the kernel inherits from, ascending.

    False without memory.
    """
    cdef size_t depth = 0       # number of nodes in `stack`
    cdef uint32_t node, to, j
    cdef int32_t* row
    info.reached_infos.count = 0
    if info.contributors.count == 0:
        return True
    if info.live_kernels == 1:
        # A lone kernel inherits from every live function.
        return vec_append(&info.reached_infos, info.contributors.data, info.contributors.count)
    info.walk += 1
    info.stamp[kernel] = info.walk
    info.stack[0] = <uint32_t>kernel
    depth = 1
    while depth:
        depth -= 1
        node = info.stack[depth]
        if node < info.merged.entity_count and info.contributes[node] and info.info_out[node] >= 0:
            row = <int32_t*>vec_push(&info.reached_infos)
            if row == NULL:
                return False
            row[0] = info.info_out[node]
        for j in range(info.graph.start[node], info.graph.start[node + 1]):
            to = info.graph.edges[j]
            if info.stamp[to] != info.walk:
                info.stamp[to] = info.walk
                info.stack[depth] = to
                depth += 1
    qsort(info.reached_infos.data, info.reached_infos.count, 4, compare_numbers)
    return True


cdef inline bint inherit(Info* info, int32_t kernel, uint64_t start) noexcept nogil:
    """Add what the kernel inherits to its records; False without memory.

    In this file `start` is the offset in the blob at which the kernel's own records begin; they end
    with the blob.
    """
    if not find_reached(info, kernel):
        return False
    if info.live_kernels == 1:
        return inherit_alone(info, kernel, start)
    return inherit_in_turn(info, kernel, start)


cdef inline bint mark_recursion(Info* info, uint64_t start) noexcept nogil:
    """Set CRS_STACK_SIZE of a kernel with unbounded stack; False without memory."""
    cdef uint8_t crs[8]
    cdef int64_t offset = find_own_record(info, start, EIATTR_CRS_STACK_SIZE)
    memset(crs, 0xff, 8)
    crs[0] = EIFMT_SVAL
    crs[1] = EIATTR_CRS_STACK_SIZE
    set_length(crs, 4)          # the value, all ones, is set above
    if offset < 0:
        return append_bytes(info, crs, 8) != NULL
    memcpy(info.blob.data + offset, crs, 8)
    return True


cdef inline bint put_unknown_bits(Info* info, int32_t entity, uint64_t start) noexcept nogil:
    """Append records of UNKNOWN_BITS to those of a function; False without memory.

    One if it has no record of its bits, and one for each alias: an alias never has a record, and
    its list is the function's.
    """
    cdef uint32_t count = (info.aliases[entity]
                           + (find_own_record(info, start, info.unknown_bits) < 0))
    cdef uint32_t _i
    for _i in range(count):
        if not put_value(info, info.unknown_bits, UNKNOWN_BITS):
            return False
    return True


cdef inline bint put_value(Info* info, uint8_t attribute, uint16_t value) noexcept nogil:
    """Append a record of 4 bytes with a value, in the format of its rule; False without memory."""
    cdef uint8_t record[4]
    record[0] = info.rules[attribute].format
    record[1] = attribute
    memcpy(record + 2, &value, 2)
    return append_bytes(info, record, 4) != NULL


cdef inline uint16_t join_values(uint8_t how, uint16_t own, uint16_t added) noexcept nogil:
    """Return two values joined by the JOIN_ rule `how`. `own` is 0 without a record so far."""
    if how == JOIN_MAXIMUM or how == JOIN_POSITIVE or how == JOIN_OWN:
        return max(own, added)
    if how == JOIN_SUM or how == JOIN_COUNT:
        if own == UNKNOWN_NUMBER or added == UNKNOWN_NUMBER:
            return UNKNOWN_NUMBER
        return <uint16_t>(own + added)
    if how == JOIN_UNION or how == JOIN_BITS:
        return own | added
    return added if how == JOIN_LAST else own


# --- the records of the functions that a kernel reaches -------------------------------------------

# A walk over the records of functions that a kernel reaches.
ctypedef struct RecordWalk:
    int32_t kernel                  # entity, whose own records are skipped
    size_t next                     # number in Info.reached_infos of the function after `function`
    int32_t function                # entity whose records are read
    const SectionRow* source        # its records; NULL before the first function
    uint64_t offset                 # of the next record in `source`
    const uint8_t* data             # the record; NULL: one that says that its bits are unknown
    uint8_t attribute               # of the record
    uint16_t value                  # of the record; with EIFMT_SVAL its length
    bint has_reported               # a record of barriers was made, or is not needed
    uint8_t barriers[4]             # that record: see make_barriers_record


cdef inline void begin_walk(RecordWalk* walk, int32_t kernel) noexcept nogil:
    """Start a walk over Info.reached_infos."""
    memset(walk, 0, sizeof(RecordWalk))
    walk.kernel = kernel


cdef inline bint next_record(Info* info, RecordWalk* walk) noexcept nogil:
    """Go to the next record, function by function; False after the last one.

    If functions say which bits they use (`unknown_bits`), the records of one that does not, or has
    an alias, end with UNKNOWN_BITS.
    """
    cdef int32_t function
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
        function = info.placed.outs[(<int32_t*>info.reached_infos.data)[walk.next]].entity
        walk.next += 1
        if function != walk.kernel:
            walk.function = function
            walk.source = source_of_info(info, function)
            walk.offset = 0
            walk.has_reported = False


# --- two kernels and more: each inherits function by function, record by record -------------------


cdef inline bint inherit_in_turn(Info* info, int32_t kernel, uint64_t start) noexcept nogil:
    """Join record by record with those of one of several kernels; False without memory."""
    cdef RecordWalk walk
    begin_walk(&walk, kernel)
    while next_record(info, &walk):
        if walk.data == NULL:
            join_value(info, start, walk.attribute, walk.value)
        elif is_cta_group(walk.attribute) and is_excluded(cta_groups(info, start), walk.attribute):
            if not add_mixed_kernel(info, kernel):
                return False
        elif not inherit_record(info, start, walk.data, walk.source.file):
            return False
    drop_empty_lists(info, start)
    return True


cdef inline void join_value(Info* info, uint64_t start, uint8_t attribute,
                            uint16_t added) noexcept nogil:
    """Join a value with that of the kernel's own record; nothing without such a record."""
    cdef int64_t offset = find_own_record(info, start, attribute)
    cdef uint16_t value
    if offset >= 0:
        value = join_values(info.rules[attribute].how, load16(info.blob.data + offset + 2), added)
        memcpy(info.blob.data + offset + 2, &value, 2)


cdef inline bint inherit_record(Info* info, uint64_t start, const uint8_t* data,
                                uint32_t file) noexcept nogil:
    """Join one record of a callee with the kernel's, or append one; False without memory.

    `file` is the file whose symbol numbers the record uses.
    """
    cdef uint8_t attribute = data[1], how = info.rules[data[1]].how
    cdef uint16_t value = load16(data + 2)
    if how == JOIN_NOTHING:
        return True
    if is_list(how):
        if data[0] != EIFMT_SVAL:
            return True
        if find_own_record(info, start, attribute) < 0 and not put_value(info, attribute, 0):
            return False
        return extend_list(info, start, data, file)
    if find_own_record(info, start, attribute) >= 0:
        join_value(info, start, attribute, value)
        return True
    return put_value(info, attribute, 0 if how == JOIN_FLAG else value)


cdef inline bint is_list(uint8_t how) noexcept nogil:
    """Whether attributes with a JOIN_ rule are lists of u32."""
    return how == JOIN_SYMBOLS or how == JOIN_NUMBERS or how == JOIN_WORDS


cdef inline bint is_cta_group(uint8_t attribute) noexcept nogil:
    """Whether an attribute says that tcgen05 is used by single CTAs, or by pairs of CTAs."""
    return attribute == EIATTR_TCGEN05_1CTA_USED or attribute == EIATTR_TCGEN05_2CTA_USED


cdef enum:
    # Bits of `cta_groups`.
    SINGLE_CTAS = 1
    PAIRED_CTAS = 2


cdef inline uint8_t cta_groups(Info* info, uint64_t start) noexcept nogil:
    """Return how a kernel uses tcgen05 by the records that it has: SINGLE_CTAS, PAIRED_CTAS."""
    return <uint8_t>(
        (SINGLE_CTAS if find_own_record(info, start, EIATTR_TCGEN05_1CTA_USED) >= 0 else 0)
        | (PAIRED_CTAS if find_own_record(info, start, EIATTR_TCGEN05_2CTA_USED) >= 0 else 0))


cdef inline bint is_excluded(uint8_t groups, uint8_t attribute) noexcept nogil:
    """Whether a kernel of these `cta_groups` cannot inherit the attribute of the other group."""
    return ((attribute == EIATTR_TCGEN05_1CTA_USED and groups == PAIRED_CTAS)
            or (attribute == EIATTR_TCGEN05_2CTA_USED and groups == SINGLE_CTAS))


cdef inline bint add_mixed_kernel(Info* info, int32_t kernel) noexcept nogil:
    """List a kernel that is for single CTAs and reaches code for pairs, or the other way around.

    False without memory.
    """
    cdef int32_t* row = <int32_t*>vec_push(&info.mixed_kernels)
    if row == NULL:
        return False
    row[0] = kernel
    return True


cdef inline uint32_t output_item(Info* info, const uint8_t* record, uint32_t file, uint32_t i,
                                 bint* is_kept) noexcept nogil:
    """Return item `i` of an input's list as the output has it; `is_kept` gets whether it has it.

    Symbols get their numbers in the output, which has only those that EXTERNS still names.
    """
    cdef uint32_t item = load32(record + 4 + 4 * i)
    is_kept[0] = True
    if info.rules[record[1]].how == JOIN_SYMBOLS:
        item = find_external(info, file, item)
        is_kept[0] = item != 0
    return item


cdef inline bint extend_list(Info* info, uint64_t start, const uint8_t* data,
                             uint32_t file) noexcept nogil:
    """Add the items of a callee's list, `data`, that the kernel's lacks; False without memory.

    An item that the callee's list has twice is added twice, except for a list of words.
    """
    cdef uint64_t own = <uint64_t>find_own_record(info, start, data[1])     # offset in the blob
    cdef uint64_t end, tail
    cdef uint32_t count_before = (record_size(info.blob.data + own) - 4) // 4
    cdef uint32_t i, j, item, length    # bytes of the kernel's list
    cdef bint is_kept = False, is_listed, is_unique = info.rules[data[1]].how == JOIN_WORDS
    for i in range((record_size(data) - 4) // 4):
        item = output_item(info, data, file, i, &is_kept)
        if not is_kept:
            continue
        length = record_size(info.blob.data + own) - 4
        is_listed = False
        for j in range(length // 4 if is_unique else count_before):
            if load32(info.blob.data + own + 4 + 4 * j) == item:
                is_listed = True
        if is_listed or length + 4 > 0xffff:    # a record has no more bytes
            continue
        end = own + 4 + length
        tail = info.blob.count - end
        if vec_extend(&info.blob, 4) == NULL:
            return False
        # The list grows in place; the records after it move.
        memmove(info.blob.data + end + 4, info.blob.data + end, tail)
        memcpy(info.blob.data + end, &item, 4)
        set_length(info.blob.data + own, length + 4)
    return True


# --- a lone kernel: inherits from all live functions, attribute by attribute ----------------------


cdef inline bint inherit_alone(Info* info, int32_t kernel, uint64_t start) noexcept nogil:
    """Join attribute by attribute, for the only kernel; False without memory."""
    cdef Gathered gathered[256]
    cdef uint8_t attribute, how
    cdef size_t i
    cdef int64_t offset
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


cdef inline void gather_values(Info* info, int32_t kernel, uint64_t start,
                               Gathered* gathered) noexcept nogil:
    """Fill `gathered`, by attribute: the kernel's own values, joined with those of all functions.
    """
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
    """Join one function's value with `gathered`, by the rule of a lone kernel."""
    gathered.is_found = True
    gathered.value = join_values(info.rules[attribute].alone, gathered.value, value)


cdef inline bint find_record_sections(Info* info) noexcept nogil:
    """Fill `record_sections`: sections with the records of contributing functions, in input order.

    False without memory.
    """
    cdef size_t i
    cdef int32_t* row
    cdef const OutRow* out
    for i in range(info.placed.out_count):
        out = &info.placed.outs[i]
        if is_function_info(out.kind) and info.contributes[out.entity]:
            row = <int32_t*>vec_push(&info.record_sections)
            if row == NULL:
                return False
            row[0] = <int32_t>(source_of_info(info, out.entity) - info.objects.sections)
    qsort(info.record_sections.data, info.record_sections.count, 4, compare_numbers)
    return True


cdef inline bint gather_list(Info* info, uint64_t start, uint8_t attribute) noexcept nogil:
    """Make the list of a lone kernel from those of all live functions, in the order of the input.

    Up to 13.1 lists of symbols are in reverse order. The kernel's own record stays if the functions
    add nothing to it; else a record at the end replaces it. False without memory.
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
        source = &info.objects.sections[(<int32_t*>info.record_sections.data)[i]]
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


cdef inline bint push_items(Info* info, const uint8_t* record, uint32_t file) noexcept nogil:
    """Append the items of an input's list that `list_items` lacks; False without memory."""
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


cdef inline bint has_empty_list(Info* info, uint64_t start) noexcept nogil:
    """Whether a list of the kernel's records has no items."""
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
    """Remove the first record of each list attribute from the kernel's records, if it is empty."""
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
