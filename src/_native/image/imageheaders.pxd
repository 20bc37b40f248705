# Section headers, and the one section whose bytes repeat them.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strlen

from elf64 cimport *
from imagewriter cimport *
from rows cimport *


cdef inline uint64_t early_strings(Writer* w, const int32_t* order, size_t count,
                                   const char* strings, uint64_t size) noexcept nogil:
    """The bytes of .strtab before the names of constant banks end it."""
    cdef const OutRow* row
    cdef uint64_t banks = 0
    cdef size_t i
    for i in range(count):
        row = &w.outs[order[i]]
        if row.kind == K_CONSTANT0:
            size = min(size, <uint64_t>row.symbol_name)
        elif row.kind == K_CONSTANT and row.bank == 3:
            banks += 14         # .nv.constant3
        elif row.kind == K_CONSTANT_FUNC:
            # .nv.constant2.F, which first was .nv.constant.optimizer.F
            banks += strlen(strings + row.symbol_name) - 9 + 1
    return size - banks


cdef inline void write_system_shared(Writer* w, const int32_t* order, size_t count, int32_t at,
                              const char* strings, int64_t note) noexcept nogil:
    """The bytes of .nv.merc.nv.shared.reserved.0.

    The plain section has none, so nvlink copies what follows its offset in the mercury file that
    its finalizer starts from: after all sections without bytes, the section header table, which
    begins with a null header and that of .shstrtab. docs/format-notes/shared-memory.md says how
    that file is laid out. nvlink's own note is longer than ours by `note` bytes.
    """
    cdef const PlaceRow* place = &w.places[at]
    cdef uint64_t end = sizeof(Ehdr), plain = 0, size, align
    cdef Shdr head[2]
    cdef const OutRow* row
    cdef size_t i
    memset(head, 0, sizeof(head))
    head[1].sh_name = 1
    head[1].sh_type = SHT_STRTAB
    head[1].sh_offset = sizeof(Ehdr)
    head[1].sh_size = place.name
    head[1].sh_addralign = 1
    for i in range(count):
        if ((w.outs[order[i]].kind == K_CONSTANT0 or w.outs[order[i]].twin >= 0)
                and w.places[order[i]].name):
            head[1].sh_size = min(head[1].sh_size, <uint64_t>w.places[order[i]].name)
    for i in range(count):
        row = &w.outs[order[i]]
        if row.kind == K_CONSTANT0 or row.twin >= 0:
            continue
        size = w.places[order[i]].size
        align = row.align
        if is_nobits(row):
            size = 0
        elif row.kind == K_SHSTRTAB:
            size = head[1].sh_size
        elif row.kind == K_STRTAB:
            size = early_strings(w, order, count, strings, size)
        elif row.kind == K_TKINFO:
            size += note
        elif row.kind == K_COMPAT:
            size -= 12
        elif row.kind == K_TEXT:
            size = w.symbols[w.entities[row.entity].winner].merc_size
            align = 16
        elif row.kind == K_SYMTAB or row.merc >= 0:
            size = w.places[row.merc].size if row.kind != K_SYMTAB else w.merc_symbols
        elif row.kind == K_RELOC:
            size = 0
        end = round_up(end, align)
        if row.kind == K_SYSTEM_SHARED:
            plain = end
        end += size
    end = round_up(end, 8) - plain
    if end < place.size:
        memcpy(w.image + place.offset + end, head, min(sizeof(head), place.size - end))


cdef inline void write_header(Writer* w, int32_t at, Shdr* out, uint32_t tkinfo, uint32_t compat,
                       uint32_t merc_symtab) noexcept nogil:
    cdef const OutRow* row = &w.outs[at]
    cdef const SectionRow* source = &w.sections[row.source] if row.source >= 0 else NULL
    cdef int32_t text
    memset(out, 0, sizeof(Shdr))
    out.sh_name = w.places[at].name
    out.sh_type = row.type
    out.sh_flags = row.flags
    out.sh_offset = w.places[at].offset
    out.sh_size = w.places[at].size
    out.sh_addralign = row.align
    out.sh_entsize = row.entsize
    if w.executable:
        if row.kind in (K_CONSTANT, K_CONSTANT0, K_CONSTANT_FUNC, K_GLOBAL_INIT):
            out.sh_type = SHT_PROGBITS
        elif is_nobits(row):
            out.sh_type = SHT_NOBITS
    if row.kind == K_SYMTAB or row.kind == K_MERC_SYMTAB:
        out.sh_link = 2
    elif row.kind == K_SYMTAB_SHNDX:
        out.sh_link = 3
    elif row.kind == K_MERC_SYMTAB_SHNDX:
        out.sh_link = merc_symtab
    elif row.kind == K_CUINFO:
        out.sh_link = tkinfo
        out.sh_info = compat
    elif row.kind in (K_INFO, K_CALLGRAPH, K_PROTOTYPE):
        out.sh_link = 3
    elif row.kind == K_INFO_FUNC:
        out.sh_link = 3
        out.sh_info = text_index(w, row)
    elif row.kind in (K_CONSTANT0, K_CONSTANT_FUNC, K_SHARED):
        out.sh_info = text_index(w, row)
    elif row.kind == K_RELOC or row.kind == K_RESOLVED_RELA:
        out.sh_link = 3
        out.sh_info = w.index[row.target]
    elif row.kind == K_TEXT:
        out.sh_link = 3
        out.sh_info = w.symbol_index[row.entity]
        if w.family == FAMILY_A and source != NULL:
            # The function's own REGCOUNT, not what its callees raise it to.
            out.sh_info |= source.info & 0xff000000U
    elif row.kind == K_CAPMERC:
        out.sh_link = merc_symtab
        out.sh_info = w.symbol_index[w.outs[row.twin].entity]
    elif row.kind == K_MERC_INFO:
        out.sh_link = merc_symtab
    elif row.kind == K_MERC_INFO_FUNC:
        out.sh_link = merc_symtab
        text = text_of(&w.outs[row.twin])
        out.sh_info = w.index[w.outs[text].merc] if w.outs[text].merc >= 0 else 0
    elif row.kind == K_MERC_CONSTANT_FUNC:
        text = text_of(&w.outs[row.twin])
        out.sh_info = w.index[w.outs[text].merc] if w.outs[text].merc >= 0 else 0
    elif row.kind == K_MERC_RELA:
        out.sh_link = merc_symtab
        text = w.outs[row.twin].target
        out.sh_info = w.index[w.outs[text].merc] if w.outs[text].merc >= 0 else 0
