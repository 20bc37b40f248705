"""Constant variables that no code of the link reads, where the bank has no room for all.

A link that selects kernels leaves the constants of the others out only if it has to: whole sections
of inputs, in each of which nothing is used. What stays keeps its order and its alignments.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport Rela
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHT_REL
from pylink._native.tables cimport Entities, MergedTables, Table
from resolve.kernelnames cimport is_pattern_in
from rownumbers cimport EF_INTERNAL, EF_LIVE, E_CONSTANT
from sectionkinds cimport IS_ENTRIES, IS_VARIABLES, USER_BANK
from tables.kinds cimport is_a, is_merc, is_user_bank
from tables.rows cimport EntityRow, FileRow, SectionRow, SymbolRow
from tables.views cimport MergedView, ObjectsView

cdef enum:
    REL = 16                    # bytes of an entry
    RELA = 24
    PACKED_ALIGN = 8            # alignment of larger variables, if nvlink packs the bank


ctypedef struct Uses:
    ObjectsView objects
    MergedView merged
    uint8_t* used               # by section of constants
    bint more                   # a section came to be used


def drop_constants(MergedTables merged not None, list names, uint64_t limit):
    cdef Uses uses
    cdef Scratch scratch
    merged.objects.view(&uses.objects)
    merged.view(&uses.merged)
    if merged.section_function.count != uses.objects.section_count:
        raise ValueError("one function per section")
    if merged.symbol_entity.count != uses.objects.symbol_count:
        raise ValueError("one entity per symbol")
    uses.used = NULL
    if bank_size(&uses) <= limit:
        return merged.objects.sections
    scratch_init(&scratch)
    try:
        uses.used = <uint8_t*>scratch_zeros(&scratch, uses.objects.section_count, 1)
        if scratch.failed:
            raise MemoryError
        return cut_constants(merged, &uses, names, limit)
    finally:
        scratch_free(&scratch)


cdef Table cut_constants(MergedTables merged, Uses* uses, list names, uint64_t limit):
    """`drop_constants` where all constants have not room enough."""
    cdef size_t entity_count = uses.merged.entity_count, i
    cdef int32_t section
    cdef Table result
    cdef SectionRow* row
    for i in range(entity_count):
        section = constants_of(uses, <int32_t>i)
        if section >= 0 and has_listed_name(uses, <int32_t>i, names):
            uses.used[section] = 1
    with nogil:
        uses.more = True
        while uses.more:        # once more per section that a table of addresses adds
            uses.more = False
            for i in range(uses.objects.section_count):
                read_entries(uses, i)
    if bank_size(uses) > limit:
        return merged.objects.sections
    result = merged.objects.sections.copy()
    row = <SectionRow*>result.start
    cdef Entities entities = <Entities>Table.writable(<PyObject*>merged.entities)
    cdef EntityRow* e = <EntityRow*>entities.rows
    for i in range(uses.objects.section_count):
        section = <int32_t>i if not is_a(row[i].kind, IS_ENTRIES) else row[i].target
        if section >= 0 and is_spare(uses, section):
            row[i].size = 0
            row[i].align = 1 if section == <int32_t>i else row[i].align
    cdef bint wide = False
    for i in range(entity_count):
        section = constants_of(uses, <int32_t>i)
        if section >= 0 and not uses.used[section]:
            e[i].flags |= EF_INTERNAL
        elif section >= 0 and e[i].size >= PACKED_ALIGN:
            wide = True
    for i in range(uses.objects.section_count if wide else 0):
        if is_bank(uses, <int32_t>i) and uses.used[i]:
            row[i].align = max(row[i].align, PACKED_ALIGN)      # the bank, as nvlink aligns it
            break
    merged.entities = entities
    return result


cdef bint has_listed_name(const Uses* uses, int32_t entity, list names) except -1:
    cdef const SymbolRow* symbol = &uses.objects.symbols[uses.merged.entities[entity].winner]
    for name in names:
        if is_pattern_in(uses.objects.arena + symbol.name, symbol.name_size,
                         PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name)):
            return True
    return False


cdef uint64_t bank_size(const Uses* uses) noexcept nogil:
    """Bytes of all constants of files or, once that is known, of those that are used."""
    cdef uint64_t size = 0, align
    cdef size_t i
    for i in range(uses.objects.section_count):
        if is_bank(uses, <int32_t>i) and (uses.used == NULL or uses.used[i]):
            align = max(uses.objects.sections[i].align, 1)
            size = (size + align - 1) // align * align + uses.objects.sections[i].size
    return size


cdef inline bint is_bank(const Uses* uses, int32_t section) noexcept nogil:
    return is_user_bank(uses.objects.sections[section].kind, uses.objects.sections[section].bank)


cdef inline int32_t constants_of(const Uses* uses, int32_t entity) noexcept nogil:
    """The section of a constant variable of a file, or -1."""
    cdef int32_t section
    if uses.merged.entities[entity].kind != E_CONSTANT:
        return -1
    section = uses.objects.symbols[uses.merged.entities[entity].winner].section
    return section if section >= 0 and is_bank(uses, section) else -1


cdef int32_t plain_of(const Uses* uses, int32_t mercury) noexcept nogil:
    """The constants of a file that a section is the mercury form of, or -1."""
    cdef const SectionRow* s = &uses.objects.sections[mercury]
    cdef const FileRow* file = &uses.objects.files[s.file]
    cdef uint32_t i
    if not is_merc(s.kind, IS_VARIABLES) or s.bank != USER_BANK:
        return -1
    for i in range(file.first_section, file.first_section + file.section_count):
        if is_bank(uses, <int32_t>i):
            return <int32_t>i
    return -1


cdef inline bint is_spare(const Uses* uses, int32_t section) noexcept nogil:
    """Whether it holds constants that nothing uses, in either form."""
    cdef int32_t plain = section if is_bank(uses, section) else plain_of(uses, section)
    return plain >= 0 and not uses.used[plain]


cdef void read_entries(Uses* uses, size_t section) noexcept nogil:
    """Mark the constants that the relocations of what stays name."""
    cdef const SectionRow* s = &uses.objects.sections[section]
    cdef uint64_t step = REL if s.type == SHT_REL else RELA, i
    cdef int32_t function, home
    cdef uint32_t symbol
    if not is_a(s.kind, IS_ENTRIES) or s.target < 0 or is_spare(uses, s.target):
        return
    function = uses.merged.section_function[s.target]
    if function >= 0 and not uses.merged.entities[function].flags & EF_LIVE:
        return
    for i in range(s.size // step):
        symbol = (uses.objects.files[s.file].first_symbol
                  + (<const Rela*>(uses.objects.arena + s.offset + i * step)).r_sym)
        if uses.merged.symbol_entity[symbol] >= 0:
            home = constants_of(uses, uses.merged.symbol_entity[symbol])
        else:
            home = uses.objects.symbols[symbol].section
        if home >= 0 and is_bank(uses, home) and not uses.used[home]:
            uses.used[home] = 1
            uses.more = True
