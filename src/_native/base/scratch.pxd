# The working memory of one call of a kernel: arrays that live as long as the call.
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


# What begins a block; as long as two of malloc's alignments, so that rows of any type may follow.
ctypedef struct Held:
    Held* before
    size_t size                 # of the block, this included
    Release release             # of a block that only names what grows elsewhere; else NULL
    void* owner


ctypedef struct Scratch:
    Held* newest
    bint failed                 # set by the first request that failed, and never cleared


cdef inline void scratch_init(Scratch* s) noexcept nogil:
    s.newest = NULL
    s.failed = False


cdef inline void* scratch_block(Scratch* s, size_t count, size_t size, bint zeros) noexcept nogil:
    cdef Held* held = NULL
    cdef size_t whole
    if size == 0 or count <= (<size_t>-1) // 2 // size:
        whole = sizeof(Held) + count * size
        if zeros:
            held = <Held*>block_zeros(whole)
        else:
            held = <Held*>(block_widen(NULL, 0, whole) if whole >= MEDIUM_BLOCK else malloc(whole))
    if held == NULL:
        s.failed = True
        return NULL
    held.before = s.newest
    held.size = whole
    held.release = NULL
    s.newest = held
    return held + 1


cdef inline void* scratch_zeros(Scratch* s, size_t count, size_t size) noexcept nogil:
    """`count` elements of `size` bytes, all zeros."""
    return scratch_block(s, count, size, True)


cdef inline void* scratch_room(Scratch* s, size_t count, size_t size) noexcept nogil:
    """`count` elements of `size` bytes without values."""
    return scratch_block(s, count, size, False)


cdef inline int32_t* scratch_nones(Scratch* s, size_t count) noexcept nogil:
    """`count` row numbers, all of them -1."""
    cdef int32_t* rows = <int32_t*>scratch_block(s, count, sizeof(int32_t), False)
    if rows != NULL:
        memset(rows, 0xff, count * sizeof(int32_t))
    return rows


cdef inline void scratch_owns(Scratch* s, Release release, void* owner) noexcept nogil:
    """Have `release(owner)` called by `scratch_free`.

    The owner has no memory yet: without memory to remember it by, nobody releases it.
    """
    cdef Held* held = <Held*>scratch_block(s, 0, 0, False)
    if held != NULL:
        held -= 1
        held.release = release
        held.owner = owner


cdef inline void scratch_vector(Scratch* s, Vec* v, size_t row) noexcept nogil:
    """Begin a Vec of rows of `row` bytes. A table may take its memory before `scratch_free`.

    Without memory to remember it by it never gets any: nobody would release that.
    """
    vec_init(v, row)
    scratch_owns(s, <Release>vec_free, v)
    v.lent = s.failed


cdef inline void scratch_reserve(Scratch* s, Vec* v, size_t count) noexcept nogil:
    """Make room for `count` rows in a Vec that `s` frees."""
    if not s.failed and not vec_reserve(v, count):
        s.failed = True


cdef inline void scratch_free(Scratch* s) noexcept nogil:
    cdef Held* held = s.newest
    cdef Held* before
    while held != NULL:
        before = held.before
        if held.release != NULL:
            held.release(held.owner)
        block_free(held, held.size)
        held = before
    s.newest = NULL
