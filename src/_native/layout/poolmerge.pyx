"""Merging of literal pools: one pool for all kernels, if the pool of any kernel exceeds its bank.

A kernel K reads pooled constants and jump tables from bank 2: its pool is `.nv.constant2.K`. There
`pools.place_pools` also placed those of the device functions that K reaches. If a pool is then
larger than a bank, nvlink makes one pool of all, in which many equal pieces stand only once. Each
kernel gets the whole of it, so that one offset is right under every kernel.

A piece is what one symbol of a pool names; a lost definition's pool is one piece. Bytes between
pieces are omitted. An example, in which K2 was created after K1, and both reach the function F:

    pool    pieces                       one pool
    K2      a = 1.5, 8 bytes             a at 0
    F       t, a table of 40 bytes       t at 8
    K1      b = 1.5, 8 bytes             none: b is a, at 0
    F       t again, under K1            t again at 48: no table of 40 bytes is folded

1. `list_pieces` lists the pieces by input section, in the order of the values of their symbols.
2. `join_all` goes through the kernels, the one whose pool was created last first. It adds the
   kernel's own pool, then those of the functions that it reaches, in the order of placement. It
   gives up if the one pool exceeds the bank. `join_piece` adds a piece as follows:

   * A piece of a size that is folded (`is_small`) is added only if the one pool has no equal piece
     of the same alignment.
   * A piece of any other size is always added, again for every kernel that reaches its function.
   * A literal of value 0 is added only if no earlier one had the same offset in the pool where
     `place_pools` placed it.
3. `place_all` gives the one pool to every kernel that has a pool.
4. `move_symbols` sets the values of symbols. nvlink gives some an offset where other bytes lie
   (docs/format-notes/literal-pools.md). That offset is used only if the piece's bytes are there;
   else the symbol gets the place of its piece.

The null symbol stands for pools of definitions that lost, which have no symbols of their own.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from base.memory cimport check_memory
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, pool_join, scratch_index, scratch_texts,
)
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_room, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_extend, vec_push
from layout.repeats cimport find_piece, is_null, is_small
from pylink._native.results cimport PlacedTables
from pylink._native.tables cimport Blob, Numbers, Outs, Spans, Values, detach_rows
from rownumbers cimport EF_KERNEL, E_CONSTANT
from tables.kinds cimport is_pool
from tables.poolrows cimport POOL_LOST, PoolNumber, PoolRow
from tables.rows cimport (
    EntityNumber, EntityRow, OutNumber, OutRow, SectionNumber, SectionRow, SpanRow, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView


# The number of a Piece, from 0; -1 for none. A PieceCounter goes through pieces, and is never -1.
ctypedef int32_t PieceNumber
ctypedef size_t PieceCounter

# The bytes that the symbol of a linked constant names in an input pool.
ctypedef struct Piece:
    SectionNumber section       # input section
    EntityNumber entity         # the symbol
    uint64_t value              # offset in the section
    uint64_t size               # bytes
    uint64_t nvlink_value       # offset in the merged pool that nvlink gives the symbol
    int32_t place               # offset in the merged pool, -1: not there yet
    bint follows_null           # `nvlink_value` is the null symbol's value


# The place of the last piece that was added to the merged pool, or whose equal was found there.
ctypedef struct PiecePlace:
    int32_t place               # offset in the merged pool
    bint moved                  # nvlink gives its symbol a new value
    bint follows_null           # that value is the null symbol's; otherwise it is `place`


# The one pool into which the pools of all kernels are merged, while it is filled.
ctypedef struct MergedPool:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    size_t out_count
    uint64_t* values            # by entity: the output's symbol value
    OutNumber* homes            # by entity: OutRow that the symbol lies in
    OutNumber* pool_of          # by entity, of a kernel: OutRow of its pool
    PoolNumber* first_row       # by entity, of a kernel: its first PoolRow, -1: none
    Vec spans                   # SpanRow, of all pools
    Vec pieces                  # Piece, by section and value
    PieceNumber* first          # by input section: its first piece, -1: none
    PoolNumber* next_row        # by PoolRow: the next one of its kernel, -1: none
    uint8_t* seen               # by input section: 1 if its pieces were added once
    Vec blob                    # uint8_t: the one pool
    uint64_t limit              # most bytes of the one pool
    uint32_t align              # alignment of the one pool
    # Small pieces by bytes and alignment. Values: twice the place, plus 1 if the piece is the pool
    # of a definition that lost.
    NameIndex kept_pieces
    NameIndex nulls             # literals 0, by offset before the merge. Values: twice the place
    TextPool keys               # keys of both indices
    PiecePlace newest           # where `join_piece` added or found the last piece
    uint64_t null_value         # st_value of the null symbol
    bint failed                 # memory is exhausted


def merge_pools(PlacedTables placed not None, uint64_t limit):
    """Merge all kernels' literal pools into one of at most `limit` bytes; False if that fails."""
    placed.fill()
    cdef MergedPool merged_pool
    cdef Outs outs = <Outs>placed.outs.copy()
    cdef Values values = <Values>placed.values.copy()
    cdef Numbers homes = <Numbers>placed.homes.copy()
    cdef Scratch scratch
    cdef bint merged = False
    memset(&merged_pool, 0, sizeof(MergedPool))
    placed.merged.objects.view(&merged_pool.objects)
    placed.merged.view(&merged_pool.merged)
    if not has_only_kernel_pools(&merged_pool):
        return False
    find_null_value(&merged_pool)
    merged_pool.outs = <OutRow*>outs.rows
    merged_pool.out_count = outs.count
    merged_pool.values = <uint64_t*>values.rows
    merged_pool.homes = <OutNumber*>homes.rows
    merged_pool.limit = limit
    scratch_init(&scratch)
    try:
        allocate_pool(&merged_pool, &scratch)
        if not scratch.failed:
            with nogil:
                merged = merge_all(&merged_pool)
        check_memory(not (scratch.failed or merged_pool.failed))
        if merged:
            placed.outs = outs
            placed.values = values
            placed.homes = homes
            placed.null_value = merged_pool.null_value
            placed.add(Blob(detach_rows(&merged_pool.blob)), Spans(detach_rows(&merged_pool.spans)))
        return merged
    finally:
        scratch_free(&scratch)


