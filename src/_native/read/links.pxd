# References between the sections of a cubin: functions and their sections, relocations.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from base.elf64 cimport STT_FUNC, Rel, Rela
from base.vector cimport vec_extend
from elfnumbers cimport SHT_CUDA_MERC_RELA, SHT_REL, SHT_RELA
from read.faults cimport (
    F_CAPSULE_SIZE, F_DUPLICATE_SECTION, F_ENTSIZE, F_NO_CAPSULE, F_RELOC_OFFSET, F_RELOC_SYMBOL,
    F_RELOC_TYPE, F_SECTION_NAME, F_SECTION_TYPE, F_SH_INFO, F_TABLE_SIZE, F_TEXT_SIZE, F_TOO_LARGE,
    Reader, refuse,
)
from read.records cimport check_info, check_pairs
from read.sections cimport is_mercury
from relocationtypes cimport (
    FIRST_MERCURY_TYPE, MERCURY_TYPES, PLAIN_TYPES, R_CUDA_64, R_CUDA_FUNC_DESC_64, R_CUDA_G64,
    R_CUDA_UNIFIED, facts_of,
)
from sectionkinds cimport (
    FREE_ALWAYS, FREE_PLAIN, HEAD_TARGET, IS_CALLS, IS_CAPSULE, IS_CODE, IS_ENTRIES, IS_LITERALS,
    IS_RECORDS, IS_VARIABLES, KIND, K_CAPMERC,
)
from sectionrules cimport MAX_BANK
from tables.kinds cimport is_a, is_function_bank, is_merc, is_owned, is_plain
from tables.rows cimport FileRow, SectionRow, SymbolRow

cdef enum:
    SHORTEST_CAPSULE = 14       # 12.8: two words, a mask, the record of the last slot

cdef inline bint check_links(Reader* reader, FileRow* row) noexcept nogil:
    """Resolve sh_info to sections and symbols; check entries of relocation and table sections."""
    cdef SectionRow* sections = <SectionRow*>reader.sections.data + row.first_section
    cdef SectionRow* s
    cdef uint32_t i
    cdef uint64_t* marks
    reader.marks.count = 0
    marks = <uint64_t*>vec_extend(&reader.marks, row.symbol_count)
    if marks == NULL:
        return False
    memset(marks, 0, 8 * <size_t>row.symbol_count)
    # Code first: the sections of a function name its code.
    for i in range(row.section_count):
        if is_a(sections[i].kind, IS_CODE) and not check_text(reader, row, &sections[i], i):
            return False
    for i in range(row.section_count):
        s = &sections[i]
        if is_a(s.kind, IS_CAPSULE):
            if not check_capsule(reader, row, s, i):
                return False
        elif is_owned(s.kind):
            if not check_owner(reader, row, s, i, KIND[s.kind].owner):
                return False
    for i in range(row.section_count):
        s = &sections[i]
        if is_a(s.kind, IS_CODE):
            if is_mercury(row) and not (
                    marks[s.target - <int32_t>row.first_symbol] & kind_bit(K_CAPMERC)):
                return refuse(reader, <int32_t>i, -1, F_NO_CAPSULE, 0, 0)
        elif KIND[s.kind].info == HEAD_TARGET:
            if s.info == 0 or s.info >= row.section_count or not can_be_patched(
                    s.kind, sections[s.info].kind):
                return refuse(reader, <int32_t>i, -1, F_SH_INFO, s.info, row.section_count)
            s.target = <int32_t>(row.first_section + s.info)
            if not has_name_of_target(reader, row, s):
                return refuse(reader, <int32_t>i, -1, F_SECTION_NAME, s.type, 0)
            if not check_relocs(reader, row, s, i):
                return False
        elif is_a(s.kind, IS_RECORDS):
            if not check_info(reader, row, s, i):
                return False
        elif is_a(s.kind, IS_CALLS):
            if not check_pairs(reader, row, s, i):
                return False
    return True


