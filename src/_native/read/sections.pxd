# Section headers of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset, strlen

from base.elf64 cimport Shdr
from base.elffile cimport ElfFile, is_in_file, name_at
from base.vector cimport vec_extend
from objectformats cimport FORMAT
from read.faults cimport (
    CONTENTS_PER_BYTE, F_ALIGN, F_ALIGN_LIMIT, F_ALIGN_SUM, F_ENTSIZE, F_NAME_BYTES, F_NAME_OFFSET,
    F_NONE, F_SECTION_BOUNDS, F_SECTION_NAME, F_SECTION_TYPE, F_SIZE_SUM, F_TOO_LARGE, MAX_ALIGN,
    Reader, count_name, max_nobits, refuse,
)
from rownumbers cimport E_SHARED, E_SYSTEM_SHARED
from sectionkinds cimport FREE_ALWAYS, FREE_PLAIN, KIND, K_OTHER, RULE, RULE_COUNT, KindRule
from sectionrules cimport FIRST_RULE, MAX_BANK, RULES
from tables.rows cimport FileRow, SectionRow

cdef enum:
    FIRST_MERCURY_SM = 100


cdef inline bint is_mercury(const FileRow* row) noexcept nogil:
    return row.sm >= FIRST_MERCURY_SM


cdef inline bint read_sections(Reader* reader, FileRow* row,
                               const ElfFile* elf) noexcept nogil:
    """Fill the rows of a file's sections; False with a fault, or without memory."""
    cdef const Shdr* h
    cdef SectionRow* s
    cdef SectionRow* rows = <SectionRow*>vec_extend(&reader.sections, row.section_count)
    cdef uint32_t i
    cdef int32_t reason
    cdef const char* name
    cdef uint64_t aligns = 0, contents = 0
    if rows == NULL:
        return False
    memset(rows, 0, row.section_count * sizeof(SectionRow))
    for i in range(row.section_count):
        h = &elf.table[i]
        s = &rows[i]
        s.file = <uint32_t>reader.file
        s.target = -1
        name = name_at(elf, h)
        if name == NULL:
            return refuse(reader, <int32_t>i, -1, F_NAME_OFFSET, h.sh_name, elf.names_size)
        s.name = <uint64_t>(<const uint8_t*>name - reader.arena)
        s.name_size = <uint32_t>strlen(name)
        if not count_name(reader, s.name_size, row.size):
            return refuse(reader, <int32_t>i, -1, F_NAME_BYTES, reader.names, row.size)
        s.flags = h.sh_flags
        s.type = h.sh_type
        reason = assign_kind(reader, s, row)
        if reason != F_NONE:
            return refuse(reader, <int32_t>i, -1, reason, s.type, 0)
        if not check_header(reader, row, elf, i, s.kind):
            return False
        if KIND[s.kind].given:
            s.offset = row.offset + h.sh_offset
        s.size = h.sh_size
        s.link = h.sh_link
        s.info = h.sh_info
        s.align = <uint32_t>h.sh_addralign if h.sh_addralign else 1
        s.entsize = <uint32_t>h.sh_entsize
        # The mercury twin has as many bytes in the file.
        if KIND[s.kind].holds == E_SYSTEM_SHARED and s.size > MAX_ALIGN:
            return refuse(reader, <int32_t>i, -1, F_TOO_LARGE, s.size, MAX_ALIGN)
        if KIND[s.kind].given:
            # Many large alignments would let a small file ask for a huge output.
            aligns += s.align
            if aligns > row.size + MAX_ALIGN:
                return refuse(reader, <int32_t>i, -1, F_ALIGN_SUM, aligns, row.size + MAX_ALIGN)
            contents += s.size
            if contents > CONTENTS_PER_BYTE * row.size:
                return refuse(reader, <int32_t>i, -1, F_SIZE_SUM, contents, row.size)
    return True


