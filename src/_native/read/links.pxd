# References of the sections of a cubin: to functions, to each other, and from relocations.
#
# `check_references` sets `target` of the rows whose sh_info names a section or symbol, and checks
# what the sections contain:
#
# 1. Code names the symbol of its function in sh_info (`check_code`).
# 2. A capsule also does (`check_capsule`). All other sections of a function name its code or its
#    capsule (`check_function_section`). No function has two sections of a kind or constant bank.
# 3. A relocation section names the section that it patches (`check_relocs`). Sections of attributes
#    and of calls have records that name symbols (read/records.pxd).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from base.elf64 cimport Rel, Rela
from base.vector cimport vec_extend
from elfnumbers cimport SHT_CUDA_MERC_RELA, SHT_REL, SHT_RELA, STT_FUNC
from outcomes cimport (
    F_CAPSULE_SIZE, F_DUPLICATE_SECTION, F_ENTSIZE, F_NO_CAPSULE, F_RELOC_OFFSET, F_RELOC_SYMBOL,
    F_RELOC_TYPE, F_SECTION_NAME, F_SECTION_TYPE, F_SH_INFO, F_TABLE_SIZE, F_TEXT_SIZE, F_TOO_LARGE,
)
from read.faults cimport MOST_ROWS, Reader, refuse
from read.records cimport check_attributes, check_calls
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
from tables.rows cimport (
    FileRow, SectionNumber, SectionRow, SymbolNumber, SymbolRow, function_symbol,
)

cdef enum:
    SHORTEST_CAPSULE = 14       # bytes, in 12.8: two u32, a bitmap of 4 bytes, a record of 2
    CODE_SYMBOL = 0xffffff      # bits of sh_info of code that number its symbol, before sm_100
    CODE_UNIT = 16              # bytes of an instruction

cdef inline bint check_references(Reader* reader, FileRow* file) noexcept nogil:
    """Set `target` of sections by their sh_info, and check what they contain; False with a fault.
    """
    cdef SectionRow* sections = <SectionRow*>reader.sections.data + file.first_section
    cdef SectionRow* section
    cdef uint32_t i
    cdef uint64_t* marks
    reader.marks.count = 0
    marks = <uint64_t*>vec_extend(&reader.marks, file.symbol_count)
    if marks == NULL:
        return False
    memset(marks, 0, 8 * <size_t>file.symbol_count)
    # Code comes first: other sections of a function refer to it.
    for i in range(file.section_count):
        if is_a(sections[i].kind, IS_CODE) and not check_code(reader, file, &sections[i], i):
            return False
    for i in range(file.section_count):
        section = &sections[i]
        if is_a(section.kind, IS_CAPSULE):
            if not check_capsule(reader, file, section, i):
                return False
        elif is_owned(section.kind):
            if not check_function_section(reader, file, section, i, KIND[section.kind].owner):
                return False
    for i in range(file.section_count):
        section = &sections[i]
        if is_a(section.kind, IS_CODE):
            if (is_mercury(file)
                    and not (marks[function_symbol(section) - <int32_t>file.first_symbol]
                             & kind_bit(K_CAPMERC))):
                return refuse(reader, <int32_t>i, -1, F_NO_CAPSULE, 0, 0)
        elif KIND[section.kind].info == HEAD_TARGET:
            if (section.info == 0 or section.info >= file.section_count
                    or not can_be_patched(section.kind, sections[section.info].kind)):
                return refuse(reader, <int32_t>i, -1, F_SH_INFO, section.info, file.section_count)
            section.target = <SectionNumber>(file.first_section + section.info)
            if not has_name_of_target(reader, file, section):
                return refuse(reader, <int32_t>i, -1, F_SECTION_NAME, section.type, 0)
            if not check_relocs(reader, file, section, i):
                return False
        elif is_a(section.kind, IS_RECORDS):
            if not check_attributes(reader, file, section, i):
                return False
        elif is_a(section.kind, IS_CALLS):
            if not check_calls(reader, file, section, i):
                return False
    return True


cdef inline bint has_expected_name(Reader* reader, const FileRow* file, const SectionRow* section,
                                   const uint8_t* name, uint32_t size) noexcept nogil:
    """Return whether a section is named after the function or section `name`, as its kind asks.

    An example is `.text.f` for `f`. nvlink finds sections of a function by name in some places and
    by sh_info in others, so both must agree. Always True for kinds whose names nvlink ignores.
    """
    cdef uint32_t stem = KIND[section.kind].stem
    if KIND[section.kind].free >= (FREE_ALWAYS if is_mercury(file) else FREE_PLAIN):
        return True
    if is_plain(section.kind, IS_LITERALS):
        stem += 1 + (section.bank >= 10)        # digits of the bank
    elif KIND[section.kind].info == HEAD_TARGET:
        # The stem of the kind is ".rela.", whose last dot is the first character of `name`; ".rel."
        # is shorter by one.
        stem -= 1 + (section.type == SHT_REL)
    return (section.name_size == stem + size
            and memcmp(reader.arena + section.name + stem, name, size) == 0)