cdef inline bint has_name_of(Reader* reader, const FileRow* row, const SectionRow* s,
                             const uint8_t* name, uint32_t size) noexcept nogil:
    """Whether a section is named after a function or a section; True where nvlink takes any name.

    nvlink finds sections of a function by name in some places and by sh_info in others.
    """
    cdef uint32_t stem = KIND[s.kind].stem
    if KIND[s.kind].free >= (FREE_ALWAYS if is_mercury(row) else FREE_PLAIN):
        return True
    if is_plain(s.kind, IS_LITERALS):
        stem += 1 + (s.bank >= 10)
    elif KIND[s.kind].info == HEAD_TARGET:
        stem -= 1 + (s.type == SHT_REL)     # the name of a section begins with the dot
    return (s.name_size == stem + size
            and memcmp(reader.arena + s.name + stem, name, size) == 0)


cdef inline bint has_name_of_target(Reader* reader, const FileRow* row,
                                    const SectionRow* s) noexcept nogil:
    """Whether relocations are named after what they patch, mercury ones after its plain form."""
    cdef const SectionRow* target = <const SectionRow*>reader.sections.data + s.target
    cdef uint32_t skip = 0
    if is_merc(s.kind, IS_ENTRIES):
        skip = 11 if is_a(target.kind, IS_CAPSULE) else 8    # .nv.capmerc, .nv.merc
        if target.name_size < skip:
            return False
    return has_name_of(reader, row, s, reader.arena + target.name + skip, target.name_size - skip)


cdef inline bint check_text(Reader* reader, FileRow* row, SectionRow* s,
                            uint32_t index) noexcept nogil:
    """Code: sh_info is the symbol of its function."""
    # Families before sm_90 keep REGCOUNT in the top byte.
    cdef uint32_t info = s.info & 0xffffff if not is_mercury(row) else s.info
    if info >= row.symbol_count:
        info = s.info & 0xffffff
    if info == 0 or info >= row.symbol_count:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.symbol_count)
    s.target = <int32_t>(row.first_symbol + info)
    # Otherwise two sections could name one function.
    if (<SymbolRow*>reader.symbols.data)[s.target].section != <int32_t>(row.first_section + index):
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.symbol_count)
    if ((<SymbolRow*>reader.symbols.data)[s.target].info & 15) != STT_FUNC:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.symbol_count)
    if s.size % 16:
        return refuse(reader, <int32_t>index, -1, F_TEXT_SIZE, s.size, 16)
    return check_function_name(reader, row, s, index, s.target)


cdef inline bint check_function_name(Reader* reader, const FileRow* row,
                                     const SectionRow* s, uint32_t index,
                                     int32_t function) noexcept nogil:
    """Check that a section is named after its function; False with a fault."""
    cdef const SymbolRow* symbol = <const SymbolRow*>reader.symbols.data + function
    if not has_name_of(reader, row, s, reader.arena + symbol.name, symbol.name_size):
        return refuse(reader, <int32_t>index, -1, F_SECTION_NAME, s.type, 0)
    return True


cdef inline bint check_capsule(Reader* reader, FileRow* row, SectionRow* s,
                               uint32_t index) noexcept nogil:
    """A mercury capsule: sh_info is the symbol of a function with code."""
    cdef const SymbolRow* symbol
    if s.info == 0 or s.info >= row.symbol_count:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.symbol_count)
    s.target = <int32_t>(row.first_symbol + s.info)
    symbol = <SymbolRow*>reader.symbols.data + s.target
    if (symbol.section < 0
            or (<SectionRow*>reader.sections.data)[symbol.section].target != s.target):
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.symbol_count)
    if s.size < SHORTEST_CAPSULE:
        return refuse(reader, <int32_t>index, -1, F_CAPSULE_SIZE, s.size, SHORTEST_CAPSULE)
    return mark_section(reader, row, s, index, s.target)


cdef inline bint check_owner(Reader* reader, FileRow* row, SectionRow* s, uint32_t index,
                             uint16_t kind) noexcept nogil:
    """A section of a function: sh_info is the section with its code or its capsule."""
    cdef SectionRow* sections = <SectionRow*>reader.sections.data + row.first_section
    cdef int32_t function
    if s.info == 0 or s.info >= row.section_count or sections[s.info].kind != kind:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, s.info, row.section_count)
    s.target = <int32_t>(row.first_section + s.info)
    # A capsule that stands after is not checked yet, but its index is.
    if is_a(kind, IS_CAPSULE) and (sections[s.info].info == 0
                                   or sections[s.info].info >= row.symbol_count):
        return refuse(reader, <int32_t>s.info, -1, F_SH_INFO, sections[s.info].info,
                      row.symbol_count)
    function = (sections[s.info].target if is_a(kind, IS_CODE)
                else <int32_t>(row.first_symbol + sections[s.info].info))
    return (check_function_name(reader, row, s, index, function)
            and mark_section(reader, row, s, index, function))


