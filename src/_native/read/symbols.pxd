# The symbol tables of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport Sym, load32
from base.vector cimport vec_extend
from elfnumbers cimport (
    SHN_ABS, SHN_COMMON, SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, SHT_STRTAB, SHT_SYMTAB, STB_WEAK,
    STO_SHARED, STO_SPACE, STT_FUNC, STT_SECTION,
)
from outcomes cimport (
    F_BINDING, F_ENTSIZE, F_NAME_BYTES, F_NAME_OFFSET, F_NO_SYMTAB, F_NULL_SYMBOL, F_ROW_COUNT,
    F_SH_LINK, F_STRING_TABLE, F_SYMBOL_BOUNDS, F_SYMBOL_SECTION, F_SYMBOL_TYPE, F_TABLE_SIZE,
    F_TOO_LARGE, F_VARIABLE_ALIGN,
)
from read.faults cimport MAX_ALIGN, MAX_SHARED, MOST_ROWS, Reader, count_name, max_nobits, refuse
from rownumbers cimport E_SHARED, E_SYSTEM_SHARED
from sectionkinds cimport IS_CODE, KIND, K_MERC_SYMTAB, K_SYMTAB, K_SYMTAB_SHNDX
from tables.kinds cimport is_a
from tables.rows cimport FileRef, FileRow, SectionNumber, SectionRow, SymbolRow


# The sections of a file that describe its symbols. Indices are those of sections in the file.
ctypedef struct SymbolTables:
    int32_t symtab              # index of .symtab
    int32_t merc                # index of .nv.merc.symtab, or -1
    int32_t shndx               # index of .symtab_shndx, or -1
    const Sym* symbols          # contents of .symtab
    const Sym* mercury          # contents of .nv.merc.symtab, or NULL
    const uint8_t* indices      # contents of .symtab_shndx, or NULL
    const SectionRow* strtab    # the string table of .symtab


cdef inline bint read_symbols(Reader* reader, FileRow* file) noexcept nogil:
    """Fill the rows of a file's symbols; False with a fault, or without memory."""
    cdef SymbolTables tables
    cdef SymbolRow* symbols
    cdef uint32_t i
    if not find_symbol_tables(reader, file, &tables):
        return False
    symbols = <SymbolRow*>vec_extend(&reader.symbols, file.symbol_count)
    if symbols == NULL:
        return False
    for i in range(file.symbol_count):
        if not read_symbol(reader, file, &tables, i, &symbols[i]):
            return False
    return check_symbols(reader, file, tables.symtab)


