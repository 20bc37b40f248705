"""Counts the work of a link in its finished tables; only profiled links call it.

All fields of the rows that it returns are uint64. Functions only walk over tables: a link of 1,600
cubins has some 60,000 sections and 300,000 relocations, which takes a millisecond.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport STB_WEAK, STT_FUNC, STT_SECTION
from pylink._native.results cimport PlacedTables
from pylink._native.tables cimport Fixups, Values
from relocationtypes cimport FIRST_MERCURY_TYPE, MERCURY_TYPES, PLAIN_TYPES
from rownumbers cimport FROM_INPUTS
from sectionkinds cimport IS_DEBUG, IS_ENTRIES, KIND_COUNT, K_OTHER
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport (
    EmittedNumber, EmittedRow, FileRow, FixupRow, OutNumber, OutRow, SectionRef, SectionRow,
    SymbolRef, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView, PlacedView

cdef enum:
    # Number of counters: one for each plain relocation type, one for each mercury relocation type,
    # and one for all other types.
    TYPE_COUNTERS = PLAIN_TYPES + MERCURY_TYPES + 1

# Counts of one input. Each of its sections is kept (has a place in the output), folded (repeats a
# section of an earlier input), or discarded.
ctypedef packed struct FileCount:
    uint64_t sections
    uint64_t symbols
    uint64_t defined            # named symbols that the file defines
    uint64_t undefined          # named symbols that it only uses
    uint64_t weak               # defined symbols that are weak
    uint64_t functions          # defined symbols that are functions
    uint64_t relocations        # entries of its relocation sections
    uint64_t debug_bytes        # bytes of its debug sections
    uint64_t kept_sections
    uint64_t kept_bytes
    uint64_t folded_bytes       # bytes of sections that repeat an earlier input's

# Counts of the sections of one kind, of all inputs and of the output.
ctypedef packed struct KindCount:
    uint64_t input_sections
    uint64_t input_bytes
    uint64_t kept_sections      # input sections with a place in the output
    uint64_t discarded_bytes    # bytes of input sections without a place
    uint64_t folded_bytes       # bytes of input sections that repeat an earlier input's
    uint64_t output_sections
    uint64_t output_bytes
    uint64_t copied_bytes       # bytes of kept input sections that are copied to the output
    uint64_t applied            # relocations that the link applied to such sections
    uint64_t kept               # relocations in the output for such sections


def count_sections(PlacedTables placed not None):
    """Count sections, symbols, relocations and bytes: (rows of files, their sum, rows of kinds)."""
    placed.merged.check()
    placed.check()
    cdef Counts counts
    cdef const FileRow* file
    cdef size_t file_number, column
    placed.merged.objects.view(&counts.objects)
    placed.merged.view(&counts.merged)
    placed.view(&counts.placed)
    cdef size_t files_size = counts.objects.file_count * sizeof(FileCount)
    cdef bytes file_rows = PyBytes_FromStringAndSize(NULL, files_size)
    cdef bytes sums = PyBytes_FromStringAndSize(NULL, sizeof(FileCount))
    cdef bytes kind_rows = PyBytes_FromStringAndSize(NULL, KIND_COUNT * sizeof(KindCount))
    cdef uint64_t* total = <uint64_t*>PyBytes_AS_STRING(sums)
    cdef FileCount* files = <FileCount*>PyBytes_AS_STRING(file_rows)
    cdef Scratch scratch
    for file_number in range(counts.objects.file_count):
        file = &counts.objects.files[file_number]
        if (file.first_section > counts.objects.section_count
                or file.section_count > counts.objects.section_count - file.first_section
                or file.first_symbol > counts.objects.symbol_count
                or file.symbol_count > counts.objects.symbol_count - file.first_symbol):
            raise IndexError(f"file {file_number} runs past the tables")
    counts.kinds = <KindCount*>PyBytes_AS_STRING(kind_rows)
    scratch_init(&scratch)
    counts.copied = <uint8_t*>scratch_zeros(&scratch, counts.placed.out_count + 1, 1)
    check_memory(counts.copied != NULL)
    with nogil:
        memset(files, 0, files_size)
        memset(total, 0, sizeof(FileCount))
        memset(counts.kinds, 0, KIND_COUNT * sizeof(KindCount))
        count_outputs(&counts)
        for file_number in range(counts.objects.file_count):
            count_input_sections(&counts, &counts.objects.files[file_number], &files[file_number])
            count_input_symbols(&counts, &counts.objects.files[file_number], &files[file_number])
            for column in range(sizeof(FileCount) // 8):
                total[column] += (<uint64_t*>&files[file_number])[column]
    scratch_free(&scratch)
    return file_rows, sums, kind_rows


# The tables of a link, and what `count_sections` makes of them.
ctypedef struct Counts:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    uint8_t* copied             # by OutRow: whether its bytes are copied from inputs
    KindCount* kinds            # by section kind: its counts


cdef inline KindCount* kind_counter(const Counts* counts, uint32_t kind) noexcept nogil:
    """Return the counts of sections of a kind; an unknown kind counts as "other"."""
    return &counts.kinds[kind if kind < KIND_COUNT else K_OTHER]


cdef void count_outputs(Counts* counts) noexcept nogil:
    """Count sections, bytes and relocations of the output by kind."""
    cdef const OutRow* out = counts.placed.outs
    cdef const FixupRow* fixup = counts.merged.fixups
    cdef size_t i
    cdef OutNumber section
    cdef KindCount* kind_count
    for i in range(counts.placed.out_count):
        counts.copied[i] = (not is_nobits(&out[i])
                            and counts.placed.places[i].contents == FROM_INPUTS)
        if counts.placed.section_index[i] == 0:
            continue
        kind_count = kind_counter(counts, out[i].kind)
        kind_count.output_sections += 1
        kind_count.output_bytes += counts.placed.places[i].size
        if is_a(out[i].kind, IS_ENTRIES):
            section = find_changed_section(&counts.placed, &out[i])
            kind_count = kind_counter(counts, out[section].kind if section >= 0 else K_OTHER)
            kind_count.kept += out[i].count
    for i in range(counts.merged.fixup_count):
        if <size_t>fixup[i].out < counts.placed.out_count:
            kind_counter(counts, out[fixup[i].out].kind).applied += 1


cdef void count_input_sections(const Counts* counts, const FileRow* file,
                               FileCount* row) noexcept nogil:
    """Count the sections of one file, in its row and by kind."""
    cdef const OutNumber* out_of = counts.merged.out_of
    cdef const SectionRow* section
    cdef KindCount* kind_count
    cdef SectionRef i
    row.sections = file.section_count
    for i in range(file.first_section, file.first_section + file.section_count):
        section = &counts.objects.sections[i]
        kind_count = kind_counter(counts, section.kind)
        kind_count.input_sections += 1
        kind_count.input_bytes += section.size
        if is_a(section.kind, IS_ENTRIES) and section.entsize:
            row.relocations += section.size // section.entsize
        if is_a(section.kind, IS_DEBUG):
            row.debug_bytes += section.size
        if counts.merged.stand_ins != NULL and counts.merged.stand_ins[i] >= 0:
            kind_count.folded_bytes += section.size
            row.folded_bytes += section.size
        elif out_of[i] < 0:
            kind_count.discarded_bytes += section.size
        else:
            kind_count.kept_sections += 1
            row.kept_sections += 1
            row.kept_bytes += section.size
            if <size_t>out_of[i] < counts.placed.out_count and counts.copied[out_of[i]]:
                kind_count.copied_bytes += section.size


cdef void count_input_symbols(const Counts* counts, const FileRow* file,
                              FileCount* row) noexcept nogil:
    """Count the symbols of one file, in its row."""
    cdef const SymbolRow* symbol
    cdef SymbolRef i
    row.symbols = file.symbol_count
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        symbol = &counts.objects.symbols[i]
        if (symbol.info & 15) == STT_SECTION or symbol.name_size == 0:
            continue
        if symbol.shndx == 0:
            row.undefined += 1
            continue
        row.defined += 1
        row.weak += symbol.info >> 4 == STB_WEAK
        row.functions += (symbol.info & 15) == STT_FUNC


cdef inline OutNumber find_changed_section(const PlacedView* placed,
                                           const OutRow* row) noexcept nogil:
    """Return the section (OutRow) that the relocation section `row` patches, or -1.

    A mercury relocation section has no target: it patches the mercury form of its twin's target.
    """
    cdef const OutRow* outs = placed.outs
    cdef OutNumber section = row.target
    cdef int32_t count = <int32_t>placed.out_count
    if section < 0 and 0 <= row.twin < count and 0 <= outs[row.twin].target < count:
        section = outs[outs[row.twin].target].merc
    return section if section < count else -1


cdef inline size_t type_counter(uint32_t relocation_type) noexcept nogil:
    """Return the index of a relocation type's counter, from 0 to before TYPE_COUNTERS."""
    if relocation_type < PLAIN_TYPES:
        return relocation_type
    if FIRST_MERCURY_TYPE <= relocation_type < FIRST_MERCURY_TYPE + MERCURY_TYPES:
        return PLAIN_TYPES + relocation_type - FIRST_MERCURY_TYPE
    return TYPE_COUNTERS - 1


