# What the writers of symbols and section headers share: the tables of the link.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from sectionkinds cimport IS_PARAMETERS, KIND_COUNT
from base.elf64 cimport SHN_COMMON, SHN_LORESERVE, SHN_XINDEX, Sym
from tables.kinds cimport is_a
from tables.rows cimport EntityRow, FileRow, OutRow, OutSymbolRow, PlaceRow, SectionRow, SymbolRow
from traits cimport TRAIT_MERCURY


cdef struct Writer:
    int32_t[KIND_COUNT] only        # by kind, of what the output has once: the OutRow, or -1
    const SectionRow* sections
    const SymbolRow* symbols
    const EntityRow* entities
    const OutRow* outs
    const PlaceRow* places
    const uint32_t* index           # header index by OutRow
    const int32_t* order            # OutRows in the order of the file
    size_t section_count            # of these
    uint64_t table                  # where the table of sections begins
    const uint8_t* input            # the arena
    const FileRow* files
    const OutSymbolRow* out_symbols
    const int32_t* symbol_order     # of these
    size_t symbol_count
    const uint32_t* symbol_index    # by entity
    const uint64_t* values
    const uint64_t* mercury_values
    uint64_t null_value
    const int32_t* homes
    const uint64_t* dynamic
    uint32_t[2] locals              # sh_info of .symtab and .nv.merc.symtab
    bint executable
    uint32_t traits                 # TRAIT_ bits
    bint preserved
    bint late                       # .symtab_shndx is
    bint wide                       # there is one, and early


cdef inline uint64_t contents_at(Writer* w, uint16_t kind) noexcept nogil:
    """Where the section lies that the output has one of."""
    return w.places[w.only[kind]].offset


cdef inline uint32_t index_of(Writer* w, uint16_t kind) noexcept nogil:
    """The header index of the section that the output has one of, or 0."""
    cdef int32_t at = w.only[kind]
    return w.index[at] if at >= 0 else 0


cdef inline void set_section(Writer* w, int32_t at, Sym* out, uint32_t* wide) noexcept nogil:
    """The section of a symbol; `wide` is its entry in .symtab_shndx, if there is one.

    Odd, but measured (docs/format-notes.md): the entry holds the section's creation number where
    st_shndx can hold the index. 0xfff2, the number of common symbols, stays where it is the index
    or, with -r, the creation number. What comes late on family C begins to need the entry one
    section later.
    """
    cdef uint32_t index = w.index[at], created = w.outs[at].created
    cdef bint late = w.late or created == 0 or (
        w.traits & TRAIT_MERCURY and is_a(w.outs[at].kind, IS_PARAMETERS))
    out.st_shndx = <uint16_t>index
    if wide == NULL:
        return
    if late:
        if index > SHN_LORESERVE:
            out.st_shndx = SHN_XINDEX
            wide[0] = index
        return
    wide[0] = created
    if index == SHN_COMMON or (created == SHN_COMMON and not w.executable):
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
    if w.wide and not w.executable and w.outs[text].created == SHN_COMMON:
        return SHN_COMMON
    return w.index[text]
