# Section headers of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset, strlen

from base.elf64 cimport Shdr
from base.elffile cimport ElfFile, is_in_file, name_at
from base.vector cimport vec_extend
from objectformats cimport FORMAT
from outcomes cimport (
    F_ALIGN, F_ALIGN_LIMIT, F_ALIGN_SUM, F_ENTSIZE, F_NAME_BYTES, F_NAME_OFFSET, F_NONE,
    F_SECTION_BOUNDS, F_SECTION_NAME, F_SECTION_TYPE, F_SIZE_SUM, F_TOO_LARGE,
)
from read.faults cimport CONTENTS_PER_BYTE, MAX_ALIGN, Reader, count_name, max_nobits, refuse
from rownumbers cimport E_SHARED, E_SYSTEM_SHARED
from sectionkinds cimport FREE_ALWAYS, FREE_PLAIN, KIND, K_OTHER, RULE, RULE_COUNT, KindRule
from sectionrules cimport FIRST_RULE, MAX_BANK, RULES
from tables.rows cimport FileRef, FileRow, SectionRow

cdef enum:
    FIRST_MERCURY_SM = 100      # SM number of the first architecture with mercury sections
    MOST_ENTSIZE = 0xffff       # bytes: a section with a larger sh_entsize is refused
    LARGEST_ENTRY = 24          # bytes of the largest entries: those of .rela and .symtab


cdef inline bint is_mercury(const FileRow* file) noexcept nogil:
    """Return whether a file is for an architecture with mercury sections, sm_100 or later."""
    return file.sm >= FIRST_MERCURY_SM


cdef inline bint read_sections(Reader* reader, FileRow* file, const ElfFile* elf) noexcept nogil:
    """Fill the rows of a file's sections; False with a fault, or without memory."""
    cdef const Shdr* header
    cdef SectionRow* section
    cdef SectionRow* sections = <SectionRow*>vec_extend(&reader.sections, file.section_count)
    cdef uint32_t i
    cdef int32_t reason
    cdef const char* name
    cdef uint64_t aligns = 0, contents = 0
    if sections == NULL:
        return False
    memset(sections, 0, file.section_count * sizeof(SectionRow))
    for i in range(file.section_count):
        header = &elf.table[i]
        section = &sections[i]
        section.file = <FileRef>reader.file
        section.target = -1
        name = name_at(elf, header)
        if name == NULL:
            return refuse(reader, <int32_t>i, -1, F_NAME_OFFSET, header.sh_name, elf.names_size)
        section.name = <uint64_t>(<const uint8_t*>name - reader.arena)
        section.name_size = <uint32_t>strlen(name)
        if not count_name(reader, section.name_size, file.size):
            return refuse(reader, <int32_t>i, -1, F_NAME_BYTES, reader.names, file.size)
        section.flags = header.sh_flags
        section.type = header.sh_type
        reason = assign_kind(reader, section, file)
        if reason != F_NONE:
            return refuse(reader, <int32_t>i, -1, reason, section.type, 0)
        if not check_header(reader, file, elf, i, section.kind):
            return False
        if KIND[section.kind].given:
            section.offset = file.offset + header.sh_offset
        section.size = header.sh_size
        section.link = header.sh_link
        section.info = header.sh_info
        section.align = <uint32_t>header.sh_addralign if header.sh_addralign else 1
        section.entsize = <uint32_t>header.sh_entsize
        # The mercury form of the system's shared memory takes `size` bytes of the output, so a
        # small input could ask for many.
        if KIND[section.kind].entity_kind == E_SYSTEM_SHARED and section.size > MAX_ALIGN:
            return refuse(reader, <int32_t>i, -1, F_TOO_LARGE, section.size, MAX_ALIGN)
        if KIND[section.kind].given:
            # Many large alignments would let a small file ask for a huge output.
            aligns += section.align
            if aligns > file.size + MAX_ALIGN:
                return refuse(reader, <int32_t>i, -1, F_ALIGN_SUM, aligns, file.size + MAX_ALIGN)
            contents += section.size
            if contents > CONTENTS_PER_BYTE * file.size:
                return refuse(reader, <int32_t>i, -1, F_SIZE_SUM, contents, file.size)
    return True


