# Byte strings borrowed from Python objects, their comparison, and keys for hash tables.
#
# A key proves nothing: whoever finds a row by its key compares the row's fields and bytes.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from base.scratch cimport Release, Scratch, scratch_owns

cdef extern from "base/spans.h":
    size_t equal_bytes "pylink_equal_bytes"(uint64_t difference) nogil
    uint64_t fold_product "pylink_fold_product"(uint64_t a, uint64_t b) nogil
    uint64_t now_ns "pylink_now_ns"() nogil
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum:
    # A mismatch is found to the byte by reading its block once more: small enough to be still in
    # the first-level cache then, large enough for the calls of memcmp to be lost in the noise.
    BLOCK = 16384
    # Rows that a walk looks ahead: a cache miss lasts about as long as this many probes.
    AHEAD = 16

cdef struct Span:
    const uint8_t* data
    size_t size


cdef inline size_t first_difference(const uint8_t* a, const uint8_t* b, size_t size) noexcept nogil:
    """Offset of the first byte that differs, or `size` when all are equal."""
    cdef size_t at = 0, step
    cdef uint64_t x, y
    if size >= 8:       # most mismatches of a search are here, and a call costs more than they do
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
            while a[at] == b[at]:   # ends: the block holds a difference
                at += 1
            return at
        at += step
    return size


cdef inline uint64_t mix(uint64_t h, uint64_t word) noexcept nogil:
    """Both halves of a 128-bit product: every bit of the word reaches the low bits of the key."""
    return fold_product(h ^ word ^ <uint64_t>0x9e3779b97f4a7c15, <uint64_t>0xd1b54a32d192ed03)


cdef inline uint64_t mix_bytes(uint64_t h, const uint8_t* data, size_t size) noexcept nogil:
    """Mix the size and the bytes into a key, in words of 8."""
    cdef uint64_t word
    h = mix(h, size)
    while size >= 8:
        memcpy(&word, data, 8)
        h = mix(h, word)
        data += 8
        size -= 8
    if size:
        word = 0
        memcpy(&word, data, size)
        h = mix(h, word)
    return h


# A table from key to the rows that have it: open addressing over the keys, and rows of one key
# chained in the order of insertion, so that walking a chain meets the lowest row first. A slot
# keeps the upper half of the key: with its place that tells keys apart about as well as the whole.

cdef struct KeySlot:
    uint32_t tag
    uint32_t head       # row + 1, 0 when the slot is free

cdef struct KeyTable:
    KeySlot* slots
    uint32_t* next      # row + 1 of the next row with the same key, 0 at the end
    uint32_t* last      # by head: row + 1 of the end of a chain of several, else 0
    size_t mask


cdef inline bint table_init(KeyTable* table, size_t rows) noexcept nogil:
    """Room for `rows` rows, at most half full; False when memory is exhausted."""
    cdef size_t size = 8
    while size < 2 * rows:
        size *= 2
    table.slots = <KeySlot*>calloc(size * sizeof(KeySlot) + 2 * rows * sizeof(uint32_t), 1)
    table.next = <uint32_t*>(table.slots + size)
    table.last = table.next + rows
    table.mask = size - 1
    return table.slots != NULL


cdef inline void table_free(KeyTable* t) noexcept nogil:
    free(t.slots)
    t.slots = NULL


cdef inline void scratch_table(Scratch* scratch, KeyTable* table, size_t rows) noexcept nogil:
    """`table_init` of a table that `scratch` frees."""
    table.slots = NULL
    scratch_owns(scratch, <Release>table_free, table)
    if scratch.failed or not table_init(table, rows):
        scratch.failed = True


cdef inline size_t table_home(const KeyTable* t, uint64_t key) noexcept nogil:
    return <size_t>key & t.mask


cdef inline KeySlot* table_slot(const KeyTable* table, uint64_t key) noexcept nogil:
    """The slot of `key`, free or not."""
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


cdef inline void table_add(KeyTable* t, uint64_t key, uint32_t row) noexcept nogil:
    table_put(t, table_slot(t, key), key, row)
