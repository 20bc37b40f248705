# The state that symbols.pxd and headers.pxd share, and what both write: numbers of sections.

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from base.elf64 cimport Sym
from elfnumbers cimport SHN_COMMON, SHN_LORESERVE, SHN_XINDEX
from sectionkinds cimport IS_PARAMETERS, KIND_COUNT
from tables.kinds cimport is_a
from tables.rows cimport OutNumber, OutRow
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_MERCURY


# The tables of a link, and what symbol tables and section headers need besides.
ctypedef struct Writer:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    OutNumber[KIND_COUNT] only      # by section kind: OutRow of the last of its kind, or -1
    uint32_t[2] locals              # sh_info of .symtab and .nv.merc.symtab (`count_locals`)
    # --preserve-relocs without debug data: shared variables of an executable are STV_INTERNAL.
    bint preserved
    bint has_late_shndx             # .symtab_shndx exists, and only the final file needs it
    bint has_early_shndx            # .symtab_shndx exists, and the mercury file needs it, too


cdef inline uint64_t contents_at(Writer* writer, uint16_t kind) noexcept nogil:
    """Return the file offset of the section of a kind that occurs once."""
    return writer.placed.places[writer.only[kind]].offset


cdef inline uint32_t index_of(Writer* writer, uint16_t kind) noexcept nogil:
    """Return the header index of the section of a kind that occurs at most once; 0 for none."""
    cdef OutNumber section = writer.only[kind]
    return writer.placed.section_index[section] if section >= 0 else 0


cdef inline void set_section(Writer* writer, OutNumber section, Sym* out,
                             uint32_t* shndx_entry) noexcept nogil:
    """Set the section of a symbol: st_shndx, and the symbol's entry in .symtab_shndx.

    `section` is an OutRow; `shndx_entry` is NULL without .symtab_shndx. Odd, but measured
    (docs/format-notes.md): where st_shndx can hold the index, the entry holds the number in
    creation order. st_shndx is 0xfff2 (SHN_COMMON) if that is the index or, with -r, the creation
    number. The index goes into the entry if it is 0xff00 or more. For sections that the second
    program creates (from sm_100 on), and for all if .symtab_shndx is late, that is so from 0xff01
    on, and the entry of a lower index stays as it is.
    """
    cdef uint32_t index = writer.placed.section_index[section]
    cdef uint32_t created = writer.placed.outs[section].created
    # The section is late if the second program creates it, or all entries of .symtab_shndx.
    cdef bint is_late = (writer.has_late_shndx or created == 0
                         or (writer.objects.traits & TRAIT_MERCURY
                             and is_a(writer.placed.outs[section].kind, IS_PARAMETERS)))
    out.st_shndx = <uint16_t>index
    if shndx_entry == NULL:
        return
    if is_late:
        if index > SHN_LORESERVE:
            out.st_shndx = SHN_XINDEX
            shndx_entry[0] = index
        return
    shndx_entry[0] = created
    if index == SHN_COMMON or (created == SHN_COMMON and not writer.objects.executable):
        out.st_shndx = SHN_COMMON
    elif index >= SHN_LORESERVE:
        out.st_shndx = SHN_XINDEX
        shndx_entry[0] = index


cdef inline OutNumber text_row_of(const OutRow* row) noexcept nogil:
    """Return the .text OutRow of the section's function, or 0 (.shstrtab) if it has no .text."""
    cdef OutNumber text = row.text
    return text if text >= 0 else 0


cdef inline uint32_t text_index(Writer* writer, const OutRow* row) noexcept nogil:
    """Return the header index of the .text of a section's function, for the section's sh_info.

    With -r and `has_early_shndx` it is SHN_COMMON if that is the number of the .text in creation
    order, as st_shndx of the symbols in that .text is (`set_section`).
    """
    cdef OutNumber text = text_row_of(row)
    if (writer.has_early_shndx and not writer.objects.executable
            and writer.placed.outs[text].created == SHN_COMMON):
        return SHN_COMMON
    return writer.placed.section_index[text]
