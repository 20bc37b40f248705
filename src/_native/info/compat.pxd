# The attributes of .nv.compat: those of all inputs become one list. Rows of pylink/facts/compat.py
# say how two values of an attribute join. Records have the form of EIATTR records
# (info/records.pxd), with attribute numbers of their own.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from attributetypes cimport (
    COMPAT_COMMON, COMPAT_COUNTS, COMPAT_DROPPED, COMPAT_EQUAL, COMPAT_FIELDS, COMPAT_FIXED,
    COMPAT_FLAGS, COMPAT_LARGEST, COMPAT_LATE, COMPAT_REQUIRED, COMPAT_TARGET, COMPAT_WEAKEST,
    EIFMT_SVAL, FASTPATH_CODE,
)
from base.elf64 cimport load16
from base.scratch cimport Scratch, scratch_vector
from base.vector cimport Vec, vec_append
from tables.attributes cimport find_record, record_size


cdef enum:
    UNKNOWN_VALUE = 0xffff      # value of an attribute with COMPAT_REQUIRED: not known

# The rules for one attribute of .nv.compat: a row of pylink/facts/compat.py.
cdef packed struct CompatRow:
    uint8_t attribute
    uint8_t format              # EIFMT_ number
    uint8_t how                 # how values join: COMPAT_FIRST to COMPAT_FIXED
    uint8_t flags               # further rules: bits COMPAT_DROPPED to COMPAT_LATE
    uint16_t value              # COMPAT_COUNTS: of inputs without it; COMPAT_FIXED: of the output


# The attributes of the inputs read so far.
ctypedef struct Compat:
    const CompatRow* rows
    size_t row_count
    const CompatRow* row_of[256]    # by attribute: its row, or NULL
    Vec records                     # uint8_t: records of the output
    Vec late                        # uint8_t: records that follow `records` (COMPAT_LATE)
    bint missing[256]               # by attribute: the .nv.compat of some input lacks it
    bint has_first                  # the .nv.compat of the first input with one was read


cdef inline void compat_init(Compat* compat, const CompatRow* rows, size_t count,
                             Scratch* scratch) noexcept nogil:
    """Start an empty list of attributes with the rules of `rows`."""
    cdef size_t i
    memset(compat, 0, sizeof(Compat))
    compat.rows = rows
    compat.row_count = count
    for i in range(count):
        compat.row_of[rows[i].attribute] = &rows[i]
    scratch_vector(scratch, &compat.records, 1)
    scratch_vector(scratch, &compat.late, 1)


cdef inline uint8_t* compat_find(Compat* compat, uint8_t attribute) noexcept nogil:
    """Return the output's record of an attribute, as joined so far; NULL without one."""
    cdef const uint8_t* record = find_record(compat.records.data, compat.records.count, attribute)
    if record == NULL:
        record = find_record(compat.late.data, compat.late.count, attribute)
    return <uint8_t*>record


cdef inline uint8_t weaker_promise(uint8_t a, uint8_t b) noexcept nogil:
    """Return the weaker of two promises (COMPAT_WEAKEST): 0 is none, 2 is weaker than 1, and so on.
    """
    return 0 if a == 0 or b == 0 else max(a, b)


cdef inline void compat_combine(uint8_t* own, const uint8_t* added, uint8_t how) noexcept nogil:
    """Join the value of the record `added` with that of `own`, by the rule `how`.

    `own` stays if the records have different formats, or a format that the rule is not for. With
    COMPAT_COMMON it also stays if they have different sizes.
    """
    cdef uint64_t i
    if own[0] != added[0] or (own[0] == EIFMT_SVAL) != (how == COMPAT_COMMON):
        return
    if how == COMPAT_WEAKEST:
        own[2] = weaker_promise(own[2], added[2])
    elif how == COMPAT_FLAGS:
        own[2] |= added[2]
    elif how == COMPAT_EQUAL:
        own[2] = own[2] if own[2] == added[2] else 1
    elif how == COMPAT_LARGEST:
        if load16(own + 2) < load16(added + 2):
            memcpy(own + 2, added + 2, 2)
    elif how == COMPAT_FIELDS:
        # Two fields of two bits.
        own[2] = (weaker_promise(own[2] & 3, added[2] & 3)
                  | weaker_promise(own[2] >> 2 & 3, added[2] >> 2 & 3) << 2)
    elif how == COMPAT_COMMON and record_size(added) == record_size(own):
        for i in range(4, record_size(own)):
            own[i] &= added[i]


cdef inline bint compat_read(Compat* compat, const uint8_t* data, uint64_t size,
                             bint has_code) noexcept nogil:
    """Join the attributes of one input with those so far; False without memory.

    `data` and `size` are its .nv.compat; inputs without one do not count. `has_code` says whether
    the input has code. Without code its own bits of COMPAT_COMMON count as all set.
    """
    cdef uint64_t offset = 0, i
    cdef uint8_t seen[256]
    cdef const CompatRow* row
    cdef bint is_first = not compat.has_first
    compat.has_first = True
    memset(seen, 0, sizeof(seen))
    while size - offset >= 4 and record_size(data + offset) <= size - offset:
        if not compat_record(compat, data + offset, is_first, has_code):
            return False
        seen[data[offset + 1]] = True
        offset += record_size(data + offset)
    for i in range(compat.row_count):
        row = &compat.rows[i]
        if seen[row.attribute]:
            continue
        compat.missing[row.attribute] = True
        if row.flags & COMPAT_COUNTS and not compat_default(compat, row, has_code):
            return False
    return True


