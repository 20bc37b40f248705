# FRAME_SIZE of whole programs (-ewp) from sm_100 on, in which functions lie inside of the code of
# others (EF_INNER). nvlink's finalizer gives all functions of a code section one frame size.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_FRAME_SIZE
from base.elf64 cimport load32
from base.scratch cimport Scratch, scratch_zeros
from info.records cimport Info
from rownumbers cimport EF_INNER, FILE_WHOLE_PROGRAM
from sectionkinds cimport IS_RECORDS
from tables.attributes cimport record_size
from tables.kinds cimport is_merc, is_owned
from tables.rows cimport EntityNumber, SectionNumber, SectionRow, SymbolRef

# The frame size of all functions in a code section.
ctypedef struct CodeFrame:
    bint is_known           # False: no function is inside of another, so each keeps its own size
    uint32_t size           # bytes


cdef inline bint has_whole_program_file(const Info* info) noexcept nogil:
    """Return whether an input is a whole program (-ewp)."""
    cdef size_t file
    for file in range(info.objects.file_count):
        if info.objects.files[file].flags & FILE_WHOLE_PROGRAM:
            return True
    return False


cdef inline CodeFrame* find_frames(const Info* info, Scratch* scratch) noexcept nogil:
    """Return the CodeFrame of each input section; NULL without memory.

    If functions are inside of another (EF_INNER), the first FRAME_SIZE of an inner one in the
    input's mercury records gives the size. The output has these records in reverse order, so there
    it is the last one.
    """
    cdef CodeFrame* frames = <CodeFrame*>scratch_zeros(
        scratch, info.objects.section_count, sizeof(CodeFrame))
    cdef const SectionRow* source
    cdef const uint8_t* data
    cdef uint64_t offset
    cdef size_t i
    cdef SymbolRef symbol
    cdef EntityNumber entity
    cdef SectionNumber section
    if frames == NULL:
        return NULL
    for i in range(info.objects.section_count):
        source = &info.objects.sections[i]
        if (not is_merc(source.kind, IS_RECORDS) or is_owned(source.kind)
                or not info.objects.files[source.file].flags & FILE_WHOLE_PROGRAM):
            continue
        offset = 0
        while offset < source.size:
            data = info.objects.arena + source.offset + offset
            offset += record_size(data)
            if data[1] != EIATTR_FRAME_SIZE:
                continue
            symbol = info.objects.files[source.file].first_symbol + load32(data + 4)
            entity = info.merged.symbol_entity[symbol]
            section = info.objects.symbols[symbol].section
            if entity < 0 or not info.merged.entities[entity].flags & EF_INNER or section < 0:
                continue
            if not frames[section].is_known:
                frames[section].is_known = True
                frames[section].size = load32(data + 8)
    return frames
