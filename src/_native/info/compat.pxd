# The attributes of .nv.compat: those of all inputs become one list.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tables.attributes cimport find_record, record_size
from attributetypes cimport (
    COMPAT_COMMON, COMPAT_COUNTS, COMPAT_DROPPED, COMPAT_EQUAL, COMPAT_FIELDS, COMPAT_FIXED,
    COMPAT_FLAGS, COMPAT_LARGEST, COMPAT_LATE, COMPAT_REQUIRED, COMPAT_TARGET, COMPAT_WEAKEST,
)
from base.elf64 cimport load16
from base.scratch cimport Scratch, scratch_vector
from base.vector cimport Vec, vec_append


cdef enum:
    FASTPATH_CODE = 8           # bit of attribute 0x0b that depends on the instructions

# A row of pylink/facts/compat.py.
cdef packed struct CompatRow:
    uint8_t attribute
    uint8_t format
    uint8_t how                 # COMPAT_FIRST and others
    uint8_t flags               # COMPAT_DROPPED and others
    uint16_t value


ctypedef struct Compat:
    const CompatRow* rows
    size_t row_count
    const CompatRow* row_of[256]    # by attribute, or NULL
    Vec records                 # bytes of the output
    Vec late                    # bytes of what stands after them
    bint missing[256]           # by attribute: some input has none
    bint opened                 # a section was read


cdef inline void compat_init(Compat* m, const CompatRow* rows, size_t count,
                             Scratch* scratch) noexcept nogil:
    cdef size_t i
    memset(m, 0, sizeof(Compat))
    m.rows = rows
    m.row_count = count
    for i in range(count):
        m.row_of[rows[i].attribute] = &rows[i]
    scratch_vector(scratch, &m.records, 1)
    scratch_vector(scratch, &m.late, 1)


cdef inline uint8_t* compat_find(Compat* m, uint8_t attribute) noexcept nogil:
    """The record so far, or NULL."""
    cdef const uint8_t* at = find_record(m.records.data, m.records.count, attribute)
    if at == NULL:
        at = find_record(m.late.data, m.late.count, attribute)
    return <uint8_t*>at


cdef inline uint8_t weaker(uint8_t a, uint8_t b) noexcept nogil:
    """0 means nothing is promised, which wins."""
    return 0 if a == 0 or b == 0 else max(a, b)


cdef inline void compat_combine(uint8_t* mine, const uint8_t* theirs, uint8_t how) noexcept nogil:
    cdef uint64_t i
    if mine[0] != theirs[0] or (mine[0] == 4) != (how == COMPAT_COMMON):
        return
    if how == COMPAT_WEAKEST:
        mine[2] = weaker(mine[2], theirs[2])
    elif how == COMPAT_FLAGS:
        mine[2] |= theirs[2]
    elif how == COMPAT_EQUAL:
        mine[2] = mine[2] if mine[2] == theirs[2] else 1
    elif how == COMPAT_LARGEST:
        if load16(mine + 2) < load16(theirs + 2):
            memcpy(mine + 2, theirs + 2, 2)
    elif how == COMPAT_FIELDS:
        mine[2] = (weaker(mine[2] & 3, theirs[2] & 3)
                   | weaker(mine[2] >> 2 & 3, theirs[2] >> 2 & 3) << 2)
    elif how == COMPAT_COMMON and record_size(theirs) == record_size(mine):
        for i in range(4, record_size(mine)):
            mine[i] &= theirs[i]


cdef inline bint compat_read(Compat* m, const uint8_t* data, uint64_t size,
                             bint has_code) noexcept nogil:
    """Join the attributes of one input; False without memory. One without code needs no features.
    """
    cdef uint64_t at = 0, i
    cdef uint8_t seen[256]
    cdef const CompatRow* row
    cdef bint first = not m.opened
    m.opened = True
    memset(seen, 0, sizeof(seen))
    while size - at >= 4 and record_size(data + at) <= size - at:
        if not compat_record(m, data + at, first, has_code):
            return False
        seen[data[at + 1]] = True
        at += record_size(data + at)
    for i in range(m.row_count):
        row = &m.rows[i]
        if seen[row.attribute]:
            continue
        m.missing[row.attribute] = True
        if row.flags & COMPAT_COUNTS and not compat_default(m, row, has_code):
            return False
    return True


