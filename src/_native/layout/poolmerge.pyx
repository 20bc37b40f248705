"""Equal literals and jump tables of kernels' pools, merged when a pool is larger than its bank.

A pool that `pools.place_pools` placed may be larger than a bank can be. Then the pools of all
kernels become one, in which what repeats stands once, and every kernel gets the whole of it: one
offset is right under each. It is made of the kernels, the one whose pool was created last first; of
each its own pool comes first, then those of the functions it reaches, in the order of placement.
A piece is what a symbol of the pool names, in the order of their values, then each pool of a copy
that lost as a whole; what lies between the pieces goes. A piece is written

* always, and again for every kernel that reaches its function, if it has a size that is not looked
  at (`is_small`);
* if no equal one of the same alignment is there, otherwise;
* for a literal of value 0, if none had the same place in the pools as `place_pools` placed them.

nvlink does not give every symbol the place of its piece: one of the first kind keeps its value, and
so does a literal 0 that is not written again; a piece that was first that of a copy that lost has
the value of the null symbol, which the next such copy changes. These lead to other bytes where
something was merged before; here they follow their pieces (docs/format-notes/literal-pools.md).
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from libc.stddef cimport size_t
from tables.kinds cimport is_pool
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, pool_join, scratch_index, scratch_texts,
)
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_room, scratch_vector, scratch_zeros,
)
from tables.poolrows cimport POOL_LOST, PoolRow
from pylink._native.tables cimport Blob, Numbers, Outs, PlacedTables, Spans, Values, take_rows
from layout.repeats cimport find_piece, is_null, is_small
from tables.rows cimport EF_KERNEL, E_CONSTANT, EntityRow, OutRow, SectionRow, SpanRow, SymbolRow
from tables.views cimport MergedView, ObjectsView
from base.vector cimport Vec, vec_extend, vec_push


# What a symbol of an input pool names.
ctypedef struct Piece:
    int32_t section
    int32_t entity
    uint64_t value              # in the section
    uint64_t size
    uint64_t given              # what nvlink makes of the value
    int32_t at                  # in the one pool, -1: not there yet
    bint follows                # `given` is the null symbol's value


# Where a piece was put.
ctypedef struct PiecePlace:
    int32_t at                  # in the one pool
    bint moved                  # nvlink gives its symbol a value: that of
    bint follows                # the null symbol, else `at`


ctypedef struct Pools:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    size_t out_count
    uint64_t* values            # by entity
    int32_t* homes              # by entity
    int32_t* pool_of            # by entity of a kernel: its pool
    int32_t* first_row          # by entity of a kernel: its first PoolRow, -1: none
    Vec spans                   # SpanRow, of all pools
    Vec pieces                  # Piece, by section and value
    int32_t* first              # by section: its first piece, -1: none
    int32_t* next_row           # by PoolRow: the next one of its kernel, -1: none
    uint8_t* seen               # by section: its small pieces have their places
    Vec blob                    # the one pool
    uint64_t limit
    uint32_t align              # of the one pool
    NameIndex kept              # a piece's bytes and alignment: twice its place, + 1: a lost copy's
    NameIndex nulls             # where a literal 0 was placed: where it is
    TextPool keys
    PiecePlace newest           # where the last piece was put
    uint64_t null_value         # of the null symbol, which all pools of copies that lost have
    bint failed                 # memory is exhausted


def merge_pools(PlacedTables placed not None, uint64_t limit):
    """Make one pool of those of all kernels, unless it has more than `limit` bytes.

    Returns whether it was made: `outs`, `values`, `homes` and `null_value` then follow it, and its
    contents are added. Otherwise nothing changes.
    """
    placed.fill()
    cdef Pools p
    cdef Outs outs = <Outs>placed.outs.copy()
    cdef Values values = <Values>placed.values.copy()
    cdef Numbers homes = <Numbers>placed.homes.copy()
    cdef Scratch scratch
    cdef bint merged = False
    memset(&p, 0, sizeof(Pools))
    placed.merged.objects.view(&p.objects)
    placed.merged.view(&p.merged)
    if not are_of_kernels(&p):
        return False
    p.outs = <OutRow*>outs.rows
    p.out_count = outs.count
    p.values = <uint64_t*>values.rows
    p.homes = <int32_t*>homes.rows
    p.limit = limit
    scratch_init(&scratch)
    try:
        take_room(&p, &scratch)
        if not scratch.failed:
            with nogil:
                merged = merge_all(&p)
        if scratch.failed or p.failed:
            raise MemoryError
        if merged:
            placed.outs = outs
            placed.values = values
            placed.homes = homes
            placed.null_value = p.null_value
            placed.add(Blob(take_rows(&p.blob)), Spans(take_rows(&p.spans)))
        return merged
    finally:
        scratch_free(&scratch)


cdef bint are_of_kernels(Pools* p) noexcept:
    """Whether no pool stays with a device function; also finds the value of the null symbol."""
    cdef const PoolRow* row
    cdef size_t i
    for i in range(p.merged.pool_count):
        row = &p.merged.pools[i]
        if not p.merged.entities[row.kernel].flags & EF_KERNEL:
            return False
        if row.flags & POOL_LOST and row.kernel != <int32_t>row.function:
            p.null_value = row.offset
    return True


cdef void take_room(Pools* p, Scratch* scratch) noexcept:
    p.pool_of = <int32_t*>scratch_room(scratch, p.merged.entity_count, 4)
    p.first_row = scratch_nones(scratch, p.merged.entity_count)
    p.next_row = <int32_t*>scratch_room(scratch, p.merged.pool_count, 4)
    p.first = scratch_nones(scratch, p.objects.section_count)
    p.seen = <uint8_t*>scratch_zeros(scratch, p.objects.section_count, 1)
    scratch_vector(scratch, &p.pieces, sizeof(Piece))
    scratch_vector(scratch, &p.blob, 1)
    scratch_vector(scratch, &p.spans, sizeof(SpanRow))
    scratch_index(scratch, &p.kept, 1024)
    scratch_index(scratch, &p.nulls, 64)
    scratch_texts(scratch, &p.keys)


cdef bint merge_all(Pools* p) noexcept nogil:
    """Whether one pool has room for all; False when memory is exhausted, too."""
    cdef size_t i, row
    cdef int32_t kernel
    for i in range(p.merged.pool_count):        # each kernel's rows, in order
        row = p.merged.pool_count - 1 - i
        kernel = p.merged.pools[row].kernel
        p.next_row[row] = p.first_row[kernel]
        p.first_row[kernel] = <int32_t>row
    if not (list_pieces(p) and join_all(p) and place_all(p)):
        return False
    move_symbols(p)
    return True


cdef int by_value(const void* a, const void* b) noexcept nogil:
    cdef const Piece* x = <const Piece*>a
    cdef const Piece* y = <const Piece*>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    if x.value != y.value:
        return -1 if x.value < y.value else 1
    return (x.entity > y.entity) - (x.entity < y.entity)


cdef bint list_pieces(Pools* p) noexcept nogil:
    """The pieces of all pools that have symbols."""
    cdef const EntityRow* e = p.merged.entities
    cdef const SymbolRow* symbol = p.objects.symbols
    cdef size_t i
    cdef Piece* piece
    cdef int32_t section
    for i in range(p.merged.entity_count):
        section = symbol[e[i].winner].section
        if e[i].kind != E_CONSTANT or section < 0:
            continue
        if not is_pool(p.objects.sections[section].kind, p.objects.sections[section].bank):
            continue
        piece = <Piece*>vec_push(&p.pieces)
        if piece == NULL:
            p.failed = True
            return False
        piece.section = section
        piece.entity = <int32_t>i
        piece.value = piece.given = symbol[e[i].winner].value
        piece.size = symbol[e[i].winner].size
        piece.at = -1
    qsort(p.pieces.data, p.pieces.count, sizeof(Piece), by_value)
    for i in range(p.pieces.count):
        section = piece_at(p, i).section
        if p.first[section] < 0:
            p.first[section] = <int32_t>i
    return True


cdef inline Piece* piece_at(const Pools* p, size_t i) noexcept nogil:
    return <Piece*>p.pieces.data + i


cdef bint join_all(Pools* p) noexcept nogil:
    """Fill the one pool; False if it becomes too large, or memory is exhausted."""
    cdef size_t i
    cdef int32_t row
    cdef const OutRow* pool
    for i in range(p.out_count):
        pool = &p.outs[p.out_count - 1 - i]
        if not is_pool(pool.kind, pool.bank):
            continue
        if pool.source >= 0 and not join_section(p, pool.source, 0):
            return False
        row = p.first_row[pool.entity]
        while row >= 0:
            if not p.merged.pools[row].flags & POOL_LOST:
                if not join_section(p, p.merged.pools[row].section, p.merged.pools[row].offset):
                    return False
            elif not join_lost(p, &p.merged.pools[row]):
                return False
            row = p.next_row[row]
    return True


cdef bint join_section(Pools* p, int32_t at, uint64_t start) noexcept nogil:
    """Add the pieces of a section that was placed at `start`.

    When it is added again small pieces are there: then the others are looked at, of which not many
    fit into the pool, and what follows the null symbol.
    """
    cdef const SectionRow* s = &p.objects.sections[at]
    cdef bint again = p.seen[at]
    cdef Piece* piece
    cdef const PiecePlace* newest = &p.newest
    cdef size_t i
    p.seen[at] = True
    p.align = max(p.align, s.align)
    if p.first[at] < 0:
        return True
    for i in range(<size_t>p.first[at], p.pieces.count):
        piece = piece_at(p, i)
        if piece.section != at:
            break
        if again and not piece.follows and is_small(piece.size, s.align):
            continue
        if not join_piece(p, p.objects.arena + s.offset + piece.value, piece.size, s.align,
                          start + piece.value, False):
            return False
        if not again:
            piece.at = newest.at
            piece.follows = newest.follows
            piece.given = (start + piece.value) % p.limit
        if newest.moved:
            piece.given = p.null_value if newest.follows else <uint64_t>newest.at
    return True


cdef bint join_lost(Pools* p, const PoolRow* row) noexcept nogil:
    """Add the pool of a copy that lost, which is one piece, of the null symbol."""
    cdef const SectionRow* s = &p.objects.sections[row.section]
    cdef const PiecePlace* newest = &p.newest
    p.align = max(p.align, s.align)
    if not join_piece(p, p.objects.arena + s.offset, s.size, s.align, row.offset, True):
        return False
    if newest.moved and not newest.follows:
        p.null_value = newest.at
    return True


cdef bint join_piece(Pools* p, const uint8_t* bytes_, uint64_t size, uint64_t align,
                     uint64_t old, bint lost) noexcept nogil:
    """Have a piece that was placed at `old` in the one pool, at `newest`; False without room."""
    cdef PiecePlace* newest = &p.newest
    cdef bint null = is_null(bytes_, size)
    cdef NameSlot* slot = NULL
    cdef NameIndex* index = &p.nulls if null else &p.kept
    cdef uint8_t* place
    cdef uint64_t gap
    newest.moved = is_small(size, align)
    newest.follows = False
    if newest.moved:
        if null:
            place = pool_join(&p.keys, <const char*>&old, sizeof(old), bytes_, 0)
            slot = index_find(index, place, sizeof(old)) if place != NULL else NULL
        else:
            slot = find_piece(index, &p.keys, bytes_, size, align)
        if slot == NULL:
            p.failed = True
            return False
        if slot.value >= 0:
            newest.at = slot.value >> 1
            newest.moved = not null
            newest.follows = slot.value & 1
            return True
    gap = -p.blob.count & (align - 1) if align else 0
    if size > p.limit or p.blob.count + gap + size > p.limit:
        return False
    place = <uint8_t*>vec_extend(&p.blob, gap + size)
    if place == NULL and gap + size:
        p.failed = True
        return False
    newest.at = <int32_t>(p.blob.count - size)
    if gap:
        memset(place, 0, gap)
    if size:
        memcpy(place + gap, bytes_, size)
    if slot != NULL:
        slot.value = 2 * newest.at + (1 if lost and not null else 0)
        index.count += 1
    return True


cdef bint place_all(Pools* p) noexcept nogil:
    """Make the one pool that of every kernel."""
    cdef size_t i
    cdef OutRow* pool
    cdef SpanRow* span
    for i in range(p.out_count):
        pool = &p.outs[i]
        if not is_pool(pool.kind, pool.bank):
            continue
        p.pool_of[pool.entity] = <int32_t>i
        pool.size = p.blob.count
        pool.align = p.align
        span = <SpanRow*>vec_push(&p.spans)
        p.failed |= span == NULL
        if p.failed:
            return False
        span.out = <int32_t>i
        span.offset = 0
        span.size = p.blob.count
    return True


cdef void move_symbols(Pools* p) noexcept nogil:
    """Give symbols the places of their pieces, nvlink's if they are there, and a kernel."""
    cdef size_t i, at
    cdef const PoolRow* row
    cdef const Piece* piece
    for i in range(p.pieces.count):
        piece = piece_at(p, i)
        if piece.at >= 0:
            p.values[piece.entity] = piece.given if holds(p, piece) else <uint64_t>piece.at
    for i in range(p.merged.pool_count):
        row = &p.merged.pools[i]
        if row.flags & POOL_LOST or p.first[row.section] < 0:
            continue
        for at in range(<size_t>p.first[row.section], p.pieces.count):
            piece = piece_at(p, at)
            if piece.section != row.section:
                break
            p.homes[piece.entity] = p.pool_of[row.kernel]


cdef inline bint holds(const Pools* p, const Piece* piece) noexcept nogil:
    """Whether the bytes of a piece are where nvlink says."""
    if piece.given > p.blob.count or p.blob.count - piece.given < piece.size:
        return False
    return memcmp(p.blob.data + piece.given, p.objects.arena + piece.value
                  + p.objects.sections[piece.section].offset, piece.size) == 0