cdef inline bint check_header(Reader* reader, const FileRow* row, const ElfFile* elf,
                              uint32_t number, uint16_t kind) noexcept nogil:
    """Check where the contents of a section of that kind are, its alignment and entry size."""
    cdef const Shdr* h = &elf.table[number]
    if not KIND[kind].given:
        if h.sh_size > max_nobits():
            return refuse(reader, <int32_t>number, -1, F_TOO_LARGE, h.sh_size, max_nobits())
    elif not is_in_file(elf, h):
        return refuse(reader, <int32_t>number, -1, F_SECTION_BOUNDS, h.sh_offset + h.sh_size,
                      row.size)
    if (h.sh_addralign & (h.sh_addralign - 1)
            # The alignment of shared memory is the address of an array, if -r assigned one.
            and (KIND[kind].holds != E_SHARED or h.sh_addralign % 16)):
        return refuse(reader, <int32_t>number, -1, F_ALIGN, h.sh_addralign, MAX_ALIGN)
    if h.sh_addralign > MAX_ALIGN:
        return refuse(reader, <int32_t>number, -1, F_ALIGN_LIMIT, h.sh_addralign, MAX_ALIGN)
    if h.sh_entsize > 0xffff:
        return refuse(reader, <int32_t>number, -1, F_ENTSIZE, h.sh_entsize, 24)
    return True


cdef inline int32_t assign_kind(Reader* reader, SectionRow* s, const FileRow* row) noexcept nogil:
    """Give the section its kind: the first rule that its type, flags and name meet.

    Where nvlink does not look at names, one without a rule is of the first kind of its type.
    Returns F_NONE, or why it is refused: nothing that programs address is taken for plain data.
    """
    cdef const KindRule* rule
    cdef int32_t free = -1
    cdef uint32_t optional = FORMAT[row.format].optional & ~<uint32_t>s.flags
    cdef bint has_type = False
    cdef uint16_t first
    cdef size_t i
    for i in range(FIRST_RULE[s.type & 0xff], FIRST_RULE[(s.type & 0xff) + 1]):
        rule = &RULE[RULES[i]]
        if s.type != rule.type and not (rule.banked and s.type - rule.type <= MAX_BANK):
            continue
        if (<uint32_t>s.flags ^ rule.flags) & rule.mask & ~optional:
            continue
        has_type = True
        if has_name(reader.arena + s.name, s.name_size, rule, s.type - rule.type):
            s.kind = rule.kind
            s.bank = 0
            if rule.banked or KIND[rule.kind].first_bank:
                first = 0 if rule.banked else KIND[rule.kind].first_bank
                s.bank = <uint16_t>(first + s.type - KIND[rule.kind].type)
            return F_NONE
        if free < 0 and KIND[rule.kind].free >= (
                FREE_ALWAYS if is_mercury(row) else FREE_PLAIN):
            free = rule.kind
    if free < 0:
        return F_SECTION_NAME if has_type else F_SECTION_TYPE
    for i in range(RULE_COUNT if free == K_OTHER else 0):
        # Data of no kind that is called like one: something wrote the wrong type.
        if has_name(reader.arena + s.name, s.name_size, &RULE[i], 0):
            return F_SECTION_NAME
    s.kind = <uint16_t>free
    return F_NONE


cdef inline bint has_name(const uint8_t* name, uint32_t size, const KindRule* rule,
                          uint32_t bank) noexcept nogil:
    """Whether a name is, or begins with, that of the rule and the number of its bank."""
    cdef uint32_t position = rule.size
    # Names that begin alike differ at the end: most rules are out before all of a text is compared.
    if (rule.size == 0 or rule.size > size or name[rule.size - 1] != <uint8_t>rule.text[rule.size - 1]
            or memcmp(name, rule.text, rule.size) != 0):
        return False
    if not rule.banked:
        return not rule.exact or size == rule.size
    if bank >= 10:
        if position == size or name[position] != 48 + bank // 10:
            return False
        position += 1
    if position == size or name[position] != 48 + bank % 10:
        return False
    position += 1
    return position == size if rule.banked == 1 else position < size and name[position] == c'.'
