# What a kernel's records take over from the functions that it reaches: one rule per attribute
# (pylink/facts/inheritance.py), and a mark for recursion (docs/format-notes.md).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from tables.attributes cimport find_record, record_size
from attributetypes cimport (
    EIATTR_CRS_STACK_SIZE, EIATTR_TCGEN05_1CTA_USED, EIATTR_TCGEN05_2CTA_USED, JOIN_COUNT,
    JOIN_FLAG, JOIN_LAST, JOIN_MARK, JOIN_MAXIMUM, JOIN_NOTHING, JOIN_NUMBERS, JOIN_OWN,
    JOIN_POSITIVE, JOIN_SUM, JOIN_SYMBOLS, JOIN_UNION, JOIN_WORDS,
)
from base.elf64 cimport load16, load32
from tables.kinds cimport is_function_info
from tables.rows cimport OutRow, SectionRow
from traits cimport TRAIT_EXTERNS_LAST
from base.vector cimport vec_append, vec_extend, vec_push
from info.records cimport Info, external, has_barriers, info_source, own_record, put, set_length

cdef enum:
    UNKNOWN_BITS = 0x8000       # of SPARSE_MMA_MASK
    UNKNOWN_NUMBER = 0xffff     # of NUM_MBARRIERS


# The value of one attribute that the only live kernel inherits.
ctypedef struct Gathered:
    bint found
    uint16_t value


