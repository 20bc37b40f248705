# EIATTR records: what `info.pyx` works on, and the reading and writing of single records.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted, and only
# then. Exceptions: `make_barriers_record` and `next_record`.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from attributetypes cimport EIATTR_NUM_BARRIERS
from base.vector cimport Vec, vec_extend
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from rownumbers cimport EF_DEFINED, EF_KERNEL, KEEPS_ALL
from sectionkinds cimport KIND
from tables.attributes cimport find_record, record_size
from tables.graph cimport CallGraph
from tables.rows cimport SectionRow
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_EARLY_FILES


# A record of an input, and the file whose symbol numbers it uses.
ctypedef struct Record:
    const uint8_t* data
    const uint8_t* twin     # for a mercury record, the machine code's record, or NULL
    uint32_t size
    uint32_t file


# A row of pylink/facts/inheritance.py.
cdef packed struct InheritRow:
    uint8_t attribute
    uint8_t format              # format of the record that a kernel gets
    uint8_t how                 # JOIN_*
    uint8_t alone               # JOIN_*, in a link with one kernel


ctypedef struct Info:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    CallGraph graph
    uint32_t* stamp                 # by node: the last walk that came here
    uint32_t walk
    uint32_t* stack
    int32_t* info_out               # by entity: its .nv.info.F OutRow, -1 without
    uint8_t* contributes            # by entity: has records that kernels take over
    uint32_t* aliases               # by entity: how many other names the function has
    uint32_t live_kernels
    Vec reached_infos               # int32_t: OutRow numbers of .nv.info.F, for one kernel
    Vec contributors                # int32_t: OutRow numbers of all functions that give
    Vec records
    Vec record_sections             # int32_t: SectionRow numbers of records, for one kernel
    Vec list_items                  # uint32_t: symbol indices or numbers, for one kernel
    Vec mixed_kernels               # int32_t: kernels for single CTAs and for pairs of them
    InheritRow rules[256]           # by attribute
    uint8_t rule_order[256]         # attributes in the order of the table of rules
    size_t rule_count
    uint8_t unknown_bits            # attribute whose absence means that bits are unknown, or 0
    const uint8_t* closing_records  # records that end those of each function
    uint32_t closing_size
    uint32_t preexit_offset         # offset of PREEXIT_USED's value in these; 0 if unused
    uint8_t* preexits               # by entity: its own code has the instruction

    Vec blob
    Vec spans                       # SpanRow
    size_t* next                    # the first row that no thread has begun with
    bint failed


cdef inline void set_rules(Info* info, const InheritRow* rows, size_t count) noexcept nogil:
    """Index the rules by attribute, and keep the order of their table."""
    cdef size_t i
    for i in range(count):
        info.rules[rows[i].attribute] = rows[i]
        info.rule_order[i & 0xff] = rows[i].attribute
    info.rule_count = count


cdef inline bint is_inheriting(Info* info, int32_t e) noexcept nogil:
    """Whether it is a kernel that takes over; the only one that was selected does so alone."""
    return (info.merged.entities[e].flags & EF_KERNEL
            and not info.merged.functions[e].keeps & KEEPS_ALL)


cdef inline void set_record(Record* record, const uint8_t* data, uint32_t file) noexcept nogil:
    """Set a record of an input file, without a twin."""
    record.data = data
    record.twin = NULL
    record.size = record_size(data)
    record.file = file


cdef inline uint8_t* append_bytes(Info* info, const uint8_t* data, uint32_t size) noexcept nogil:
    """Append bytes to the output's; returns their place, NULL without memory."""
    cdef uint8_t* place = <uint8_t*>vec_extend(&info.blob, size)
    if place != NULL:
        memcpy(place, data, size)
    return place


cdef inline void set_length(uint8_t* record, uint32_t length) noexcept nogil:
    record[2] = <uint8_t>(length & 0xff)
    record[3] = <uint8_t>(length >> 8)


cdef inline int32_t entity_of(const Info* info, uint32_t file, uint32_t symbol) noexcept nogil:
    """The entity of a symbol that a file's records name, or -1."""
    return info.merged.symbol_entity[info.objects.files[file].first_symbol + symbol]


cdef inline uint32_t find_external(Info* info, uint32_t file, uint32_t symbol) noexcept nogil:
    """Output index of a function that EXTERNS still names, or 0."""
    cdef int32_t e = entity_of(info, file, symbol)
    if e < 0:
        return 0
    # Kernels stay listed: they are launched from the device.
    if info.merged.entities[e].flags & EF_DEFINED and not info.merged.entities[e].flags & EF_KERNEL:
        return 0
    return info.placed.symbol_index[e]


cdef inline uint32_t section_symbol_of(Info* info, uint32_t file, uint32_t symbol) noexcept nogil:
    """Output index of the symbol of the section that a file's symbol lies in, or 0."""
    cdef int32_t section = info.objects.symbols[info.objects.files[file].first_symbol
                                                + symbol].section
    if section < 0 or info.merged.out_of[section] < 0:
        return 0
    return info.placed.section_symbol_index[info.merged.out_of[section]]


cdef inline const SectionRow* source_of_info(Info* info, int32_t entity) noexcept nogil:
    """The section of the deciding records: the mercury list if there is one; NULL without any."""
    cdef int32_t section = info.merged.functions[entity].merc_info
    if section < 0:
        section = info.merged.functions[entity].info
    return &info.objects.sections[section] if section >= 0 else NULL


cdef inline bint make_barriers_record(Info* info, const SectionRow* s,
                                      uint8_t* record) noexcept nogil:
    """Make NUM_BARRIERS from sh_flags, where code from before 13.0 has it; False without barriers.

    `s` has the function's other records. A relocatable output keeps the flags, as do releases of
    that time.
    """
    cdef uint64_t flags = info.objects.sections[s.target].flags & SHF_BARRIERS
    if (not info.objects.executable or info.objects.traits & TRAIT_EARLY_FILES
            or KIND[s.kind].mercury or flags == 0):
        return False
    record[0] = 2
    record[1] = EIATTR_NUM_BARRIERS
    record[2] = <uint8_t>(flags >> SHF_BARRIERS_FIRST)
    record[3] = 0
    return True


cdef inline int64_t find_own_record(Info* info, uint64_t start, uint8_t attribute) noexcept nogil:
    """Offset in the blob of the record with that attribute from `start` on, or -1."""
    cdef const uint8_t* record = find_record(info.blob.data + start, info.blob.count - start,
                                             attribute)
    return record - info.blob.data if record != NULL else -1