cdef inline uint64_t kind_bit(uint16_t kind) noexcept nogil:
    """Constants have a bit for each bank, other sections of functions one for their kind."""
    return <uint64_t>1 << (KIND[kind].slot + MAX_BANK + 1)


cdef inline bint mark_section(Reader* reader, FileRow* row, SectionRow* s, uint32_t index,
                              int32_t function) noexcept nogil:
    """A function has one section of a kind, and one for a constant bank."""
    cdef uint64_t* marks = <uint64_t*>reader.marks.data + (function - <int32_t>row.first_symbol)
    cdef uint64_t bit = kind_bit(s.kind)
    if is_function_bank(s.kind):
        bit = <uint64_t>1 << s.bank
    if marks[0] & bit:
        return refuse(reader, <int32_t>index, -1, F_DUPLICATE_SECTION, 0, 0)
    marks[0] |= bit
    return True


cdef inline bint can_be_patched(uint16_t kind, uint16_t target) noexcept nogil:
    """Whether relocations of that kind can be for sections of the other kind."""
    return KIND[target].patched and KIND[target].mercury == KIND[kind].mercury


cdef inline bint is_narrow(uint32_t type, uint16_t target) noexcept nogil:
    """Whether the field is an address in a variable, which may have room for its low half alone."""
    return is_a(target, IS_VARIABLES) and type in (
        R_CUDA_64, R_CUDA_G64, R_CUDA_FUNC_DESC_64, R_CUDA_UNIFIED)


cdef inline bint check_relocs(Reader* reader, FileRow* row, SectionRow* s,
                              uint32_t index) noexcept nogil:
    """Check the entries of one relocation section; False with a fault."""
    cdef bint mercury = is_merc(s.kind, IS_ENTRIES)
    cdef bint implicit = s.type == SHT_REL and not mercury
    cdef uint64_t entsize = sizeof(Rel) if implicit else sizeof(Rela)
    cdef uint64_t limit = (<SectionRow*>reader.sections.data)[s.target].size
    cdef uint16_t target_kind = (<SectionRow*>reader.sections.data)[s.target].kind
    cdef uint64_t i, n
    cdef const Rel* entry
    cdef uint32_t width
    if not implicit and s.type != (SHT_CUDA_MERC_RELA if mercury else SHT_RELA) \
            and is_a(s.kind, IS_ENTRIES):
        return refuse(reader, <int32_t>index, -1, F_SECTION_TYPE, s.type, 0)
    if s.entsize != entsize:
        return refuse(reader, <int32_t>index, -1, F_ENTSIZE, s.entsize, entsize)
    if s.size % entsize:
        return refuse(reader, <int32_t>index, -1, F_TABLE_SIZE, s.size, entsize)
    n = s.size // entsize
    if n > <uint64_t>0x7fffffff:
        return refuse(reader, <int32_t>index, -1, F_TOO_LARGE, n, 0x7fffffff)
    for i in range(n):
        entry = <const Rel*>(reader.arena + s.offset + i * entsize)
        if entry.r_sym >= row.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_SYMBOL, entry.r_sym,
                          row.symbol_count)
        if (entry.r_type - FIRST_MERCURY_TYPE >= <uint32_t>MERCURY_TYPES if mercury
                else entry.r_type >= PLAIN_TYPES):
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_TYPE, entry.r_type, 0)
        # Mercury code is described, not stored, in a capsule: offsets are not file offsets.
        if mercury and is_a(target_kind, IS_CAPSULE):
            continue
        width = facts_of(entry.r_type).bytes
        if is_narrow(entry.r_type, target_kind):
            width = 4
        if entry.r_offset > limit or limit - entry.r_offset < width:
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_OFFSET, entry.r_offset,
                          limit)
    return True
