# Rows of a ledger added up by their groups: a table of sums, each under a key of its groups.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from size.ledgerrows cimport LedgerRow

# By number, the group of each entry and of each function; rows of a negative group do not count.
ctypedef struct Grouping:
    const int32_t* entries
    uint64_t entry_count
    const int32_t* functions
    uint64_t function_count
    bint by_part

ctypedef struct SumCell:
    uint64_t key                # 0: empty
    uint64_t rows
    uint64_t unpacked
    uint64_t installed
    uint64_t download

ctypedef struct SumTable:
    Scratch scratch             # of the cells alone
    SumCell* cells
    uint64_t mask
    uint64_t count              # cells with a key


cdef inline void start_table(SumTable* table, uint64_t mask) noexcept nogil:
    table.cells = <SumCell*>scratch_zeros(&table.scratch, mask + 1, sizeof(SumCell))
    table.mask = mask
    table.count = 0


cdef inline SumCell* cell_of(SumTable* table, uint64_t key) noexcept nogil:
    """The cell with that key, new if need be; NULL without memory."""
    cdef SumCell* cell
    if 2 * table.count > table.mask and not widen_table(table):
        return NULL
    cell = find_cell(table, key)
    if cell.key == 0:
        cell.key = key
        table.count += 1
    return cell


cdef inline SumCell* find_cell(const SumTable* table, uint64_t key) noexcept nogil:
    cdef uint64_t offset = key * <uint64_t>0x9e3779b97f4a7c15
    offset = (offset ^ offset >> 32) & table.mask
    while table.cells[offset].key and table.cells[offset].key != key:
        offset = (offset + 1) & table.mask
    return &table.cells[offset]


cdef inline bint widen_table(SumTable* table) noexcept nogil:
    cdef SumTable wider
    cdef uint64_t i
    scratch_init(&wider.scratch)
    start_table(&wider, 2 * table.mask + 1)
    if wider.scratch.failed:
        table.scratch.failed = True
        return False
    for i in range(table.mask + 1):
        if table.cells[i].key:
            find_cell(&wider, table.cells[i].key)[0] = table.cells[i]
    wider.count = table.count
    scratch_free(&table.scratch)
    table[0] = wider
    return True


cdef inline bint is_grouped(const Grouping* grouping, const LedgerRow* row) noexcept nogil:
    return (row.entry < grouping.entry_count and row.function < grouping.function_count
            and grouping.entries[row.entry] >= 0 and grouping.functions[row.function] >= 0)


cdef inline uint64_t sum_key(const Grouping* grouping, const LedgerRow* row) noexcept nogil:
    """26 bits for entries, 30 for functions, 8 for parts: none is 0 in all."""
    return (<uint64_t>grouping.entries[row.entry] << 38
            | <uint64_t>grouping.functions[row.function] << 8
            | (row.part + 1 if grouping.by_part else 1))


cdef inline int64_t entry_group(uint64_t key) noexcept nogil:
    return <int64_t>(key >> 38)


cdef inline int64_t function_group(uint64_t key) noexcept nogil:
    return <int64_t>(key >> 8 & 0x3fffffff)


cdef inline int64_t part_of_key(uint64_t key, const Grouping* grouping) noexcept nogil:
    """The part, or -1 where all parts count together."""
    return <int64_t>(key & 0xff) - 1 if grouping.by_part else -1


cdef inline void add_rows(SumTable* table, const Grouping* grouping, const LedgerRow* rows,
                          size_t count) noexcept nogil:
    """Add the rows that have groups, up to where memory is exhausted: the scratch says so."""
    cdef SumCell* cell
    cdef size_t i
    for i in range(count):
        if table.scratch.failed:
            break
        if is_grouped(grouping, &rows[i]):
            cell = cell_of(table, sum_key(grouping, &rows[i]))
            if cell == NULL:
                break
            cell.rows += 1
            cell.unpacked += rows[i].unpacked
            cell.installed += rows[i].installed
            cell.download += rows[i].download
