# Reading by several threads, with the same tables as by one.
#
# Each thread reads a share of the files. The rows of a share begin where those of the previous one
# would end if it had as many as its files can have (`count_rows`). If it turns out to have fewer,
# the next share is read again, from the real end.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from base.clocks cimport TimeRow, end_item, start_item
from base.scratch cimport Scratch, scratch_reserve
from base.threads cimport run_parts, thread_number
from base.vector cimport vec_over
from read.faults cimport Reader
from read.files cimport count_rows, read_file
from tables.rows cimport FaultRow, FileCounter, FileNumber, FileRow, SectionRow, SymbolRow


# A part of the files, which one thread reads one after the other. Their rows are a range of the
# tables that all shares fill.
ctypedef struct Share:
    const uint8_t* arena
    const uint64_t* extent      # two elements for each file: its offset in the arena, its size
    TimeRow* times              # by input file: the time that it took; NULL without a profile
    uint64_t* spent             # by thread: its processor time so far, for `start_item`
    Py_ssize_t first_file
    Py_ssize_t end_file         # number after its last file
    uint64_t most_sections      # most SectionRows that its files can have
    uint64_t most_symbols       # most SymbolRows that its files can have
    size_t first_section        # number of its first SectionRow
    size_t first_symbol         # number of its first SymbolRow
    Reader reader
    bint is_read                # all its files have been read


cdef inline void count_rows_of_share(void* context, size_t number) noexcept nogil:
    """Set how many rows share `number` of the shares `context` can have; a task of `run_parts`."""
    cdef Share* share = <Share*>context + number
    cdef Py_ssize_t i
    for i in range(share.first_file, share.end_file):
        count_rows(share.arena + share.extent[2 * i], share.extent[2 * i + 1], &share.most_sections,
                   &share.most_symbols)


cdef inline void reserve_rows(Scratch* scratch, Reader* tables, size_t file_count,
                              const Share* shares, size_t share_count) noexcept nogil:
    """Make room in the tables for all rows that the shares can have."""
    cdef uint64_t sections = 0, symbols = 0
    cdef size_t number
    for number in range(share_count):
        sections += shares[number].most_sections
        symbols += shares[number].most_symbols
    scratch_reserve(scratch, &tables.files, file_count)
    scratch_reserve(scratch, &tables.sections, sections)
    scratch_reserve(scratch, &tables.symbols, symbols)


cdef inline void read_share(void* context, size_t number) noexcept nogil:
    """Read the files of share `number`, up to the first with a fault; a task of `run_parts`.

    `context` is the array of shares. Reading also stops without memory.
    """
    cdef Share* share = <Share*>context + number
    cdef TimeRow* row
    cdef Py_ssize_t i
    share.is_read = True
    for i in range(share.first_file, share.end_file):
        row = NULL if share.times == NULL else &share.times[<FileCounter>i]
        start_item(row, thread_number, share.spent)
        share.reader.file = <FileNumber>i
        share.is_read = read_file(&share.reader, share.extent[2 * i], share.extent[2 * i + 1])
        if not share.is_read:
            break
        end_item(row, share.spent)


cdef inline void start_share(Share* share, const Reader* tables, size_t section,
                             size_t symbol) noexcept nogil:
    """Let a share fill the memory of `tables`, from rows number `section` and `symbol` on."""
    cdef Reader* reader = &share.reader
    share.first_section = section
    share.first_symbol = symbol
    reader.arena = share.arena
    vec_over(&reader.files, tables.files.data, sizeof(FileRow), tables.files.room)
    vec_over(&reader.sections, tables.sections.data, sizeof(SectionRow), tables.sections.room)
    vec_over(&reader.symbols, tables.symbols.data, sizeof(SymbolRow), tables.symbols.room)
    reader.files.count = <size_t>share.first_file
    reader.sections.count = section
    reader.symbols.count = symbol
    memset(&reader.fault, 0, sizeof(FaultRow))


cdef inline Share* read_shares(Reader* tables, Share* shares, size_t share_count) noexcept nogil:
    """Read all shares. Returns the first one with a fault or without memory, else the last one."""
    cdef uint64_t section = 0, symbol = 0
    cdef Share* share = shares
    cdef const Reader* reader = &shares[0].reader
    cdef size_t number
    for number in range(share_count):
        start_share(&shares[number], tables, section, symbol)
        section += shares[number].most_sections
        symbol += shares[number].most_symbols
    run_parts(read_share, shares, share_count)
    for number in range(1, share_count):
        if not share.is_read:
            break
        share = &shares[number]
        if (share.first_section != reader.sections.count
                or share.first_symbol != reader.symbols.count):
            # The shares before it have fewer rows than reserved: this one begins earlier.
            start_share(share, tables, reader.sections.count, reader.symbols.count)
            read_share(shares, number)
        reader = &share.reader
    tables.files.count = reader.files.count
    tables.sections.count = reader.sections.count
    tables.symbols.count = reader.symbols.count
    return share