cdef inline bint compat_record(Compat* m, const uint8_t* data, bint first,
                               bint has_code) noexcept nogil:
    cdef const CompatRow* row = m.row_of[data[1]]
    cdef uint8_t* mine = compat_find(m, data[1])
    cdef Vec* list = &m.records
    cdef uint32_t size = record_size(data)
    if row == NULL:
        return mine != NULL or vec_append(list, data, size)
    if row.flags & COMPAT_DROPPED or (row.how == COMPAT_TARGET and not first):
        return True             # the target's stands first where the first input has none
    if mine != NULL:
        if row.how != COMPAT_COMMON or has_code:
            compat_combine(mine, data, row.how)
        return True
    if row.flags & COMPAT_LATE and not first:
        list = &m.late
    if not vec_append(list, data, size):
        return False
    if row.how == COMPAT_COMMON and data[0] == 4 and not has_code:
        memset(list.data + list.count - size + 4, 0xff, size - 4)
    return True


cdef inline bint compat_default(Compat* m, const CompatRow* row, bint has_code) noexcept nogil:
    """What an input without the attribute counts as: the row's value, or all that needs no look."""
    cdef uint8_t record[12]
    cdef uint8_t* mine = compat_find(m, row.attribute)
    record[0] = row.format
    record[1] = row.attribute
    memcpy(record + 2, &row.value, 2)
    if row.how == COMPAT_COMMON:
        record[2] = 8
        memset(record + 4, 0xff, 8)
        record[4] = 0xff & ~FASTPATH_CODE if has_code else 0xff
    if mine == NULL:
        return vec_append(&m.late, record, record_size(record))
    compat_combine(mine, record, row.how)
    return True


cdef inline bint compat_finish(Compat* m, bint specific, uint64_t features, uint8_t fastpath,
                               Vec* out) noexcept nogil:
    """The list of the output in `out`: what the target says, then what all inputs together have."""
    cdef size_t i
    cdef uint64_t at = 0
    cdef uint8_t* record
    cdef uint8_t head[4]
    cdef const CompatRow* row
    for i in range(m.row_count):
        row = &m.rows[i]
        record = compat_find(m, row.attribute)
        if row.how == COMPAT_TARGET and (record == NULL or record[0] == 4):
            head[0] = row.format
            head[1] = row.attribute
            head[2] = specific
            head[3] = 0
            if record == NULL and not vec_append(out, head, 4):
                return False
        elif row.how == COMPAT_TARGET:
            record[2] = specific
        elif row.how == COMPAT_FIXED and record != NULL and record[0] != 4:
            memcpy(record + 2, &row.value, 2)
        elif row.how == COMPAT_COMMON and record != NULL and record[0] == 4:
            mask_features(record, features, fastpath)
    while at < m.records.count:
        record = m.records.data + at
        at += record_size(record)
        if not goes_missing(m, record) and not vec_append(out, record, record_size(record)):
            return False
    for i in range(m.row_count):
        record = <uint8_t*>find_record(m.late.data, m.late.count, m.rows[i].attribute)
        if (record != NULL and not goes_missing(m, record)
                and not vec_append(out, record, record_size(record))):
            return False
    return True


cdef inline bint goes_missing(Compat* m, const uint8_t* record) noexcept nogil:
    cdef const CompatRow* row = m.row_of[record[1]]
    if row == NULL or not row.flags & COMPAT_REQUIRED:
        return False
    return m.missing[record[1]] or load16(record + 2) == 0xffff


cdef inline void mask_features(uint8_t* record, uint64_t features, uint8_t fastpath) noexcept nogil:
    cdef uint64_t i
    if record[2] > 0:
        record[4] |= fastpath
    for i in range(4, min(4 + record[2], 12)):
        record[i] &= features >> 8 * (i - 4) & 0xff