cdef inline bint check_header(Reader* reader, const FileRow* file, const ElfFile* elf,
                              uint32_t index, uint16_t kind) noexcept nogil:
    """Check offset, size, alignment and entry size of section `index`; False with a fault."""
    cdef const Shdr* header = &elf.table[index]
    if not KIND[kind].given:
        if header.sh_size > max_nobits():
            return refuse(reader, <int32_t>index, -1, F_TOO_LARGE, header.sh_size, max_nobits())
    elif not is_in_file(elf, header):
        return refuse(reader, <int32_t>index, -1, F_SECTION_BOUNDS,
                      header.sh_offset + header.sh_size, file.size)
    if (header.sh_addralign & (header.sh_addralign - 1)
            # sh_addralign of shared memory is the address of an extern array, if -r assigned one.
            and (KIND[kind].entity_kind != E_SHARED or header.sh_addralign % 16)):
        return refuse(reader, <int32_t>index, -1, F_ALIGN, header.sh_addralign, MAX_ALIGN)
    if header.sh_addralign > MAX_ALIGN:
        return refuse(reader, <int32_t>index, -1, F_ALIGN_LIMIT, header.sh_addralign, MAX_ALIGN)
    if header.sh_entsize > MOST_ENTSIZE:
        return refuse(reader, <int32_t>index, -1, F_ENTSIZE, header.sh_entsize, LARGEST_ENTRY)
    return True


cdef inline int32_t assign_kind(Reader* reader, SectionRow* section,
                                const FileRow* file) noexcept nogil:
    """Set kind and bank of a section, by the first rule that fits its type, flags and name.

    If no rule fits, the kind is that of the first rule which fits type and flags, and whose names
    nvlink ignores (`Kind.free`). Returns F_NONE, or a reason to refuse the section: what programs
    address must not be taken for plain data.
    """
    cdef const KindRule* rule
    # Kind of the first rule that fits except for the name, which nvlink ignores, or -1.
    cdef int32_t free_kind = -1
    # Flags that sections of the file's format may lack, and that this one lacks.
    cdef uint32_t optional = FORMAT[file.format].optional & ~<uint32_t>section.flags
    cdef bint has_type = False      # a rule fits type and flags
    cdef uint16_t first             # bank of sections of the type KIND[].type
    cdef size_t i
    for i in range(FIRST_RULE[section.type & 0xff], FIRST_RULE[(section.type & 0xff) + 1]):
        rule = &RULE[RULES[i]]
        if section.type != rule.type and not (rule.banked and section.type - rule.type <= MAX_BANK):
            continue
        if (<uint32_t>section.flags ^ rule.flags) & rule.mask & ~optional:
            continue
        has_type = True
        if has_name_of_rule(reader.arena + section.name, section.name_size, rule,
                            section.type - rule.type):
            section.kind = rule.kind
            section.bank = 0
            if rule.banked or KIND[rule.kind].first_bank:
                first = 0 if rule.banked else KIND[rule.kind].first_bank
                section.bank = <uint16_t>(first + section.type - KIND[rule.kind].type)
            return F_NONE
        if (free_kind < 0
                and KIND[rule.kind].free >= (FREE_ALWAYS if is_mercury(file) else FREE_PLAIN)):
            free_kind = rule.kind
    if free_kind < 0:
        return F_SECTION_NAME if has_type else F_SECTION_TYPE
    for i in range(RULE_COUNT if free_kind == K_OTHER else 0):
        # Data whose name is that of another kind is refused: what wrote it used the wrong type.
        if has_name_of_rule(reader.arena + section.name, section.name_size, &RULE[i], 0):
            return F_SECTION_NAME
    section.kind = <uint16_t>free_kind
    return F_NONE


cdef inline bint has_name_of_rule(const uint8_t* name, uint32_t size, const KindRule* rule,
                                  uint32_t bank) noexcept nogil:
    """Return whether a name is that of a rule, or begins with it if the rule is not `exact`.

    The rule of a constant bank asks for the number `bank` after its own text, such as 3 in
    `.nv.constant3`, and then for the end of the name if `banked` is 1, else for a dot.
    """
    cdef uint32_t position = rule.size
    # Names that begin alike differ at the end: most rules fail before a whole text is compared.
    if (rule.size == 0 or rule.size > size
            or name[rule.size - 1] != <uint8_t>rule.text[rule.size - 1]
            or memcmp(name, rule.text, rule.size) != 0):
        return False
    if not rule.banked:
        return not rule.exact or size == rule.size
    if bank >= 10:
        if position == size or name[position] != c'0' + bank // 10:
            return False
        position += 1
    if position == size or name[position] != c'0' + bank % 10:
        return False
    position += 1
    return position == size if rule.banked == 1 else position < size and name[position] == c'.'
