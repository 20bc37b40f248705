# Adds up rows of a ledger by group. Callers assign each entry and each function to a group. The
# sums are in a hash table, whose keys consist of part, group of entry and group of function.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from size.ledgerrows cimport LedgerRow

# The groups of entries and functions. Rows of a negative group do not count.
ctypedef struct Grouping:
    const int32_t* entries      # by ledger entry: its group
    uint64_t entry_count
    const int32_t* functions    # by ledger function: its group
    uint64_t function_count
    bint by_part                # each part has sums of its own

# A sum: `rows` is the number of rows, the last three are bytes as in LedgerRow.
ctypedef struct SumCell:
    uint64_t key                # 0: the cell is empty
    uint64_t rows
    uint64_t unpacked
    uint64_t installed
    uint64_t download

# A hash table of sums.
ctypedef struct SumTable:
    Scratch scratch             # owns the cells
    SumCell* cells
    uint64_t mask               # number of cells, a power of two, minus 1
    uint64_t count              # cells with a key


cdef inline void start_table(SumTable* table, uint64_t mask) noexcept nogil:
    """Allocate `mask` + 1 empty cells; the scratch says whether that failed."""
    table.cells = <SumCell*>scratch_zeros(&table.scratch, mask + 1, sizeof(SumCell))
    table.mask = mask
    table.count = 0


cdef inline SumCell* find_or_add_cell(SumTable* table, uint64_t key) noexcept nogil:
    """Return the cell with that key, which is added if it is new; NULL if memory is exhausted."""
    cdef SumCell* cell
    if 2 * table.count > table.mask and not widen_table(table):
        return NULL
    cell = find_cell(table, key)
    if cell.key == 0:
        cell.key = key
        table.count += 1
    return cell


cdef inline SumCell* find_cell(const SumTable* table, uint64_t key) noexcept nogil:
    """Return the cell with that key, or the empty cell for it. The factor mixes the key's bits."""
    cdef uint64_t slot = key * <uint64_t>0x9e3779b97f4a7c15
    slot = (slot ^ slot >> 32) & table.mask
    while table.cells[slot].key and table.cells[slot].key != key:
        slot = (slot + 1) & table.mask
    return &table.cells[slot]


cdef inline bint widen_table(SumTable* table) noexcept nogil:
    """Double the number of cells; False if memory is exhausted."""
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
    """Return whether the entry and the function of a row have groups."""
    return (row.entry < grouping.entry_count and row.function < grouping.function_count
            and grouping.entries[row.entry] >= 0 and grouping.functions[row.function] >= 0)


cdef inline uint64_t sum_key(const Grouping* grouping, const LedgerRow* row) noexcept nogil:
    """Return the key of a row's sum, which is never 0.

    From the top: 26 bits for the group of the entry, 30 for that of the function, 8 for the part
    plus 1 (or 1 if all parts are added up together).
    """
    return (<uint64_t>grouping.entries[row.entry] << 38
            | <uint64_t>grouping.functions[row.function] << 8
            | (row.part + 1 if grouping.by_part else 1))


cdef inline int64_t entry_group(uint64_t key) noexcept nogil:
    """Return the group of entries in a key."""
    return <int64_t>(key >> 38)


cdef inline int64_t function_group(uint64_t key) noexcept nogil:
    """Return the group of functions in a key."""
    return <int64_t>(key >> 8 & 0x3fffffff)


cdef inline int64_t part_of_key(uint64_t key, const Grouping* grouping) noexcept nogil:
    """Return the part of a key, or -1 if all parts are added up together."""
    return <int64_t>(key & 0xff) - 1 if grouping.by_part else -1


cdef inline void add_rows(SumTable* table, const Grouping* grouping, const LedgerRow* rows,
                          size_t count) noexcept nogil:
    """Add the rows that have groups. If memory is exhausted, `table.scratch` has failed."""
    cdef SumCell* cell
    cdef size_t i
    for i in range(count):
        if table.scratch.failed:
            break
        if is_grouped(grouping, &rows[i]):
            cell = find_or_add_cell(table, sum_key(grouping, &rows[i]))
            if cell == NULL:
                break
            cell.rows += 1
            cell.unpacked += rows[i].unpacked
            cell.installed += rows[i].installed
            cell.download += rows[i].download
