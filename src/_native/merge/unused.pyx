"""Constant variables that no code of the link reads, where the bank has no room for all.

A link that selects kernels omits constants of other kernels only if it must. It then omits whole
sections of inputs in which nothing is used. The other sections keep their order and alignments,
but the first may get a larger alignment.

A section is used if the relocations of live code, or of other sections that the link keeps, name it
or a variable in it. A section of constants can use another one: a table of addresses in the first
can name the second. So the relocations are read again until no more sections become used.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

from base.elf64 cimport Rel, Rela
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHT_REL
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport Entities, Table
from resolve.kernelnames cimport has_parts_of_pattern
from rownumbers cimport EF_INTERNAL, EF_LIVE, E_CONSTANT
from sectionkinds cimport IS_ENTRIES, IS_VARIABLES, PACKED_ALIGN, USER_BANK
from tables.kinds cimport is_a, is_merc, is_user_bank
from tables.rows cimport (
    EntityNumber, EntityRow, FileRow, SectionCounter, SectionNumber, SectionRef, SectionRow,
    SymbolRef, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView


# Inputs and entities of the link, and the sections of constants that are used.
ctypedef struct Uses:
    ObjectsView objects
    MergedView merged
    uint8_t* is_used            # by input section: 1 for used constants; NULL before the search
    bint has_new                # a section has become used in this round


# `limit` is the room in the bank in bytes. Constants whose name contains one of `names` are kept.
def drop_constants(MergedTables merged not None, list names not None, uint64_t limit):
    """Return the input sections; unused constants lose their bytes if the bank only then fits."""
    cdef Uses uses
    cdef Scratch scratch
    merged.objects.view(&uses.objects)
    merged.view(&uses.merged)
    if merged.section_function.count != uses.objects.section_count:
        raise ValueError("one function per section")
    if merged.symbol_entity.count != uses.objects.symbol_count:
        raise ValueError("one entity per symbol")
    uses.is_used = NULL
    if measure_bank(&uses) <= limit:
        return merged.objects.sections
    scratch_init(&scratch)
    try:
        uses.is_used = <uint8_t*>scratch_zeros(&scratch, uses.objects.section_count, 1)
        check_memory(not scratch.failed)
        return cut_constants(merged, &uses, names, limit)
    finally:
        scratch_free(&scratch)


cdef Table cut_constants(MergedTables merged, Uses* uses, list names, uint64_t limit):
    """Return the input sections without unused constants, if the used ones fit into `limit`.

    Otherwise returns all. Constants whose name contains one of `names` (`has_listed_name`) count as
    used. Entities of the constants that are omitted get EF_INTERNAL.
    """
    cdef size_t entity_count = uses.merged.entity_count, i
    cdef SectionNumber section
    cdef Table result
    cdef SectionRow* sections
    for i in range(entity_count):
        section = find_constants(uses, <EntityNumber>i)
        if section >= 0 and has_listed_name(uses, <EntityNumber>i, names):
            uses.is_used[section] = 1
    with nogil:
        uses.has_new = True
        while uses.has_new:     # each round but the last finds a section of constants
            uses.has_new = False
            for i in range(uses.objects.section_count):
                mark_used_constants(uses, <SectionCounter>i)
    if measure_bank(uses) > limit:
        return merged.objects.sections
    result = merged.objects.sections.copy()
    sections = <SectionRow*>result.start
    cdef Entities entity_table = <Entities>Table.writable(<PyObject*>merged.entities)
    cdef EntityRow* entities = <EntityRow*>entity_table.rows
    for i in range(uses.objects.section_count):
        section = <SectionNumber>i if not is_a(sections[i].kind, IS_ENTRIES) else sections[i].target
        if section >= 0 and has_unused_constants(uses, section):
            sections[i].size = 0
            sections[i].align = 1 if section == <SectionNumber>i else sections[i].align
    cdef bint is_wide = False       # a used constant has PACKED_ALIGN bytes or more
    for i in range(entity_count):
        section = find_constants(uses, <EntityNumber>i)
        if section >= 0 and not uses.is_used[section]:
            entities[i].flags |= EF_INTERNAL
        elif section >= 0 and entities[i].size >= PACKED_ALIGN:
            is_wide = True
    for i in range(uses.objects.section_count if is_wide else 0):
        if is_in_user_bank(uses, <SectionNumber>i) and uses.is_used[i]:
            # nvlink aligns the rest of the bank to PACKED_ALIGN. One section with that is enough.
            sections[i].align = max(sections[i].align, PACKED_ALIGN)
            break
    merged.entities = entity_table
    return result


cdef bint has_listed_name(const Uses* uses, EntityNumber entity, list names) except -1:
    """Return whether an entity's name contains one of `names`, where `*` stands for any text."""
    cdef const SymbolRow* symbol = &uses.objects.symbols[uses.merged.entities[entity].winner]
    for name in names:
        if has_parts_of_pattern(uses.objects.arena + symbol.name, symbol.name_size,
                                PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name)):
            return True
    return False