cdef bint has_only_kernel_pools(const MergedPool* merged_pool) noexcept:
    """Return whether `place_pools` placed all pieces in kernels' pools, none in others."""
    cdef size_t i
    cdef EntityNumber kernel
    for i in range(merged_pool.merged.pool_count):
        kernel = merged_pool.merged.pools[i].kernel
        if not merged_pool.merged.entities[kernel].flags & EF_KERNEL:
            return False
    return True


cdef void find_null_value(MergedPool* merged_pool) noexcept:
    """Set the null symbol's value as `poolfill` does: the offset of the last lost pool.

    Only lost pools of device functions count; the offset is that in a kernel's pool.
    """
    cdef const PoolRow* row
    cdef size_t i
    for i in range(merged_pool.merged.pool_count):
        row = &merged_pool.merged.pools[i]
        if row.flags & POOL_LOST and row.kernel != <EntityNumber>row.function:
            merged_pool.null_value = row.offset


cdef void allocate_pool(MergedPool* merged_pool, Scratch* scratch) noexcept:
    """Allocate the tables of the merge; `scratch` frees them."""
    merged_pool.pool_of = <OutNumber*>scratch_room(scratch, merged_pool.merged.entity_count, 4)
    merged_pool.first_row = scratch_nones(scratch, merged_pool.merged.entity_count)
    merged_pool.next_row = <PoolNumber*>scratch_room(scratch, merged_pool.merged.pool_count, 4)
    merged_pool.first = scratch_nones(scratch, merged_pool.objects.section_count)
    merged_pool.seen = <uint8_t*>scratch_zeros(scratch, merged_pool.objects.section_count, 1)
    scratch_vector(scratch, &merged_pool.pieces, sizeof(Piece))
    scratch_vector(scratch, &merged_pool.blob, 1)
    scratch_vector(scratch, &merged_pool.spans, sizeof(SpanRow))
    scratch_index(scratch, &merged_pool.kept_pieces, 1024)
    scratch_index(scratch, &merged_pool.nulls, 64)
    scratch_texts(scratch, &merged_pool.keys)


cdef bint merge_all(MergedPool* merged_pool) noexcept nogil:
    """Join all pools into one; False if that would exceed the limit, or without memory."""
    cdef size_t i, row
    cdef EntityNumber kernel
    for i in range(merged_pool.merged.pool_count):    # chains each kernel's rows in their order
        row = merged_pool.merged.pool_count - 1 - i
        kernel = merged_pool.merged.pools[row].kernel
        merged_pool.next_row[row] = merged_pool.first_row[kernel]
        merged_pool.first_row[kernel] = <PoolNumber>row
    if not (list_pieces(merged_pool) and join_all(merged_pool) and place_all(merged_pool)):
        return False
    move_symbols(merged_pool)
    return True


cdef int compare_pieces(const void* a, const void* b) noexcept nogil:
    """Order pieces by section and value, then by entity, for qsort."""
    cdef const Piece* x = <const Piece*>a
    cdef const Piece* y = <const Piece*>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    if x.value != y.value:
        return -1 if x.value < y.value else 1
    return (x.entity > y.entity) - (x.entity < y.entity)


