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
    # --preserve-relocs without debug data: st_other of an executable's shared variables is
    # STV_INTERNAL.
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
    (docs/format-notes.md): st_shndx has the index, and the entry the number in creation order. An
    index of 0xff00 or more goes into the entry instead, and st_shndx is SHN_XINDEX. The exception
    is 0xfff2 (SHN_COMMON): if the index or, with -r, the creation number is 0xfff2, st_shndx is
    0xfff2, and the entry has the creation number.

    Sections that the second program creates (from sm_100 on), and all if .symtab_shndx is late,
    have no exception: an index above 0xff00 goes into the entry. At a lower index the entry stays
    as it is.
    """
    cdef uint32_t index = writer.placed.section_index[section]
    cdef uint32_t created = writer.placed.outs[section].created
    # The second program writes the entry late if it creates the section, or .symtab_shndx itself.
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

    With -r and `has_early_shndx` it is SHN_COMMON if the .text has that number in creation order.
    So is st_shndx of the symbols in that .text (`set_section`).
    """
    cdef OutNumber text = text_row_of(row)
    if (writer.has_early_shndx and not writer.objects.executable
            and writer.placed.outs[text].created == SHN_COMMON):
        return SHN_COMMON
    return writer.placed.section_index[text]