cdef inline bint has_name_of_target(Reader* reader, const FileRow* file,
                                    const SectionRow* section) noexcept nogil:
    """Return whether a relocation section is named after the plain name of the one it patches."""
    cdef const SectionRow* target = <const SectionRow*>reader.sections.data + section.target
    cdef uint32_t skip = 0
    if is_merc(section.kind, IS_ENTRIES):
        skip = 11 if is_a(target.kind, IS_CAPSULE) else 8    # .nv.capmerc, .nv.merc
        if target.name_size < skip:
            return False
    return has_expected_name(reader, file, section, reader.arena + target.name + skip,
                             target.name_size - skip)


cdef inline bint check_code(Reader* reader, FileRow* file, SectionRow* section,
                            uint32_t index) noexcept nogil:
    """Check code and set its target, the symbol of its function; False with a fault."""
    # The symbol is in the low 24 bits of sh_info; before sm_90 the top byte is the number of
    # registers. From sm_100 on, all 32 bits are tried first.
    cdef uint32_t info = section.info & CODE_SYMBOL if not is_mercury(file) else section.info
    cdef SymbolNumber function
    if info >= file.symbol_count:
        info = section.info & CODE_SYMBOL
    if info == 0 or info >= file.symbol_count:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.symbol_count)
    function = <SymbolNumber>(file.first_symbol + info)
    section.target = <SectionNumber>function
    # The function must lie in this section. Otherwise two sections could name one function.
    if ((<SymbolRow*>reader.symbols.data)[function].section
            != <SectionNumber>(file.first_section + index)):
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.symbol_count)
    if ((<SymbolRow*>reader.symbols.data)[function].info & 15) != STT_FUNC:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.symbol_count)
    if section.size % CODE_UNIT:
        return refuse(reader, <int32_t>index, -1, F_TEXT_SIZE, section.size, CODE_UNIT)
    return check_function_name(reader, file, section, index, function)


cdef inline bint check_function_name(Reader* reader, const FileRow* file, const SectionRow* section,
                                     uint32_t index, SymbolNumber function) noexcept nogil:
    """Check that a section is named after its function; False with a fault."""
    cdef const SymbolRow* symbol = <const SymbolRow*>reader.symbols.data + function
    if not has_expected_name(reader, file, section, reader.arena + symbol.name, symbol.name_size):
        return refuse(reader, <int32_t>index, -1, F_SECTION_NAME, section.type, 0)
    return True


cdef inline bint check_capsule(Reader* reader, FileRow* file, SectionRow* section,
                               uint32_t index) noexcept nogil:
    """Check a capsule and set its target, the symbol of a function with code; False with a fault.
    """
    cdef SymbolNumber function
    cdef const SymbolRow* symbol
    if section.info == 0 or section.info >= file.symbol_count:
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.symbol_count)
    function = <SymbolNumber>(file.first_symbol + section.info)
    section.target = <SectionNumber>function
    symbol = <SymbolRow*>reader.symbols.data + function
    if (symbol.section < 0 or function_symbol(
            <SectionRow*>reader.sections.data + symbol.section) != function):
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.symbol_count)
    if section.size < SHORTEST_CAPSULE:
        return refuse(reader, <int32_t>index, -1, F_CAPSULE_SIZE, section.size, SHORTEST_CAPSULE)
    return mark_section_of_function(reader, file, section, index, function)


cdef inline bint check_function_section(Reader* reader, FileRow* file, SectionRow* section,
                                        uint32_t index, uint16_t owner_kind) noexcept nogil:
    """Check a section of a function, but not code or a capsule; False with a fault.

    Its target is the section with the function's code or capsule, whichever `owner_kind` says.
    """
    cdef SectionRow* sections = <SectionRow*>reader.sections.data + file.first_section
    cdef SymbolNumber function
    if (section.info == 0 or section.info >= file.section_count
            or sections[section.info].kind != owner_kind):
        return refuse(reader, <int32_t>index, -1, F_SH_INFO, section.info, file.section_count)
    section.target = <SectionNumber>(file.first_section + section.info)
    # A capsule that stands after this section is not checked yet, so check its sh_info here.
    if (is_a(owner_kind, IS_CAPSULE)
            and (sections[section.info].info == 0
                 or sections[section.info].info >= file.symbol_count)):
        return refuse(reader, <int32_t>section.info, -1, F_SH_INFO, sections[section.info].info,
                      file.symbol_count)
    function = (function_symbol(&sections[section.info]) if is_a(owner_kind, IS_CODE)
                else <SymbolNumber>(file.first_symbol + sections[section.info].info))
    return (check_function_name(reader, file, section, index, function)
            and mark_section_of_function(reader, file, section, index, function))


