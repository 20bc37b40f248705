# Properties that a cubin states: e_flags, the note of its toolkit, and .nv.compat.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport ET_WHOLE, Ehdr
from base.texts cimport is_named
from objectformats cimport FormatFacts
from read.faults cimport Reader
from read.sections cimport FIRST_MERCURY_SM
from rownumbers cimport FILE_EARLY, FILE_NARROW, FILE_SPECIFIC, FILE_UNCLASSED, FILE_WHOLE_PROGRAM
from sectionkinds cimport IS_CALLS, IS_CODE, IS_RECORDS, K_COMPAT, K_CUINFO, K_TKINFO
from tables.attributes cimport find_record
from tables.kinds cimport is_a, is_plain
from tables.rows cimport UNKNOWN_SM, FileRow, SectionRow

cdef enum:
    COMPAT_ISA_CLASS = 2        # attribute: which architectures the code can run on
    COMPAT_SPECIFIC = 9         # attribute: the code is for one architecture alone
    CUINFO_VERSION = 2          # version since 13.0; the earlier note has no toolkit

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


# .note.nv.tkinfo: who made the file, as offsets into the strings after them. The third is
# "Cuda compilation tools, release 13.2, V13.2.86"; in outputs of pylink the fourth has the linker
# that was followed, "nvlink 13.2.86".
cdef packed struct TkinfoNote:
    uint32_t name_size
    uint32_t size
    uint32_t type
    uint8_t name[12]
    uint32_t version
    uint32_t strings[5]

cdef enum:
    TKINFO_TOOL = 2             # index into `strings`
    TKINFO_BUILD = 3
    TOOL_PARTS = 3              # numbers of a version
    LONGEST_PART = 3            # digits of one
    TOOL_STEP = 1000            # patch levels of a toolkit


cdef inline void read_flags(FileRow* row, const FormatFacts* facts,
                            const Ehdr* header) noexcept nogil:
    """Fill in what the header tells, as its format has it."""
    cdef uint32_t ptx = header.e_flags >> facts.ptx_first & facts.ptx_mask
    row.sm = <uint16_t>(header.e_flags >> facts.sm_first & facts.sm_mask)
    row.ptx_sm = <uint16_t>ptx if facts.ptx_mask else UNKNOWN_SM
    if row.sm >= facts.versioned:
        row.toolkit = header.e_version
    if header.e_flags & facts.specific:
        row.flags |= FILE_SPECIFIC
    if header.e_type == ET_WHOLE:
        row.flags |= FILE_WHOLE_PROGRAM
    if facts.wide and not header.e_flags & facts.wide:
        row.flags |= FILE_NARROW


cdef inline bint read_notes(Reader* reader, FileRow* row) noexcept nogil:
    """Fill in what sections tell, and where such sections and code are; never False.

    Notes and records that are cut off are ignored.
    """
    cdef const SectionRow* s
    cdef const uint8_t* record
    cdef uint32_t i, tool = 0
    cdef bint has_notes
    for i in range(row.first_section, row.first_section + row.section_count):
        s = <const SectionRow*>reader.sections.data + i
        has_notes = True
        if s.kind == K_CUINFO:
            read_toolkit(row, reader.arena + s.offset, s.size)
        elif s.kind == K_TKINFO:
            tool = max(tool, newest_tool(reader.arena + s.offset, s.size))
        elif s.kind == K_COMPAT:
            record = find_record(reader.arena + s.offset, s.size, COMPAT_SPECIFIC)
            if record != NULL and record[2] != 0:
                row.flags |= FILE_SPECIFIC
            if find_record(reader.arena + s.offset, s.size, COMPAT_ISA_CLASS) == NULL:
                row.flags |= FILE_UNCLASSED
        else:
            has_notes = is_plain(s.kind, IS_CALLS | IS_RECORDS)
        if has_notes:
            if row.note_end == 0:
                row.first_note = i
            row.note_end = i + 1
        elif is_a(s.kind, IS_CODE):
            if row.code_end == 0:
                row.first_code = i
            row.code_end = i + 1
    if tool // TOOL_STEP == row.toolkit:
        row.patch = <uint16_t>(tool % TOOL_STEP)
    return True


cdef inline void read_toolkit(FileRow* row, const uint8_t* notes, uint64_t size) noexcept nogil:
    """Fill in toolkit and PTX architecture from the notes of .note.nv.cuinfo."""
    cdef const CuinfoNote* note
    cdef uint64_t offset = 0
    while offset < size and size - offset >= sizeof(CuinfoNote):
        note = <const CuinfoNote*>(notes + offset)
        row.ptx_sm = min(row.ptx_sm, note.ptx_sm)
        if note.version >= CUINFO_VERSION:
            row.toolkit = max(row.toolkit, <uint32_t>note.toolkit)
        elif row.sm >= FIRST_MERCURY_SM:
            row.flags |= FILE_EARLY
        offset += sizeof(CuinfoNote) - 8 + (<uint64_t>note.size + 3) // 4 * 4


cdef inline uint32_t newest_tool(const uint8_t* notes, uint64_t size) noexcept nogil:
    """Toolkit and patch level of the newest tool that notes name, 132086 for 13.2.86, or 0."""
    cdef const TkinfoNote* note
    cdef uint64_t offset = 0, room
    cdef uint32_t newest = 0, i
    while offset < size and size - offset >= sizeof(TkinfoNote):
        note = <const TkinfoNote*>(notes + offset)
        offset += sizeof(TkinfoNote)
        room = <uint64_t>note.size - min(<uint64_t>note.size, 24)
        if room > size - offset:
            return newest
        for i in range(TKINFO_TOOL, TKINFO_BUILD + 1):
            if note.strings[i] < room:
                newest = max(newest, tool_of(notes + offset + note.strings[i],
                                             room - note.strings[i]))
        offset += (room + 3) // 4 * 4
    return newest


cdef inline uint32_t tool_of(const uint8_t* text, uint64_t room) noexcept nogil:
    """The version that ends a string, as `newest_tool` has it; 0 for that of no tool of CUDA."""
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    cdef const uint8_t* word
    cdef uint32_t parts[TOOL_PARTS]
    cdef uint32_t part = 0, digits = 0
    if end == NULL or end == text:
        return 0
    word = end
    while word != text and (word - 1)[0] != b" ":
        word -= 1
    if word[0] == b"V":
        word += 1
    elif not is_named(text, word - text, b"nvlink "):
        return 0
    memset(parts, 0, sizeof(parts))
    while word != end:
        if word[0] == b"." and digits and part + 1 < TOOL_PARTS:
            part += 1
            digits = 0
        elif b"0" <= word[0] <= b"9" and digits < LONGEST_PART:
            parts[part] = parts[part] * 10 + (word[0] & 0xf)
            digits += 1
        else:
            return 0
        word += 1
    if part + 1 != TOOL_PARTS or not digits:
        return 0
    return (parts[0] * 10 + parts[1]) * TOOL_STEP + parts[2]
