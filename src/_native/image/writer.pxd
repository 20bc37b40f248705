# The state that the writers of symbols and section headers share.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted.
# Exception: `patch_capsule`, for a capsule that breaks its format.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

from base.elf64 cimport SHN_COMMON, SHN_LORESERVE, SHN_XINDEX, Sym
from sectionkinds cimport IS_PARAMETERS, KIND_COUNT
from tables.kinds cimport is_a
from tables.rows cimport OutRow
from tables.views cimport MergedView, ObjectsView, PlacedView
from traits cimport TRAIT_MERCURY


ctypedef struct Writer:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    int32_t[KIND_COUNT] only        # by kind, of what the output has once: the OutRow, or -1
    uint32_t[2] locals              # sh_info of .symtab and .nv.merc.symtab
    bint preserved
    bint late                       # .symtab_shndx is
    bint wide                       # there is one, and early


cdef inline uint64_t contents_at(Writer* writer, uint16_t kind) noexcept nogil:
    """Return the file offset of a section kind that occurs once."""
    return writer.placed.places[writer.only[kind]].offset


cdef inline uint32_t index_of(Writer* writer, uint16_t kind) noexcept nogil:
    """Return the header index of a section kind that occurs at most once, or 0."""
    cdef int32_t section = writer.only[kind]
    return writer.placed.section_index[section] if section >= 0 else 0


cdef inline void set_section(Writer* writer, int32_t section, Sym* out,
                             uint32_t* wide) noexcept nogil:
    """The section of a symbol; `wide` is its entry in .symtab_shndx, if there is one.

    Odd, but measured (docs/format-notes.md): the entry holds the section's creation number where
    st_shndx can hold the index. 0xfff2, the number of common symbols, stays if it is the index or,
    with -r, the creation number. What comes late on family C begins to need the entry one section
    later.
    """
    cdef uint32_t index = writer.placed.section_index[section]
    cdef uint32_t created = writer.placed.outs[section].created
    cdef bint late = (writer.late or created == 0
                      or (writer.objects.traits & TRAIT_MERCURY
                          and is_a(writer.placed.outs[section].kind, IS_PARAMETERS)))
    out.st_shndx = <uint16_t>index
    if wide == NULL:
        return
    if late:
        if index > SHN_LORESERVE:
            out.st_shndx = SHN_XINDEX
            wide[0] = index
        return
    wide[0] = created
    if index == SHN_COMMON or (created == SHN_COMMON and not writer.objects.executable):
        out.st_shndx = SHN_COMMON
    elif index >= SHN_LORESERVE:
        out.st_shndx = SHN_XINDEX
        wide[0] = index


cdef inline int32_t text_row_of(const OutRow* row) noexcept nogil:
    """The .text row of the function that a section belongs to; row 0 (never listed) without."""
    cdef int32_t text = row.text
    return text if text >= 0 else 0


cdef inline uint32_t text_index(Writer* writer, const OutRow* row) noexcept nogil:
    """The index of the function's .text, as its symbols have it: see set_section."""
    cdef int32_t text = text_row_of(row)
    if (writer.wide and not writer.objects.executable
            and writer.placed.outs[text].created == SHN_COMMON):
        return SHN_COMMON
    return writer.placed.section_index[text]
