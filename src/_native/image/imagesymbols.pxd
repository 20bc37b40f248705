# Entries of .symtab and .nv.merc.symtab.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from elf64 cimport *
from imagewriter cimport *
from kinds cimport *
from rows cimport *
from traits cimport *


cdef inline void write_symbol(Writer* w, const OutSymbolRow* row, Sym* out,
                       uint32_t* wide) noexcept nogil:
    cdef const EntityRow* e
    cdef const SymbolRow* s
    cdef uint8_t binding, type
    memset(out, 0, sizeof(Sym))
    out.st_name = row.name
    if row.section >= 0:
        out.st_info = STT_SECTION
        set_section(w, row.section, out, wide)
        return
    if row.instance >= 0:
        out.st_info = STB_WEAK << 4 | STT_CUDA_OBJECT
        out.st_other = STO_SHARED | STV_INTERNAL
        out.st_value = w.dynamic[row.instance]
        return
    e = &w.entities[row.entity]
    s = &w.symbols[e.winner]
    binding = s.info >> 4
    type = STT_FUNC if e.kind == E_NULL else s.info & 15
    out.st_other = s.other
    if not e.flags & EF_DEFINED:
        binding = STB_LOCAL if e.flags & EF_LOCAL else STB_GLOBAL
        out.st_size = e.size
        if e.kind == E_FUNC:
            out.st_size = 0
        out.st_value = s.value
        if e.kind == E_SHARED and w.homes[row.entity] >= 0:
            # The link gives extern arrays their place.
            if is_instance(e):
                binding = STB_WEAK
            out.st_value = w.values[row.entity]
            set_section(w, w.homes[row.entity], out, wide)
        elif is_missing(e, s):
            out.st_value = w.values[row.entity]
        elif e.kind == E_CONST0_SIZE:
            out.st_value = w.values[row.entity]
            type = STT_CUDA_OBJECT
    else:
        out.st_size = e.size
        out.st_value = w.values[row.entity]
        if w.homes[row.entity] >= 0:
            set_section(w, w.homes[row.entity], out, wide)
        elif s.shndx == SHN_ABS:
            out.st_shndx = SHN_ABS
    if w.executable and type == STT_CUDA_OBJECT:
        type = STT_OBJECT
        out.st_other &= 0x1f
        if (w.traits & TRAIT_SHARED_LOCAL and e.kind == E_SHARED and not e.flags & EF_UNSIZED
                and w.homes[row.entity] >= 0 and w.outs[w.homes[row.entity]].kind == K_SHARED):
            binding = STB_LOCAL
        if w.preserved and e.kind == E_SHARED:
            out.st_other = STV_INTERNAL
    if w.traits & TRAIT_MERCURY and (e.kind == E_RESERVED or e.kind == E_UNIFIED):
        type = STT_CUDA_OBJECT
    out.st_info = <uint8_t>(binding << 4 | type)


cdef inline void write_mercury_symbol(Writer* w, const OutSymbolRow* row, const Sym* plain,
                                      Sym* out, const uint64_t* values,
                                      uint32_t* wide) noexcept nogil:
    """As in .symtab, but naming mercury twins, with input types and mercury sizes."""
    cdef const EntityRow* e
    cdef int32_t home
    out[0] = plain[0]
    if row.instance >= 0:
        return
    if row.section >= 0:
        home = row.section
        if is_renamed(&w.outs[home]):
            out.st_name = w.outs[home].symbol_name
    else:
        e = &w.entities[row.entity]
        home = w.homes[row.entity] if e.flags & EF_DEFINED else -1
        if e.kind == E_FUNC:
            out.st_size = w.symbols[e.winner].merc_size
        elif e.flags & EF_DEFINED or e.kind == E_SHARED:
            out.st_info = (out.st_info & 0xf0) | (w.symbols[e.winner].info & 15)
            out.st_other = w.symbols[e.winner].other
            if w.preserved and w.executable and e.kind == E_SHARED:
                out.st_other |= STV_INTERNAL
            out.st_value = values[row.entity]
            if e.kind == E_SYSTEM_SHARED and w.executable:
                out.st_value = values[row.entity] - SYSTEM_RESERVE
        elif e.kind == E_RESERVED:
            out.st_value = 0
    if home >= 0 and w.outs[home].merc >= 0 and w.index[w.outs[home].merc]:
        set_section(w, w.outs[home].merc, out, wide)
