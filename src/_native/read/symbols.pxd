# The symbol tables of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport (
    SHN_ABS, SHN_COMMON, SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, STB_WEAK, STO_SHARED, STO_SPACE,
    STT_FUNC, STT_SECTION, Sym, load32,
)
from base.vector cimport vec_extend
from elfnumbers cimport SHT_STRTAB, SHT_SYMTAB
from read.faults cimport (
    F_BINDING, F_ENTSIZE, F_NAME_BYTES, F_NAME_OFFSET, F_NO_SYMTAB, F_NULL_SYMBOL, F_ROW_COUNT,
    F_SH_LINK, F_STRING_TABLE, F_SYMBOL_BOUNDS, F_SYMBOL_SECTION, F_SYMBOL_TYPE, F_TABLE_SIZE,
    F_TOO_LARGE, F_VARIABLE_ALIGN, MAX_ALIGN, MAX_SHARED, Reader, count_name, max_nobits, refuse,
)
from rownumbers cimport E_SHARED, E_SYSTEM_SHARED
from sectionkinds cimport IS_CODE, KIND, K_MERC_SYMTAB, K_SYMTAB, K_SYMTAB_SHNDX
from tables.kinds cimport is_a
from tables.rows cimport FileRow, SectionRow, SymbolRow


# The sections of a file that say what its symbols are.
ctypedef struct SymbolTables:
    int32_t symtab              # numbers in the file, -1 for none
    int32_t merc
    int32_t shndx
    const Sym* symbols
    const Sym* mercury          # mercury symbols, or NULL
    const uint8_t* indices      # .symtab_shndx, or NULL
    const SectionRow* strtab


cdef inline bint read_symbols(Reader* reader, FileRow* row) noexcept nogil:
    """Fill the rows of a file's symbols; False with a fault, or without memory."""
    cdef SymbolTables tables
    cdef SymbolRow* symbol
    cdef uint32_t i
    if not find_symbols(reader, row, &tables):
        return False
    symbol = <SymbolRow*>vec_extend(&reader.symbols, row.symbol_count)
    if symbol == NULL:
        return False
    for i in range(row.symbol_count):
        if not read_symbol(reader, row, &tables, i, &symbol[i]):
            return False
    return check_symbols(reader, row, tables.symtab)