cdef uint64_t measure_bank(const Uses* uses) noexcept nogil:
    """Count the bytes of all sections of bank 3 or, with `is_used`, only of the used ones."""
    cdef uint64_t size = 0, align
    cdef size_t i
    for i in range(uses.objects.section_count):
        if is_in_user_bank(uses, <SectionNumber>i) and (uses.is_used == NULL or uses.is_used[i]):
            align = max(uses.objects.sections[i].align, 1)
            size = (size + align - 1) // align * align + uses.objects.sections[i].size
    return size


cdef inline bint is_in_user_bank(const Uses* uses, SectionNumber section) noexcept nogil:
    """Return whether an input section holds constants of a file, `.nv.constant3`."""
    return is_user_bank(uses.objects.sections[section].kind, uses.objects.sections[section].bank)


cdef inline SectionNumber find_constants(const Uses* uses, EntityNumber entity) noexcept nogil:
    """Return the input section of a constant variable in `.nv.constant3`, or -1."""
    cdef SectionNumber section
    if uses.merged.entities[entity].kind != E_CONSTANT:
        return -1
    section = uses.objects.symbols[uses.merged.entities[entity].winner].section
    return section if section >= 0 and is_in_user_bank(uses, section) else -1


cdef SectionNumber find_plain_constants(const Uses* uses, SectionNumber mercury) noexcept nogil:
    """Return the plain form of `mercury`, an input section of mercury constants; else -1."""
    cdef const SectionRow* mercury_row = &uses.objects.sections[mercury]
    cdef const FileRow* file = &uses.objects.files[mercury_row.file]
    cdef SectionRef i
    if not is_merc(mercury_row.kind, IS_VARIABLES) or mercury_row.bank != USER_BANK:
        return -1
    for i in range(file.first_section, file.first_section + file.section_count):
        if is_in_user_bank(uses, <SectionNumber>i):
            return <SectionNumber>i
    return -1


cdef inline bint has_unused_constants(const Uses* uses, SectionNumber section) noexcept nogil:
    """Return whether a section, plain or mercury, holds constants that nothing uses."""
    cdef SectionNumber plain = (section if is_in_user_bank(uses, section)
                                else find_plain_constants(uses, section))
    return plain >= 0 and not uses.is_used[plain]


cdef void mark_used_constants(Uses* uses, SectionCounter section) noexcept nogil:
    """Mark the constants that a relocation section names, if the link keeps what it patches."""
    cdef const SectionRow* section_row = &uses.objects.sections[section]
    cdef uint64_t entry_size = sizeof(Rel) if section_row.type == SHT_REL else sizeof(Rela), i
    cdef EntityNumber function
    cdef SectionNumber home
    cdef SymbolRef symbol
    if (not is_a(section_row.kind, IS_ENTRIES) or section_row.target < 0
            or has_unused_constants(uses, section_row.target)):
        return
    function = uses.merged.section_function[section_row.target]
    if function >= 0 and not uses.merged.entities[function].flags & EF_LIVE:
        return
    for i in range(section_row.size // entry_size):
        symbol = (uses.objects.files[section_row.file].first_symbol
                  + (<const Rela*>(uses.objects.arena + section_row.offset + i * entry_size)).r_sym)
        if uses.merged.symbol_entity[symbol] >= 0:
            home = find_constants(uses, uses.merged.symbol_entity[symbol])
        else:
            home = uses.objects.symbols[symbol].section
        if home >= 0 and is_in_user_bank(uses, home) and not uses.is_used[home]:
            uses.is_used[home] = 1
            uses.has_new = True
