# What a kernel's records take over from the functions that it reaches: barriers, reserved shared
# memory, external functions and the third dimension of grids, and a mark for recursion
# (docs/format-notes.md).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from attributes cimport find_record, record_size
from elf64 cimport *
from graph cimport *
from rows cimport *
from vec cimport *
from inforecords cimport *


cdef inline int by_number(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return -1 if x < y else x > y


cdef inline bint find_reached(Info* m, int32_t kernel) noexcept nogil:
    """`reached`: the functions the kernel reaches that give something, in section order."""
    cdef size_t depth = 0
    cdef uint32_t node, to, j
    cdef int32_t* row
    m.reached.count = 0
    if m.givers.count == 0:
        return True
    if m.live_kernels == 1:
        # A single kernel takes over from every live function.
        return vec_append(&m.reached, m.givers.data, m.givers.count)
    m.walk += 1
    m.stamp[kernel] = m.walk
    m.stack[0] = <uint32_t>kernel
    depth = 1
    while depth:
        depth -= 1
        node = m.stack[depth]
        if node < m.entity_count and m.gives[node] and m.info_out[node] >= 0:
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
    cdef uint8_t crs[8]
    cdef int64_t at
    cdef uint64_t offset
    cdef size_t i
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef int32_t function, turn
    if m.functions[kernel].stack == NO_STACK_BOUND:
        memset(crs, 0xff, 8)
        crs[0] = 4
        crs[1] = EIATTR_CRS_STACK_SIZE
        crs[2] = 4
        crs[3] = 0
        at = own_record(m, start, EIATTR_CRS_STACK_SIZE)
        if at >= 0:
            memcpy(m.blob.data + at, crs, 8)
        elif put(m, crs, 8) == NULL:
            return False
    if not find_reached(m, kernel):
        return False
    for turn in range(3 if m.live_kernels == 1 else 1):
        for i in range(m.reached.count):
            function = m.outs[(<int32_t*>m.reached.data)[i]].entity
            s = info_source(m, function)
            if function == kernel or s == NULL:
                continue
            offset = 0
            while offset < s.size:
                data = m.arena + s.offset + offset
                offset += record_size(data)
                if m.live_kernels == 1 and turn_of(data[1]) != turn:
                    continue
                if not inherit_record(m, start, data, s.file):
                    return False
    if m.live_kernels == 1 and not gather_externs(m, start):
        return False
    return drop_empty_externs(m, start)


cdef inline int32_t turn_of(uint8_t attribute) noexcept nogil:
    """A single kernel takes over by attribute, in three turns, not function by function."""
    if attribute == EIATTR_CTAIDZ_USED:
        return 0
    return 2 if attribute == EIATTR_NUM_MBARRIERS else 1


cdef inline bint inherit_record(Info* m, uint64_t start, const uint8_t* data,
                                uint32_t file) noexcept nogil:
    """Add to the kernel's records what one record of a callee in that file gives it."""
    cdef uint8_t attribute = data[1]
    cdef uint8_t empty[4]
    cdef int64_t at
    cdef uint16_t mine, theirs
    if attribute in (EIATTR_NUM_BARRIERS, EIATTR_NUM_MBARRIERS, EIATTR_RESERVED_SMEM_USED,
                     EIATTR_CTAIDZ_USED):
        at = own_record(m, start, attribute)
        theirs = load16(data + 2)
        if at < 0 and attribute == EIATTR_NUM_MBARRIERS and not theirs and m.live_kernels == 1:
            return True
        if at < 0:
            return put(m, data, record_size(data)) != NULL
        mine = load16(m.blob.data + at + 2)
        if attribute == EIATTR_NUM_BARRIERS and theirs > mine:
            memcpy(m.blob.data + at + 2, &theirs, 2)
        elif attribute == EIATTR_NUM_MBARRIERS:
            # 0xffff is a number that is not known.
            if mine != 0xffff:
                mine = <uint16_t>(mine + theirs) if theirs != 0xffff else 0xffff
                memcpy(m.blob.data + at + 2, &mine, 2)
    elif attribute == EIATTR_EXTERNS and data[0] == 4 and m.live_kernels > 1:
        if own_record(m, start, EIATTR_EXTERNS) < 0:
            empty[0] = 4
            empty[1] = EIATTR_EXTERNS
            empty[2] = empty[3] = 0
            if put(m, empty, 4) == NULL:
                return False
        return add_externs(m, start, data, file)
    return True


cdef inline bint gather_externs(Info* m, uint64_t start) noexcept nogil:
    """EXTERNS of a single kernel: those of every live function, newest first.

    The kernel's own record stays while the others add nothing to it; else one at the end
    replaces it.
    """
    cdef size_t i
    cdef const OutRow* out
    cdef const SectionRow* s
    cdef uint64_t at, place
    cdef int64_t own
    cdef uint32_t size
    cdef uint8_t head[4]
    m.externs.count = 0
    for i in range(m.out_count):
        out = &m.outs[i]
        if out.kind != K_TEXT or not m.gives[out.entity]:
            continue
        s = info_source(m, out.entity)
        at = 0
        while at < s.size:
            if not push_externs(m, m.arena + s.offset + at, s.file):
                return False
            at += record_size(m.arena + s.offset + at)
    size = <uint32_t>(4 * m.externs.count)
    own = own_record(m, start, EIATTR_EXTERNS)
    if size == 0 or size > 0xffff:
        return True
    if own >= 0:
        place = <uint64_t>own
        if record_size(m.blob.data + place) == 4 + size:
            return True
        cut_record(m, place)
    head[0] = 4
    head[1] = EIATTR_EXTERNS
    set_length(head, size)
    if put(m, head, 4) == NULL:
        return False
    for i in range(m.externs.count):
        if put(m, m.externs.data + 4 * (m.externs.count - 1 - i), 4) == NULL:
            return False
    return True


cdef inline bint push_externs(Info* m, const uint8_t* data, uint32_t file) noexcept nogil:
    """Append to `externs` what an EXTERNS record adds."""
    cdef uint32_t i, symbol
    cdef uint32_t* row
    cdef size_t j
    if data[0] != 4 or data[1] != EIATTR_EXTERNS:
        return True
    for i in range((record_size(data) - 4) // 4):
        symbol = external(m, file, load32(data + 4 + 4 * i))
        row = <uint32_t*>m.externs.data
        j = 0
        while j < m.externs.count and row[j] != symbol:
            j += 1
        if symbol and j == m.externs.count:
            row = <uint32_t*>vec_push(&m.externs)
            if row == NULL:
                return False
            row[0] = symbol
    return True


cdef inline bint add_externs(Info* m, uint64_t start, const uint8_t* data,
                             uint32_t file) noexcept nogil:
    cdef uint64_t at = <uint64_t>own_record(m, start, EIATTR_EXTERNS), end, tail
    cdef uint32_t i, j, symbol, length
    cdef bint known
    for i in range((record_size(data) - 4) // 4):
        symbol = external(m, file, load32(data + 4 + 4 * i))
        if symbol == 0:
            continue
        length = record_size(m.blob.data + at) - 4
        known = False
        for j in range(length // 4):
            if load32(m.blob.data + at + 4 + 4 * j) == symbol:
                known = True
        if known or length + 4 > 0xffff:
            continue
        end = at + 4 + length
        tail = m.blob.count - end
        if vec_extend(&m.blob, 4) == NULL:
            return False
        # Later records make room: the list grows in place.
        memmove(m.blob.data + end + 4, m.blob.data + end, tail)
        memcpy(m.blob.data + end, &symbol, 4)
        set_length(m.blob.data + at, length + 4)
    return True


cdef inline bint drop_empty_externs(Info* m, uint64_t start) noexcept nogil:
    cdef int64_t at = own_record(m, start, EIATTR_EXTERNS)
    if at >= 0 and m.blob.data[at] == 4 and record_size(m.blob.data + at) == 4:
        cut_record(m, <uint64_t>at)
    return True


cdef inline void cut_record(Info* m, uint64_t at) noexcept nogil:
    cdef uint64_t size = record_size(m.blob.data + at)
    m.blob.count -= size
    memmove(m.blob.data + at, m.blob.data + at + size, m.blob.count - at)