cdef inline bint find_symbol_tables(Reader* reader, FileRow* file,
                                    SymbolTables* tables) noexcept nogil:
    """Find the symbol tables, and check all but the symbols themselves; False with a fault."""
    cdef const SectionRow* sections = <const SectionRow*>reader.sections.data + file.first_section
    cdef const SectionRow* section
    cdef uint32_t i
    memset(tables, 0, sizeof(SymbolTables))
    tables.symtab = tables.merc = tables.shndx = -1
    for i in range(file.section_count):
        if sections[i].kind == K_SYMTAB:
            tables.symtab = <int32_t>i
        elif sections[i].kind == K_MERC_SYMTAB:
            tables.merc = <int32_t>i
        elif sections[i].kind == K_SYMTAB_SHNDX:
            tables.shndx = <int32_t>i
    if tables.symtab < 0 or sections[tables.symtab].type != SHT_SYMTAB:
        return refuse(reader, -1, -1, F_NO_SYMTAB, 0, 0)
    section = &sections[tables.symtab]
    if section.entsize != sizeof(Sym):
        return refuse(reader, tables.symtab, -1, F_ENTSIZE, section.entsize, sizeof(Sym))
    if section.size % sizeof(Sym) or section.size == 0:
        return refuse(reader, tables.symtab, -1, F_TABLE_SIZE, section.size, sizeof(Sym))
    if section.link >= file.section_count or sections[section.link].type != SHT_STRTAB:
        return refuse(reader, tables.symtab, -1, F_SH_LINK, section.link, file.section_count)
    tables.strtab = &sections[section.link]
    if (tables.strtab.size == 0
            or reader.arena[tables.strtab.offset + tables.strtab.size - 1] != 0):
        return refuse(reader, <int32_t>section.link, -1, F_STRING_TABLE, tables.strtab.size,
                      file.size)
    if section.size // sizeof(Sym) > MOST_ROWS - reader.symbols.count:
        return refuse(reader, tables.symtab, -1, F_TOO_LARGE, section.size, MOST_ROWS)
    tables.symbols = <const Sym*>(reader.arena + section.offset)
    file.symbol_count = <uint32_t>(section.size // sizeof(Sym))
    file.strtab = tables.strtab.offset
    file.strtab_size = tables.strtab.size
    if tables.shndx >= 0:
        section = &sections[tables.shndx]
        if section.size // 4 < file.symbol_count:
            return refuse(reader, tables.shndx, -1, F_ROW_COUNT, section.size // 4,
                          file.symbol_count)
        tables.indices = reader.arena + section.offset
    if tables.merc >= 0:
        section = &sections[tables.merc]
        if section.entsize != sizeof(Sym):
            return refuse(reader, tables.merc, -1, F_ENTSIZE, section.entsize, sizeof(Sym))
        if section.size // sizeof(Sym) > file.symbol_count:
            return refuse(reader, tables.merc, -1, F_ROW_COUNT, section.size // sizeof(Sym),
                          file.symbol_count)
        file.mercury_symbols = <uint32_t>(section.size // sizeof(Sym))
        file.merc_symtab = section.offset
        tables.mercury = <const Sym*>(reader.arena + section.offset)
    return True


cdef inline bint read_symbol(Reader* reader, const FileRow* file, const SymbolTables* tables,
                             uint32_t i, SymbolRow* symbol) noexcept nogil:
    """Fill `symbol`, the row of symbol `i` of a file; False with a fault."""
    cdef const Sym* input = &tables.symbols[i]
    cdef const SectionRow* strtab = tables.strtab
    cdef const uint8_t* name
    cdef uint32_t index = input.st_shndx
    memset(symbol, 0, sizeof(SymbolRow))
    if input.st_name >= strtab.size:
        return refuse(reader, tables.symtab, i, F_NAME_OFFSET, input.st_name, strtab.size)
    name = reader.arena + strtab.offset + input.st_name
    symbol.name = strtab.offset + input.st_name
    symbol.name_size = <uint32_t>(
        <const uint8_t*>memchr(name, 0, strtab.size - input.st_name) - name)
    if not count_name(reader, symbol.name_size, file.size):
        return refuse(reader, tables.symtab, i, F_NAME_BYTES, reader.names, file.size)
    symbol.value = input.st_value
    symbol.size = input.st_size
    symbol.merc_size = tables.mercury[i].st_size if i < file.mercury_symbols else 0
    symbol.file = <FileRef>reader.file
    symbol.info = input.st_info
    symbol.other = input.st_other
    symbol.shndx = input.st_shndx
    symbol.section = -1
    if (index == SHN_COMMON and tables.indices != NULL
            and load32(tables.indices + 4 * i) == SHN_COMMON):
        # ptxas writes section index 0xfff2, the value of SHN_COMMON, as it is. .symtab_shndx
        # repeats the index for such a symbol, but not for a common one.
        index = symbol.shndx = SHN_XINDEX
    if index == SHN_COMMON or index == SHN_ABS:
        return True
    if index == SHN_XINDEX and tables.indices != NULL:
        index = load32(tables.indices + 4 * i)
    elif index >= SHN_LORESERVE:
        return refuse(reader, tables.symtab, i, F_SYMBOL_SECTION, index, file.section_count)
    if index >= file.section_count:
        return refuse(reader, tables.symtab, i, F_SYMBOL_SECTION, index, file.section_count)
    if index != SHN_UNDEF:
        symbol.section = <SectionNumber>(file.first_section + index)
    return True


cdef inline bint check_symbols(Reader* reader, FileRow* file, int32_t symtab) noexcept nogil:
    """Check a file's symbols, and that they fit their sections; False with a fault.

    `symtab` is the index of .symtab, in which faults are reported.
    """
    cdef const SymbolRow* symbols = <const SymbolRow*>reader.symbols.data + file.first_symbol
    cdef const SymbolRow* symbol
    cdef const SectionRow* section
    cdef uint32_t i, type
    cdef bint is_shared, is_shared_section
    if symbols[0].info or symbols[0].section >= 0 or symbols[0].shndx:
        return refuse(reader, symtab, 0, F_NULL_SYMBOL, symbols[0].info, 0)
    for i in range(file.symbol_count):
        symbol = &symbols[i]
        type = symbol.info & 15
        if symbol.info >> 4 > STB_WEAK:
            return refuse(reader, symtab, i, F_BINDING, symbol.info >> 4, STB_WEAK)
        if symbol.size > max_nobits():
            return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, max_nobits())
        is_shared = type != STT_FUNC and (symbol.other & STO_SPACE) == STO_SHARED
        if is_shared and symbol.size > <uint64_t>0xffffffffU:
            return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
        if symbol.section < 0:
            if type == STT_FUNC and symbol.shndx == SHN_COMMON:
                return refuse(reader, symtab, i, F_SYMBOL_TYPE, symbol.shndx, 0)
            if (is_shared or symbol.shndx == SHN_COMMON) and not is_alignment_of_variable(symbol):
                return refuse(reader, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
            continue
        if type == STT_SECTION:
            continue
        section = <const SectionRow*>reader.sections.data + symbol.section
        is_shared_section = KIND[section.kind].entity_kind in (E_SHARED, E_SYSTEM_SHARED)
        if ((type == STT_FUNC) != is_a(section.kind, IS_CODE)
                or (is_shared and not is_shared_section)):
            return refuse(reader, symtab, i, F_SYMBOL_TYPE,
                          <uint64_t>symbol.section - file.first_section, 0)
        if is_shared_section:
            if symbol.size > <uint64_t>0xffffffffU:
                return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
            # The value is an alignment, as long as variables have no address in shared memory.
            if not is_alignment_of_variable(symbol):
                return refuse(reader, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
        elif symbol.value > section.size or symbol.size > section.size - symbol.value:
            return refuse(reader, symtab, i, F_SYMBOL_BOUNDS, symbol.value, section.size)
    return True


cdef inline bint is_alignment_of_variable(const SymbolRow* symbol) noexcept nogil:
    """Return whether st_value of a common or shared variable is an alignment, or written by -r.

    An alignment may be 0. -r writes the address of an extern array, or -1 if it found no definition
    of the variable.
    """
    cdef uint64_t align = symbol.value
    if symbol.size == 0 and align % 16 == 0 and symbol.shndx != SHN_COMMON:
        return align <= MAX_SHARED  # the address that -r gave an extern array
    if align == <uint64_t>-1 and symbol.shndx == SHN_UNDEF:
        return True                 # -r found no definition of the variable
    return align & (align - 1) == 0 and align <= MAX_ALIGN
