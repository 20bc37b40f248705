# What the writers of symbols and section headers share.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

from sectionkinds cimport IS_PARAMETERS, KIND_COUNT
from base.elf64 cimport SHN_COMMON, SHN_LORESERVE, SHN_XINDEX, Sym
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


cdef inline uint64_t contents_at(Writer* w, uint16_t kind) noexcept nogil:
    """Where the section lies that the output has one of."""
    return w.placed.places[w.only[kind]].offset


cdef inline uint32_t index_of(Writer* w, uint16_t kind) noexcept nogil:
    """The header index of the section that the output has one of, or 0."""
    cdef int32_t at = w.only[kind]
    return w.placed.section_index[at] if at >= 0 else 0


cdef inline void set_section(Writer* w, int32_t at, Sym* out, uint32_t* wide) noexcept nogil:
    """The section of a symbol; `wide` is its entry in .symtab_shndx, if there is one.

    Odd, but measured (docs/format-notes.md): the entry holds the section's creation number where
    st_shndx can hold the index. 0xfff2, the number of common symbols, stays where it is the index
    or, with -r, the creation number. What comes late on family C begins to need the entry one
    section later.
    """
    cdef uint32_t index = w.placed.section_index[at], created = w.placed.outs[at].created
    cdef bint late = w.late or created == 0 or (
        w.objects.traits & TRAIT_MERCURY and is_a(w.placed.outs[at].kind, IS_PARAMETERS))
    out.st_shndx = <uint16_t>index
    if wide == NULL:
        return
    if late:
        if index > SHN_LORESERVE:
            out.st_shndx = SHN_XINDEX
            wide[0] = index
        return
    wide[0] = created
    if index == SHN_COMMON or (created == SHN_COMMON and not w.objects.executable):
        out.st_shndx = SHN_COMMON
    elif index >= SHN_LORESERVE:
        out.st_shndx = SHN_XINDEX
        wide[0] = index


cdef inline int32_t text_of(const OutRow* row) noexcept nogil:
    """The .text row of the function that a section belongs to; row 0 (never listed) without."""
    cdef int32_t at = row.text
    return at if at >= 0 else 0


cdef inline uint32_t text_index(Writer* w, const OutRow* row) noexcept nogil:
    """The index of the function's .text, as its symbols have it: see set_section."""
    cdef int32_t text = text_of(row)
    if w.wide and not w.objects.executable and w.placed.outs[text].created == SHN_COMMON:
        return SHN_COMMON
    return w.placed.section_index[text]
