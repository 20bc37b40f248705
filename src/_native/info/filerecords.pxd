# .nv.info and .nv.merc.nv.info: records of all files, and MIN_STACK_SIZE of each kernel.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from attributetypes cimport (
    ATTRIBUTE, EIATTR_FRAME_SIZE, EIATTR_MAX_STACK_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_REGCOUNT,
    EIFMT_SVAL,
)
from base.elf64 cimport load32
from base.scratch cimport Scratch, scratch_free, scratch_init
from base.vector cimport vec_extend, vec_push
from info.frames cimport CodeFrame, find_frames, has_whole_program_file
from info.records cimport Info, Record, append_bytes, entity_of, is_inheriting, set_record
from rownumbers cimport EF_LIVE, RESOLUTION_WON
from sectionkinds cimport KIND
from tables.attributes cimport record_size
from tables.rows cimport (
    EntityNumber, FileRef, FileRow, FileSymbolRef, SectionNumber, SectionRef, SectionRow, SymbolRef,
)
from traits cimport TRAIT_MERCURY


cdef inline bint has_function_symbol(const uint8_t* record) noexcept nogil:
    """Return whether the value of a record begins with the symbol of a function."""
    return record[0] == EIFMT_SVAL and ATTRIBUTE[record[1]].of_function


cdef inline bint is_file_record_kept(Info* info, const uint8_t* record,
                                     const FileRow* file) noexcept nogil:
    """Return whether the output keeps a record of an input's .nv.info.

    A record of a function is kept if the output has this file's definition of the function. In an
    executable, records of stack sizes are dropped, since `emit_stack_sizes` makes new ones. All
    other records are kept.
    """
    cdef SymbolRef symbol
    cdef EntityNumber entity
    if not has_function_symbol(record):
        return True
    if info.objects.executable and (
            record[1] == EIATTR_MAX_STACK_SIZE or record[1] == EIATTR_MIN_STACK_SIZE):
        return False
    symbol = file.first_symbol + load32(record + 4)
    entity = info.merged.symbol_entity[symbol]
    return (entity >= 0 and info.merged.symbol_resolution[symbol] == RESOLUTION_WON
            and info.merged.entities[entity].flags & EF_LIVE != 0)


# A record of MIN_STACK_SIZE.
cdef packed struct StackSize:
    uint8_t format              # EIFMT_SVAL
    uint8_t attribute           # EIATTR_MIN_STACK_SIZE
    uint16_t size               # bytes of the next two fields
    uint32_t symbol             # the kernel's symbol index in the output
    uint32_t bytes              # bytes of stack, NO_STACK_BOUND with recursion


cdef inline int compare_stack_sizes(const void* a, const void* b) noexcept nogil:
    """Order StackSizes by the symbol index of their kernel, for qsort."""
    cdef uint32_t x = (<const StackSize*>a).symbol, y = (<const StackSize*>b).symbol
    return -1 if x < y else x > y


cdef inline bint emit_stack_sizes(Info* info) noexcept nogil:
    """Append MIN_STACK_SIZE of each live kernel that inherits, in order of symbol indices.

    Idle kernels get none. If only one root is live, no other kernel gets one (`is_inheriting`).
    False without memory.
    """
    cdef size_t start = info.blob.count, i
    cdef StackSize* record
    for i in range(info.merged.entity_count):
        if is_inheriting(info, <EntityNumber>i) and info.merged.entities[i].flags & EF_LIVE:
            record = <StackSize*>vec_extend(&info.blob, sizeof(StackSize))
            if record == NULL:
                return False
            record.format = EIFMT_SVAL
            record.attribute = EIATTR_MIN_STACK_SIZE
            record.size = sizeof(record.symbol) + sizeof(record.bytes)
            record.symbol = info.placed.symbol_index[i]
            record.bytes = info.merged.functions[i].stack
    qsort(info.blob.data + start, (info.blob.count - start) // sizeof(StackSize), sizeof(StackSize),
          compare_stack_sizes)
    return True


cdef inline bint emit_file_records(Info* info, uint16_t kind,
                                   const CodeFrame* frames) noexcept nogil:
    """Append the records of .nv.info or of its mercury form (`kind`); False without memory.

    `frames` is NULL or has a CodeFrame for each input section. FRAME_SIZE of a function changes
    only if the CodeFrame of its section is known.
    """
    cdef size_t file, i
    cdef SectionRef j, first, end   # the sections of a file that may have records
    cdef const SectionRow* source
    cdef const uint8_t* data
    cdef uint8_t* place
    cdef uint64_t offset
    cdef Record* record
    cdef EntityNumber entity
    cdef SectionNumber section
    cdef uint32_t regcount
    info.records.count = 0
    for file in range(info.objects.file_count):
        first = info.objects.files[file].first_note
        end = info.objects.files[file].note_end
        if KIND[kind].mercury:
            first = info.objects.files[file].first_section
            end = first + info.objects.files[file].section_count
        for j in range(first, end):
            source = &info.objects.sections[j]
            if source.kind != kind:
                continue
            offset = 0
            while offset < source.size:
                data = info.objects.arena + source.offset + offset
                offset += record_size(data)
                if not is_file_record_kept(info, data, &info.objects.files[file]):
                    continue
                record = <Record*>vec_push(&info.records)
                if record == NULL:
                    return False
                set_record(record, data, <FileRef>file)
    for i in range(info.records.count):     # in reverse order
        record = <Record*>info.records.data + (info.records.count - 1 - i)
        place = append_bytes(info, record.data, record.size)
        if place == NULL:
            return False
        if has_function_symbol(record.data):
            # The record is {u8 format, u8 attribute, u16 size, u32 symbol, u32 value}.
            entity = entity_of(info, record.file, <FileSymbolRef>load32(record.data + 4))
            memcpy(place + 4, &info.placed.symbol_index[entity], 4)
            section = info.objects.symbols[info.merged.entities[entity].winner].section
            if (frames != NULL and record.data[1] == EIATTR_FRAME_SIZE and section >= 0
                    and frames[section].is_known):
                memcpy(place + 8, &frames[section].size, 4)
            if info.objects.executable and record.data[1] == EIATTR_REGCOUNT:
                regcount = info.merged.functions[entity].regcount
                memcpy(place + 8, &regcount, 4)
    return not info.objects.executable or emit_stack_sizes(info)


cdef inline bint emit_file_info(Info* info, uint16_t kind) noexcept nogil:
    """Append the records of .nv.info or its mercury form (`kind`); False without memory.

    Whole programs (-ewp) from sm_100 on get other frame sizes (info/frames.pxd).
    """
    cdef Scratch scratch
    cdef CodeFrame* frames = NULL
    cdef bint done
    scratch_init(&scratch)
    if (not KIND[kind].mercury and info.objects.traits & TRAIT_MERCURY
            and has_whole_program_file(info)):
        frames = find_frames(info, &scratch)
    done = not scratch.failed and emit_file_records(info, kind, frames)
    scratch_free(&scratch)
    return done
