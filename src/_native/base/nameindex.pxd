# Byte strings as keys: a hash, and an index from strings to numbers by open addressing.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset, strlen

from base.blocks cimport block_free, block_widen, block_zeros
from base.scratch cimport Release, Scratch, scratch_owns
from base.vector cimport Vec, vec_append, vec_extend, vec_free, vec_init, vec_reserve

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil


cdef inline uint64_t hash_name(const uint8_t* text, size_t size) noexcept nogil:
    """Multiply-and-fold over 8-byte words; spreads well enough for a table of names."""
    cdef uint64_t h = 0x9e3779b97f4a7c15ULL ^ size, word
    while size >= 8:
        memcpy(&word, text, 8)
        h = (h ^ word) * 0xff51afd7ed558ccdULL
        h ^= h >> 32
        text += 8
        size -= 8
    word = 0
    memcpy(&word, text, size)
    h = (h ^ word) * 0xff51afd7ed558ccdULL
    h = (h ^ (h >> 32)) * 0xc4ceb9fe1a85ec53ULL     # the last bytes reach the low bits, too
    return h ^ (h >> 32)


ctypedef struct NameSlot:
    const uint8_t* text
    uint32_t size
    uint32_t tag            # half of the hash: the slot to begin at, and most misses stop here
    int32_t value           # -1: empty


ctypedef struct NameIndex:
    NameSlot* slots
    size_t mask
    size_t count


cdef inline bint index_init(NameIndex* index, size_t room) noexcept nogil:
    """Start an empty index with room for that many names; False without memory."""
    cdef size_t capacity = 64
    while capacity < 2 * room:
        capacity *= 2
    index.slots = <NameSlot*>block_widen(NULL, 0, capacity * sizeof(NameSlot))
    index.mask = capacity - 1
    index.count = 0
    if index.slots == NULL:
        return False
    memset(index.slots, 0xff, capacity * sizeof(NameSlot))      # no value anywhere
    return True


cdef inline void index_free(NameIndex* index) noexcept nogil:
    if index.slots != NULL:
        block_free(index.slots, (index.mask + 1) * sizeof(NameSlot))
    index.slots = NULL


cdef inline void scratch_index(Scratch* scratch, NameIndex* index, size_t room) noexcept nogil:
    """Begin an index that `scratch` frees."""
    index.slots = NULL
    scratch_owns(scratch, <Release>index_free, index)
    if scratch.failed or not index_init(index, room):
        scratch.failed = True


cdef inline bint index_grow(NameIndex* index) noexcept nogil:
    """Double the slots; False without memory."""
    cdef NameIndex wider
    cdef size_t i, at
    if not index_init(&wider, index.mask + 1):
        return False
    for i in range(index.mask + 1):
        if index.slots[i].value >= 0:
            at = index.slots[i].tag & wider.mask
            while wider.slots[at].value >= 0:
                at = (at + 1) & wider.mask
            wider.slots[at] = index.slots[i]
    wider.count = index.count
    index_free(index)
    index[0] = wider
    return True


cdef inline NameSlot* index_find(NameIndex* index, const uint8_t* text,
                                 uint32_t size) noexcept nogil:
    """The slot of that name; its `value` is -1 when the name is new and may then be set.

    NULL when memory is exhausted. A caller that sets `value` counts the name with
    `index.count += 1`. The index points to the text, which must not move.
    """
    return index_find_hashed(index, text, size, <uint32_t>hash_name(text, size))


cdef inline NameSlot* index_find_hashed(NameIndex* index, const uint8_t* text, uint32_t size,
                                        uint32_t tag) noexcept nogil:
    """`index_find` of a name whose hash is known."""
    cdef size_t at
    cdef NameSlot* slot
    if 2 * index.count > index.mask and not index_grow(index):
        return NULL
    at = tag & index.mask
    while True:
        slot = &index.slots[at]
        if slot.value < 0:
            slot.text = text
            slot.size = size
            slot.tag = tag
            return slot
        if (slot.tag == tag and slot.size == size
                and memcmp(slot.text, text, size) == 0):
            return slot
        at = (at + 1) & index.mask


