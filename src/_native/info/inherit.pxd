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
# there when x comes. If K reaches only x, it gets NUM_BARRIERS, then EXTERNS.
#
# A link with one live kernel has another rule: see info/lonekernel.pxd.
#
# 1. `mark_recursion` sets CRS_STACK_SIZE of a kernel that reaches recursion.
# 2. If any function has SPARSE_MMA_MASK, `put_unknown_bits` appends records which say that bits are
#    unknown: one to each function without SPARSE_MMA_MASK, and one for each alias of a function.
# 3. `inherit` lists the functions that the kernel inherits from (`find_reached`). `inherit_in_turn`
#    then goes through their records one by one.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from attributetypes cimport EIATTR_CRS_STACK_SIZE, EIFMT_SVAL, JOIN_FLAG, JOIN_NOTHING, JOIN_WORDS
from base.elf64 cimport load16, load32
from base.prefetch cimport prefetch
from base.vector cimport vec_append, vec_extend, vec_push
from info.joins cimport (
    UNKNOWN_BITS, RecordWalk, add_mixed_kernel, begin_walk, compare_numbers, cta_groups,
    drop_empty_lists, is_cta_group, is_excluded, is_list, join_values, next_record, output_item,
    put_value,
)
from info.lonekernel cimport inherit_alone
from info.records cimport Info, append_bytes, find_own_record, set_length
from tables.attributes cimport record_size
from tables.graph cimport NodeRef
from tables.rows cimport EntityNumber, EntityRef, FileRef, OutNumber


cdef enum:
    FEW = 16                    # most numbers that `sort_numbers` sorts without qsort


cdef inline void sort_numbers(OutNumber* numbers, size_t count) noexcept nogil:
    """Sort numbers, ascending. There are few for most kernels."""
    cdef size_t i, j
    cdef OutNumber number
    if count > FEW:
        qsort(numbers, count, 4, compare_numbers)
        return
    for i in range(1, count):
        number = numbers[i]
        j = i
        while j > 0 and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


cdef inline bint find_reached(Info* info, EntityNumber kernel) noexcept nogil:
    """Fill `reached_infos`: OutRows of .nv.info.F of functions F that `kernel` inherits from.

    They ascend, and that of the kernel itself may be among them. False without memory.
    """
    cdef size_t depth = 0       # number of nodes in `stack`
    cdef NodeRef node, to
    cdef uint32_t j
    cdef OutNumber* row
    info.reached_infos.count = 0
    if info.contributors.count == 0:
        return True
    if info.live_kernels == 1:
        # A lone kernel inherits from every live function.
        return vec_append(&info.reached_infos, info.contributors.data, info.contributors.count)
    info.walk += 1
    info.stamp[kernel] = info.walk
    info.stack[0] = <NodeRef>kernel
    depth = 1
    while depth:
        depth -= 1
        node = info.stack[depth]
        if (node < info.merged.entity_count and info.contributes[<EntityRef>node]
                and info.info_out[<EntityRef>node] >= 0):
            row = <OutNumber*>vec_push(&info.reached_infos)
            if row == NULL:
                return False
            row[0] = info.info_out[<EntityRef>node]
            prefetch(&info.placed.outs[row[0]].entity)
            prefetch(&info.merged.functions[<EntityRef>node])
        for j in range(info.graph.start[node], info.graph.start[node + 1]):
            to = info.graph.edges[j]
            if info.stamp[to] != info.walk:
                info.stamp[to] = info.walk
                info.stack[depth] = to
                depth += 1
    sort_numbers(<OutNumber*>info.reached_infos.data, info.reached_infos.count)
    return True


cdef inline bint inherit(Info* info, EntityNumber kernel, uint64_t start) noexcept nogil:
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
    """Set CRS_STACK_SIZE to unbounded in the records from `start` on; False without memory."""
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


cdef inline bint put_unknown_bits(Info* info, EntityNumber entity, uint64_t start) noexcept nogil:
    """Append records of UNKNOWN_BITS to those of a function; False without memory.

    One is appended if the function has no record of its bits from `start` on, and one more for each
    of its aliases: an alias shares the function's list, but counts as a function without a record.
    """
    cdef uint32_t count = (info.aliases[entity]
                           + (find_own_record(info, start, info.unknown_bits) < 0))
    cdef uint32_t _i
    for _i in range(count):
        if not put_value(info, info.unknown_bits, UNKNOWN_BITS):
            return False
    return True


cdef inline bint inherit_in_turn(Info* info, EntityNumber kernel, uint64_t start) noexcept nogil:
    """Join reached functions' records, one by one, with a kernel's in a link with several kernels.

    The kernel's records begin at `start` of the blob. False without memory.
    """
    cdef RecordWalk walk
    begin_walk(&walk, kernel)
    while next_record(info, &walk):
        if walk.data == NULL:
            join_value(info, find_own_record(info, start, walk.attribute), walk.attribute,
                       walk.value)
        elif is_cta_group(walk.attribute) and is_excluded(cta_groups(info, start), walk.attribute):
            if not add_mixed_kernel(info, kernel):
                return False
        elif not inherit_record(info, start, walk.data, walk.source.file):
            return False
    drop_empty_lists(info, start)
    return True


cdef inline void join_value(Info* info, int64_t offset, uint8_t attribute,
                            uint16_t added) noexcept nogil:
    """Join `added` with the value in the kernel's record at `offset`; do nothing if that is -1."""
    cdef uint16_t value
    if offset >= 0:
        value = join_values(info.rules[attribute].how, load16(info.blob.data + offset + 2), added)
        memcpy(info.blob.data + offset + 2, &value, 2)


cdef inline bint inherit_record(Info* info, uint64_t start, const uint8_t* data,
                                FileRef file) noexcept nogil:
    """Join one record of a callee with the kernel's, or append one; False without memory.

    The kernel's records begin at `start` of the blob, `data` is the callee's record, and `file` the
    file whose symbol numbers it uses.
    """
    cdef uint8_t attribute = data[1], how = info.rules[data[1]].how
    cdef uint16_t value = load16(data + 2)
    cdef int64_t offset         # of the kernel's own record in the blob, or -1
    if how == JOIN_NOTHING or (is_list(how) and data[0] != EIFMT_SVAL):
        return True
    offset = find_own_record(info, start, attribute)
    if is_list(how):
        if offset < 0:
            offset = <int64_t>info.blob.count
            if not put_value(info, attribute, 0):
                return False
        return extend_list(info, <uint64_t>offset, data, file)
    if offset >= 0:
        join_value(info, offset, attribute, value)
        return True
    return put_value(info, attribute, 0 if how == JOIN_FLAG else value)


cdef inline bint extend_list(Info* info, uint64_t own, const uint8_t* data,
                             FileRef file) noexcept nogil:
    """Add the items of a callee's list, `data`, that the kernel's lacks; False without memory.

    `own` is the offset of the kernel's list in the blob. An item that the callee's list has twice
    is added twice, except for a list of words.
    """
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
