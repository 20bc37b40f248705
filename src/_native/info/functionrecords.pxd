# .nv.info.F and its twin: the records of one function.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from attributetypes cimport (
    EIATTR_EXTERNS, EIATTR_KPARAM_INFO, EIATTR_MERCURY_FINALIZER_OPTIONS,
    EIATTR_MERCURY_ISA_VERSION, EIATTR_NVSAL_SW_WAR, EIATTR_PARAM_CBANK, FIRST_ISA_VERSION,
    JOIN_NUMBERS,
)
from info.records cimport (
    Info, Record, entity_of, external, has_barriers, inherits, put, section_symbol, set_length,
    set_record,
)
from tables.rows cimport NO_STACK_BOUND, SectionRow
from traits cimport TRAIT_EARLY_FILES, TRAIT_KEEPS_SHARED, TRAIT_MERCURY
from tables.attributes cimport find_record, record_size
from info.inherit cimport inherit, mark_recursion, put_unknown_bits
from base.elf64 cimport load32
from base.vector cimport vec_push


cdef inline bint put_isa_version(Info* m, const SectionRow* s) noexcept nogil:
    """From sm_100 on functions of objects from before 13.0 get the version that those have."""
    cdef uint16_t version = FIRST_ISA_VERSION
    cdef uint8_t record[4]
    if find_record(m.objects.arena + s.offset, s.size, EIATTR_MERCURY_ISA_VERSION) != NULL:
        return True
    record[0] = 3
    record[1] = EIATTR_MERCURY_ISA_VERSION
    memcpy(record + 2, &version, 2)
    return put(m, record, 4) != NULL


cdef inline bint list_records(Info* m, const SectionRow* s) noexcept nogil:
    cdef uint64_t at = 0
    cdef Record* record
    m.records.count = 0
    while at < s.size:
        record = <Record*>vec_push(&m.records)
        if record == NULL:
            return False
        set_record(record, m.objects.arena + s.offset + at, s.file)
        at += record.size
    return True


cdef inline void match_records(Info* m, const SectionRow* sass) noexcept nogil:
    """Give each mercury record the machine code's: that of the same attribute and turn, if any.

    Linear: for each of the 256 attributes the machine code's list is read once.
    """
    cdef uint64_t cursor[256]
    cdef Record* record
    cdef size_t i
    cdef uint64_t at
    cdef const uint8_t* data
    cdef uint8_t attribute
    memset(cursor, 0, sizeof(cursor))
    for i in range(m.records.count):
        record = <Record*>m.records.data + i
        attribute = record.data[1]
        at = cursor[attribute]
        while at < sass.size:
            data = m.objects.arena + sass.offset + at
            at += record_size(data)
            if data[1] == attribute:
                record.twin = data
                break
        cursor[attribute] = at


cdef inline bint closes(Info* m, uint8_t attribute) noexcept nogil:
    """Whether the link writes the record anew, or omits it, whatever inputs say."""
    if (attribute == EIATTR_NVSAL_SW_WAR and m.objects.traits & TRAIT_MERCURY
            and m.objects.traits & TRAIT_KEEPS_SHARED):
        # It follows the code, which all has become that of the release. Releases before 13.2 do not
        # know it, and leave it as it is.
        return True
    return m.closing_size and find_record(m.closing, m.closing_size, attribute) != NULL


