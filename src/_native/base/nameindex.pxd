# Hash tables of names, by open addressing: an index from names to numbers, and a string table. Each
# has twice as many cells as names, at least. `tag` is the low half of a name's hash; it tells where
# the search for the name begins.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset, strlen

from base.blocks cimport block_free, block_widen, block_zeros
from base.prefetch cimport prefetch
from base.scratch cimport Release, Scratch, scratch_owns
from base.vector cimport Vec, vec_append, vec_extend, vec_free, vec_init, vec_reserve


cdef inline uint64_t last_bytes(const uint8_t* end, size_t size) noexcept nogil:
    """Return the last 8 bytes of a text that ends at `end`, or all `size` if fewer, as a number.

    Bytes of a text shorter than 8 may count twice: to load a few bytes twice takes less time than
    to collect them in memory and load them from there.
    """
    cdef uint64_t word = 0
    cdef uint32_t low, high
    if size >= 8:
        memcpy(&word, end - 8, 8)
    elif size >= 4:
        memcpy(&low, end - size, 4)
        memcpy(&high, end - 4, 4)
        word = <uint64_t>high << 32 | low
    elif size:
        word = (end - size)[0] | (end - size)[size // 2] << 8 | (end - 1)[0] << 16
    return word


cdef inline uint64_t hash_name(const uint8_t* text, size_t size) noexcept nogil:
    """Return a hash of a name, made word by word of 8 bytes.

    It starts from the golden ratio's bits. The multipliers are those of MurmurHash3.
    """
    cdef uint64_t hash = 0x9e3779b97f4a7c15ULL ^ size, word, last = last_bytes(text + size, size)
    while size > 8:
        memcpy(&word, text, 8)
        hash = (hash ^ word) * 0xff51afd7ed558ccdULL
        hash ^= hash >> 32
        text += 8
        size -= 8
    hash = (hash ^ last) * 0xff51afd7ed558ccdULL
    # The second multiplication lets the last bytes reach the low bits, too.
    hash = (hash ^ (hash >> 32)) * 0xc4ceb9fe1a85ec53ULL
    return hash ^ (hash >> 32)


# A cell of a NameIndex.
ctypedef struct NameSlot:
    const uint8_t* text
    uint32_t size
    uint32_t tag                # low half of the name's hash, compared before the text
    int32_t value               # the name's number, which the caller sets; -1: the cell is empty


# A hash table from names to their numbers; it grows, and points to texts that others own.
ctypedef struct NameIndex:
    NameSlot* slots
    size_t mask                 # number of slots, a power of two, less 1
    size_t count                # number of names


cdef inline bint index_init(NameIndex* index, size_t room) noexcept nogil:
    """Start an empty index for `room` names, which can grow later; False without memory."""
    cdef size_t capacity = 64
    while capacity < 2 * room:
        capacity *= 2
    index.slots = <NameSlot*>block_widen(NULL, 0, capacity * sizeof(NameSlot))
    index.mask = capacity - 1
    index.count = 0
    if index.slots == NULL:
        return False
    memset(index.slots, 0xff, capacity * sizeof(NameSlot))      # each value is -1
    return True


cdef inline void index_free(NameIndex* index) noexcept nogil:
    """Free the slots, but not the texts, which others own."""
    if index.slots != NULL:
        block_free(index.slots, (index.mask + 1) * sizeof(NameSlot))
    index.slots = NULL


cdef inline void scratch_index(Scratch* scratch, NameIndex* index, size_t room) noexcept nogil:
    """Start an empty index for `room` names, which can grow later, and which `scratch` frees."""
    index.slots = NULL
    scratch_owns(scratch, <Release>index_free, index)
    if scratch.failed or not index_init(index, room):
        scratch.failed = True


cdef inline bint index_grow(NameIndex* index) noexcept nogil:
    """Double the slots; False without memory."""
    cdef NameIndex wider
    cdef size_t i, at           # numbers of slots in the old and in the new index
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
    """Return the slot of a name, with the value -1 if the name is new; NULL without memory.

    To add a new name, the caller sets `value` to its number, and counts it with `index.count += 1`.
    The index points to the text, which must not move.
    """
    return index_find_hashed(index, text, size, <uint32_t>hash_name(text, size))


cdef inline NameSlot* index_find_hashed(NameIndex* index, const uint8_t* text, uint32_t size,
                                        uint32_t tag) noexcept nogil:
    """Return the slot of a name, as `index_find` does; `tag` is the low half of its hash."""
    cdef size_t at              # number of a slot
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


# A cell of a StringTable: of eight bytes only, so that many of them fit the cache.
ctypedef struct StringCell:
    uint32_t tag                # low half of the string's hash
    uint32_t at                 # offset of the string; 0: the cell is empty


# An ELF string table under construction, with the empty string at offset 0. `strings_intern` adds a
# string only if the table lacks it, `strings_append` always does.
ctypedef struct StringTable:
    Vec text                    # uint8_t: the strings, each with its NUL
    StringCell* cells
    size_t mask                 # number of cells, a power of two, less 1
    size_t count                # number of strings that have a cell


cdef inline bint strings_init(StringTable* table) noexcept nogil:
    """Start a table with the empty string; False without memory."""
    vec_init(&table.text, 1)
    table.mask = 1023
    table.count = 0
    table.cells = <StringCell*>block_zeros((table.mask + 1) * sizeof(StringCell))
    return (table.cells != NULL and vec_reserve(&table.text, 1 << 16)
            and vec_append(&table.text, b"", 1))


cdef inline void strings_free(StringTable* table) noexcept nogil:
    """Free the strings and the cells."""
    vec_free(&table.text)
    if table.cells != NULL:
        block_free(table.cells, (table.mask + 1) * sizeof(StringCell))
    table.cells = NULL


cdef inline void scratch_strings(Scratch* scratch, StringTable* table) noexcept nogil:
    """Start a string table that `scratch` frees, except a text that `detach_rows` has taken."""
    table.text.data = NULL
    table.cells = NULL
    scratch_owns(scratch, <Release>strings_free, table)
    if scratch.failed or not strings_init(table):
        scratch.failed = True


cdef inline bint strings_expect(StringTable* table, size_t bytes_more, size_t more) noexcept nogil:
    """Make room for `more` strings of `bytes_more` bytes in all, with NULs; False without memory.
    """
    cdef size_t mask = table.mask
    if not vec_reserve(&table.text, table.text.count + bytes_more):
        return False
    while 2 * (table.count + more) > mask:
        mask = 2 * mask + 1
    return mask == table.mask or strings_spread(table, mask)


cdef inline bint strings_spread(StringTable* table, size_t mask) noexcept nogil:
    """Change the number of cells to `mask` + 1; False without memory."""
    cdef size_t i, at           # numbers of old and new cells
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
    """Return the cell of a string, or the empty cell in which it belongs, with the tag set."""
    return strings_find_hashed(table, text, size, <uint32_t>hash_name(text, size))


cdef inline StringCell* strings_find_hashed(StringTable* table, const uint8_t* text, uint32_t size,
                                            uint32_t tag) noexcept nogil:
    """Return the cell of a string, as `strings_find` does; `tag` is the low half of its hash."""
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
    """Add a string, even if the table has it, and return its offset.

    -1 without memory, or if the table gets larger than 0xfffffff0 bytes.
    """
    cdef uint8_t* place = <uint8_t*>vec_extend(&table.text, <size_t>size + 1)
    if place == NULL or table.text.count > 0xfffffff0U:
        return -1
    memcpy(place, text, size)
    place[size] = 0
    return <int64_t>(table.text.count - size - 1)


cdef inline int64_t strings_intern(StringTable* table, const uint8_t* text,
                                   uint32_t size) noexcept nogil:
    """Return the offset of a string, which is added if the table lacks it.

    `text` need not end with NUL: the table adds one, which `size` does not count. -1 without
    memory, or if the offset were 2 GiB or more.
    """
    return strings_intern_hashed(table, text, size, <uint32_t>hash_name(text, size))


cdef inline bint strings_intern_both(StringTable* a, StringTable* b, const uint8_t* text,
                                     uint32_t size, int64_t* at_a, int64_t* at_b) noexcept nogil:
    """Set `at_a` and `at_b` to the offsets of a string in tables `a` and `b`; add it where new.

    False if `strings_intern` would return -1 for one of them. In each table the name's cell is most
    likely a cache miss. Both cells are fetched at the same time.
    """
    cdef uint32_t tag = <uint32_t>hash_name(text, size)
    prefetch(&a.cells[tag & a.mask])
    prefetch(&b.cells[tag & b.mask])
    at_a[0] = strings_intern_hashed(a, text, size, tag)
    at_b[0] = strings_intern_hashed(b, text, size, tag)
    return at_a[0] >= 0 and at_b[0] >= 0


cdef inline int64_t strings_intern_hashed(StringTable* table, const uint8_t* text, uint32_t size,
                                          uint32_t tag) noexcept nogil:
    """Return the offset of a string, as `strings_intern` does; `tag` is the low half of its hash.
    """
    cdef StringCell* cell
    cdef int64_t offset
    if size == 0:
        return 0
    if 2 * table.count > table.mask and not strings_spread(table, 2 * table.mask + 1):
        return -1
    cell = strings_find_hashed(table, text, size, tag)
    if cell.at == 0:
        offset = strings_append(table, text, size)
        if offset < 0 or offset > 0x7fffffff:
            return -1
        cell.at = <uint32_t>offset
        table.count += 1
    return cell.at


# Texts that a native function makes. They do not move, so that rows and indices can point to them.
ctypedef struct TextPool:
    uint8_t* chunk              # the newest chunk; each begins with a pointer to the one before
    size_t used                 # bytes in use of the newest chunk
    size_t room                 # bytes of the newest chunk


cdef inline uint8_t* pool_allocate(TextPool* pool, size_t size) noexcept nogil:
    """Return `size` bytes that live as long as the pool; NULL without memory."""
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
    """Free all texts of the pool."""
    cdef uint8_t* before
    while pool.chunk != NULL:
        before = (<uint8_t**>pool.chunk)[0]
        free(pool.chunk)
        pool.chunk = before


cdef inline void scratch_texts(Scratch* scratch, TextPool* pool) noexcept nogil:
    """Start an empty pool that `scratch` frees."""
    pool.chunk = NULL
    pool.used = pool.room = 0
    scratch_owns(scratch, <Release>pool_free, pool)


cdef inline uint8_t* pool_join(TextPool* pool, const char* prefix, uint32_t prefix_size,
                               const uint8_t* text, uint32_t size) noexcept nogil:
    """Return a text of the pool: `prefix`, then `text`, without a NUL; NULL without memory."""
    cdef uint8_t* place = pool_allocate(pool, prefix_size + size)
    if place != NULL:
        memcpy(place, prefix, prefix_size)
        memcpy(place + prefix_size, text, size)
    return place


cdef inline uint8_t* pool_join_text(TextPool* pool, const char* prefix, const uint8_t* text,
                                    uint32_t* size) noexcept nogil:
    """Return a text of the pool: `prefix`, which ends with NUL, then `text`; NULL without memory.

    `size` is the number of bytes of `text`, and is set to that of the result, which has no NUL.
    """
    cdef uint32_t prefix_size = <uint32_t>strlen(prefix), text_size = size[0]
    size[0] += prefix_size
    return pool_join(pool, prefix, prefix_size, text, text_size)
