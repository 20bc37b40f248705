# Entries of .symtab and .nv.merc.symtab.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport (
    SHN_ABS, STB_GLOBAL, STB_LOCAL, STB_WEAK, STO_SHARED, STT_CUDA_OBJECT, STT_FUNC, STT_OBJECT,
    STT_SECTION, STV_INTERNAL, Sym,
)
from base.vector cimport Vec
from image.windows cimport Window, list_rows
from image.writer cimport Writer, contents_at, set_section
from rownumbers cimport (
    EF_DEFINED, EF_INNER, EF_LOCAL, EF_UNSIZED, E_CONST0_SIZE, E_FUNC, E_NULL, E_RESERVED, E_SHARED,
    E_SYSTEM_SHARED, E_UNIFIED,
)
from sectionkinds cimport K_MERC_SYMTAB, K_MERC_SYMTAB_SHNDX, K_SHARED, K_SYMTAB, K_SYMTAB_SHNDX
from tables.kinds cimport is_renamed
from tables.rows cimport (
    PART_LOCAL, PART_TAIL, SYSTEM_RESERVE, EntityRow, FileRow, OutSymbolRow, SymbolRow, is_instance,
    is_missing,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_LEAN_NAMES, TRAIT_MERCURY, TRAIT_SHARED_LOCAL


cdef inline void write_symbol(Writer* writer, const OutSymbolRow* row, Sym* out,
                              uint32_t* wide) noexcept nogil:
    """Write one entry of .symtab; `wide` is its entry in .symtab_shndx, or NULL."""
    cdef const EntityRow* e
    cdef const SymbolRow* s
    cdef uint8_t binding, type
    cdef int32_t home
    memset(out, 0, sizeof(Sym))
    out.st_name = row.name
    if row.section >= 0:
        out.st_info = STT_SECTION
        set_section(writer, row.section, out, wide)
        return
    if row.instance >= 0:
        out.st_info = STB_WEAK << 4 | STT_CUDA_OBJECT
        out.st_other = STO_SHARED | STV_INTERNAL
        out.st_value = writer.placed.dynamic[row.instance]
        return
    e = &writer.merged.entities[row.entity]
    s = &writer.objects.symbols[e.winner]
    home = writer.placed.homes[row.entity]
    binding = s.info >> 4
    type = STT_FUNC if e.kind == E_NULL else s.info & 15
    out.st_other = s.other
    if not e.flags & EF_DEFINED:
        binding = STB_LOCAL if e.flags & EF_LOCAL else STB_GLOBAL
        out.st_size = e.size
        if e.kind == E_FUNC:
            out.st_size = 0
        out.st_value = s.value
        if e.kind == E_SHARED and home >= 0:
            # The link gives extern arrays their place.
            if is_instance(e):
                binding = STB_WEAK
            out.st_value = writer.placed.symbol_values[row.entity]
            set_section(writer, home, out, wide)
        elif is_missing(e, s):
            out.st_value = writer.placed.symbol_values[row.entity]
        elif e.kind == E_CONST0_SIZE:
            out.st_value = writer.placed.symbol_values[row.entity]
            type = STT_CUDA_OBJECT
    else:
        out.st_size = e.size
        out.st_value = writer.placed.symbol_values[row.entity]
        if home >= 0:
            set_section(writer, home, out, wide)
        elif s.shndx == SHN_ABS:
            out.st_shndx = SHN_ABS
    if writer.objects.executable and type == STT_CUDA_OBJECT:
        type = STT_OBJECT
        out.st_other &= 0x1f
        if (writer.objects.traits & TRAIT_SHARED_LOCAL and e.kind == E_SHARED
                and not e.flags & EF_UNSIZED and home >= 0
                and writer.placed.outs[home].kind == K_SHARED):
            binding = STB_LOCAL
        if writer.preserved and e.kind == E_SHARED:
            out.st_other = STV_INTERNAL
    if writer.objects.traits & TRAIT_MERCURY and (e.kind == E_RESERVED or e.kind == E_UNIFIED):
        type = STT_CUDA_OBJECT
    out.st_info = <uint8_t>(binding << 4 | type)


cdef inline uint64_t mercury_value(const Writer* writer, int32_t symbol) noexcept nogil:
    """The start of a function inside of another, in the mercury form of that one."""
    cdef const FileRow* file = &writer.objects.files[writer.objects.symbols[symbol].file]
    cdef uint32_t index = <uint32_t>symbol - file.first_symbol
    if index >= file.mercury_symbols:
        return 0
    return (<const Sym*>(writer.objects.arena + file.merc_symtab) + index).st_value


cdef inline void change_to_mercury(Writer* writer, const OutSymbolRow* row, Sym* out,
                                   uint32_t* wide) noexcept nogil:
    """Make of an entry of .symtab that of .nv.merc.symtab.

    It names mercury twins, and has the type of the input and mercury's size.
    """
    cdef const EntityRow* e
    cdef int32_t home, twin
    if row.instance >= 0:
        return
    if row.section >= 0:
        home = row.section
        if is_renamed(&writer.placed.outs[home]):
            out.st_name = writer.placed.outs[home].symbol_name
    else:
        e = &writer.merged.entities[row.entity]
        home = writer.placed.homes[row.entity] if e.flags & EF_DEFINED else -1
        if e.kind == E_FUNC:
            out.st_size = writer.objects.symbols[e.winner].merc_size
            if e.flags & EF_INNER:
                out.st_value = mercury_value(writer, e.winner)
        elif e.flags & EF_DEFINED or e.kind == E_SHARED:
            out.st_info = (out.st_info & 0xf0) | (writer.objects.symbols[e.winner].info & 15)
            out.st_other = writer.objects.symbols[e.winner].other
            if writer.preserved and writer.objects.executable and e.kind == E_SHARED:
                out.st_other |= STV_INTERNAL
            out.st_value = writer.placed.merc_values[row.entity]
            if e.kind == E_SYSTEM_SHARED and writer.objects.executable:
                out.st_value = writer.placed.merc_values[row.entity] - SYSTEM_RESERVE
        elif e.kind == E_RESERVED:
            out.st_value = 0
    twin = writer.placed.outs[home].merc if home >= 0 else -1
    if twin >= 0 and writer.placed.section_index[twin]:
        set_section(writer, twin, out, wide)


cdef inline void count_locals(Writer* writer) noexcept nogil:
    """sh_info of both tables: one more than the index of the last local symbol."""
    cdef const OutSymbolRow* row
    cdef uint32_t wide = 0
    cdef Sym symbol
    cdef size_t i
    writer.locals = [1, 0]
    for i in range(writer.placed.symbol_order_count):
        row = &writer.placed.out_symbols[writer.placed.symbol_order[i]]
        # From sm_100 on section symbols stand after the global ones, and count since 13.0.
        if row.part == PART_LOCAL or (
                row.part == PART_TAIL and not writer.objects.traits & TRAIT_EARLY_FILES):
            writer.locals[0] = <uint32_t>(i + 2)
        if row.part == PART_LOCAL:
            writer.locals[1] = <uint32_t>(i + 2)
        elif writer.objects.traits & TRAIT_LEAN_NAMES and row.part != PART_TAIL:
            write_symbol(writer, row, &symbol, &wide)
            if symbol.st_info >> 4 == STB_LOCAL:
                writer.locals[1] = <uint32_t>(i + 2)


cdef inline bint list_symbols(Vec* windows, Writer* writer) noexcept nogil:
    """Windows of the tables with a row for each symbol; False without memory."""
    cdef uint16_t[4] kinds = [K_SYMTAB, K_SYMTAB_SHNDX, K_MERC_SYMTAB, K_MERC_SYMTAB_SHNDX]
    cdef size_t i, size
    for i in range(4):
        size = sizeof(Sym) if i % 2 == 0 else 4
        if writer.only[kinds[i]] >= 0 and not list_rows(
                windows, contents_at(writer, kinds[i]), size,
                writer.placed.places[writer.only[kinds[i]]].size // size, kinds[i]):
            return False
    return True


cdef inline void make_symbols(Writer* writer, const Window* window, uint8_t* to) noexcept nogil:
    """Rows `first` to `last` of the table that `kind` is the kind of."""
    cdef bint mercury = window.kind == K_MERC_SYMTAB or window.kind == K_MERC_SYMTAB_SHNDX
    cdef bint wide = window.kind == K_SYMTAB_SHNDX or window.kind == K_MERC_SYMTAB_SHNDX
    cdef const OutSymbolRow* row
    cdef uint32_t index
    cdef uint32_t* indices = &index if writer.only[K_SYMTAB_SHNDX] >= 0 else NULL
    cdef Sym symbol
    cdef size_t i
    for i in range(window.first, window.last):
        index = 0
        if i == 0:
            memset(&symbol, 0, sizeof(Sym))
            symbol.st_value = writer.placed.null_value
        else:
            row = &writer.placed.out_symbols[writer.placed.symbol_order[i - 1]]
            write_symbol(writer, row, &symbol, indices)
            if mercury:
                change_to_mercury(writer, row, &symbol, indices
                                  if writer.only[K_MERC_SYMTAB_SHNDX] >= 0 else NULL)
        if wide:
            (<uint32_t*>to)[i - window.first] = index
        else:
            (<Sym*>to)[i - window.first] = symbol