# A string table under construction: NUL-terminated strings, each exact string once. Its index
# holds eight bytes a cell, since it is the larger part of what the cache has to keep.
ctypedef struct StringCell:
    uint32_t tag            # half of the hash
    uint32_t at             # offset of the string; 0: empty


ctypedef struct StringTable:
    Vec text
    StringCell* cells
    size_t mask
    size_t count


cdef inline bint strings_init(StringTable* table) noexcept nogil:
    vec_init(&table.text, 1)
    table.mask = 1023
    table.count = 0
    table.cells = <StringCell*>block_zeros((table.mask + 1) * sizeof(StringCell))
    return (table.cells != NULL and vec_reserve(&table.text, 1 << 16)
            and vec_append(&table.text, b"", 1))


cdef inline void strings_free(StringTable* table) noexcept nogil:
    vec_free(&table.text)
    if table.cells != NULL:
        block_free(table.cells, (table.mask + 1) * sizeof(StringCell))
    table.cells = NULL


cdef inline void scratch_strings(Scratch* scratch, StringTable* table) noexcept nogil:
    """Begin a string table that `scratch` frees, except for the text that a table takes."""
    table.text.data = NULL
    table.cells = NULL
    scratch_owns(scratch, <Release>strings_free, table)
    if scratch.failed or not strings_init(table):
        scratch.failed = True


cdef inline bint strings_expect(StringTable* table, size_t bytes_more, size_t more) noexcept nogil:
    """Make room for `more` strings with so many bytes, NUL included; False without memory."""
    cdef size_t mask = table.mask
    if not vec_reserve(&table.text, table.text.count + bytes_more):
        return False
    while 2 * (table.count + more) > mask:
        mask = 2 * mask + 1
    return mask == table.mask or strings_spread(table, mask)


cdef inline bint strings_spread(StringTable* table, size_t mask) noexcept nogil:
    """Take `mask` + 1 cells."""
    cdef size_t i, at
    cdef StringCell* cells = <StringCell*>block_zeros((mask + 1) * sizeof(StringCell))
    if cells == NULL:
        return False
    for i in range(table.mask + 1):
        if table.cells[i].at:
            at = table.cells[i].tag & mask
            while cells[at].at:
                at = (at + 1) & mask
            cells[at] = table.cells[i]
    block_free(table.cells, (table.mask + 1) * sizeof(StringCell))
    table.cells = cells
    table.mask = mask
    return True


cdef inline StringCell* strings_find(StringTable* table, const uint8_t* text,
                                     uint32_t size) noexcept nogil:
    """The cell of that string, with its tag; empty when the table does not have it."""
    return strings_cell(table, text, size, <uint32_t>hash_name(text, size))


cdef inline StringCell* strings_cell(StringTable* table, const uint8_t* text, uint32_t size,
                                     uint32_t tag) noexcept nogil:
    """The cell of a string with that hash, or the empty cell in which it belongs."""
    cdef size_t at = tag & table.mask
    cdef StringCell* cell = &table.cells[at]
    while cell.at:
        if (cell.tag == tag and table.text.count - cell.at > size
                and table.text.data[cell.at + size] == 0
                and memcmp(table.text.data + cell.at, text, size) == 0):
            return cell
        at = (at + 1) & table.mask
        cell = &table.cells[at]
    cell.tag = tag
    return cell


cdef inline int64_t strings_append(StringTable* table, const uint8_t* text,
                                   uint32_t size) noexcept nogil:
    """Offset of the string, written again even when it is present; -1 without memory."""
    cdef uint8_t* place = <uint8_t*>vec_extend(&table.text, <size_t>size + 1)
    if place == NULL or table.text.count > 0xfffffff0U:
        return -1
    memcpy(place, text, size)
    place[size] = 0
    return <int64_t>(table.text.count - size - 1)


