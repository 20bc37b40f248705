# Entries of .symtab and .nv.merc.symtab, and of their tables of section indices (_shndx).
#
# .nv.merc.symtab has the same symbols in the same order: `change_to_mercury` makes each entry from
# a copy of the entry in .symtab.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport Sym
from base.prefetch cimport prefetch
from base.vector cimport Vec
from elfnumbers cimport (
    SHN_ABS, STB_GLOBAL, STB_LOCAL, STB_WEAK, STO_SHARED, STO_SPACE, STT_CUDA_OBJECT, STT_FUNC,
    STT_OBJECT, STT_SECTION, STV_INTERNAL,
)
from image.windows cimport Window, list_rows
from image.writer cimport Writer, contents_at, set_section
from rownumbers cimport (
    EF_DEFINED, EF_INNER, EF_LOCAL, EF_UNSIZED, E_CONST0_SIZE, E_FUNC, E_NULL, E_RESERVED, E_SHARED,
    E_SYSTEM_SHARED, E_UNIFIED,
)
from sectionkinds cimport K_MERC_SYMTAB, K_MERC_SYMTAB_SHNDX, K_SHARED, K_SYMTAB, K_SYMTAB_SHNDX
from tables.kinds cimport is_renamed
from tables.rows cimport (
    PART_LOCAL, PART_TAIL, SYSTEM_RESERVE, EntityRow, FileRow, FileSymbolRef, OutNumber,
    OutSymbolRow, SymbolNumber, SymbolRef, SymbolRow, is_instance, is_missing,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_LEAN_NAMES, TRAIT_MERCURY, TRAIT_SHARED_LOCAL


cdef inline void write_symbol(Writer* writer, const OutSymbolRow* row, Sym* out,
                              uint32_t* shndx_entry) noexcept nogil:
    """Write the .symtab entry of a symbol, and its .symtab_shndx entry unless that is NULL."""
    cdef const EntityRow* entity
    cdef const SymbolRow* source    # the definition that counts, or the first mention
    cdef uint8_t binding, type
    cdef OutNumber home             # OutRow of the symbol's section, or -1
    memset(out, 0, sizeof(Sym))
    out.st_name = row.name
    if row.section >= 0:
        out.st_info = STT_SECTION
        set_section(writer, row.section, out, shndx_entry)
        return
    if row.instance >= 0:
        out.st_info = STB_WEAK << 4 | STT_CUDA_OBJECT
        out.st_other = STO_SHARED | STV_INTERNAL
        out.st_value = writer.placed.dynamic[row.instance]
        return
    entity = &writer.merged.entities[row.entity]
    source = &writer.objects.symbols[entity.winner]
    home = writer.placed.homes[row.entity]
    binding = source.info >> 4
    type = STT_FUNC if entity.kind == E_NULL else source.info & 15
    out.st_other = source.other
    out.st_size = entity.size
    if not entity.flags & EF_DEFINED:
        binding = STB_LOCAL if entity.flags & EF_LOCAL else STB_GLOBAL
        if entity.kind == E_FUNC:
            out.st_size = 0
        out.st_value = source.value
        if entity.kind == E_SHARED and home >= 0:
            # Undefined extern arrays have a place. Instances, which stand for a kernel's, are weak.
            if is_instance(entity):
                binding = STB_WEAK
            out.st_value = writer.placed.symbol_values[row.entity]
            set_section(writer, home, out, shndx_entry)
        elif is_missing(entity, source):
            out.st_value = writer.placed.symbol_values[row.entity]
        elif entity.kind == E_CONST0_SIZE:
            out.st_value = writer.placed.symbol_values[row.entity]
            type = STT_CUDA_OBJECT
    else:
        out.st_value = writer.placed.symbol_values[row.entity]
        if home >= 0:
            set_section(writer, home, out, shndx_entry)
        elif source.shndx == SHN_ABS:
            out.st_shndx = SHN_ABS
    if writer.objects.executable and type == STT_CUDA_OBJECT:
        type = STT_OBJECT
        out.st_other &= <uint8_t>~STO_SPACE
        if (writer.objects.traits & TRAIT_SHARED_LOCAL and entity.kind == E_SHARED
                and not entity.flags & EF_UNSIZED and home >= 0
                and writer.placed.outs[home].kind == K_SHARED):
            binding = STB_LOCAL
        if writer.preserved and entity.kind == E_SHARED:
            out.st_other = STV_INTERNAL
    if (writer.objects.traits & TRAIT_MERCURY
            and (entity.kind == E_RESERVED or entity.kind == E_UNIFIED)):
        type = STT_CUDA_OBJECT
    out.st_info = <uint8_t>(binding << 4 | type)


cdef inline uint64_t mercury_value(const Writer* writer, SymbolNumber symbol) noexcept nogil:
    """Return st_value of an input symbol in its file's .nv.merc.symtab, 0 if it is not there.

    For a function inside of another one (EF_INNER) that is where it begins in the mercury form.
    """
    cdef const FileRow* file = &writer.objects.files[writer.objects.symbols[symbol].file]
    cdef FileSymbolRef index = <FileSymbolRef>(<SymbolRef>symbol - file.first_symbol)
    if index >= <FileSymbolRef>file.mercury_symbols:
        return 0
    return (<const Sym*>(writer.objects.arena + file.merc_symtab) + index).st_value


cdef inline void change_to_mercury(Writer* writer, const OutSymbolRow* row, Sym* out,
                                   uint32_t* shndx_entry) noexcept nogil:
    """Change an entry of .symtab into the entry of .nv.merc.symtab.

    The new entry names the mercury twin of the symbol's section, if that exists. A function has the
    size of its mercury form, another defined symbol the type that it has in the input.
    `shndx_entry` is the entry in .nv.merc.symtab_shndx, or NULL without that table.
    """
    cdef const EntityRow* entity
    cdef OutNumber home, twin       # OutRows of the symbol's section and of its twin, or -1
    if row.instance >= 0:
        return
    if row.section >= 0:
        home = row.section
        if is_renamed(&writer.placed.outs[home]):
            out.st_name = writer.placed.outs[home].symbol_name
    else:
        entity = &writer.merged.entities[row.entity]
        home = writer.placed.homes[row.entity] if entity.flags & EF_DEFINED else -1
        if entity.kind == E_FUNC:
            out.st_size = writer.objects.symbols[entity.winner].merc_size
            if entity.flags & EF_INNER:
                out.st_value = mercury_value(writer, entity.winner)
        elif entity.flags & EF_DEFINED or entity.kind == E_SHARED:
            out.st_info = (out.st_info & 0xf0) | (writer.objects.symbols[entity.winner].info & 15)
            out.st_other = writer.objects.symbols[entity.winner].other
            if writer.preserved and writer.objects.executable and entity.kind == E_SHARED:
                out.st_other |= STV_INTERNAL
            out.st_value = writer.placed.merc_values[row.entity]
            if entity.kind == E_SYSTEM_SHARED and writer.objects.executable:
                out.st_value = writer.placed.merc_values[row.entity] - SYSTEM_RESERVE
        elif entity.kind == E_RESERVED:
            out.st_value = 0
    twin = writer.placed.outs[home].merc if home >= 0 else -1
    if twin >= 0 and writer.placed.section_index[twin]:
        set_section(writer, twin, out, shndx_entry)


cdef inline void count_locals(Writer* writer) noexcept nogil:
    """Set `locals`, sh_info of both tables: one more than the index of the last local symbol.

    Without a local symbol it is 1 in .symtab, for the null symbol, but 0 in .nv.merc.symtab. A
    symbol of PART_GLOBAL that `write_symbol` makes local counts only in .nv.merc.symtab of a lean
    file (from CUDA 13.5 on).
    """
    cdef const OutSymbolRow* row
    cdef uint32_t shndx_entry = 0
    cdef Sym symbol
    cdef size_t i
    writer.locals = [1, 0]
    for i in range(writer.placed.symbol_order_count):
        row = &writer.placed.out_symbols[writer.placed.symbol_order[i]]
        # From sm_100 on, some section symbols follow the global ones. From CUDA 13.0 on, sh_info
        # of .symtab counts them as local.
        if row.part == PART_LOCAL or (
                row.part == PART_TAIL and not writer.objects.traits & TRAIT_EARLY_FILES):
            writer.locals[0] = <uint32_t>(i + 2)
        if row.part == PART_LOCAL:
            writer.locals[1] = <uint32_t>(i + 2)
        elif writer.objects.traits & TRAIT_LEAN_NAMES and row.part != PART_TAIL:
            write_symbol(writer, row, &symbol, &shndx_entry)
            if symbol.st_info >> 4 == STB_LOCAL:
                writer.locals[1] = <uint32_t>(i + 2)


cdef inline bint list_symbols(Vec* windows, Writer* writer) noexcept nogil:
    """List windows of the tables with an entry for each symbol; False without memory."""
    cdef uint16_t[4] kinds = [K_SYMTAB, K_SYMTAB_SHNDX, K_MERC_SYMTAB, K_MERC_SYMTAB_SHNDX]
    cdef size_t i, size
    for i in range(4):
        size = sizeof(Sym) if i % 2 == 0 else sizeof(uint32_t)
        if writer.only[kinds[i]] >= 0 and not list_rows(
                windows, contents_at(writer, kinds[i]), size,
                writer.placed.places[writer.only[kinds[i]]].size // size, kinds[i]):
            return False
    return True


cdef enum:
    SYMBOLS_AHEAD = 6           # distance in symbols of two steps of `prefetch_symbols`


cdef inline void prefetch_home(Writer* writer, OutNumber home) noexcept nogil:
    """Fetch what `set_section` reads of a symbol's section into the cache."""
    prefetch(&writer.placed.outs[home])
    prefetch(&writer.placed.outs[home].created)
    prefetch(&writer.placed.section_index[home])


cdef inline const OutSymbolRow* symbol_ahead(Writer* writer, size_t i,
                                             size_t steps) noexcept nogil:
    """Return the row of the symbol that is `steps` times SYMBOLS_AHEAD after number `i`."""
    return &writer.placed.out_symbols[writer.placed.symbol_order[i - 1 + steps * SYMBOLS_AHEAD]]


cdef inline OutNumber home_of(Writer* writer, const OutSymbolRow* row) noexcept nogil:
    """Return the OutRow of the symbol's section, or -1."""
    return row.section if row.entity < 0 else writer.placed.homes[row.entity]


cdef inline void prefetch_symbols(Writer* writer, size_t i, size_t end,
                                  bint is_mercury) noexcept nogil:
    """Fetch rows of the symbols that follow `i` into the cache, in three steps, or four.

    Each row says where the next one is: OutSymbolRow; EntityRow; SymbolRow and OutRow; for mercury
    tables also the OutRow's mercury twin. `end` is one after the window's last symbol.
    """
    cdef const OutSymbolRow* row
    cdef const SymbolRow* source
    cdef OutNumber home
    if i == 0 or i + 4 * SYMBOLS_AHEAD >= end:
        return
    prefetch(symbol_ahead(writer, i, 4))
    row = symbol_ahead(writer, i, 3)
    if row.entity >= 0:
        prefetch(&writer.merged.entities[row.entity])
        prefetch(&writer.placed.homes[row.entity])
        prefetch(&writer.placed.symbol_values[row.entity])
    row = symbol_ahead(writer, i, 2)
    if row.entity >= 0:
        source = &writer.objects.symbols[writer.merged.entities[row.entity].winner]
        prefetch(source)
        prefetch(&source.info)
    home = home_of(writer, row)
    if home >= 0:
        prefetch_home(writer, home)
    home = home_of(writer, symbol_ahead(writer, i, 1)) if is_mercury else -1
    if home >= 0 and writer.placed.outs[home].merc >= 0:
        prefetch_home(writer, writer.placed.outs[home].merc)


cdef inline void make_symbols(Writer* writer, const Window* window, uint8_t* to) noexcept nogil:
    """Write a window of a symbol table, or of its table of section indices (`window.kind`)."""
    cdef bint is_mercury = window.kind == K_MERC_SYMTAB or window.kind == K_MERC_SYMTAB_SHNDX
    cdef bint is_shndx = window.kind == K_SYMTAB_SHNDX or window.kind == K_MERC_SYMTAB_SHNDX
    cdef const OutSymbolRow* row
    cdef uint32_t index
    cdef uint32_t* shndx_entry = &index if writer.only[K_SYMTAB_SHNDX] >= 0 else NULL
    cdef Sym symbol
    cdef size_t i
    for i in range(window.first, window.last):
        index = 0
        prefetch_symbols(writer, i, window.last, is_mercury)
        if i == 0:
            memset(&symbol, 0, sizeof(Sym))
            symbol.st_value = writer.placed.null_value
        else:
            row = &writer.placed.out_symbols[writer.placed.symbol_order[i - 1]]
            write_symbol(writer, row, &symbol, shndx_entry)
            if is_mercury:
                change_to_mercury(writer, row, &symbol, shndx_entry
                                  if writer.only[K_MERC_SYMTAB_SHNDX] >= 0 else NULL)
        if is_shndx:
            (<uint32_t*>to)[i - window.first] = index
        else:
            (<Sym*>to)[i - window.first] = symbol