cdef inline bint compat_record(Compat* compat, const uint8_t* data, bint is_first,
                               bint has_code) noexcept nogil:
    """Add one record of an input, or join it with the output's record of the same attribute.

    An attribute without a row of rules keeps its first record. `is_first`: the input is the first.
    `has_code`: it has code. False without memory.
    """
    cdef const CompatRow* row = compat.row_of[data[1]]
    cdef uint8_t* own = compat_find(compat, data[1])
    cdef Vec* list = &compat.records
    cdef uint32_t size = record_size(data)
    if row == NULL:
        return own != NULL or vec_append(list, data, size)
    # Only the first input's attribute of the target is used; else `compat_finish` adds it in front.
    if row.flags & COMPAT_DROPPED or (row.how == COMPAT_TARGET and not is_first):
        return True
    if own != NULL:
        if row.how != COMPAT_COMMON or has_code:
            compat_combine(own, data, row.how)
        return True
    if row.flags & COMPAT_LATE and not is_first:
        list = &compat.late
    if not vec_append(list, data, size):
        return False
    if row.how == COMPAT_COMMON and data[0] == EIFMT_SVAL and not has_code:
        memset(list.data + list.count - size + 4, 0xff, size - 4)
    return True


cdef inline bint compat_default(Compat* compat, const CompatRow* row, bint has_code) noexcept nogil:
    """Join the row's value for an input that lacks the attribute; False without memory.

    For COMPAT_COMMON that value is all bits, but without FASTPATH_CODE if `has_code` is set:
    whether the output has this bit follows from the instructions (`compat_finish`).
    """
    cdef uint8_t record[12]     # 4 and, for COMPAT_COMMON, 8 bytes of bits
    cdef uint8_t* own = compat_find(compat, row.attribute)
    record[0] = row.format
    record[1] = row.attribute
    memcpy(record + 2, &row.value, 2)
    if row.how == COMPAT_COMMON:
        record[2] = 8
        memset(record + 4, 0xff, 8)
        record[4] = 0xff & ~FASTPATH_CODE if has_code else 0xff
    if own == NULL:
        return vec_append(&compat.late, record, record_size(record))
    compat_combine(own, record, row.how)
    return True


cdef inline bint compat_finish(Compat* compat, bint arch_specific, uint64_t features,
                               uint8_t fastpath, Vec* out) noexcept nogil:
    """Append the output's records to `out`; False without memory.

    The target's attribute comes first unless the first input has it; it says whether the target's
    name ends in `a` (`arch_specific`). An attribute with COMPAT_COMMON gets the bits of `fastpath`,
    then keeps only those of `features`.
    """
    cdef size_t i
    cdef uint64_t offset = 0
    cdef uint8_t* record
    cdef uint8_t head[4]
    cdef const CompatRow* row
    for i in range(compat.row_count):
        row = &compat.rows[i]
        record = compat_find(compat, row.attribute)
        if row.how == COMPAT_TARGET and record == NULL:
            head[0] = row.format
            head[1] = row.attribute
            head[2] = arch_specific
            head[3] = 0
            if not vec_append(out, head, 4):
                return False
        elif row.how == COMPAT_TARGET and record[0] != EIFMT_SVAL:
            record[2] = arch_specific
        elif row.how == COMPAT_FIXED and record != NULL and record[0] != EIFMT_SVAL:
            memcpy(record + 2, &row.value, 2)
        elif row.how == COMPAT_COMMON and record != NULL and record[0] == EIFMT_SVAL:
            mask_features(record, features, fastpath)
    while offset < compat.records.count:
        record = compat.records.data + offset
        offset += record_size(record)
        if (not is_missing_attribute(compat, record)
                and not vec_append(out, record, record_size(record))):
            return False
    for i in range(compat.row_count):
        record = <uint8_t*>find_record(compat.late.data, compat.late.count,
                                       compat.rows[i].attribute)
        if (record != NULL and not is_missing_attribute(compat, record)
                and not vec_append(out, record, record_size(record))):
            return False
    return True


cdef inline bint is_missing_attribute(Compat* compat, const uint8_t* record) noexcept nogil:
    """Return whether a record is omitted by COMPAT_REQUIRED: an input lacks it, or it is unknown.

    It is unknown if its joined value is UNKNOWN_VALUE.
    """
    cdef const CompatRow* row = compat.row_of[record[1]]
    if row == NULL or not row.flags & COMPAT_REQUIRED:
        return False
    return compat.missing[record[1]] or load16(record + 2) == UNKNOWN_VALUE


cdef inline void mask_features(uint8_t* record, uint64_t features, uint8_t fastpath) noexcept nogil:
    """Set the bits of `fastpath` in a record's first byte, then clear all bits not in `features`.

    `features` are the bits of the first 8 bytes; later ones stay.
    """
    cdef uint64_t i
    if record[2] > 0:
        record[4] |= fastpath
    for i in range(4, min(4 + record[2], 12)):
        record[i] &= features >> 8 * (i - 4) & 0xff