cdef inline uint64_t kind_bit(uint16_t kind) noexcept nogil:
    """Return the bit in `Reader.marks` of a kind of section; the first bits are constant banks."""
    return <uint64_t>1 << (KIND[kind].slot + MAX_BANK + 1)


cdef inline bint mark_section_of_function(Reader* reader, FileRow* file, SectionRow* section,
                                          uint32_t index, SymbolNumber function) noexcept nogil:
    """Mark that a function has a section of this kind or bank; False with a fault if it had one."""
    cdef uint64_t* marks = <uint64_t*>reader.marks.data + (function - <int32_t>file.first_symbol)
    cdef uint64_t bit = kind_bit(section.kind)
    if is_function_bank(section.kind):
        bit = <uint64_t>1 << section.bank
    if marks[0] & bit:
        return refuse(reader, <int32_t>index, -1, F_DUPLICATE_SECTION, 0, 0)
    marks[0] |= bit
    return True


cdef inline bint can_be_patched(uint16_t kind, uint16_t target_kind) noexcept nogil:
    """Return whether relocation sections of a kind can patch sections of `target_kind`."""
    return KIND[target_kind].patched and KIND[target_kind].mercury == KIND[kind].mercury


cdef inline bint is_narrow(uint32_t type, uint16_t target_kind) noexcept nogil:
    """Return whether the field of a 64-bit relocation can have 32 bits: that of a 32-bit variable.
    """
    return (is_a(target_kind, IS_VARIABLES)
            and type in (R_CUDA_64, R_CUDA_G64, R_CUDA_FUNC_DESC_64, R_CUDA_UNIFIED))


cdef inline bint check_relocs(Reader* reader, FileRow* file, SectionRow* section,
                              uint32_t index) noexcept nogil:
    """Check the entries of one relocation section; False with a fault."""
    cdef bint is_mercury_form = is_merc(section.kind, IS_ENTRIES)
    cdef bint is_rel = section.type == SHT_REL and not is_mercury_form
    cdef uint64_t entsize = sizeof(Rel) if is_rel else sizeof(Rela)
    cdef uint64_t limit = (<SectionRow*>reader.sections.data)[section.target].size
    cdef uint16_t target_kind = (<SectionRow*>reader.sections.data)[section.target].kind
    cdef uint64_t i, entry_count
    cdef const Rel* entry
    cdef uint32_t width
    if (not is_rel and section.type != (SHT_CUDA_MERC_RELA if is_mercury_form else SHT_RELA)
            and is_a(section.kind, IS_ENTRIES)):
        return refuse(reader, <int32_t>index, -1, F_SECTION_TYPE, section.type, 0)
    if section.entsize != entsize:
        return refuse(reader, <int32_t>index, -1, F_ENTSIZE, section.entsize, entsize)
    if section.size % entsize:
        return refuse(reader, <int32_t>index, -1, F_TABLE_SIZE, section.size, entsize)
    entry_count = section.size // entsize
    if entry_count > <uint64_t>MOST_ROWS:
        return refuse(reader, <int32_t>index, -1, F_TOO_LARGE, entry_count, MOST_ROWS)
    for i in range(entry_count):
        entry = <const Rel*>(reader.arena + section.offset + i * entsize)
        if entry.r_sym >= file.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_SYMBOL, entry.r_sym,
                          file.symbol_count)
        if (entry.r_type - FIRST_MERCURY_TYPE >= <uint32_t>MERCURY_TYPES if is_mercury_form
                else entry.r_type >= PLAIN_TYPES):
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_TYPE, entry.r_type, 0)
        # A capsule describes mercury code: offsets are in that code, not in the capsule.
        if is_mercury_form and is_a(target_kind, IS_CAPSULE):
            continue
        width = facts_of(entry.r_type).bytes
        if is_narrow(entry.r_type, target_kind):
            width = 4
        if entry.r_offset > limit or limit - entry.r_offset < width:
            return refuse(reader, <int32_t>index, <int64_t>i, F_RELOC_OFFSET, entry.r_offset,
                          limit)
    return True
