# Byte strings that belong to Python objects (spans), their comparison, and hash tables by key.
#
# A key is a hash of 64 bits. Different rows can have the same key, so callers also compare rows.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from base.scratch cimport Release, Scratch, scratch_owns

cdef extern from "base/spans.h":
    size_t equal_bytes "pylink_equal_bytes"(uint64_t difference) nogil
    uint64_t fold_product "pylink_fold_product"(uint64_t a, uint64_t b) nogil

cdef enum:
    # Bytes compared by one call of memcmp. A block with a mismatch is read again to find the byte:
    # it is small enough to be still in the first-level cache, and large enough for the calls to
    # take little time.
    BLOCK = 16384
    # Rows between the fetch of a slot into the cache and its use: a fetch takes as long as this
    # many searches.
    KEYS_AHEAD = 16

# Bytes that belong to a Python object.
cdef struct Span:
    const uint8_t* data
    size_t size                 # bytes


cdef inline size_t first_difference(const uint8_t* a, const uint8_t* b, size_t size) noexcept nogil:
    """Return the offset of the first byte that differs, or `size` if all are equal."""
    cdef size_t at = 0, step
    cdef uint64_t x, y          # a word of each
    if size >= 8:       # most mismatches are in the first word, where memcmp would take longer
        memcpy(&x, a, 8)
        memcpy(&y, b, 8)
        if x != y:
            return equal_bytes(x ^ y)
    while at < size:
        step = size - at if size - at < BLOCK else BLOCK
        if memcmp(a + at, b + at, step) != 0:
            while size - at >= 8:
                memcpy(&x, a + at, 8)
                memcpy(&y, b + at, 8)
                if x != y:
                    return at + equal_bytes(x ^ y)
                at += 8
            while a[at] == b[at]:   # this ends, since the block has a difference
                at += 1
            return at
        at += step
    return size


cdef inline uint64_t mix(uint64_t key, uint64_t word) noexcept nogil:
    """Return a key made of `key` and `word`: each bit of either affects the low bits of the result.

    The two constants are odd, and their bits have no pattern.
    """
    return fold_product(key ^ word ^ <uint64_t>0x9e3779b97f4a7c15, <uint64_t>0xd1b54a32d192ed03)


cdef inline uint64_t mix_bytes(uint64_t key, const uint8_t* data, size_t size) noexcept nogil:
    """Return a key that also depends on the size and the bytes of `data`."""
    cdef uint64_t word
    key = mix(key, size)
    while size >= 8:
        memcpy(&word, data, 8)
        key = mix(key, word)
        data += 8
        size -= 8
    if size:
        word = 0
        memcpy(&word, data, size)
        key = mix(key, word)
    return key


# A hash table from a key to the numbers of the rows that have it: open addressing over the keys,
# and rows of one key chained in the order of insertion. A slot has the upper half of the key, and
# its position mostly follows from the lower half, so both together tell most keys apart. A chain
# can still have rows of another key.

cdef struct KeySlot:
    uint32_t tag                # upper half of the key
    uint32_t head               # 1 + the first row with the key; 0: the slot is free

cdef struct KeyTable:
    KeySlot* slots
    uint32_t* next              # by row: 1 + the next row with the same key, or 0
    uint32_t* last              # by first row of a chain: 1 + its last row, 0 if it has one row
    size_t mask                 # number of slots, a power of two, less 1


cdef inline bint table_init(KeyTable* table, size_t rows) noexcept nogil:
    """Start an empty table for rows with numbers below `rows`; False without memory."""
    cdef size_t size = 8
    while size < 2 * rows:
        size *= 2
    table.slots = <KeySlot*>calloc(size * sizeof(KeySlot) + 2 * rows * sizeof(uint32_t), 1)
    table.next = <uint32_t*>(table.slots + size)
    table.last = table.next + rows
    table.mask = size - 1
    return table.slots != NULL


cdef inline void table_free(KeyTable* table) noexcept nogil:
    """Free slots and chains, which are one block of memory."""
    free(table.slots)
    table.slots = NULL


cdef inline void scratch_table(Scratch* scratch, KeyTable* table, size_t rows) noexcept nogil:
    """Start an empty table for rows with numbers below `rows`, which `scratch` frees."""
    table.slots = NULL
    scratch_owns(scratch, <Release>table_free, table)
    if scratch.failed or not table_init(table, rows):
        scratch.failed = True


cdef inline size_t table_home(const KeyTable* table, uint64_t key) noexcept nogil:
    """Return the slot at which the search for a key begins."""
    return <size_t>key & table.mask


cdef inline KeySlot* table_slot(const KeyTable* table, uint64_t key) noexcept nogil:
    """Return the slot of `key`, or the free slot in which it belongs."""
    cdef size_t at = table_home(table, key)
    cdef uint32_t tag = <uint32_t>(key >> 32)
    while table.slots[at].head and table.slots[at].tag != tag:
        at = (at + 1) & table.mask
    return &table.slots[at]


cdef inline void table_put(KeyTable* table, KeySlot* slot, uint64_t key,
                           uint32_t row) noexcept nogil:
    """Add `row` to `slot`, which `table_slot` found for `key`."""
    cdef uint32_t end
    if slot.head == 0:
        slot.tag = <uint32_t>(key >> 32)
        slot.head = row + 1
        return
    end = table.last[slot.head - 1]
    table.next[(end if end else slot.head) - 1] = row + 1
    table.last[slot.head - 1] = row + 1


cdef inline void table_add(KeyTable* table, uint64_t key, uint32_t row) noexcept nogil:
    """Add `row` to the rows of `key`."""
    table_put(table, table_slot(table, key), key, row)
