# Rows of a ledger added up by their groups: a table of sums, each under a key of its groups.

from libc.stdint cimport uint64_t

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros

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
