"""What a link did, counted over its finished tables; only profiled links call these.

Rows that come back are uint64 columns. One pass over each table, no look-ups: a link of 1,600
cubins has some 60,000 sections and 300,000 relocations, which takes a millisecond.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from elf64 cimport *
from rows cimport *

cdef enum:
    KINDS = 38
    # Relocation types that have a counter: plain numbers, mercury numbers from 0x10000 on, others.
    PLAIN_TYPES = 128
    MERCURY_TYPES = 128
    TYPES = PLAIN_TYPES + MERCURY_TYPES + 1
    MERCURY = 0x10000

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


cdef inline bint is_relocations(uint32_t kind) noexcept nogil:
    return kind == K_RELOC or kind == K_MERC_RELA


def count_files(bytes files not None, bytes sections not None, bytes symbols not None,
                bytes out_of not None, bytes stand_ins not None):
    """A FileCount per file; `stand_ins` may be empty."""
    cdef size_t n = PyBytes_GET_SIZE(files) // sizeof(FileRow), f
    cdef size_t section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    cdef size_t symbol_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
    cdef const FileRow* file = <const FileRow*>PyBytes_AS_STRING(files)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* y = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const int32_t* out = <const int32_t*>PyBytes_AS_STRING(out_of)
    cdef const int32_t* twin = <const int32_t*>PyBytes_AS_STRING(stand_ins) if stand_ins else NULL
    cdef bytes made = PyBytes_FromStringAndSize(NULL, n * sizeof(FileCount))
    cdef FileCount* row = <FileCount*>PyBytes_AS_STRING(made)
    cdef uint32_t i
    _check_columns(section_count, out_of, stand_ins)
    for f in range(n):
        if (file[f].first_section > section_count
                or file[f].section_count > section_count - file[f].first_section
                or file[f].first_symbol > symbol_count
                or file[f].symbol_count > symbol_count - file[f].first_symbol):
            raise IndexError(f"file {f} runs past the tables")
    with nogil:
        memset(row, 0, n * sizeof(FileCount))
        for f in range(n):
            row[f].sections = file[f].section_count
            row[f].symbols = file[f].symbol_count
            for i in range(file[f].first_section, file[f].first_section + file[f].section_count):
                if is_relocations(s[i].kind) and s[i].entsize:
                    row[f].relocations += s[i].size // s[i].entsize
                if s[i].kind == K_DEBUG or s[i].kind == K_MERC_DEBUG:
                    row[f].debug_bytes += s[i].size
                if twin != NULL and twin[i] >= 0:
                    row[f].folded_bytes += s[i].size
                elif out[i] >= 0:
                    row[f].kept_sections += 1
                    row[f].kept_bytes += s[i].size
            for i in range(file[f].first_symbol, file[f].first_symbol + file[f].symbol_count):
                if (y[i].info & 15) == STT_SECTION or y[i].name_size == 0:
                    continue
                if y[i].shndx == 0:
                    row[f].undefined += 1
                    continue
                row[f].defined += 1
                row[f].weak += y[i].info >> 4 == STB_WEAK
                row[f].functions += (y[i].info & 15) == STT_FUNC
    return made


def count_kinds(bytes sections not None, bytes out_of not None, bytes stand_ins not None,
                bytes outs not None, bytes section_index not None, bytes places not None,
                bytes fixes not None):
    """A KindCount per kind of section, in the order of their numbers.

    Relocations count for the kind of section that they change.
    """
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t fix_count = PyBytes_GET_SIZE(fixes) // sizeof(FixRow)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const int32_t* out = <const int32_t*>PyBytes_AS_STRING(out_of)
    cdef const int32_t* twin = <const int32_t*>PyBytes_AS_STRING(stand_ins) if stand_ins else NULL
    cdef const OutRow* o = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const uint32_t* index = <const uint32_t*>PyBytes_AS_STRING(section_index)
    cdef const PlaceRow* place = <const PlaceRow*>PyBytes_AS_STRING(places)
    cdef const FixRow* fix = <const FixRow*>PyBytes_AS_STRING(fixes)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, KINDS * sizeof(KindCount))
    cdef KindCount* row = <KindCount*>PyBytes_AS_STRING(made)
    cdef KindCount* k
    cdef int32_t at
    _check_columns(n, out_of, stand_ins)
    if (<size_t>PyBytes_GET_SIZE(section_index) // 4 != out_count
            or PyBytes_GET_SIZE(places) // sizeof(PlaceRow) != out_count):
        raise ValueError("output columns differ in length")
    with nogil:
        memset(row, 0, KINDS * sizeof(KindCount))
        for i in range(n):
            k = &row[s[i].kind if s[i].kind < KINDS else K_OTHER]
            k.input_sections += 1
            k.input_bytes += s[i].size
            if twin != NULL and twin[i] >= 0:
                k.folded_bytes += s[i].size
            elif out[i] < 0:
                k.discarded_bytes += s[i].size
            else:
                k.kept_sections += 1
                if (<size_t>out[i] < out_count and not is_nobits(&o[out[i]])
                        and not place[out[i]].made):
                    k.copied_bytes += s[i].size
        for i in range(out_count):
            if index[i] == 0:
                continue
            k = &row[o[i].kind if o[i].kind < KINDS else K_OTHER]
            k.output_sections += 1
            k.output_bytes += place[i].size
            if is_relocations(o[i].kind):
                at = patched(o, out_count, &o[i])
                row[o[at].kind if at >= 0 and o[at].kind < KINDS else K_OTHER].kept += o[i].count
        for i in range(fix_count):
            if <size_t>fix[i].out < out_count:
                at = fix[i].out
                row[o[at].kind if o[at].kind < KINDS else K_OTHER].applied += 1
    return made


cdef inline int32_t patched(const OutRow* o, size_t count, const OutRow* row) noexcept nogil:
    """The section that a relocation section changes; a mercury one knows it through its twin."""
    cdef int32_t at = row.target
    if at < 0 and 0 <= row.twin < <int32_t>count and 0 <= o[row.twin].target < <int32_t>count:
        at = o[o[row.twin].target].merc
    return at if at < <int32_t>count else -1


cdef inline size_t counter_of(uint32_t type_) noexcept nogil:
    if type_ < PLAIN_TYPES:
        return type_
    if MERCURY <= type_ < MERCURY + MERCURY_TYPES:
        return PLAIN_TYPES + type_ - MERCURY
    return TYPES - 1


def count_relocations(bytes fixes not None, bytes keeps not None, bytes outs not None,
                      bytes section_index not None):
    """A list of (type, applied, kept), by type; type 0xffffffff stands for all without a name."""
    cdef size_t fix_count = PyBytes_GET_SIZE(fixes) // sizeof(FixRow), i
    cdef size_t keep_count = PyBytes_GET_SIZE(keeps) // sizeof(KeepRow), steps = 0
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef const FixRow* fix = <const FixRow*>PyBytes_AS_STRING(fixes)
    cdef const KeepRow* keep = <const KeepRow*>PyBytes_AS_STRING(keeps)
    cdef const OutRow* o = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const uint32_t* index = <const uint32_t*>PyBytes_AS_STRING(section_index)
    cdef uint64_t applied[TYPES]
    cdef uint64_t kept[TYPES]
    cdef int32_t at
    if <size_t>PyBytes_GET_SIZE(section_index) // 4 != out_count:
        raise ValueError("output columns differ in length")
    with nogil:
        memset(applied, 0, sizeof(applied))
        memset(kept, 0, sizeof(kept))
        for i in range(fix_count):
            applied[counter_of(fix[i].type)] += 1
        for i in range(out_count):
            if index[i] == 0 or not is_relocations(o[i].kind):
                continue
            at = o[i].head
            while 0 <= at < <int32_t>keep_count and steps < keep_count:
                kept[counter_of(keep[at].type)] += 1
                at = keep[at].next
                steps += 1
    return [
        (0xffffffff if i == TYPES - 1 else i if i < PLAIN_TYPES else i - PLAIN_TYPES + MERCURY,
         applied[i], kept[i])
        for i in range(<size_t>TYPES) if applied[i] or kept[i]
    ]


def count_by_section(bytes fixes not None, bytes outs not None):
    """A uint64 per OutRow: the relocations applied to it."""
    cdef size_t fix_count = PyBytes_GET_SIZE(fixes) // sizeof(FixRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef const FixRow* fix = <const FixRow*>PyBytes_AS_STRING(fixes)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, out_count * 8)
    cdef uint64_t* row = <uint64_t*>PyBytes_AS_STRING(made)
    with nogil:
        memset(row, 0, out_count * 8)
        for i in range(fix_count):
            if <size_t>fix[i].out < out_count:
                row[fix[i].out] += 1
    return made


def fixes_of(bytes fixes not None, int32_t out):
    """A list of (offset, type) of the relocations applied to one OutRow, in order of the table."""
    cdef size_t n = PyBytes_GET_SIZE(fixes) // sizeof(FixRow), i
    cdef const FixRow* fix = <const FixRow*>PyBytes_AS_STRING(fixes)
    return [(fix[i].offset, fix[i].type) for i in range(n) if fix[i].out == out]


cdef int _check_columns(size_t sections, bytes out_of, bytes stand_ins) except -1:
    if <size_t>PyBytes_GET_SIZE(out_of) // 4 != sections:
        raise ValueError("one output section per section")
    if stand_ins and <size_t>PyBytes_GET_SIZE(stand_ins) // 4 != sections:
        raise ValueError("one stand-in per section")
    return 0