def count_relocations(PlacedTables placed not None):
    """Count the applied and the kept relocations of each type that occurs."""
    placed.check()
    cdef MergedView merged
    cdef PlacedView view
    cdef uint64_t applied[TYPE_COUNTERS]
    cdef uint64_t kept[TYPE_COUNTERS]
    cdef size_t i
    placed.merged.view(&merged)
    placed.view(&view)
    with nogil:
        memset(applied, 0, sizeof(applied))
        memset(kept, 0, sizeof(kept))
        for i in range(merged.fixup_count):
            applied[type_counter(merged.fixups[i].type)] += 1
        count_kept(&merged, &view, kept)
    return [
        (0xffffffff if i == TYPE_COUNTERS - 1 else i if i < PLAIN_TYPES
         else i - PLAIN_TYPES + FIRST_MERCURY_TYPE, applied[i], kept[i])
        for i in range(<size_t>TYPE_COUNTERS) if applied[i] or kept[i]
    ]


cdef void count_kept(const MergedView* merged, const PlacedView* placed,
                     uint64_t* kept) noexcept nogil:
    """Add the number of emitted relocations of each type to its counter in `kept`."""
    cdef const EmittedRow* emitted = merged.emitted
    # listed: number of entries in all relocation sections of the output. steps: number of rows that
    # were visited. It is limited, so that the walk also ends in a damaged list that is a circle.
    cdef size_t i, steps = 0, listed = 0
    cdef EmittedNumber row
    for i in range(placed.out_count):
        if placed.section_index[i] != 0 and is_a(placed.outs[i].kind, IS_ENTRIES):
            listed += placed.outs[i].count
    if listed == merged.emitted_count:  # all rows are in lists, so no list needs to be followed
        for i in range(merged.emitted_count):
            kept[type_counter(emitted[i].type)] += 1
        return
    for i in range(placed.out_count):
        if placed.section_index[i] == 0 or not is_a(placed.outs[i].kind, IS_ENTRIES):
            continue
        row = placed.outs[i].head
        while 0 <= row < <int32_t>merged.emitted_count and steps < merged.emitted_count:
            kept[type_counter(emitted[row].type)] += 1
            row = emitted[row].next
            steps += 1


def count_fixups(PlacedTables placed not None):
    """Count the relocations that are applied to each section of the output."""
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


def list_fixups(Fixups fixups not None, OutNumber out):
    """List (offset there, type) of each relocation that is applied to output section `out`."""
    cdef size_t fixup_count = fixups.count, i
    cdef const FixupRow* fixup = fixups.rows
    return [(fixup[i].offset, fixup[i].type) for i in range(fixup_count) if fixup[i].out == out]
