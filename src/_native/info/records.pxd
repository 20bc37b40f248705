# EIATTR records: what `info.pyx` works on, and the reading and writing of single records.
#
# A record is {u8 format, u8 attribute, u16 n}; with EIFMT_SVAL n bytes follow, and with the other
# formats n is the value. Three records as they stand in a section, as an example:
#
#     02 4c 03 00                            EIFMT_BVAL, NUM_BARRIERS 3
#     04 0f 04 00  07 00 00 00               EIFMT_SVAL, EXTERNS: the list of one symbol, number 7
#     04 11 08 00  05 00 00 00  20 00 00 00  EIFMT_SVAL, FRAME_SIZE of function 5: 32 bytes

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from attributetypes cimport EIATTR_NUM_BARRIERS, EIFMT_BVAL
from base.vector cimport Vec, vec_extend
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from rownumbers cimport EF_DEFINED, EF_KERNEL, KEEPS_ALL
from sectionkinds cimport KIND
from tables.attributes cimport find_record, record_size
from tables.graph cimport CallGraph, NodeRef
from tables.rows cimport (
    EntityNumber, FileRef, FileSymbolRef, OutNumber, SectionNumber, SectionRow, SymbolRef,
)
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_EARLY_FILES


# A record of an input, and the file whose symbol numbers it uses.
ctypedef struct Record:
    const uint8_t* data     # the record
    const uint8_t* twin     # for a mercury record, the machine code's record, or NULL
    uint32_t size           # bytes of `data`
    FileRef file            # number of the file


# The rules by which a kernel inherits one attribute: a row of pylink/facts/inheritance.py.
cdef packed struct InheritRow:
    uint8_t attribute           # EIATTR_ number
    uint8_t format              # EIFMT_ number of the record that a kernel gets
    uint8_t how                 # JOIN_ rule
    uint8_t alone               # JOIN_ rule in a link with one live kernel


# The state of a thread that writes records: all that they depend on, and its results. Each thread
# has its own copy: what the first group of fields refers to is shared, the rest is its own.
ctypedef struct Info:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    CallGraph graph                 # nodes: entities, then function types (prototypes)
    OutNumber* info_out             # by entity: OutRow of its .nv.info.F, or -1
    uint8_t* contributes            # by entity: 1 if it has records that kernels inherit
    Vec contributors                # OutNumber: .nv.info.F of entities that contribute
    uint32_t* aliases               # by entity: how many other live names the function has
    uint32_t live_kernels           # number of kernels in the output that are roots
    InheritRow rules[256]           # by attribute; `how` JOIN_NOTHING: not inherited
    uint8_t rule_order[256]         # attributes in the order of the table of rules
    size_t rule_count               # number of rules
    uint8_t unknown_bits            # attribute whose absence means that bits are unknown, or 0
    const uint8_t* closing_records  # records that end those of each function
    uint32_t closing_size           # bytes of `closing_records`
    uint32_t preexit_offset         # of PREEXIT_USED's value in `closing_records`; 0: not to be set
    uint8_t* preexits               # by entity: 1 if its own code has PREEXIT
    size_t* next                    # first OutRow that no thread has begun with

    # A walk over the call graph.
    uint32_t* stamp                 # by node: number of the last walk that came to it
    uint32_t walk                   # number of the walk, from 1 on
    NodeRef* stack                  # nodes whose callees the walk has still to visit
    # Lists for the function or kernel whose records are written.
    Vec records                     # Record: of its input
    Vec reached_infos               # OutNumber: .nv.info.F of functions that it inherits from
    Vec record_sections             # SectionNumber: records that a lone kernel inherits
    Vec list_items                  # uint32_t: items of a list, symbol indices or numbers
    # Results.
    Vec mixed_kernels               # EntityNumber: kernels that `add_mixed_kernel` lists
    Vec blob                        # uint8_t: records of the output
    Vec spans                       # SpanRow: which of these bytes belong to which section
    bint failed                     # memory was exhausted


cdef inline void set_rules(Info* info, const InheritRow* rows, size_t count) noexcept nogil:
    """Index the rules by attribute, and keep the order of their table."""
    cdef size_t i
    for i in range(count):
        info.rules[rows[i].attribute] = rows[i]
        info.rule_order[i & 0xff] = rows[i].attribute
    info.rule_count = count


