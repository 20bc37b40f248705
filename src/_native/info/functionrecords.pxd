# .nv.info.F and .nv.merc.nv.info.F: the records of one function.
#
# From sm_100 on an input has two lists of a function: the mercury list and that of the machine code
# ("sass"). Both outputs have the order of the mercury list, reversed. In .nv.info.F the n-th record
# of an attribute is the n-th of the machine code's list, if that has so many. Further records of
# the machine code's list come after all others. For example:
#
#     mercury list      MAXREG_COUNT a, EXTERNS b
#     machine code's    MAXREG_COUNT c, EXIT_INSTR_OFFSETS d
#     .nv.info.F        EXTERNS b, MAXREG_COUNT c, then EXIT_INSTR_OFFSETS d
#     mercury output    EXTERNS b, MAXREG_COUNT a

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from attributetypes cimport (
    EIATTR_EXTERNS, EIATTR_KPARAM_INFO, EIATTR_MERCURY_FINALIZER_OPTIONS,
    EIATTR_MERCURY_ISA_VERSION, EIATTR_NVSAL_SW_WAR, EIATTR_PARAM_CBANK, EIFMT_HVAL, EIFMT_SVAL,
    FIRST_ISA_VERSION, JOIN_NUMBERS,
)
from base.elf64 cimport load32
from base.vector cimport vec_push
from info.inherit cimport inherit, mark_recursion, put_unknown_bits
from info.records cimport (
    Info, Record, append_bytes, entity_of, find_external, is_inheriting, make_barriers_record,
    section_symbol_of, set_length, set_record, source_of_info,
)
from rownumbers cimport NO_STACK_BOUND
from tables.attributes cimport find_record, record_size
from tables.rows cimport EntityNumber, FileSymbolRef, SectionNumber, SectionRow
from traits cimport TRAIT_EARLY_FILES, TRAIT_KEEPS_SHARED, TRAIT_MERCURY


cdef inline bint put_isa_version(Info* info, const SectionRow* source) noexcept nogil:
    """Append MERCURY_ISA_VERSION if the function's records, in `source`, have none.

    Objects from before 13.0 have none; nvlink gives them the version of 13.0. False without memory.
    """
    cdef uint16_t version = FIRST_ISA_VERSION
    cdef uint8_t record[4]
    if find_record(info.objects.arena + source.offset, source.size,
                   EIATTR_MERCURY_ISA_VERSION) != NULL:
        return True
    record[0] = EIFMT_HVAL
    record[1] = EIATTR_MERCURY_ISA_VERSION
    memcpy(record + 2, &version, 2)
    return append_bytes(info, record, 4) != NULL


cdef inline bint list_records(Info* info, const SectionRow* source) noexcept nogil:
    """List the records of one input section in `info.records`; False without memory."""
    cdef uint64_t offset = 0
    cdef Record* record
    info.records.count = 0
    while offset < source.size:
        record = <Record*>vec_push(&info.records)
        if record == NULL:
            return False
        set_record(record, info.objects.arena + source.offset + offset, source.file)
        offset += record.size
    return True


cdef inline void match_records(Info* info, const SectionRow* sass) noexcept nogil:
    """Set `twin` of each mercury record: for the n-th of an attribute the n-th of `sass`, or NULL.

    `sass` is the machine code's list. It is read at most once for each attribute in the mercury
    list.
    """
    cdef uint64_t cursor[256]       # by attribute: end in `sass` of the record found last
    cdef Record* record
    cdef size_t i
    cdef uint64_t offset
    cdef const uint8_t* data
    cdef uint8_t attribute
    for i in range(info.records.count):     # mostly less work than to clear all 256 elements
        cursor[(<const Record*>info.records.data)[i].data[1]] = 0
    for i in range(info.records.count):
        record = <Record*>info.records.data + i
        attribute = record.data[1]
        offset = cursor[attribute]
        while offset < sass.size:
            data = info.objects.arena + sass.offset + offset
            offset += record_size(data)
            if data[1] == attribute:
                record.twin = data
                break
        cursor[attribute] = offset


cdef inline bint is_record_omitted(Info* info, uint8_t attribute) noexcept nogil:
    """Return whether .nv.info.F omits inputs' records of an attribute.

    It omits those of closing records, which the link writes itself at the end of each function's
    list. It also omits NVSAL_SW_WAR where that no longer holds.
    """
    if (attribute == EIATTR_NVSAL_SW_WAR and info.objects.traits & TRAIT_MERCURY
            and info.objects.traits & TRAIT_KEEPS_SHARED):
        # The record describes code that the link has rewritten. Releases before 13.2 do not know
        # it, and keep it.
        return True
    return (info.closing_size
            and find_record(info.closing_records, info.closing_size, attribute) != NULL)