cdef inline int64_t strings_intern(StringTable* table, const uint8_t* text,
                                   uint32_t size) noexcept nogil:
    """Offset of the string, added when it is new; -1 without memory. It holds no NUL."""
    return strings_enter(table, text, size, <uint32_t>hash_name(text, size))


cdef inline bint strings_intern_both(StringTable* a, StringTable* b, const uint8_t* text,
                                     uint32_t size, int64_t* at_a, int64_t* at_b) noexcept nogil:
    """`strings_intern` in two tables; False without memory.

    Most names are new, so each table costs a cache miss at a place that only the hash knows: both
    begin before either is waited for.
    """
    cdef uint32_t tag = <uint32_t>hash_name(text, size)
    prefetch(&a.cells[tag & a.mask])
    prefetch(&b.cells[tag & b.mask])
    at_a[0] = strings_enter(a, text, size, tag)
    at_b[0] = strings_enter(b, text, size, tag)
    return at_a[0] >= 0 and at_b[0] >= 0


cdef inline int64_t strings_enter(StringTable* table, const uint8_t* text, uint32_t size,
                                  uint32_t tag) noexcept nogil:
    """`strings_intern` of a string whose hash is known; -1 without memory."""
    cdef StringCell* cell
    cdef int64_t offset
    if size == 0:
        return 0
    if 2 * table.count > table.mask and not strings_spread(table, 2 * table.mask + 1):
        return -1
    cell = strings_cell(table, text, size, tag)
    if cell.at == 0:
        offset = strings_append(table, text, size)
        if offset < 0 or offset > 0x7fffffff:
            return -1
        cell.at = <uint32_t>offset
        table.count += 1
    return cell.at


# Text made by the linker that must outlive the tables which point at it.
ctypedef struct TextPool:
    uint8_t* chunk          # begins with the pointer to the chunk before
    size_t used
    size_t room


cdef inline uint8_t* pool_allocate(TextPool* pool, size_t size) noexcept nogil:
    """Memory that lives as long as the pool; NULL without memory."""
    cdef uint8_t* chunk
    cdef size_t room
    if pool.chunk == NULL or pool.used + size > pool.room:
        room = (1 << 16) if size < (1 << 15) else size + 64
        chunk = <uint8_t*>malloc(room)
        if chunk == NULL:
            return NULL
        (<uint8_t**>chunk)[0] = pool.chunk
        pool.chunk = chunk
        pool.used = sizeof(void*)
        pool.room = room
    pool.used += size
    return pool.chunk + pool.used - size


cdef inline void pool_free(TextPool* pool) noexcept nogil:
    cdef uint8_t* before
    while pool.chunk != NULL:
        before = (<uint8_t**>pool.chunk)[0]
        free(pool.chunk)
        pool.chunk = before


cdef inline void scratch_texts(Scratch* scratch, TextPool* pool) noexcept nogil:
    """Begin a pool that `scratch` frees."""
    pool.chunk = NULL
    pool.used = pool.room = 0
    scratch_owns(scratch, <Release>pool_free, pool)


cdef inline uint8_t* pool_join(TextPool* pool, const char* prefix, uint32_t prefix_size,
                               const uint8_t* text, uint32_t size) noexcept nogil:
    """The two texts, one after the other, in the pool; NULL without memory."""
    cdef uint8_t* place = pool_allocate(pool, prefix_size + size)
    if place != NULL:
        memcpy(place, prefix, prefix_size)
        memcpy(place + prefix_size, text, size)
    return place


cdef inline uint8_t* pool_join_text(TextPool* pool, const char* prefix, const uint8_t* text,
                                    uint32_t* size) noexcept nogil:
    """`pool_join` with a prefix that stands in the source; `size` becomes that of both texts."""
    cdef uint32_t prefix_size = <uint32_t>strlen(prefix), text_size = size[0]
    size[0] += prefix_size
    return pool_join(pool, prefix, prefix_size, text, text_size)
