# .nv.info and its twin: the records of whole files, and what kernels need of the stack.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libc.stdlib cimport qsort

from attributetypes cimport (
    ATTRIBUTE, EIATTR_FRAME_SIZE, EIATTR_MAX_STACK_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_REGCOUNT,
)
from info.frames cimport CodeFrame, find_frames, has_whole_file
from tables.rows cimport EF_LIVE, RESOLUTION_WON, FileRow, SectionRow
from info.records cimport Info, Record, entity_of, inherits, put, set_record
from sectionkinds cimport KIND
from base.scratch cimport Scratch, scratch_free, scratch_init
from traits cimport TRAIT_MERCURY
from base.elf64 cimport load32
from tables.attributes cimport record_size
from base.vector cimport vec_extend, vec_push


cdef inline bint names_function(const uint8_t* data) noexcept nogil:
    return data[0] == 4 and ATTRIBUTE[data[1]].of_function


cdef inline bint file_record_stays(Info* m, const uint8_t* data,
                                   const FileRow* file) noexcept nogil:
    cdef uint32_t symbol
    cdef int32_t e
    if not names_function(data):
        return True
    if m.objects.executable and (
            data[1] == EIATTR_MAX_STACK_SIZE or data[1] == EIATTR_MIN_STACK_SIZE):
        return False
    symbol = file.first_symbol + load32(data + 4)
    e = m.merged.symbol_entity[symbol]
    return (e >= 0 and m.merged.symbol_resolution[symbol] == RESOLUTION_WON
            and m.merged.entities[e].flags & EF_LIVE != 0)


cdef packed struct StackSize:
    uint8_t format
    uint8_t attribute
    uint16_t size
    uint32_t symbol
    uint32_t bytes


cdef inline int by_symbol(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const StackSize*>a).symbol, y = (<const StackSize*>b).symbol
    return -1 if x < y else x > y


cdef inline bint emit_stack_sizes(Info* m) noexcept nogil:
    """MIN_STACK_SIZE of each kernel, by symbol index."""
    cdef size_t start = m.blob.count, i
    cdef StackSize* record
    for i in range(m.merged.entity_count):
        if inherits(m, <int32_t>i) and m.merged.entities[i].flags & EF_LIVE:
            record = <StackSize*>vec_extend(&m.blob, sizeof(StackSize))
            if record == NULL:
                return False
            record.format = 4
            record.attribute = EIATTR_MIN_STACK_SIZE
            record.size = 8
            record.symbol = m.placed.symbol_index[i]
            record.bytes = m.merged.functions[i].stack
    qsort(m.blob.data + start, (m.blob.count - start) // sizeof(StackSize), sizeof(StackSize),
          by_symbol)
    return True


cdef inline bint emit_file_records(Info* m, uint16_t kind, const CodeFrame* frames) noexcept nogil:
    """Records of .nv.info or its twin; `frames` are by input section, or NULL."""
    cdef size_t f, i
    cdef uint32_t j
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint8_t* place
    cdef uint64_t at
    cdef Record* record
    cdef int32_t symbol, section
    cdef uint32_t value
    m.records.count = 0
    for f in range(m.objects.file_count):
        for j in range(m.objects.files[f].first_section,
                       m.objects.files[f].first_section + m.objects.files[f].section_count):
            s = &m.objects.sections[j]
            if s.kind != kind:
                continue
            at = 0
            while at < s.size:
                data = m.objects.arena + s.offset + at
                at += record_size(data)
                if not file_record_stays(m, data, &m.objects.files[f]):
                    continue
                record = <Record*>vec_push(&m.records)
                if record == NULL:
                    return False
                set_record(record, data, <uint32_t>f)
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        place = put(m, record.data, record.size)
        if place == NULL:
            return False
        if names_function(record.data):
            symbol = entity_of(m, record.file, load32(record.data + 4))
            memcpy(place + 4, &m.placed.symbol_index[symbol], 4)
            section = m.objects.symbols[m.merged.entities[symbol].winner].section
            if (frames != NULL and record.data[1] == EIATTR_FRAME_SIZE and section >= 0
                    and frames[section].known):
                memcpy(place + 8, &frames[section].size, 4)
            if m.objects.executable and record.data[1] == EIATTR_REGCOUNT:
                value = m.merged.functions[symbol].regcount
                memcpy(place + 8, &value, 4)
    return not m.objects.executable or emit_stack_sizes(m)


cdef inline bint emit_file_info(Info* m, uint16_t kind) noexcept nogil:
    cdef Scratch scratch
    cdef CodeFrame* frames = NULL
    cdef bint done
    scratch_init(&scratch)
    if not KIND[kind].mercury and m.objects.traits & TRAIT_MERCURY and has_whole_file(m):
        frames = find_frames(m, &scratch)
    done = not scratch.failed and emit_file_records(m, kind, frames)
    scratch_free(&scratch)
    return done