cdef inline bint put_record(Info* info, Record* record, bint keep_empty) noexcept nogil:
    """Append one record, with symbol numbers of the output; False without memory.

    An empty list of symbols or numbers is omitted, unless `keep_empty` is set: `inherit` may fill
    the list later. The machine code's record, `twin`, replaces the mercury record if there is one.
    """
    cdef const uint8_t* data = record.twin if record.twin != NULL else record.data
    cdef uint8_t* place
    cdef uint32_t symbol, index, i, count = 0
    cdef EntityNumber null_entity
    cdef uint8_t head[4]
    if data[0] == EIFMT_SVAL and data[1] == EIATTR_EXTERNS:
        memcpy(head, data, 4)
        place = append_bytes(info, head, 4)
        if place == NULL:
            return False
        index = <uint32_t>(info.blob.count - 4)     # where the record begins
        for i in range((record_size(data) - 4) // 4):
            symbol = find_external(info, record.file,
                                   <FileSymbolRef>load32(data + 4 + 4 * i))
            if symbol:
                if append_bytes(info, <const uint8_t*>&symbol, 4) == NULL:
                    return False
                count += 1
        if count == 0 and not keep_empty:
            info.blob.count -= 4
            return True
        set_length(info.blob.data + index, 4 * count)
        return True
    if (data[0] == EIFMT_SVAL and record_size(data) == 4
            and info.rules[data[1]].how == JOIN_NUMBERS and not keep_empty):
        return True
    place = append_bytes(info, data, record_size(data))
    if place == NULL:
        return False
    if data[0] == EIFMT_SVAL and data[1] == EIATTR_PARAM_CBANK:
        symbol = section_symbol_of(info, record.file, <FileSymbolRef>load32(data + 4))
        memcpy(place + 4, &symbol, 4)
    elif data[0] == EIFMT_SVAL and data[1] == EIATTR_KPARAM_INFO and load32(data + 4) == 0:
        # The record names the null symbol. Up to 12.9, some links make a function of that symbol.
        null_entity = entity_of(info, record.file, 0)
        if null_entity >= 0:
            memcpy(place + 4, &info.placed.symbol_index[null_entity], 4)
    return True


cdef inline bint put_sass_only(Info* info, const SectionRow* sass) noexcept nogil:
    """Append records of `sass` that the mercury list lacks and the link keeps, in input order.

    `sass` is the machine code's list, `info.records` the mercury list. False without memory.
    """
    cdef Record* records = <Record*>info.records.data
    cdef Record record
    cdef uint64_t offset = 0
    cdef uint32_t remaining[256]    # by attribute: mercury records not matched yet
    cdef size_t i
    memset(remaining, 0, sizeof(remaining))
    for i in range(info.records.count):
        remaining[records[i].data[1]] += 1
    while offset < sass.size:
        set_record(&record, info.objects.arena + sass.offset + offset, sass.file)
        offset += record.size
        if remaining[record.data[1]]:
            remaining[record.data[1]] -= 1
        elif not is_record_omitted(info, record.data[1]) and not put_record(info, &record, False):
            return False
    return True


cdef inline bint emit_function_info(Info* info, EntityNumber entity, bint mercury) noexcept nogil:
    """Append one function's records; with `mercury` those of its .nv.merc.nv.info.F.

    False without memory.
    """
    cdef SectionNumber merc_info = info.merged.functions[entity].merc_info
    cdef const SectionRow* source = source_of_info(info, entity)
    cdef const SectionRow* sass = NULL      # the machine code's list
    cdef uint64_t start                     # offset in the blob of the function's records
    cdef size_t i
    cdef Record* record
    cdef bint inherits = info.objects.executable and is_inheriting(info, entity)
    cdef uint8_t barriers[4]
    if info.merged.functions[entity].info >= 0:
        sass = &info.objects.sections[info.merged.functions[entity].info]
    if source == NULL:
        return not inherits or inherit(info, entity, info.blob.count)
    if not list_records(info, source):
        return False
    if not mercury and merc_info >= 0 and sass != NULL:
        match_records(info, sass)
    start = info.blob.count
    if (info.objects.traits & TRAIT_MERCURY and not info.objects.traits & TRAIT_EARLY_FILES
            and not put_isa_version(info, source)):
        return False
    for i in range(info.records.count):     # in reverse order
        record = <Record*>info.records.data + (info.records.count - 1 - i)
        if not mercury and merc_info >= 0 and record.data[1] == EIATTR_MERCURY_FINALIZER_OPTIONS:
            continue
        if not mercury and is_record_omitted(info, record.data[1]):
            continue
        if (info.objects.executable and info.rules[record.data[1]].how == JOIN_NUMBERS
                and not inherits):
            continue
        if not put_record(info, record, inherits):
            return False
    if make_barriers_record(info, source, barriers) and append_bytes(info, barriers, 4) == NULL:
        return False
    if (inherits and info.merged.functions[entity].stack == NO_STACK_BOUND
            and not mark_recursion(info, start)):
        return False
    if info.objects.executable and info.unknown_bits and not put_unknown_bits(info, entity, start):
        return False
    if inherits and not inherit(info, entity, start):
        return False
    if not mercury and merc_info >= 0 and sass != NULL:
        return put_sass_only(info, sass)
    return True
