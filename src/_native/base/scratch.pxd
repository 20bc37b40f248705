# The working memory of one call of a native function: arrays that live as long as the call.
#
# A kernel asks for what it needs first, tests `failed` once, and gives everything back with one
# `scratch_free` in a `finally`. Nothing that was asked for is used before the test, since what
# could not be had is NULL. Arrays that a kernel gives back earlier are in a Scratch of their own.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t
from libc.stdlib cimport malloc
from libc.string cimport memset

from base.blocks cimport MEDIUM_BLOCK, block_free, block_widen, block_zeros
from base.vector cimport Vec, vec_free, vec_init, vec_reserve


ctypedef void (*Release)(void*) noexcept nogil


# The head of a block; as long as two of malloc's alignments, so that rows of any type may follow.
ctypedef struct ScratchBlock:
    ScratchBlock* before
    size_t size                 # bytes of the block, with this head
    Release release             # frees what the block only refers to; else NULL
    void* owner


ctypedef struct Scratch:
    ScratchBlock* newest
    bint failed                 # set by the first request that failed, and never cleared


cdef inline void scratch_init(Scratch* s) noexcept nogil:
    s.newest = NULL
    s.failed = False


cdef inline void* scratch_block(Scratch* scratch, size_t count, size_t size,
                                bint zeros) noexcept nogil:
    """A block that `scratch_free` frees; NULL without memory, which also sets `failed`."""
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


cdef inline void* scratch_zeros(Scratch* s, size_t count, size_t size) noexcept nogil:
    """`count` elements of `size` bytes, all zeros."""
    return scratch_block(s, count, size, True)


cdef inline void* scratch_room(Scratch* s, size_t count, size_t size) noexcept nogil:
    """`count` elements of `size` bytes without values."""
    return scratch_block(s, count, size, False)


cdef inline int32_t* scratch_nones(Scratch* scratch, size_t count) noexcept nogil:
    """`count` row numbers, all of them -1."""
    cdef int32_t* rows = <int32_t*>scratch_block(scratch, count, sizeof(int32_t), False)
    if rows != NULL:
        memset(rows, 0xff, count * sizeof(int32_t))
    return rows


cdef inline void scratch_owns(Scratch* scratch, Release release, void* owner) noexcept nogil:
    """Have `release(owner)` called by `scratch_free`.

    The owner has no memory yet: without memory to remember it by, nobody releases it.
    """
    cdef ScratchBlock* block = <ScratchBlock*>scratch_block(scratch, 0, 0, False)
    if block != NULL:
        block -= 1
        block.release = release
        block.owner = owner


cdef inline void scratch_vector(Scratch* scratch, Vec* vec, size_t row) noexcept nogil:
    """Begin a Vec of rows of `row` bytes. A table may take its memory before `scratch_free`.

    Without memory to remember it by it never gets any: nobody would release that.
    """
    vec_init(vec, row)
    scratch_owns(scratch, <Release>vec_free, vec)
    vec.borrowed = scratch.failed


cdef inline void scratch_reserve(Scratch* scratch, Vec* vec, size_t count) noexcept nogil:
    """Make room for `count` rows in a Vec that `scratch` frees."""
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
