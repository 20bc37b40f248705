# Section headers of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memset

from elf64 cimport *
from elffaults cimport *
from rows cimport *
from vec cimport vec_extend

cdef enum:
    MAX_BANK = 17               # of .nv.constantN; R_CUDA_CONST_FIELD has five bits for N


cdef inline bint has_no_bytes(uint32_t type) noexcept nogil:
    return (type == SHT_NOBITS or type == SHT_NULL or type == SHT_CUDA_GLOBAL
            or type == SHT_CUDA_SHARED or type == SHT_CUDA_LOCAL
            or type == SHT_CUDA_RESERVED_SHARED)


cdef inline bint needs_contents(uint16_t kind) noexcept nogil:
    """Whether kernels read the bytes of sections of that kind."""
    return not (kind == K_NULL or kind == K_SYSTEM_SHARED or kind == K_MERC_SYSTEM_SHARED
                or kind == K_GLOBAL or kind == K_SHARED or kind == K_DEBUG_SHARED
                or kind == K_LOCAL)


cdef inline bint read_sections(Reader* r, int32_t file, FileRow* row, const Shdr* table,
                               uint32_t names) noexcept nogil:
    cdef const uint8_t* image = r.arena + row.offset
    cdef const Shdr* h
    cdef SectionRow* s
    cdef SectionRow* rows = <SectionRow*>vec_extend(&r.sections, row.section_count)
    cdef uint32_t i
    cdef const uint8_t* end
    cdef const uint8_t* strings
    cdef uint64_t strings_size = table[names].sh_size, aligns = 0, contents = 0
    if rows == NULL:
        return False
    memset(rows, 0, row.section_count * sizeof(SectionRow))
    if (table[names].sh_offset > row.size or strings_size > row.size - table[names].sh_offset
            or strings_size == 0
            or image[table[names].sh_offset + strings_size - 1] != 0):
        return refuse(r, file, <int32_t>names, -1, F_STRING_TABLE, strings_size, row.size)
    strings = image + table[names].sh_offset
    for i in range(row.section_count):
        h = &table[i]
        s = &rows[i]
        s.file = <uint32_t>file
        s.target = -1
        if h.sh_name >= strings_size:
            return refuse(r, file, <int32_t>i, -1, F_NAME, h.sh_name, strings_size)
        end = <const uint8_t*>memchr(strings + h.sh_name, 0, strings_size - h.sh_name)
        s.name = <uint64_t>(strings + h.sh_name - r.arena)
        s.name_size = <uint32_t>(end - (strings + h.sh_name))
        if not take_name(r, s.name_size, row.size):
            return refuse(r, file, <int32_t>i, -1, F_NAMES, r.names, row.size)
        if has_no_bytes(h.sh_type):
            if h.sh_size > max_nobits():
                return refuse(r, file, <int32_t>i, -1, F_TOO_LARGE, h.sh_size, max_nobits())
        elif h.sh_offset > row.size or h.sh_size > row.size - h.sh_offset:
            return refuse(r, file, <int32_t>i, -1, F_SECTION_BOUNDS, h.sh_offset + h.sh_size,
                          row.size)
        else:
            s.offset = row.offset + h.sh_offset
        if h.sh_addralign & (h.sh_addralign - 1):
            return refuse(r, file, <int32_t>i, -1, F_ALIGN, h.sh_addralign, MAX_ALIGN)
        if h.sh_addralign > MAX_ALIGN:
            return refuse(r, file, <int32_t>i, -1, F_ALIGN_LIMIT, h.sh_addralign, MAX_ALIGN)
        if h.sh_entsize > 0xffff:
            return refuse(r, file, <int32_t>i, -1, F_ENTSIZE, h.sh_entsize, 24)
        s.size = h.sh_size
        s.flags = h.sh_flags
        s.type = h.sh_type
        s.link = h.sh_link
        s.info = h.sh_info
        s.align = <uint32_t>h.sh_addralign if h.sh_addralign else 1
        s.entsize = <uint32_t>h.sh_entsize
        classify(r, s)
        if s.kind == K_SYSTEM_SHARED and s.size > MAX_ALIGN:    # its twin has as many bytes
            return refuse(r, file, <int32_t>i, -1, F_TOO_LARGE, s.size, MAX_ALIGN)
        if has_no_bytes(s.type):
            if s.size and needs_contents(s.kind):
                return refuse(r, file, <int32_t>i, -1, F_NO_CONTENTS, s.type, 0)
        else:
            # Many large alignments would let a small file ask for a huge output.
            aligns += s.align
            if aligns > row.size + MAX_ALIGN:
                return refuse(r, file, <int32_t>i, -1, F_ALIGN_SUM, aligns, row.size + MAX_ALIGN)
            contents += s.size
            if contents > CONTENTS_PER_BYTE * row.size:
                return refuse(r, file, <int32_t>i, -1, F_SIZE_SUM, contents, row.size)
    return True


cdef inline void classify(Reader* r, SectionRow* s) noexcept nogil:
    """Give the section its kind: the first rule that its name meets; K_OTHER without one."""
    cdef const uint8_t* name = r.arena + s.name
    cdef const RuleRow* rule
    cdef Py_ssize_t i
    cdef uint32_t at, bank = 0
    if s.type == SHT_NULL:
        s.kind = K_NULL
        return
    for i in range(r.rule_count):
        rule = &r.rules[i]
        if (rule.size <= s.name_size and (not rule.exact or rule.size == s.name_size)
                and memcmp(name, rule.text, rule.size) == 0):
            s.kind = rule.kind
            break
    if s.kind == K_CONSTANT:
        # .nv.constant<bank>[.<function>]
        at = 12
        while at < s.name_size and 48 <= name[at] <= 57 and bank < MAX_BANK:
            bank = bank * 10 + (name[at] - 48)
            at += 1
        # `.nv.constant03` and `.nv.constant3x` are no bank: the output would have another name.
        if (at == 12 or bank > MAX_BANK or (name[12] == 48 and at > 13)
                or (at < s.name_size and name[at] != 46)):
            s.kind = K_OTHER
            return
        s.bank = <uint16_t>bank
        if at < s.name_size:
            s.kind = K_CONSTANT0 if bank == 0 else K_CONSTANT_FUNC
