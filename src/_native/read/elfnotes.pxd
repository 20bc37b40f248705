# What a cubin says of itself: e_flags, the note of its toolkit, and .nv.compat.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from attributes cimport find_record
from attributetypes cimport *
from elf64 cimport *
from elffaults cimport Reader
from elfsections cimport FIRST_MERCURY_SM
from kinds cimport *
from objectformats cimport *
from rows cimport *

cdef enum:
    COMPAT_ISA_CLASS = 2        # attribute: which architectures the code can run on
    COMPAT_SPECIFIC = 9         # attribute: the code is for one architecture alone
    CUINFO_VERSION = 2          # of the note, since 13.0; that of before has no toolkit

# .note.nv.cuinfo: the head of an ELF note, then what the file was made from, and by what. The note
# .note.nv.cuver of before 13.0 has two words in place of the last two numbers.
cdef packed struct CuinfoNote:
    uint32_t name_size
    uint32_t size
    uint32_t type
    uint8_t name[12]
    uint16_t version
    uint16_t ptx_sm
    uint16_t toolkit
    uint16_t spare


cdef inline void read_flags(FileRow* row, const FormatFacts* facts,
                            const Ehdr* header) noexcept nogil:
    """Fill in what the header tells, as its format has it."""
    cdef uint32_t ptx = header.e_flags >> facts.ptx_first & facts.ptx_mask
    row.sm = <uint16_t>(header.e_flags >> facts.sm_first & facts.sm_mask)
    row.ptx_sm = <uint16_t>ptx if facts.ptx_mask else UNKNOWN_SM
    if row.sm >= facts.versioned:
        row.toolkit = header.e_version
    if header.e_flags & facts.specific:
        row.says |= SAYS_SPECIFIC
    if facts.wide and not header.e_flags & facts.wide:
        row.says |= SAYS_NARROW


cdef inline bint read_notes(Reader* r, FileRow* row) noexcept nogil:
    """Fill in what sections tell. Notes and records that are cut off tell nothing; never False."""
    cdef const SectionRow* s
    cdef const uint8_t* record
    cdef uint32_t i
    for i in range(row.first_section, row.first_section + row.section_count):
        s = <const SectionRow*>r.sections.data + i
        if s.kind == K_CUINFO:
            read_toolkit(row, r.arena + s.offset, s.size)
        elif s.kind == K_COMPAT:
            record = find_record(r.arena + s.offset, s.size, COMPAT_SPECIFIC)
            if record != NULL and record[2] != 0:
                row.says |= SAYS_SPECIFIC
            if find_record(r.arena + s.offset, s.size, COMPAT_ISA_CLASS) == NULL:
                row.says |= SAYS_UNCLASSED
    return True


cdef inline void read_toolkit(FileRow* row, const uint8_t* notes, uint64_t size) noexcept nogil:
    cdef const CuinfoNote* note
    cdef uint64_t at = 0
    while at < size and size - at >= sizeof(CuinfoNote):
        note = <const CuinfoNote*>(notes + at)
        row.ptx_sm = min(row.ptx_sm, note.ptx_sm)
        if note.version >= CUINFO_VERSION:
            row.toolkit = max(row.toolkit, <uint32_t>note.toolkit)
        elif row.sm >= FIRST_MERCURY_SM:
            row.says |= SAYS_EARLY
        at += sizeof(CuinfoNote) - 8 + (<uint64_t>note.size + 3) // 4 * 4
