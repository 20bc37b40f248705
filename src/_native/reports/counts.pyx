"""Counts the work of a link in its finished tables; only profiled links call it.

Rows that come back are uint64 columns. One pass over each table, no look-ups: a link of 1,600
cubins has some 60,000 sections and 300,000 relocations, which takes a millisecond.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport STB_WEAK, STT_FUNC, STT_SECTION
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from pylink._native.tables cimport Fixups, PlacedTables, Values
from relocationtypes cimport FIRST_MERCURY_TYPE, MERCURY_TYPES, PLAIN_TYPES
from rownumbers cimport FROM_INPUTS
from sectionkinds cimport IS_DEBUG, IS_ENTRIES, KIND_COUNT, K_OTHER
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport EmittedRow, FileRow, FixupRow, OutRow, SectionRow, SymbolRow
from tables.views cimport MergedView, ObjectsView, PlacedView

cdef enum:
    # Relocation types that have a counter: plain numbers, mercury numbers, others.
    TYPES = PLAIN_TYPES + MERCURY_TYPES + 1

# Counts of one input.
ctypedef packed struct FileCount:
    uint64_t sections
    uint64_t symbols
    uint64_t defined
    uint64_t undefined
    uint64_t weak
    uint64_t functions
    uint64_t relocations
    uint64_t debug_bytes
    uint64_t kept_sections
    uint64_t kept_bytes
    uint64_t folded_bytes

# Counts of the sections of one kind.
ctypedef packed struct KindCount:
    uint64_t input_sections
    uint64_t input_bytes
    uint64_t kept_sections
    uint64_t discarded_bytes
    uint64_t folded_bytes
    uint64_t output_sections
    uint64_t output_bytes
    uint64_t copied_bytes
    uint64_t applied
    uint64_t kept


def count_sections(PlacedTables placed not None):
    placed.merged.check()
    placed.check()
    cdef Counts c
    cdef const FileRow* file
    cdef size_t f, column
    placed.merged.objects.view(&c.objects)
    placed.merged.view(&c.merged)
    placed.view(&c.placed)
    cdef size_t files_size = c.objects.file_count * sizeof(FileCount)
    cdef bytes file_rows = PyBytes_FromStringAndSize(NULL, files_size)
    cdef bytes sums = PyBytes_FromStringAndSize(NULL, sizeof(FileCount))
    cdef bytes kind_rows = PyBytes_FromStringAndSize(NULL, KIND_COUNT * sizeof(KindCount))
    cdef uint64_t* total = <uint64_t*>PyBytes_AS_STRING(sums)
    cdef FileCount* files = <FileCount*>PyBytes_AS_STRING(file_rows)
    cdef Scratch scratch
    for f in range(c.objects.file_count):
        file = &c.objects.files[f]
        if (file.first_section > c.objects.section_count
                or file.section_count > c.objects.section_count - file.first_section
                or file.first_symbol > c.objects.symbol_count
                or file.symbol_count > c.objects.symbol_count - file.first_symbol):
            raise IndexError(f"file {f} runs past the tables")
    c.kinds = <KindCount*>PyBytes_AS_STRING(kind_rows)
    scratch_init(&scratch)
    c.copied = <uint8_t*>scratch_zeros(&scratch, c.placed.out_count + 1, 1)
    check_memory(c.copied != NULL)
    with nogil:
        memset(files, 0, files_size)
        memset(total, 0, sizeof(FileCount))
        memset(c.kinds, 0, KIND_COUNT * sizeof(KindCount))
        count_outputs(&c)
        for f in range(c.objects.file_count):
            count_input_sections(&c, &c.objects.files[f], &files[f])
            count_input_symbols(&c, &c.objects.files[f], &files[f])
            for column in range(sizeof(FileCount) // 8):
                total[column] += (<uint64_t*>&files[f])[column]
    scratch_free(&scratch)
    return file_rows, sums, kind_rows


ctypedef struct Counts:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    uint8_t* copied             # by OutRow: whether its bytes are the inputs'
    KindCount* kinds


cdef inline KindCount* counter(const Counts* c, uint32_t kind) noexcept nogil:
    return &c.kinds[kind if kind < KIND_COUNT else K_OTHER]


cdef void count_outputs(Counts* c) noexcept nogil:
    """Count sections, bytes and relocations of the output by kind."""
    cdef const OutRow* out = c.placed.outs
    cdef const FixupRow* fixup = c.merged.fixups
    cdef size_t i
    cdef int32_t section
    cdef KindCount* k
    for i in range(c.placed.out_count):
        c.copied[i] = not is_nobits(&out[i]) and c.placed.places[i].contents == FROM_INPUTS
        if c.placed.section_index[i] == 0:
            continue
        k = counter(c, out[i].kind)
        k.output_sections += 1
        k.output_bytes += c.placed.places[i].size
        if is_a(out[i].kind, IS_ENTRIES):
            section = changed_section(&c.placed, &out[i])
            counter(c, out[section].kind if section >= 0 else K_OTHER).kept += out[i].count
    for i in range(c.merged.fixup_count):
        if <size_t>fixup[i].out < c.placed.out_count:
            counter(c, out[fixup[i].out].kind).applied += 1


cdef void count_input_sections(const Counts* c, const FileRow* file,
                               FileCount* row) noexcept nogil:
    """Count the sections of one file."""
    cdef const int32_t* out_of = c.merged.out_of
    cdef const SectionRow* s
    cdef KindCount* k
    cdef uint32_t i
    row.sections = file.section_count
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &c.objects.sections[i]
        k = counter(c, s.kind)
        k.input_sections += 1
        k.input_bytes += s.size
        if is_a(s.kind, IS_ENTRIES) and s.entsize:
            row.relocations += s.size // s.entsize
        if is_a(s.kind, IS_DEBUG):
            row.debug_bytes += s.size
        if c.merged.stand_ins != NULL and c.merged.stand_ins[i] >= 0:
            k.folded_bytes += s.size
            row.folded_bytes += s.size
        elif out_of[i] < 0:
            k.discarded_bytes += s.size
        else:
            k.kept_sections += 1
            row.kept_sections += 1
            row.kept_bytes += s.size
            if <size_t>out_of[i] < c.placed.out_count and c.copied[out_of[i]]:
                k.copied_bytes += s.size


cdef void count_input_symbols(const Counts* c, const FileRow* file, FileCount* row) noexcept nogil:
    """Count the symbols of one file."""
    cdef const SymbolRow* symbol
    cdef uint32_t i
    row.symbols = file.symbol_count
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        symbol = &c.objects.symbols[i]
        if (symbol.info & 15) == STT_SECTION or symbol.name_size == 0:
            continue
        if symbol.shndx == 0:
            row.undefined += 1
            continue
        row.defined += 1
        row.weak += symbol.info >> 4 == STB_WEAK
        row.functions += (symbol.info & 15) == STT_FUNC


cdef inline int32_t changed_section(const PlacedView* placed, const OutRow* row) noexcept nogil:
    """The section that a relocation section changes; a mercury one knows it through its twin."""
    cdef const OutRow* o = placed.outs
    cdef int32_t section = row.target, count = <int32_t>placed.out_count
    if section < 0 and 0 <= row.twin < count and 0 <= o[row.twin].target < count:
        section = o[o[row.twin].target].merc
    return section if section < count else -1


cdef inline size_t counter_of(uint32_t relocation_type) noexcept nogil:
    if relocation_type < PLAIN_TYPES:
        return relocation_type
    if FIRST_MERCURY_TYPE <= relocation_type < FIRST_MERCURY_TYPE + MERCURY_TYPES:
        return PLAIN_TYPES + relocation_type - FIRST_MERCURY_TYPE
    return TYPES - 1


def count_relocations(PlacedTables placed not None):
    placed.check()
    cdef MergedView merged
    cdef PlacedView view
    cdef uint64_t applied[TYPES]
    cdef uint64_t kept[TYPES]
    cdef size_t i
    placed.merged.view(&merged)
    placed.view(&view)
    with nogil:
        memset(applied, 0, sizeof(applied))
        memset(kept, 0, sizeof(kept))
        for i in range(merged.fixup_count):
            applied[counter_of(merged.fixups[i].type)] += 1
        count_kept(&merged, &view, kept)
    return [
        (0xffffffff if i == TYPES - 1 else i if i < PLAIN_TYPES
         else i - PLAIN_TYPES + FIRST_MERCURY_TYPE, applied[i], kept[i])
        for i in range(<size_t>TYPES) if applied[i] or kept[i]
    ]


cdef void count_kept(const MergedView* merged, const PlacedView* placed,
                     uint64_t* kept) noexcept nogil:
    """The emitted relocations, by type."""
    cdef const EmittedRow* emitted = merged.emitted
    cdef size_t i, steps = 0, listed = 0
    cdef int32_t at
    for i in range(placed.out_count):
        if placed.section_index[i] != 0 and is_a(placed.outs[i].kind, IS_ENTRIES):
            listed += placed.outs[i].count
    if listed == merged.emitted_count:  # all rows are in lists, so that the order does not matter
        for i in range(merged.emitted_count):
            kept[counter_of(emitted[i].type)] += 1
        return
    for i in range(placed.out_count):
        if placed.section_index[i] == 0 or not is_a(placed.outs[i].kind, IS_ENTRIES):
            continue
        at = placed.outs[i].head
        while 0 <= at < <int32_t>merged.emitted_count and steps < merged.emitted_count:
            kept[counter_of(emitted[at].type)] += 1
            at = emitted[at].next
            steps += 1


def count_by_section(PlacedTables placed not None):
    cdef MergedView merged
    cdef size_t out_count = placed.outs.count, i
    cdef bytes column = PyBytes_FromStringAndSize(NULL, out_count * 8)
    cdef uint64_t* count = <uint64_t*>PyBytes_AS_STRING(column)
    placed.merged.view(&merged)
    with nogil:
        memset(count, 0, out_count * 8)
        for i in range(merged.fixup_count):
            if <size_t>merged.fixups[i].out < out_count:
                count[merged.fixups[i].out] += 1
    return Values(column)


def fixups_of(Fixups fixups not None, int32_t out):
    cdef size_t n = fixups.count, i
    cdef const FixupRow* fixup = fixups.rows
    return [(fixup[i].offset, fixup[i].type) for i in range(n) if fixup[i].out == out]
