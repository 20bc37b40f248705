# FRAME_SIZE of whole programs (-ewp) from sm_100 on, where functions lie inside of others.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport load32
from base.scratch cimport Scratch, scratch_zeros
from sectionkinds cimport IS_RECORDS
from tables.attributes cimport record_size
from attributetypes cimport EIATTR_FRAME_SIZE
from info.records cimport Info
from tables.kinds cimport is_merc, is_owned
from tables.rows cimport EF_INNER, FILE_WHOLE, SectionRow

# The frame of the code in a section: one of the functions in it gives that of all.
ctypedef struct CodeFrame:
    bint known
    uint32_t size


cdef inline bint has_whole_file(const Info* m) noexcept nogil:
    cdef size_t f
    for f in range(m.objects.file_count):
        if m.objects.files[f].flags & FILE_WHOLE:
            return True
    return False


cdef inline CodeFrame* find_frames(const Info* m, Scratch* scratch) noexcept nogil:
    """By input section, the frame that nvlink's finalizer notes for all functions in its code.

    It is that of the function inside of it that the mercury records of the output name last, which
    are those of the file reversed. NULL without memory.
    """
    cdef CodeFrame* frames = <CodeFrame*>scratch_zeros(
        scratch, m.objects.section_count, sizeof(CodeFrame))
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint64_t at
    cdef size_t i
    cdef uint32_t symbol
    cdef int32_t e, section
    if frames == NULL:
        return NULL
    for i in range(m.objects.section_count):
        s = &m.objects.sections[i]
        if (not is_merc(s.kind, IS_RECORDS) or is_owned(s.kind)
                or not m.objects.files[s.file].flags & FILE_WHOLE):
            continue
        at = 0
        while at < s.size:
            data = m.objects.arena + s.offset + at
            at += record_size(data)
            if data[1] != EIATTR_FRAME_SIZE:
                continue
            symbol = m.objects.files[s.file].first_symbol + load32(data + 4)
            e = m.merged.symbol_entity[symbol]
            section = m.objects.symbols[symbol].section
            if e < 0 or not m.merged.entities[e].flags & EF_INNER or section < 0:
                continue
            if not frames[section].known:
                frames[section].known = True
                frames[section].size = load32(data + 8)
    return frames