cdef bint list_pieces(MergedPool* merged_pool) noexcept nogil:
    """Fill `pieces` and `first`: a Piece for each linked constant in a pool; False without memory.
    """
    cdef const EntityRow* entities = merged_pool.merged.entities
    cdef const SymbolRow* symbols = merged_pool.objects.symbols
    cdef size_t i
    cdef Piece* piece
    cdef SectionNumber section
    for i in range(merged_pool.merged.entity_count):
        section = symbols[entities[i].winner].section
        if entities[i].kind != E_CONSTANT or section < 0:
            continue
        if not is_pool(merged_pool.objects.sections[section].kind,
                       merged_pool.objects.sections[section].bank):
            continue
        piece = <Piece*>vec_push(&merged_pool.pieces)
        if piece == NULL:
            merged_pool.failed = True
            return False
        piece.section = section
        piece.entity = <EntityNumber>i
        piece.value = piece.nvlink_value = symbols[entities[i].winner].value
        piece.size = symbols[entities[i].winner].size
        piece.place = -1
        piece.follows_null = False
    qsort(merged_pool.pieces.data, merged_pool.pieces.count, sizeof(Piece), compare_pieces)
    for i in range(merged_pool.pieces.count):
        section = piece_at(merged_pool, <PieceCounter>i).section
        if merged_pool.first[section] < 0:
            merged_pool.first[section] = <PieceNumber>i
    return True


cdef inline Piece* piece_at(const MergedPool* merged_pool, PieceCounter i) noexcept nogil:
    """Return piece number `i`."""
    return <Piece*>merged_pool.pieces.data + i


cdef bint join_all(MergedPool* merged_pool) noexcept nogil:
    """Fill the one pool, kernel by kernel; False if it becomes too large, or without memory."""
    cdef size_t i
    cdef PoolNumber row
    cdef const OutRow* pool
    for i in range(merged_pool.out_count):
        pool = &merged_pool.outs[merged_pool.out_count - 1 - i]
        if not is_pool(pool.kind, pool.bank):
            continue
        if pool.source >= 0 and not join_section(merged_pool, pool.source, 0):
            return False
        row = merged_pool.first_row[pool.entity]
        while row >= 0:
            if not merged_pool.merged.pools[row].flags & POOL_LOST:
                if not join_section(merged_pool, merged_pool.merged.pools[row].section,
                                    merged_pool.merged.pools[row].offset):
                    return False
            elif not join_lost(merged_pool, &merged_pool.merged.pools[row]):
                return False
            row = merged_pool.next_row[row]
    return True


cdef bint join_section(MergedPool* merged_pool, SectionNumber section,
                       uint64_t start) noexcept nogil:
    """Add the pieces of an input section, which begins at offset `start` of a kernel's pool.

    A section is added again for each further kernel that reaches its function. Its small pieces are
    in the one pool by then. So only two sorts are added again: pieces of other sizes, of which few
    fit into a bank, and pieces that follow the null symbol. False without room or memory.
    """
    cdef const SectionRow* pool = &merged_pool.objects.sections[section]
    cdef bint again = merged_pool.seen[section]
    cdef Piece* piece
    cdef const PiecePlace* newest = &merged_pool.newest
    cdef size_t i
    merged_pool.seen[section] = True
    merged_pool.align = max(merged_pool.align, pool.align)
    if merged_pool.first[section] < 0:
        return True
    for i in range(<PieceCounter>merged_pool.first[section], merged_pool.pieces.count):
        piece = piece_at(merged_pool, i)
        if piece.section != section:
            break
        if again and not piece.follows_null and is_small(piece.size, pool.align):
            continue
        if not join_piece(merged_pool, merged_pool.objects.arena + pool.offset + piece.value,
                          piece.size, pool.align, start + piece.value, False):
            return False
        if not again:
            piece.place = newest.place
            piece.follows_null = newest.follows_null
            piece.nvlink_value = (start + piece.value) % merged_pool.limit
        if newest.moved:
            piece.nvlink_value = (merged_pool.null_value if newest.follows_null
                                  else <uint64_t>newest.place)
    return True


cdef bint join_lost(MergedPool* merged_pool, const PoolRow* row) noexcept nogil:
    """Add the pool of a definition that lost: one piece, whose symbol is the null symbol.

    False without room or memory.
    """
    cdef const SectionRow* pool = &merged_pool.objects.sections[row.section]
    cdef const PiecePlace* newest = &merged_pool.newest
    merged_pool.align = max(merged_pool.align, pool.align)
    if not join_piece(merged_pool, merged_pool.objects.arena + pool.offset, pool.size, pool.align,
                      row.offset, True):
        return False
    if newest.moved and not newest.follows_null:
        merged_pool.null_value = newest.place
    return True


