# Properties that a cubin states: e_flags, the note of its toolkit, and .nv.compat.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from attributetypes cimport EICOMPAT_CUDA_ACCELERATOR_TARGET, EICOMPAT_ISA_CLASS
from base.elf64 cimport Ehdr
from base.texts cimport is_named
from elfnumbers cimport ET_WHOLE
from objectformats cimport FormatFacts
from read.faults cimport Reader
from read.sections cimport FIRST_MERCURY_SM
from rownumbers cimport FILE_EARLY, FILE_NARROW, FILE_SPECIFIC, FILE_UNCLASSED, FILE_WHOLE_PROGRAM
from sectionkinds cimport IS_CALLS, IS_CODE, IS_RECORDS, K_COMPAT, K_CUINFO, K_TKINFO
from tables.attributes cimport find_record
from tables.kinds cimport is_a, is_plain
from tables.rows cimport UNKNOWN_SM, FileRow, SectionRef, SectionRow

cdef enum:
    CUINFO_VERSION = 2          # `version` of the note since 13.0; earlier ones have no toolkit
    CUINFO_FIELDS = 8           # bytes of a CuinfoNote that its `size` counts, too
    TKINFO_FIELDS = 24          # bytes of a TkinfoNote that its `size` counts, too

# .note.nv.cuinfo: the head of an ELF note, then what the file was compiled from, and by which
# toolkit. In releases before 13.0, .note.nv.cuver has two u32 in place of the last two fields.
cdef packed struct CuinfoNote:
    uint32_t name_size
    uint32_t size               # bytes of the fields after `name`
    uint32_t type
    uint8_t name[12]
    uint16_t version
    uint16_t ptx_sm             # SM number
    uint16_t toolkit            # 130 for 13.0
    uint16_t spare


# .note.nv.tkinfo: the tools that made the file. Five offsets are followed by five strings. The
# third string is "Cuda compilation tools, release 13.2, V13.2.86" in files of CUDA's tools, and
# pylink's name and version in outputs of pylink. There the fourth string names the linker that
# pylink followed, "nvlink 13.2.86".
cdef packed struct TkinfoNote:
    uint32_t name_size
    uint32_t size               # bytes of the fields after `name`, and of the strings
    uint32_t type
    uint8_t name[12]
    uint32_t version
    uint32_t strings[5]         # offset of each string from the end of this struct

cdef enum:
    TKINFO_TOOL = 2             # index in `strings` of the third string
    TKINFO_BUILD = 3            # index in `strings` of the fourth string
    TOOL_PARTS = 3              # numbers of a version such as 13.2.86
    LONGEST_PART = 3            # most digits of such a number; a longer one is not a version
    TOOL_STEP = 1000            # 13.2.86 is 132 * TOOL_STEP + 86


cdef inline void read_flags(FileRow* file, const FormatFacts* facts,
                            const Ehdr* header) noexcept nogil:
    """Fill the fields that e_flags, e_version and e_type tell; `facts` say where in e_flags."""
    cdef uint32_t ptx = header.e_flags >> facts.ptx_first & facts.ptx_mask
    file.sm = <uint16_t>(header.e_flags >> facts.sm_first & facts.sm_mask)
    file.ptx_sm = <uint16_t>ptx if facts.ptx_mask else UNKNOWN_SM
    if file.sm >= facts.versioned:
        file.toolkit = header.e_version
    if header.e_flags & facts.specific:
        file.flags |= FILE_SPECIFIC
    if header.e_type == ET_WHOLE:
        file.flags |= FILE_WHOLE_PROGRAM
    if facts.wide and not header.e_flags & facts.wide:
        file.flags |= FILE_NARROW


cdef inline bint read_notes(Reader* reader, FileRow* file) noexcept nogil:
    """Fill the fields that notes tell, and the ranges of sections with notes and with code.

    Notes and records that are cut off are ignored. Returns True.
    """
    cdef const SectionRow* section
    cdef const uint8_t* record
    cdef SectionRef i
    cdef uint32_t tool = 0
    cdef bint has_notes
    for i in range(file.first_section, file.first_section + file.section_count):
        section = <const SectionRow*>reader.sections.data + i
        has_notes = True
        if section.kind == K_CUINFO:
            read_cuinfo(file, reader.arena + section.offset, section.size)
        elif section.kind == K_TKINFO:
            tool = max(tool, find_newest_tool(reader.arena + section.offset, section.size))
        elif section.kind == K_COMPAT:
            record = find_record(reader.arena + section.offset, section.size,
                                 EICOMPAT_CUDA_ACCELERATOR_TARGET)
            if record != NULL and record[2] != 0:
                file.flags |= FILE_SPECIFIC
            if find_record(reader.arena + section.offset, section.size, EICOMPAT_ISA_CLASS) == NULL:
                file.flags |= FILE_UNCLASSED
        else:
            has_notes = is_plain(section.kind, IS_CALLS | IS_RECORDS)
        if has_notes:
            if file.note_end == 0:
                file.first_note = i
            file.note_end = i + 1
        elif is_a(section.kind, IS_CODE):
            if file.code_end == 0:
                file.first_code = i
            file.code_end = i + 1
    if tool // TOOL_STEP == file.toolkit:
        file.patch = <uint16_t>(tool % TOOL_STEP)
    return True


cdef inline void read_cuinfo(FileRow* file, const uint8_t* notes, uint64_t size) noexcept nogil:
    """Fill toolkit and PTX architecture: the newest and the lowest that notes of a section name.

    A note from before 13.0 also sets FILE_EARLY, if the file is for sm_100 or later.
    """
    cdef const CuinfoNote* note
    cdef uint64_t offset = 0
    while offset < size and size - offset >= sizeof(CuinfoNote):
        note = <const CuinfoNote*>(notes + offset)
        file.ptx_sm = min(file.ptx_sm, note.ptx_sm)
        if note.version >= CUINFO_VERSION:
            file.toolkit = max(file.toolkit, <uint32_t>note.toolkit)
        elif file.sm >= FIRST_MERCURY_SM:
            file.flags |= FILE_EARLY
        offset += sizeof(CuinfoNote) - CUINFO_FIELDS + (<uint64_t>note.size + 3) // 4 * 4


cdef inline uint32_t find_newest_tool(const uint8_t* notes, uint64_t size) noexcept nogil:
    """Return the newest tool that .note.nv.tkinfo names: 132086 for 13.2.86, or 0."""
    cdef const TkinfoNote* note
    cdef uint64_t offset = 0, room
    cdef uint32_t newest = 0, i
    while offset < size and size - offset >= sizeof(TkinfoNote):
        note = <const TkinfoNote*>(notes + offset)
        offset += sizeof(TkinfoNote)
        room = <uint64_t>note.size - min(<uint64_t>note.size, TKINFO_FIELDS)    # of the strings
        if room > size - offset:
            return newest
        for i in range(TKINFO_TOOL, TKINFO_BUILD + 1):
            if note.strings[i] < room:
                newest = max(newest,
                             read_tool(notes + offset + note.strings[i], room - note.strings[i]))
        offset += (room + 3) // 4 * 4
    return newest


cdef inline uint32_t read_tool(const uint8_t* text, uint64_t room) noexcept nogil:
    """Return the version in the last word of a string of at most `room` bytes: 132086 for 13.2.86.

    0 unless that word has the form `V13.2.86`, or the whole string the form `nvlink 13.2.86`.
    """
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    cdef const uint8_t* word                    # the rest of the last word
    cdef uint32_t parts[TOOL_PARTS]
    cdef uint32_t part = 0, digits = 0          # index of the current part, its digits so far
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
