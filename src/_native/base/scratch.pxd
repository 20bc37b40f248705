# The working memory of one call of a native function: arrays that live as long as the call.
#
# The function first asks for all memory it needs, tests `failed` once, and frees everything with
# one `scratch_free` at its end. It uses nothing before the test: a request that failed gives NULL.
# Arrays that it frees earlier are in a Scratch of their own.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t
from libc.stdlib cimport malloc
from libc.string cimport memset

from base.blocks cimport MEDIUM_BLOCK, block_free, block_widen, block_zeros
from base.vector cimport Vec, vec_free, vec_init, vec_reserve


# A function that frees the memory of its argument, such as `vec_free`.
ctypedef void (*Release)(void*) noexcept nogil


# The head of a block. The size of this struct is a multiple of malloc's alignment, so that rows of
# any type may follow.
ctypedef struct ScratchBlock:
    ScratchBlock* before        # the block that was allocated before, or NULL
    size_t size                 # bytes of the block, with this head
    Release release             # what to call with `owner` when the block is freed, or NULL
    void* owner


# The working memory of one call: blocks that `scratch_free` frees together.
ctypedef struct Scratch:
    ScratchBlock* newest        # the block allocated last, or NULL
    bint failed                 # set by the first request that failed, and never cleared


cdef inline void scratch_init(Scratch* scratch) noexcept nogil:
    """Start without blocks, and without a request that failed."""
    scratch.newest = NULL
    scratch.failed = False


cdef inline void* scratch_block(Scratch* scratch, size_t count, size_t size,
                                bint zeros) noexcept nogil:
    """Return `count` elements of `size` bytes that `scratch_free` frees.

    With `zeros` all bytes are 0, otherwise they have any values. Without memory, sets `failed` and
    returns NULL.
    """
    cdef ScratchBlock* block = NULL
    cdef size_t block_size
    if size == 0 or count <= (<size_t>-1) // 2 // size:
        block_size = sizeof(ScratchBlock) + count * size
        if zeros:
            block = <ScratchBlock*>block_zeros(block_size)
        else:
            block = <ScratchBlock*>(block_widen(NULL, 0, block_size) if block_size >= MEDIUM_BLOCK
                                    else malloc(block_size))
    if block == NULL:
        scratch.failed = True
        return NULL
    block.before = scratch.newest
    block.size = block_size
    block.release = NULL
    scratch.newest = block
    return block + 1


cdef inline void* scratch_zeros(Scratch* scratch, size_t count, size_t size) noexcept nogil:
    """Return `count` elements of `size` bytes, all zeros; NULL and `failed` without memory."""
    return scratch_block(scratch, count, size, True)


cdef inline void* scratch_room(Scratch* scratch, size_t count, size_t size) noexcept nogil:
    """Return `count` elements of `size` bytes, any values; NULL and `failed` without memory."""
    return scratch_block(scratch, count, size, False)


cdef inline int32_t* scratch_nones(Scratch* scratch, size_t count) noexcept nogil:
    """Return `count` row numbers, all of them -1; NULL and `failed` without memory."""
    cdef int32_t* rows = <int32_t*>scratch_block(scratch, count, sizeof(int32_t), False)
    if rows != NULL:
        memset(rows, 0xff, count * sizeof(int32_t))
    return rows


cdef inline void scratch_owns(Scratch* scratch, Release release, void* owner) noexcept nogil:
    """Let `scratch_free` call `release(owner)`.

    `owner` must not have memory yet: if this request fails, nothing will release it.
    """
    cdef ScratchBlock* block = <ScratchBlock*>scratch_block(scratch, 0, 0, False)
    if block != NULL:
        block -= 1
        block.release = release
        block.owner = owner


cdef inline void scratch_vector(Scratch* scratch, Vec* vec, size_t row) noexcept nogil:
    """Start a Vec of rows of `row` bytes that `scratch` frees, unless a table took its memory.

    `detach_rows` gives the memory to a table. If this request or an earlier one has failed, the Vec
    cannot grow, since maybe nothing would free its memory.
    """
    vec_init(vec, row)
    scratch_owns(scratch, <Release>vec_free, vec)
    vec.borrowed = scratch.failed


cdef inline void scratch_reserve(Scratch* scratch, Vec* vec, size_t count) noexcept nogil:
    """Make room for `count` rows in a Vec that `scratch` frees; sets `failed` without memory."""
    if not scratch.failed and not vec_reserve(vec, count):
        scratch.failed = True


cdef inline void scratch_free(Scratch* scratch) noexcept nogil:
    """Release all blocks, the newest first."""
    cdef ScratchBlock* block = scratch.newest
    cdef ScratchBlock* before
    while block != NULL:
        before = block.before
        if block.release != NULL:
            block.release(block.owner)
        block_free(block, block.size)
        block = before
    scratch.newest = NULL