cdef inline bint find_symbols(Reader* reader, FileRow* row,
                              SymbolTables* tables) noexcept nogil:
    """Check the tables as far as can be done without a look at the symbols."""
    cdef const SectionRow* sections = <const SectionRow*>reader.sections.data + row.first_section
    cdef const SectionRow* s
    cdef uint32_t i
    memset(tables, 0, sizeof(SymbolTables))
    tables.symtab = tables.merc = tables.shndx = -1
    for i in range(row.section_count):
        if sections[i].kind == K_SYMTAB:
            tables.symtab = <int32_t>i
        elif sections[i].kind == K_MERC_SYMTAB:
            tables.merc = <int32_t>i
        elif sections[i].kind == K_SYMTAB_SHNDX:
            tables.shndx = <int32_t>i
    if tables.symtab < 0 or sections[tables.symtab].type != SHT_SYMTAB:
        return refuse(reader, -1, -1, F_NO_SYMTAB, 0, 0)
    s = &sections[tables.symtab]
    if s.entsize != sizeof(Sym):
        return refuse(reader, tables.symtab, -1, F_ENTSIZE, s.entsize, sizeof(Sym))
    if s.size % sizeof(Sym) or s.size == 0:
        return refuse(reader, tables.symtab, -1, F_TABLE_SIZE, s.size, sizeof(Sym))
    if s.link >= row.section_count or sections[s.link].type != SHT_STRTAB:
        return refuse(reader, tables.symtab, -1, F_SH_LINK, s.link, row.section_count)
    tables.strtab = &sections[s.link]
    if (tables.strtab.size == 0
            or reader.arena[tables.strtab.offset + tables.strtab.size - 1] != 0):
        return refuse(reader, <int32_t>s.link, -1, F_STRING_TABLE, tables.strtab.size, row.size)
    if s.size // sizeof(Sym) > 0x7fffffff - reader.symbols.count:
        return refuse(reader, tables.symtab, -1, F_TOO_LARGE, s.size, 0x7fffffff)
    tables.symbols = <const Sym*>(reader.arena + s.offset)
    row.symbol_count = <uint32_t>(s.size // sizeof(Sym))
    row.strtab = tables.strtab.offset
    row.strtab_size = tables.strtab.size
    if tables.shndx >= 0:
        s = &sections[tables.shndx]
        if s.size // 4 < row.symbol_count:
            return refuse(reader, tables.shndx, -1, F_ROW_COUNT, s.size // 4, row.symbol_count)
        tables.indices = reader.arena + s.offset
    if tables.merc >= 0:
        s = &sections[tables.merc]
        if s.entsize != sizeof(Sym):
            return refuse(reader, tables.merc, -1, F_ENTSIZE, s.entsize, sizeof(Sym))
        if s.size // sizeof(Sym) > row.symbol_count:
            return refuse(reader, tables.merc, -1, F_ROW_COUNT, s.size // sizeof(Sym),
                          row.symbol_count)
        row.mercury_symbols = <uint32_t>(s.size // sizeof(Sym))
        row.merc_symtab = s.offset
        tables.mercury = <const Sym*>(reader.arena + s.offset)
    return True


cdef inline bint read_symbol(Reader* reader, const FileRow* row,
                             const SymbolTables* tables, uint32_t i,
                             SymbolRow* symbol) noexcept nogil:
    """Fill the row of one symbol; False with a fault."""
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
    if not count_name(reader, symbol.name_size, row.size):
        return refuse(reader, tables.symtab, i, F_NAME_BYTES, reader.names, row.size)
    symbol.value = input.st_value
    symbol.size = input.st_size
    symbol.merc_size = tables.mercury[i].st_size if i < row.mercury_symbols else 0
    symbol.file = <uint32_t>reader.file
    symbol.info = input.st_info
    symbol.other = input.st_other
    symbol.shndx = input.st_shndx
    symbol.section = -1
    if (index == SHN_COMMON and tables.indices != NULL
            and load32(tables.indices + 4 * i) == SHN_COMMON):
        # ptxas writes the index 0xfff2 as it is; of common symbols the table says nothing.
        index = symbol.shndx = SHN_XINDEX
    if index == SHN_COMMON or index == SHN_ABS:
        return True
    if index == SHN_XINDEX and tables.indices != NULL:
        index = load32(tables.indices + 4 * i)
    elif index >= SHN_LORESERVE:
        return refuse(reader, tables.symtab, i, F_SYMBOL_SECTION, index, row.section_count)
    if index >= row.section_count:
        return refuse(reader, tables.symtab, i, F_SYMBOL_SECTION, index, row.section_count)
    if index != SHN_UNDEF:
        symbol.section = <int32_t>(row.first_section + index)
    return True


cdef inline bint check_symbols(Reader* reader, FileRow* row,
                               int32_t symtab) noexcept nogil:
    """Check each symbol against the section that holds it."""
    cdef const SymbolRow* symbols = <const SymbolRow*>reader.symbols.data + row.first_symbol
    cdef const SymbolRow* symbol
    cdef const SectionRow* home
    cdef uint32_t i, type
    cdef bint shared, room
    if symbols[0].info or symbols[0].section >= 0 or symbols[0].shndx:
        return refuse(reader, symtab, 0, F_NULL_SYMBOL, symbols[0].info, 0)
    for i in range(row.symbol_count):
        symbol = &symbols[i]
        type = symbol.info & 15
        if symbol.info >> 4 > STB_WEAK:
            return refuse(reader, symtab, i, F_BINDING, symbol.info >> 4, STB_WEAK)
        if symbol.size > max_nobits():
            return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, max_nobits())
        shared = type != STT_FUNC and (symbol.other & STO_SPACE) == STO_SHARED
        if shared and symbol.size > <uint64_t>0xffffffffU:
            return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
        if symbol.section < 0:
            if type == STT_FUNC and symbol.shndx == SHN_COMMON:
                return refuse(reader, symtab, i, F_SYMBOL_TYPE, symbol.shndx, 0)
            if (shared or symbol.shndx == SHN_COMMON) and not is_variable_align(symbol):
                return refuse(reader, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
            continue
        if type == STT_SECTION:
            continue
        home = <const SectionRow*>reader.sections.data + symbol.section
        room = KIND[home.kind].holds in (E_SHARED, E_SYSTEM_SHARED)
        if (type == STT_FUNC) != is_a(home.kind, IS_CODE) or (shared and not room):
            return refuse(reader, symtab, i, F_SYMBOL_TYPE,
                          <uint64_t>symbol.section - row.first_section, 0)
        if room:
            if symbol.size > <uint64_t>0xffffffffU:
                return refuse(reader, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
            # Nothing is placed in shared memory yet: the value is an alignment.
            if not is_variable_align(symbol):
                return refuse(reader, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
        elif symbol.value > home.size or symbol.size > home.size - symbol.value:
            return refuse(reader, symtab, i, F_SYMBOL_BOUNDS, symbol.value, home.size)
    return True


cdef inline bint is_variable_align(const SymbolRow* symbol) noexcept nogil:
    cdef uint64_t value = symbol.value
    if symbol.size == 0 and value % 16 == 0 and symbol.shndx != SHN_COMMON:
        return value <= MAX_SHARED  # an extern array that -r gave an address
    if value == <uint64_t>-1 and symbol.shndx == SHN_UNDEF:
        return True                 # a variable that nothing defined in a link with -r
    return value & (value - 1) == 0 and value <= MAX_ALIGN
