"""What a link did, counted over its finished tables; only profiled links call these.

Rows that come back are uint64 columns. One pass over each table, no look-ups: a link of 1,600
cubins has some 60,000 sections and 300,000 relocations, which takes a millisecond.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from sectionkinds cimport IS_DEBUG, IS_ENTRIES, KIND_COUNT, K_OTHER
from base.elf64 cimport STB_WEAK, STT_FUNC, STT_SECTION
from pylink._native.tables cimport Fixups, MergedTables, ObjectTables, PlacedTables, Values
from tables.kinds cimport is_a, is_nobits
from relocationtypes cimport FIRST_MERCURY_TYPE, MERCURY_TYPES, PLAIN_TYPES
from tables.rows cimport (
    FROM_INPUTS, EmittedRow, FileRow, FixupRow, OutRow, PlaceRow, SectionRow, SymbolRow,
)
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from base.memory cimport check_memory

cdef enum:
    # Relocation types that have a counter: plain numbers, mercury numbers, others.
    TYPES = PLAIN_TYPES + MERCURY_TYPES + 1

# What one input holds.
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

# What became of the sections of one kind.
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
    """A FileCount per file, one of all files together, and a KindCount per kind of section.

    Relocations count for the kind of section that they change.
    """
    placed.merged.check()
    placed.check()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = objects.files.count, f
    cdef size_t section_count = objects.sections.count
    cdef size_t symbol_count = objects.symbols.count
    cdef Inputs c
    cdef Outputs o
    cdef Scratch scratch
    cdef const FileRow* file = objects.files.rows
    cdef bytes file_rows = PyBytes_FromStringAndSize(NULL, n * sizeof(FileCount))
    cdef bytes sums = PyBytes_FromStringAndSize(NULL, sizeof(FileCount))
    cdef bytes kind_rows = PyBytes_FromStringAndSize(NULL, KIND_COUNT * sizeof(KindCount))
    cdef uint64_t* total = <uint64_t*>PyBytes_AS_STRING(sums)
    cdef size_t column
    o.count = placed.outs.count
    o.fixup_count = merged.fixups.count
    for f in range(n):
        if (file[f].first_section > section_count
                or file[f].section_count > section_count - file[f].first_section
                or file[f].first_symbol > symbol_count
                or file[f].symbol_count > symbol_count - file[f].first_symbol):
            raise IndexError(f"file {f} runs past the tables")
    c.sections = objects.sections.rows
    c.symbols = objects.symbols.rows
    c.out_of = merged.out_of.rows
    c.stand_in = merged.stand_ins.rows if merged.stand_ins.count else NULL
    c.out_count = o.count
    c.kinds = o.kinds = <KindCount*>PyBytes_AS_STRING(kind_rows)
    c.files = <FileCount*>PyBytes_AS_STRING(file_rows)
    o.outs = placed.outs.rows
    o.index = placed.section_index.rows
    o.places = placed.places.rows
    o.fixups = merged.fixups.rows
    scratch_init(&scratch)
    o.copied = c.copied = <uint8_t*>scratch_zeros(&scratch, o.count + 1, 1)
    check_memory(o.copied != NULL)
    with nogil:
        memset(c.files, 0, n * sizeof(FileCount))
        memset(total, 0, sizeof(FileCount))
        memset(c.kinds, 0, KIND_COUNT * sizeof(KindCount))
        count_outputs(&o)
        for f in range(n):
            count_input_sections(&c, &file[f], &c.files[f])
            count_input_symbols(&c, &file[f], &c.files[f])
            for column in range(sizeof(FileCount) // 8):
                total[column] += (<uint64_t*>&c.files[f])[column]
    scratch_free(&scratch)
    return file_rows, sums, kind_rows


ctypedef struct Inputs:
    const SectionRow* sections
    const SymbolRow* symbols
    const int32_t* out_of
    const int32_t* stand_in     # NULL: nothing was folded
    const uint8_t* copied
    size_t out_count
    FileCount* files
    KindCount* kinds

ctypedef struct Outputs:
    const OutRow* outs
    const uint32_t* index
    const PlaceRow* places
    const FixupRow* fixups
    size_t count
    size_t fixup_count
    uint8_t* copied             # by OutRow: whether its bytes are the inputs'
    KindCount* kinds


cdef inline KindCount* counter(KindCount* kinds, uint32_t kind) noexcept nogil:
    return &kinds[kind if kind < KIND_COUNT else K_OTHER]


cdef void count_outputs(Outputs* o) noexcept nogil:
    cdef size_t i
    cdef int32_t at
    cdef KindCount* k
    for i in range(o.count):
        o.copied[i] = not is_nobits(&o.outs[i]) and o.places[i].contents == FROM_INPUTS
        if o.index[i] == 0:
            continue
        k = counter(o.kinds, o.outs[i].kind)
        k.output_sections += 1
        k.output_bytes += o.places[i].size
        if is_a(o.outs[i].kind, IS_ENTRIES):
            at = patched(o.outs, o.count, &o.outs[i])
            counter(o.kinds, o.outs[at].kind if at >= 0 else K_OTHER).kept += o.outs[i].count
    for i in range(o.fixup_count):
        if <size_t>o.fixups[i].out < o.count:
            counter(o.kinds, o.outs[o.fixups[i].out].kind).applied += 1


cdef void count_input_sections(Inputs* c, const FileRow* file, FileCount* row) noexcept nogil:
    cdef const SectionRow* s
    cdef KindCount* k
    cdef uint32_t i
    row.sections = file.section_count
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &c.sections[i]
        k = counter(c.kinds, s.kind)
        k.input_sections += 1
        k.input_bytes += s.size
        if is_a(s.kind, IS_ENTRIES) and s.entsize:
            row.relocations += s.size // s.entsize
        if is_a(s.kind, IS_DEBUG):
            row.debug_bytes += s.size
        if c.stand_in != NULL and c.stand_in[i] >= 0:
            k.folded_bytes += s.size
            row.folded_bytes += s.size
        elif c.out_of[i] < 0:
            k.discarded_bytes += s.size
        else:
            k.kept_sections += 1
            row.kept_sections += 1
            row.kept_bytes += s.size
            if <size_t>c.out_of[i] < c.out_count and c.copied[c.out_of[i]]:
                k.copied_bytes += s.size


cdef void count_input_symbols(Inputs* c, const FileRow* file, FileCount* row) noexcept nogil:
    cdef const SymbolRow* y
    cdef uint32_t i
    row.symbols = file.symbol_count
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        y = &c.symbols[i]
        if (y.info & 15) == STT_SECTION or y.name_size == 0:
            continue
        if y.shndx == 0:
            row.undefined += 1
            continue
        row.defined += 1
        row.weak += y.info >> 4 == STB_WEAK
        row.functions += (y.info & 15) == STT_FUNC


cdef inline int32_t patched(const OutRow* o, size_t count, const OutRow* row) noexcept nogil:
    """The section that a relocation section changes; a mercury one knows it through its twin."""
    cdef int32_t at = row.target
    if at < 0 and 0 <= row.twin < <int32_t>count and 0 <= o[row.twin].target < <int32_t>count:
        at = o[o[row.twin].target].merc
    return at if at < <int32_t>count else -1


cdef inline size_t counter_of(uint32_t type_) noexcept nogil:
    if type_ < PLAIN_TYPES:
        return type_
    if FIRST_MERCURY_TYPE <= type_ < FIRST_MERCURY_TYPE + MERCURY_TYPES:
        return PLAIN_TYPES + type_ - FIRST_MERCURY_TYPE
    return TYPES - 1


def count_relocations(PlacedTables placed not None):
    """A list of (type, applied, kept), by type; type 0xffffffff stands for all without a name."""
    placed.check()
    cdef MergedTables merged = placed.merged
    cdef size_t fixup_count = merged.fixups.count, i
    cdef size_t emitted_count = merged.emitted.count, steps = 0, listed = 0
    cdef size_t out_count = placed.outs.count
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef const EmittedRow* emitted = merged.emitted.rows
    cdef const OutRow* o = placed.outs.rows
    cdef const uint32_t* index = placed.section_index.rows
    cdef uint64_t applied[TYPES]
    cdef uint64_t kept[TYPES]
    cdef int32_t at
    with nogil:
        memset(applied, 0, sizeof(applied))
        memset(kept, 0, sizeof(kept))
        for i in range(fixup_count):
            applied[counter_of(fixup[i].type)] += 1
        for i in range(out_count):
            if index[i] != 0 and is_a(o[i].kind, IS_ENTRIES):
                listed += o[i].count
        if listed == emitted_count:    # all rows are in lists, so that the order does not matter
            for i in range(emitted_count):
                kept[counter_of(emitted[i].type)] += 1
            out_count = 0
        for i in range(out_count):
            if index[i] == 0 or not is_a(o[i].kind, IS_ENTRIES):
                continue
            at = o[i].head
            while 0 <= at < <int32_t>emitted_count and steps < emitted_count:
                kept[counter_of(emitted[at].type)] += 1
                at = emitted[at].next
                steps += 1
    return [
        (0xffffffff if i == TYPES - 1 else i if i < PLAIN_TYPES
         else i - PLAIN_TYPES + FIRST_MERCURY_TYPE, applied[i], kept[i])
        for i in range(<size_t>TYPES) if applied[i] or kept[i]
    ]


def count_by_section(PlacedTables placed not None):
    """A uint64 per OutRow: the relocations applied to it."""
    cdef MergedTables merged = placed.merged
    cdef size_t fixup_count = merged.fixups.count, i
    cdef size_t out_count = placed.outs.count
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef bytes made = PyBytes_FromStringAndSize(NULL, out_count * 8)
    cdef uint64_t* row = <uint64_t*>PyBytes_AS_STRING(made)
    with nogil:
        memset(row, 0, out_count * 8)
        for i in range(fixup_count):
            if <size_t>fixup[i].out < out_count:
                row[fixup[i].out] += 1
    return Values(made)


def fixups_of(Fixups fixups not None, int32_t out):
    """A list of (offset, type) of the relocations applied to one OutRow, in order of the table."""
    cdef size_t n = fixups.count, i
    cdef const FixupRow* fixup = fixups.rows
    return [(fixup[i].offset, fixup[i].type) for i in range(n) if fixup[i].out == out]