cdef inline bint is_inheriting(Info* info, EntityNumber entity) noexcept nogil:
    """Return whether an entity is a kernel that inherits values from the functions it reaches.

    A kernel does not if it is idle (unselected, never launched), or another is the only live root.
    """
    return (info.merged.entities[entity].flags & EF_KERNEL
            and not info.merged.functions[entity].keeps & KEEPS_ALL)


cdef inline void set_record(Record* record, const uint8_t* data, FileRef file) noexcept nogil:
    """Set `record` to the one at `data`, of an input file; its `twin` is NULL."""
    record.data = data
    record.twin = NULL
    record.size = record_size(data)
    record.file = file


cdef inline uint8_t* append_bytes(Info* info, const uint8_t* data, uint32_t size) noexcept nogil:
    """Append bytes to the output's records; return a pointer to them, NULL without memory."""
    cdef uint8_t* place = <uint8_t*>vec_extend(&info.blob, size)
    if place != NULL:
        memcpy(place, data, size)
    return place


cdef inline void set_length(uint8_t* record, uint32_t length) noexcept nogil:
    """Set the number of bytes that follow the first four of a record with EIFMT_SVAL."""
    record[2] = <uint8_t>(length & 0xff)
    record[3] = <uint8_t>(length >> 8)


cdef inline EntityNumber entity_of(const Info* info, FileRef file,
                                   FileSymbolRef symbol) noexcept nogil:
    """Return the entity of a symbol that a file's records name by number; -1 if it has none."""
    return info.merged.symbol_entity[info.objects.files[file].first_symbol + <SymbolRef>symbol]


cdef inline uint32_t find_external(Info* info, FileRef file, FileSymbolRef symbol) noexcept nogil:
    """Return the output's symbol index of a function that EXTERNS names, 0 if it is now defined.

    `symbol` is the function's number in the file's EXTERNS. 0 also without an entity.
    """
    cdef EntityNumber entity = entity_of(info, file, symbol)
    cdef uint32_t flags
    if entity < 0:
        return 0
    # Kernels stay listed: they are launched from the device.
    flags = info.merged.entities[entity].flags
    if flags & EF_DEFINED and not flags & EF_KERNEL:
        return 0
    return info.placed.symbol_index[entity]


cdef inline uint32_t section_symbol_of(Info* info, FileRef file,
                                       FileSymbolRef symbol) noexcept nogil:
    """Return the output's symbol index for the section in which a file's symbol lies, or 0."""
    cdef SectionNumber section = info.objects.symbols[info.objects.files[file].first_symbol
                                                      + <SymbolRef>symbol].section
    if section < 0 or info.merged.out_of[section] < 0:
        return 0
    return info.placed.section_symbol_index[info.merged.out_of[section]]


cdef inline const SectionRow* source_of_info(Info* info, EntityNumber entity) noexcept nogil:
    """Return the input section that lists the records of a function, NULL without any.

    It is the mercury list if the function has one, else that of the machine code.
    """
    cdef SectionNumber section = info.merged.functions[entity].merc_info
    if section < 0:
        section = info.merged.functions[entity].info
    return &info.objects.sections[section] if section >= 0 else NULL


cdef inline bint make_barriers_record(Info* info, const SectionRow* source,
                                      uint8_t* record) noexcept nogil:
    """Make a record of NUM_BARRIERS, 4 bytes, for a function; False if it needs none.

    Code from before 13.0 has the number in sh_flags. `source` has the function's other records. A
    relocatable output keeps the flags and needs no record, and so do all outputs in links that
    follow a release before 13.0. Mercury records never need it.
    """
    cdef uint64_t flags
    if (not info.objects.executable or info.objects.traits & TRAIT_EARLY_FILES
            or KIND[source.kind].mercury):
        return False
    flags = info.objects.sections[source.target].flags & SHF_BARRIERS
    if flags == 0:
        return False
    record[0] = EIFMT_BVAL
    record[1] = EIATTR_NUM_BARRIERS
    record[2] = <uint8_t>(flags >> SHF_BARRIERS_FIRST)
    record[3] = 0
    return True


cdef inline int64_t find_own_record(Info* info, uint64_t start, uint8_t attribute) noexcept nogil:
    """Return the offset in the blob of the first record of an attribute from `start` on, or -1.

    `start` is where the records of the function at hand begin.
    """
    cdef const uint8_t* record = find_record(info.blob.data + start, info.blob.count - start,
                                             attribute)
    return record - info.blob.data if record != NULL else -1