cdef inline int by_number(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return -1 if x < y else x > y


cdef inline bint find_reached(Info* m, int32_t kernel) noexcept nogil:
    """`reached`: the functions the kernel reaches that give something, in section order."""
    cdef size_t depth = 0
    cdef uint32_t node, to, j
    cdef int32_t* row
    m.reached.count = 0
    if m.contributors.count == 0:
        return True
    if m.live_kernels == 1:
        # A single kernel takes over from every live function.
        return vec_append(&m.reached, m.contributors.data, m.contributors.count)
    m.walk += 1
    m.stamp[kernel] = m.walk
    m.stack[0] = <uint32_t>kernel
    depth = 1
    while depth:
        depth -= 1
        node = m.stack[depth]
        if node < m.merged.entity_count and m.contributes[node] and m.info_out[node] >= 0:
            row = <int32_t*>vec_push(&m.reached)
            if row == NULL:
                return False
            row[0] = m.info_out[node]
        for j in range(m.graph.start[node], m.graph.start[node + 1]):
            to = m.graph.edges[j]
            if m.stamp[to] != m.walk:
                m.stamp[to] = m.walk
                m.stack[depth] = to
                depth += 1
    qsort(m.reached.data, m.reached.count, 4, by_number)
    return True


cdef inline bint inherit(Info* m, int32_t kernel, uint64_t start) noexcept nogil:
    """Add to the kernel's records, which begin at `start`, what it takes from its callees."""
    if not find_reached(m, kernel):
        return False
    if m.live_kernels == 1:
        return inherit_alone(m, kernel, start)
    return inherit_in_turn(m, kernel, start)


cdef inline bint mark_recursion(Info* m, uint64_t start) noexcept nogil:
    cdef uint8_t crs[8]
    cdef int64_t at = own_record(m, start, EIATTR_CRS_STACK_SIZE)
    memset(crs, 0xff, 8)
    crs[0] = 4
    crs[1] = EIATTR_CRS_STACK_SIZE
    crs[2] = 4
    crs[3] = 0
    if at < 0:
        return put(m, crs, 8) != NULL
    memcpy(m.blob.data + at, crs, 8)
    return True


cdef inline bint put_unknown_bits(Info* m, int32_t e, uint64_t start) noexcept nogil:
    """A function that does not say which bits it uses, in a link in which another one does.

    No alias says so, and the record that it gets goes to the function's.
    """
    cdef uint32_t missing = m.aliases[e] + (own_record(m, start, m.unknown_bits) < 0), _i
    for _i in range(missing):
        if not put_value(m, m.unknown_bits, UNKNOWN_BITS):
            return False
    return True


cdef inline bint put_value(Info* m, uint8_t attribute, uint16_t value) noexcept nogil:
    cdef uint8_t record[4]
    record[0] = m.rules[attribute].format
    record[1] = attribute
    memcpy(record + 2, &value, 2)
    return put(m, record, 4) != NULL


cdef inline uint16_t joined(uint8_t how, uint16_t mine, uint16_t theirs) noexcept nogil:
    """The value of two records; what a record without a value of its own gives is 0."""
    if how == JOIN_MAXIMUM or how == JOIN_POSITIVE or how == JOIN_OWN:
        return max(mine, theirs)
    if how == JOIN_SUM or how == JOIN_COUNT:
        if mine == UNKNOWN_NUMBER or theirs == UNKNOWN_NUMBER:
            return UNKNOWN_NUMBER
        return <uint16_t>(mine + theirs)
    if how == JOIN_UNION:
        return mine | theirs
    return theirs if how == JOIN_LAST else mine


# --- the records of the functions that a kernel reaches -------------------------------------------

# Where a walk over them is.
ctypedef struct Walk:
    int32_t kernel
    size_t next                     # of Info.reached
    int32_t function                # at hand
    const SectionRow* source        # the records of the function at hand; NULL before the first
    uint64_t offset                 # of the record after this one
    const uint8_t* data             # the record; NULL: the function does not say which bits it uses
    uint8_t attribute
    uint16_t value
    bint reported                       # of its barriers, which older code has no record of
    uint8_t barriers[4]


cdef inline void begin_walk(Walk* w, int32_t kernel) noexcept nogil:
    memset(w, 0, sizeof(Walk))
    w.kernel = kernel


cdef inline bint next_record(Info* m, Walk* w) noexcept nogil:
    """Go to the next record, function by function; False after the last one.

    A function without a record of the bits that it uses, or with an alias, which has none, ends
    with one that says so.
    """
    cdef int32_t function
    cdef bint silent
    while True:
        if w.source != NULL and w.offset < w.source.size:
            w.data = m.objects.arena + w.source.offset + w.offset
            w.offset += record_size(w.data)
            w.attribute = w.data[1]
            w.value = load16(w.data + 2)
            return True
        if w.source != NULL and not w.reported:
            w.reported = True
            if has_barriers(m, w.source, w.barriers):
                w.data = w.barriers
                w.attribute = w.data[1]
                w.value = load16(w.data + 2)
                return True
        if w.source != NULL:
            silent = m.unknown_bits and (m.aliases[w.function] or find_record(
                m.objects.arena + w.source.offset, w.source.size, m.unknown_bits) == NULL)
            w.source = NULL
            if silent:
                w.data = NULL
                w.attribute = m.unknown_bits
                w.value = UNKNOWN_BITS
                return True
        if w.next == m.reached.count:
            return False
        function = m.placed.outs[(<int32_t*>m.reached.data)[w.next]].entity
        w.next += 1
        if function != w.kernel:
            w.function = function
            w.source = info_source(m, function)
            w.offset = 0
            w.reported = False


# --- two kernels and more: each takes over function by function, record by record ----------------


cdef inline bint inherit_in_turn(Info* m, int32_t kernel, uint64_t start) noexcept nogil:
    cdef Walk walk
    begin_walk(&walk, kernel)
    while next_record(m, &walk):
        if walk.data == NULL:
            join_value(m, start, walk.attribute, walk.value)
        elif is_cta_group(walk.attribute) and excludes(cta_groups(m, start), walk.attribute):
            if not note_mixed(m, kernel):
                return False
        elif not inherit_record(m, start, walk.data, walk.source.file):
            return False
    drop_empty_lists(m, start)
    return True


cdef inline void join_value(Info* m, uint64_t start, uint8_t attribute,
                            uint16_t theirs) noexcept nogil:
    """Join the value with that of the kernel's own record."""
    cdef int64_t at = own_record(m, start, attribute)
    cdef uint16_t value
    if at >= 0:
        value = joined(m.rules[attribute].how, load16(m.blob.data + at + 2), theirs)
        memcpy(m.blob.data + at + 2, &value, 2)


cdef inline bint inherit_record(Info* m, uint64_t start, const uint8_t* data,
                                uint32_t file) noexcept nogil:
    """Add to the kernel's records what one record of a callee in that file gives it."""
    cdef uint8_t attribute = data[1], how = m.rules[data[1]].how
    cdef uint16_t value = load16(data + 2)
    if how == JOIN_NOTHING:
        return True
    if is_list(how):
        if data[0] != 4:
            return True
        if own_record(m, start, attribute) < 0 and not put_value(m, attribute, 0):
            return False
        return extend_list(m, start, data, file)
    if own_record(m, start, attribute) >= 0:
        join_value(m, start, attribute, value)
        return True
    return put_value(m, attribute, 0 if how == JOIN_FLAG else value)


cdef inline bint is_list(uint8_t how) noexcept nogil:
    return how == JOIN_SYMBOLS or how == JOIN_NUMBERS or how == JOIN_WORDS


cdef inline bint is_cta_group(uint8_t attribute) noexcept nogil:
    return attribute == EIATTR_TCGEN05_1CTA_USED or attribute == EIATTR_TCGEN05_2CTA_USED


cdef inline uint8_t cta_groups(Info* m, uint64_t start) noexcept nogil:
    """How the kernel's records say that it works: bit 0 by single CTAs, bit 1 by pairs."""
    return <uint8_t>((own_record(m, start, EIATTR_TCGEN05_1CTA_USED) >= 0)
                     | (own_record(m, start, EIATTR_TCGEN05_2CTA_USED) >= 0) << 1)


cdef inline bint excludes(uint8_t groups, uint8_t attribute) noexcept nogil:
    """Whether a kernel that has only the other one of two attributes cannot take over this one."""
    return ((attribute == EIATTR_TCGEN05_1CTA_USED and groups == 2)
            or (attribute == EIATTR_TCGEN05_2CTA_USED and groups == 1))


cdef inline bint note_mixed(Info* m, int32_t kernel) noexcept nogil:
    cdef int32_t* row = <int32_t*>vec_push(&m.mixed)
    if row == NULL:
        return False
    row[0] = kernel
    return True


cdef inline uint32_t listed_item(Info* m, const uint8_t* data, uint32_t file, uint32_t i,
                                 bint* listed) noexcept nogil:
    """Item `i` of a list as the output has it; `listed` says whether it does."""
    cdef uint32_t item = load32(data + 4 + 4 * i)
    listed[0] = True
    if m.rules[data[1]].how == JOIN_SYMBOLS:
        item = external(m, file, item)
        listed[0] = item != 0
    return item


cdef inline bint extend_list(Info* m, uint64_t start, const uint8_t* data,
                             uint32_t file) noexcept nogil:
    """Add the items of a callee's list that the kernel's lacks; one of them may come twice."""
    cdef uint64_t at = <uint64_t>own_record(m, start, data[1]), end, tail
    cdef uint32_t before = (record_size(m.blob.data + at) - 4) // 4, i, j, item, length
    cdef bint listed = False, known, once = m.rules[data[1]].how == JOIN_WORDS
    for i in range((record_size(data) - 4) // 4):
        item = listed_item(m, data, file, i, &listed)
        if not listed:
            continue
        length = record_size(m.blob.data + at) - 4
        known = False
        for j in range(length // 4 if once else before):
            if load32(m.blob.data + at + 4 + 4 * j) == item:
                known = True
        if known or length + 4 > 0xffff:
            continue
        end = at + 4 + length
        tail = m.blob.count - end
        if vec_extend(&m.blob, 4) == NULL:
            return False
        # Later records make room: the list grows in place.
        memmove(m.blob.data + end + 4, m.blob.data + end, tail)
        memcpy(m.blob.data + end, &item, 4)
        set_length(m.blob.data + at, length + 4)
    return True


# --- a lone kernel: takes over from all live functions, attribute by attribute --------------------


cdef inline bint inherit_alone(Info* m, int32_t kernel, uint64_t start) noexcept nogil:
    cdef Gathered gathered[256]
    cdef uint8_t attribute, how
    cdef size_t i
    cdef int64_t at
    cdef uint8_t owned = cta_groups(m, start)
    gather_values(m, kernel, start, gathered)
    for i in range(m.turn_count):
        attribute = m.turns[i]
        how = m.rules[attribute].alone
        if is_list(how):
            if not gather_list(m, start, attribute):
                return False
        elif gathered[attribute].found and excludes(owned, attribute):
            if not note_mixed(m, kernel):
                return False
        elif gathered[attribute].found:
            if not gathered[attribute].value and (how == JOIN_POSITIVE or how == JOIN_COUNT):
                continue
            at = own_record(m, start, attribute)
            if at < 0:
                if not put_value(m, attribute, gathered[attribute].value):
                    return False
            elif how != JOIN_OWN and how != JOIN_FLAG and how != JOIN_MARK:
                memcpy(m.blob.data + at + 2, &gathered[attribute].value, 2)
    drop_empty_lists(m, start)
    return True


cdef inline void gather_values(Info* m, int32_t kernel, uint64_t start,
                               Gathered* gathered) noexcept nogil:
    """What all functions together give, the kernel's own records first: one pass over all."""
    cdef size_t i
    cdef int64_t at
    cdef Walk walk
    memset(gathered, 0, 256 * sizeof(Gathered))
    for i in range(m.turn_count):
        at = own_record(m, start, m.turns[i])
        if at >= 0:
            gathered[m.turns[i]].value = load16(m.blob.data + at + 2)
    begin_walk(&walk, kernel)
    while next_record(m, &walk):
        gather(m, &gathered[walk.attribute], walk.attribute, walk.value)


cdef inline void gather(Info* m, Gathered* gathered, uint8_t attribute,
                        uint16_t value) noexcept nogil:
    gathered.found = True
    gathered.value = joined(m.rules[attribute].alone, gathered.value, value)


cdef inline bint find_walked(Info* m) noexcept nogil:
    """`walked`: the records of live functions that give something, in the order of the input."""
    cdef size_t i
    cdef int32_t* row
    cdef const OutRow* out
    for i in range(m.placed.out_count):
        out = &m.placed.outs[i]
        if is_function_info(out.kind) and m.contributes[out.entity]:
            row = <int32_t*>vec_push(&m.walked)
            if row == NULL:
                return False
            row[0] = <int32_t>(info_source(m, out.entity) - m.objects.sections)
    qsort(m.walked.data, m.walked.count, 4, by_number)
    return True


cdef inline bint gather_list(Info* m, uint64_t start, uint8_t attribute) noexcept nogil:
    """The list of a lone kernel: that of every live function, in the order of the input.

    Up to 13.1 symbols go to the front. The kernel's own record stays while the others add nothing
    to it; else one at the end replaces it.
    """
    cdef size_t i, next_
    cdef bint forward = (m.rules[attribute].alone != JOIN_SYMBOLS
                         or m.objects.traits & TRAIT_EXTERNS_LAST != 0)
    cdef const SectionRow* s
    cdef uint64_t at, place
    cdef int64_t own
    cdef uint32_t size
    cdef uint8_t head[4]
    m.listed.count = 0
    if not m.walked.count and not find_walked(m):
        return False
    for i in range(m.walked.count):
        s = &m.objects.sections[(<int32_t*>m.walked.data)[i]]
        at = 0
        while at < s.size:
            if (m.objects.arena[s.offset + at + 1] == attribute
                    and not push_items(m, m.objects.arena + s.offset + at, s.file)):
                return False
            at += record_size(m.objects.arena + s.offset + at)
    size = <uint32_t>(4 * m.listed.count)
    own = own_record(m, start, attribute)
    if size == 0 or size > 0xffff:
        return True
    if own >= 0:
        place = <uint64_t>own
        if record_size(m.blob.data + place) == 4 + size:
            return True
        cut_record(m, place)
    head[0] = 4
    head[1] = attribute
    set_length(head, size)
    if put(m, head, 4) == NULL:
        return False
    for i in range(m.listed.count):
        next_ = i if forward else m.listed.count - 1 - i
        if put(m, m.listed.data + 4 * next_, 4) == NULL:
            return False
    return True


cdef inline bint push_items(Info* m, const uint8_t* data, uint32_t file) noexcept nogil:
    """Append to `listed` what a record adds."""
    cdef uint32_t i, item
    cdef uint32_t* row
    cdef size_t j
    cdef bint listed = False
    if data[0] != 4:
        return True
    for i in range((record_size(data) - 4) // 4):
        item = listed_item(m, data, file, i, &listed)
        row = <uint32_t*>m.listed.data
        j = 0
        while j < m.listed.count and row[j] != item:
            j += 1
        if listed and j == m.listed.count:
            row = <uint32_t*>vec_push(&m.listed)
            if row == NULL:
                return False
            row[0] = item
    return True


cdef inline bint has_empty_list(Info* m, uint64_t start) noexcept nogil:
    cdef uint64_t at = start
    cdef const uint8_t* data
    while at < m.blob.count:
        data = m.blob.data + at
        at += record_size(data)
        if data[0] == 4 and record_size(data) == 4 and m.rules[data[1]].format == 4:
            return True
    return False


cdef inline void drop_empty_lists(Info* m, uint64_t start) noexcept nogil:
    """Cut the kernel's lists that nothing was added to, the first of each attribute."""
    cdef size_t i
    cdef int64_t at
    if not has_empty_list(m, start):
        return
    for i in range(m.turn_count):
        if m.rules[m.turns[i]].format != 4:
            continue
        at = own_record(m, start, m.turns[i])
        if at >= 0 and m.blob.data[at] == 4 and record_size(m.blob.data + at) == 4:
            cut_record(m, <uint64_t>at)


cdef inline void cut_record(Info* m, uint64_t at) noexcept nogil:
    cdef uint64_t size = record_size(m.blob.data + at)
    m.blob.count -= size
    memmove(m.blob.data + at, m.blob.data + at + size, m.blob.count - at)