cdef inline bint put_record(Info* m, Record* record, bint keep_empty) noexcept nogil:
    """Append one record; an empty list goes, unless `keep_empty`: `inherit` may fill it."""
    cdef const uint8_t* data = record.twin if record.twin != NULL else record.data
    cdef uint8_t* place
    cdef uint32_t symbol, index, i, count = 0
    cdef int32_t at
    cdef uint8_t head[4]
    if data[0] == 4 and data[1] == EIATTR_EXTERNS:
        memcpy(head, data, 4)
        place = put(m, head, 4)
        if place == NULL:
            return False
        index = <uint32_t>(m.blob.count - 4)
        for i in range((record_size(data) - 4) // 4):
            symbol = external(m, record.file, load32(data + 4 + 4 * i))
            if symbol:
                if put(m, <const uint8_t*>&symbol, 4) == NULL:
                    return False
                count += 1
        if count == 0 and not keep_empty:
            m.blob.count -= 4
            return True
        set_length(m.blob.data + index, 4 * count)
        return True
    if (data[0] == 4 and record_size(data) == 4 and m.rules[data[1]].how == JOIN_NUMBERS
            and not keep_empty):
        return True
    place = put(m, data, record_size(data))
    if place == NULL:
        return False
    if data[0] == 4 and data[1] == EIATTR_PARAM_CBANK:
        symbol = section_symbol(m, record.file, load32(data + 4))
        memcpy(place + 4, &symbol, 4)
    elif data[0] == 4 and data[1] == EIATTR_KPARAM_INFO and load32(data + 4) == 0:
        # It names the null symbol, which stays that except for some releases and -g.
        at = entity_of(m, record.file, 0)
        if at >= 0:
            memcpy(place + 4, &m.placed.symbol_index[at], 4)
    return True


cdef inline bint put_sass_only(Info* m, const SectionRow* sass) noexcept nogil:
    """Records that the mercury list lacks, in input order."""
    cdef Record* records = <Record*>m.records.data
    cdef Record record
    cdef uint64_t at = 0
    cdef uint32_t rest[256]         # by attribute: records of the mercury list not yet met
    cdef size_t i
    memset(rest, 0, sizeof(rest))
    for i in range(m.records.count):
        rest[records[i].data[1]] += 1
    while at < sass.size:
        set_record(&record, m.objects.arena + sass.offset + at, sass.file)
        at += record.size
        if rest[record.data[1]]:
            rest[record.data[1]] -= 1
        elif not closes(m, record.data[1]) and not put_record(m, &record, False):
            return False
    return True


cdef inline bint emit_function_info(Info* m, int32_t e, bint mercury) noexcept nogil:
    """One function's records. `sass` lists what only the machine code's own list has."""
    cdef int32_t at = m.merged.functions[e].merc_info
    cdef const SectionRow* s = NULL
    cdef const SectionRow* sass = NULL
    cdef uint64_t start
    cdef size_t i
    cdef Record* record
    cdef bint kernel = m.objects.executable and inherits(m, e)
    cdef uint8_t barriers[4]
    if m.merged.functions[e].info >= 0:
        sass = &m.objects.sections[m.merged.functions[e].info]
    if at >= 0:
        s = &m.objects.sections[at]
    else:
        s = sass
    if s == NULL:
        return not kernel or inherit(m, e, m.blob.count)
    if not list_records(m, s):
        return False
    if not mercury and at >= 0 and sass != NULL:
        match_records(m, sass)
    start = m.blob.count
    if (m.objects.traits & TRAIT_MERCURY and not m.objects.traits & TRAIT_EARLY_FILES
            and not put_isa_version(m, s)):
        return False
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        if not mercury and at >= 0 and record.data[1] == EIATTR_MERCURY_FINALIZER_OPTIONS:
            continue
        if not mercury and closes(m, record.data[1]):
            continue
        if m.objects.executable and m.rules[record.data[1]].how == JOIN_NUMBERS and not kernel:
            continue
        if not put_record(m, record, kernel):
            return False
    if has_barriers(m, s, barriers) and put(m, barriers, 4) == NULL:
        return False
    if kernel and m.merged.functions[e].stack == NO_STACK_BOUND and not mark_recursion(m, start):
        return False
    if m.objects.executable and m.unknown_bits and not put_unknown_bits(m, e, start):
        return False
    if kernel and not inherit(m, e, start):
        return False
    if not mercury and at >= 0 and sass != NULL:
        return put_sass_only(m, sass)
    return True