cdef bint join_piece(MergedPool* merged_pool, const uint8_t* data, uint64_t size, uint64_t align,
                     uint64_t old_offset, bint is_lost) noexcept nogil:
    """Add a piece to the one pool, or find its equal there; `newest` says where it is.

    A literal 0 counts as equal to an earlier one with the same `old_offset`: the offset of the
    piece in the pools as `place_pools` placed them. `is_lost`: the piece is the pool of a
    definition that lost. False without room or memory.
    """
    cdef PiecePlace* newest = &merged_pool.newest
    cdef bint is_zero = is_null(data, size)
    cdef NameSlot* slot = NULL
    cdef NameIndex* index = &merged_pool.nulls if is_zero else &merged_pool.kept_pieces
    cdef uint8_t* key
    cdef uint8_t* place
    cdef uint64_t gap
    newest.moved = is_small(size, align)
    newest.follows_null = False
    if newest.moved:
        if is_zero:
            key = pool_join(&merged_pool.keys, <const char*>&old_offset, sizeof(old_offset), data,
                            0)
            slot = index_find(index, key, sizeof(old_offset)) if key != NULL else NULL
        else:
            slot = find_piece(index, &merged_pool.keys, data, size, align)
        if slot == NULL:
            merged_pool.failed = True
            return False
        if slot.value >= 0:
            newest.place = slot.value >> 1
            newest.moved = not is_zero
            newest.follows_null = slot.value & 1
            return True
    gap = -merged_pool.blob.count & (align - 1) if align else 0
    if size > merged_pool.limit or merged_pool.blob.count + gap + size > merged_pool.limit:
        return False
    place = <uint8_t*>vec_extend(&merged_pool.blob, gap + size)
    if place == NULL and gap + size:
        merged_pool.failed = True
        return False
    newest.place = <int32_t>(merged_pool.blob.count - size)
    if gap:
        memset(place, 0, gap)
    if size:
        memcpy(place + gap, data, size)
    if slot != NULL:
        slot.value = 2 * newest.place + (1 if is_lost and not is_zero else 0)
        index.count += 1
    return True


cdef bint place_all(MergedPool* merged_pool) noexcept nogil:
    """Give the one pool to every kernel that has a pool; False without memory."""
    cdef size_t i
    cdef OutRow* pool
    cdef SpanRow* span
    for i in range(merged_pool.out_count):
        pool = &merged_pool.outs[i]
        if not is_pool(pool.kind, pool.bank):
            continue
        merged_pool.pool_of[pool.entity] = <OutNumber>i
        pool.size = merged_pool.blob.count
        pool.align = merged_pool.align
        span = <SpanRow*>vec_push(&merged_pool.spans)
        merged_pool.failed |= span == NULL
        if merged_pool.failed:
            return False
        span.out = <OutNumber>i
        span.offset = 0
        span.size = merged_pool.blob.count
    return True


cdef void move_symbols(MergedPool* merged_pool) noexcept nogil:
    """Set the values of the symbols of pieces, and the pools (`homes`) in which these symbols lie.

    A value is the one that nvlink gives if the piece's bytes are there, else the piece's place.
    """
    cdef size_t i, k
    cdef const PoolRow* row
    cdef const Piece* piece
    for i in range(merged_pool.pieces.count):
        piece = piece_at(merged_pool, <PieceCounter>i)
        if piece.place >= 0:
            merged_pool.values[piece.entity] = (
                piece.nvlink_value if is_value_correct(merged_pool, piece)
                else <uint64_t>piece.place)
    for i in range(merged_pool.merged.pool_count):
        row = &merged_pool.merged.pools[i]
        if row.flags & POOL_LOST or merged_pool.first[row.section] < 0:
            continue
        for k in range(<PieceCounter>merged_pool.first[row.section], merged_pool.pieces.count):
            piece = piece_at(merged_pool, k)
            if piece.section != row.section:
                break
            merged_pool.homes[piece.entity] = merged_pool.pool_of[row.kernel]


cdef inline bint is_value_correct(const MergedPool* merged_pool, const Piece* piece) noexcept nogil:
    """Return whether the bytes of a piece are in the one pool at the value that nvlink gives."""
    cdef const uint8_t* data = (merged_pool.objects.arena + piece.value
                                + merged_pool.objects.sections[piece.section].offset)
    if (piece.nvlink_value > merged_pool.blob.count
            or merged_pool.blob.count - piece.nvlink_value < piece.size):
        return False
    return memcmp(merged_pool.blob.data + piece.nvlink_value, data, piece.size) == 0
