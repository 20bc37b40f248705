# Files read by several threads, into the same tables as by one.
#
# Each has a share, whose rows begin where the previous share's rows can end at most. If that share
# has fewer rows, the next one is read again from its real end.

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memset

from base.clocks cimport CLOCK_MONOTONIC, TimeRow, nanoseconds
from base.scratch cimport Scratch, scratch_reserve
from base.threads cimport run_parts
from base.vector cimport vec_over
from read.faults cimport Reader
from read.files cimport count_rows, read_file
from tables.rows cimport FaultRow, FileRow, SectionRow, SymbolRow


# The files that a thread reads: one after the other, into rows of their own in the tables of all.
ctypedef struct Share:
    const uint8_t* arena
    const uint64_t* extent
    TimeRow* times              # by file, or NULL
    Py_ssize_t first
    Py_ssize_t end
    uint64_t sections           # rows that they can have
    uint64_t symbols
    size_t section              # number of the first row
    size_t symbol
    Reader reader
    bint good


cdef inline void count_share(void* context, size_t number) noexcept nogil:
    cdef Share* share = <Share*>context + number
    cdef Py_ssize_t i
    for i in range(share.first, share.end):
        count_rows(share.arena + share.extent[2 * i], share.extent[2 * i + 1], &share.sections,
                   &share.symbols)


cdef inline void reserve_rows(Scratch* scratch, Reader* tables, size_t files, const Share* shares,
                              size_t count) noexcept nogil:
    """Room for all rows that the shares can have."""
    cdef uint64_t sections = 0, symbols = 0
    cdef size_t k
    for k in range(count):
        sections += shares[k].sections
        symbols += shares[k].symbols
    scratch_reserve(scratch, &tables.files, files)
    scratch_reserve(scratch, &tables.sections, sections)
    scratch_reserve(scratch, &tables.symbols, symbols)


cdef inline void read_share(void* context, size_t number) noexcept nogil:
    """The files up to the first that has a fault."""
    cdef Share* share = <Share*>context + number
    cdef TimeRow* row
    cdef Py_ssize_t i
    share.good = True
    for i in range(share.first, share.end):
        row = NULL if share.times == NULL else &share.times[i]
        if row != NULL:
            row.start = nanoseconds(CLOCK_MONOTONIC)
        share.reader.file = <int32_t>i
        share.good = read_file(&share.reader, share.extent[2 * i], share.extent[2 * i + 1])
        if not share.good:
            break
        if row != NULL:
            row.wall = nanoseconds(CLOCK_MONOTONIC) - row.start


cdef inline void start_share(Share* share, const Reader* tables, size_t section,
                             size_t symbol) noexcept nogil:
    """Have the share fill the tables of `tables` from these rows on."""
    cdef Reader* r = &share.reader
    share.section = section
    share.symbol = symbol
    r.arena = share.arena
    vec_over(&r.files, tables.files.data, sizeof(FileRow), tables.files.room)
    vec_over(&r.sections, tables.sections.data, sizeof(SectionRow), tables.sections.room)
    vec_over(&r.symbols, tables.symbols.data, sizeof(SymbolRow), tables.symbols.room)
    r.files.count = <size_t>share.first
    r.sections.count = section
    r.symbols.count = symbol
    memset(&r.fault, 0, sizeof(FaultRow))


cdef inline Share* read_shares(Reader* tables, Share* shares, size_t count) noexcept nogil:
    """Fill the tables; returns the share that ended the reading, by a fault or at the last file."""
    cdef uint64_t section = 0, symbol = 0
    cdef Share* share = shares
    cdef const Reader* r = &shares[0].reader
    cdef size_t k
    for k in range(count):
        start_share(&shares[k], tables, section, symbol)
        section += shares[k].sections
        symbol += shares[k].symbols
    run_parts(read_share, shares, count)
    for k in range(1, count):
        if not share.good:
            break
        share = &shares[k]
        if share.section != r.sections.count or share.symbol != r.symbols.count:
            # The shares before it have fewer rows than reserved: this one begins earlier.
            start_share(share, tables, r.sections.count, r.symbols.count)
            read_share(shares, k)
        r = &share.reader
    tables.files.count = r.files.count
    tables.sections.count = r.sections.count
    tables.symbols.count = r.symbols.count
    return share
