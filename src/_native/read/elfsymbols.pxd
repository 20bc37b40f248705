# The symbol tables of a cubin as checked rows.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from elf64 cimport *
from elffaults cimport *
from kinds cimport *
from rows cimport *
from vec cimport vec_extend


cdef inline bint read_symbols(Reader* r, int32_t file, FileRow* row) noexcept nogil:
    cdef SectionRow* sections = <SectionRow*>r.sections.data + row.first_section
    cdef SectionRow* symtab = NULL
    cdef SectionRow* merc = NULL
    cdef SectionRow* shndx = NULL
    cdef SectionRow* strtab
    cdef const Sym* input
    cdef const Sym* mercury = NULL
    cdef SymbolRow* symbol
    cdef uint32_t i, index
    cdef const uint8_t* name
    cdef const uint8_t* end
    for i in range(row.section_count):
        if sections[i].kind == K_SYMTAB:
            symtab = &sections[i]
        elif sections[i].kind == K_MERC_SYMTAB:
            merc = &sections[i]
        elif sections[i].kind == K_SYMTAB_SHNDX:
            shndx = &sections[i]
    if symtab == NULL or symtab.type != SHT_SYMTAB:
        return refuse(r, file, -1, -1, F_NO_SYMTAB, 0, 0)
    index = <uint32_t>(symtab - sections)
    if symtab.entsize != sizeof(Sym):
        return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, symtab.entsize, sizeof(Sym))
    if symtab.size % sizeof(Sym) or symtab.size == 0:
        return refuse(r, file, <int32_t>index, -1, F_SIZE, symtab.size, sizeof(Sym))
    if symtab.link >= row.section_count or sections[symtab.link].type != SHT_STRTAB:
        return refuse(r, file, <int32_t>index, -1, F_LINK, symtab.link, row.section_count)
    strtab = &sections[symtab.link]
    if strtab.size == 0 or r.arena[strtab.offset + strtab.size - 1] != 0:
        return refuse(r, file, <int32_t>symtab.link, -1, F_STRING_TABLE, strtab.size, row.size)
    if symtab.size // sizeof(Sym) > 0x7fffffff - r.symbols.count:
        return refuse(r, file, <int32_t>index, -1, F_TOO_LARGE, symtab.size, 0x7fffffff)
    row.symbol_count = <uint32_t>(symtab.size // sizeof(Sym))
    row.strtab = strtab.offset
    row.strtab_size = strtab.size
    if shndx != NULL and shndx.size // 4 < row.symbol_count:
        return refuse(r, file, <int32_t>(shndx - sections), -1, F_ROWS, shndx.size // 4,
                      row.symbol_count)
    if merc != NULL:
        index = <uint32_t>(merc - sections)
        if merc.entsize != sizeof(Sym):
            return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, merc.entsize, sizeof(Sym))
        if merc.size // sizeof(Sym) > row.symbol_count:
            return refuse(r, file, <int32_t>index, -1, F_ROWS, merc.size // sizeof(Sym),
                          row.symbol_count)
        row.mercury_symbols = <uint32_t>(merc.size // sizeof(Sym))
        row.merc_symtab = merc.offset
        mercury = <const Sym*>(r.arena + merc.offset)
    symbol = <SymbolRow*>vec_extend(&r.symbols, row.symbol_count)
    if symbol == NULL:
        return False
    input = <const Sym*>(r.arena + symtab.offset)
    for i in range(row.symbol_count):
        memset(&symbol[i], 0, sizeof(SymbolRow))
        if input[i].st_name >= strtab.size:
            return refuse(r, file, <int32_t>(symtab - sections), i, F_NAME, input[i].st_name,
                          strtab.size)
        name = r.arena + strtab.offset + input[i].st_name
        end = <const uint8_t*>memchr(name, 0, strtab.size - input[i].st_name)
        symbol[i].name = strtab.offset + input[i].st_name
        symbol[i].name_size = <uint32_t>(end - name)
        if not take_name(r, symbol[i].name_size, row.size):
            return refuse(r, file, <int32_t>(symtab - sections), i, F_NAMES, r.names, row.size)
        symbol[i].value = input[i].st_value
        symbol[i].size = input[i].st_size
        symbol[i].merc_size = mercury[i].st_size if i < row.mercury_symbols else 0
        symbol[i].file = <uint32_t>file
        symbol[i].info = input[i].st_info
        symbol[i].other = input[i].st_other
        symbol[i].shndx = input[i].st_shndx
        symbol[i].section = -1
        index = input[i].st_shndx
        if index == SHN_XINDEX and shndx != NULL:
            index = load32(r.arena + shndx.offset + 4 * i)
        elif index >= SHN_LORESERVE:
            if index == SHN_COMMON or index == SHN_ABS:
                continue
            return refuse(r, file, <int32_t>(symtab - sections), i, F_SYMBOL_SECTION, index,
                          row.section_count)
        if index >= row.section_count:
            return refuse(r, file, <int32_t>(symtab - sections), i, F_SYMBOL_SECTION, index,
                          row.section_count)
        if index != SHN_UNDEF:
            symbol[i].section = <int32_t>(row.first_section + index)
    return check_symbols(r, file, row, <int32_t>(symtab - sections))


cdef inline bint check_symbols(Reader* r, int32_t file, FileRow* row,
                               int32_t symtab) noexcept nogil:
    """What a symbol says of itself against the section that holds it."""
    cdef const SymbolRow* symbols = <const SymbolRow*>r.symbols.data + row.first_symbol
    cdef const SymbolRow* symbol
    cdef const SectionRow* home
    cdef uint32_t i, type
    cdef bint shared, room
    if symbols[0].info or symbols[0].section >= 0 or symbols[0].shndx:
        return refuse(r, file, symtab, 0, F_NULL_SYMBOL, symbols[0].info, 0)
    for i in range(row.symbol_count):
        symbol = &symbols[i]
        type = symbol.info & 15
        if symbol.info >> 4 > STB_WEAK:
            return refuse(r, file, symtab, i, F_BINDING, symbol.info >> 4, STB_WEAK)
        if symbol.size > max_nobits():
            return refuse(r, file, symtab, i, F_TOO_LARGE, symbol.size, max_nobits())
        shared = type != STT_FUNC and (symbol.other & STO_SPACE) == STO_SHARED
        if shared and symbol.size > <uint64_t>0xffffffffU:
            return refuse(r, file, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
        if symbol.section < 0:
            if type == STT_FUNC and symbol.shndx == SHN_COMMON:
                return refuse(r, file, symtab, i, F_FUNCTION, symbol.shndx, 0)
            if (shared or symbol.shndx == SHN_COMMON) and not is_variable_align(symbol):
                return refuse(r, file, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
            continue
        if type == STT_SECTION:
            continue
        home = <const SectionRow*>r.sections.data + symbol.section
        room = KIND[home.kind].holds in (E_SHARED, E_SYSTEM_SHARED)
        if (type == STT_FUNC) != is_a(home.kind, IS_CODE) or (shared and not room):
            return refuse(r, file, symtab, i, F_FUNCTION,
                          <uint64_t>symbol.section - row.first_section, 0)
        if room:
            if symbol.size > <uint64_t>0xffffffffU:
                return refuse(r, file, symtab, i, F_TOO_LARGE, symbol.size, <uint64_t>0xffffffffU)
            # Nothing is placed in shared memory yet: the value is an alignment.
            if not is_variable_align(symbol):
                return refuse(r, file, symtab, i, F_VARIABLE_ALIGN, symbol.value, MAX_ALIGN)
        elif symbol.value > home.size or symbol.size > home.size - symbol.value:
            return refuse(r, file, symtab, i, F_SYMBOL_BOUNDS, symbol.value, home.size)
    return True


cdef inline bint is_variable_align(const SymbolRow* symbol) noexcept nogil:
    cdef uint64_t value = symbol.value
    if symbol.size == 0 and value % 16 == 0 and symbol.shndx != SHN_COMMON:
        return value <= MAX_SHARED  # an extern array that -r gave an address
    return value & (value - 1) == 0 and value <= MAX_ALIGN
