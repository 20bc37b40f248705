# FRAME_SIZE of whole programs (-ewp) from sm_100 on, where functions lie inside of others.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_FRAME_SIZE
from base.elf64 cimport load32
from base.scratch cimport Scratch, scratch_zeros
from info.records cimport Info
from rownumbers cimport EF_INNER, FILE_WHOLE_PROGRAM
from sectionkinds cimport IS_RECORDS
from tables.attributes cimport record_size
from tables.kinds cimport is_merc, is_owned
from tables.rows cimport SectionRow

# The frame of the code in a section: one of the functions in it gives that of all.
ctypedef struct CodeFrame:
    bint known
    uint32_t size


cdef inline bint has_whole_program_file(const Info* info) noexcept nogil:
    cdef size_t f
    for f in range(info.objects.file_count):
        if info.objects.files[f].flags & FILE_WHOLE_PROGRAM:
            return True
    return False


cdef inline CodeFrame* find_frames(const Info* info, Scratch* scratch) noexcept nogil:
    """By input section, the frame that nvlink's finalizer notes for all functions in its code.

    The mercury records of the output, which are the file's in reverse order, decide: the frame is
    that of the inner function that they name last. NULL without memory.
    """
    cdef CodeFrame* frames = <CodeFrame*>scratch_zeros(
        scratch, info.objects.section_count, sizeof(CodeFrame))
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint64_t offset
    cdef size_t i
    cdef uint32_t symbol
    cdef int32_t e, section
    if frames == NULL:
        return NULL
    for i in range(info.objects.section_count):
        s = &info.objects.sections[i]
        if (not is_merc(s.kind, IS_RECORDS) or is_owned(s.kind)
                or not info.objects.files[s.file].flags & FILE_WHOLE_PROGRAM):
            continue
        offset = 0
        while offset < s.size:
            data = info.objects.arena + s.offset + offset
            offset += record_size(data)
            if data[1] != EIATTR_FRAME_SIZE:
                continue
            symbol = info.objects.files[s.file].first_symbol + load32(data + 4)
            e = info.merged.symbol_entity[symbol]
            section = info.objects.symbols[symbol].section
            if e < 0 or not info.merged.entities[e].flags & EF_INNER or section < 0:
                continue
            if not frames[section].known:
                frames[section].known = True
                frames[section].size = load32(data + 8)
    return frames
