# Contents of input sections on their way into the image, by two threads; and the memory of the
# inputs, which is let go on the way. What the kernel gets back it gives to the output, so that a
# link needs memory for the larger of both instead of the sum, and none that nobody used lately.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy

from kinds cimport is_nobits
from pages cimport madvise
from rows cimport *

cdef extern from "<sys/mman.h>" nogil:
    int MADV_DONTNEED

cdef extern from *:
    """
    #define last_to_leave(left) (__atomic_sub_fetch((left), 1, __ATOMIC_ACQ_REL) == 0)
    """
    bint last_to_leave(uint32_t* left) nogil

cdef enum:
    CHUNK = 64                  # input sections that one thread copies in a row
    BLOCK = 2 << 20             # a large page: a part of one cannot be let go


ctypedef struct Pieces:
    const uint8_t* input
    uint8_t* image
    const SectionRow* sections
    size_t section_count
    const OutRow* outs
    const PlaceRow* places
    const int32_t* out_of
    const uint64_t* base
    const int32_t* stand_in     # or NULL: nothing was folded
    uint8_t* first_block        # of the inputs, at a multiple of BLOCK
    size_t block_count          # 0: the inputs stay
    uint32_t* left              # by block: sections that are still to be copied from it


cdef inline bint is_copied(const Pieces* p, size_t at) noexcept nogil:
    """Whether input section `at` is a part of an output section that keeps the input's bytes."""
    cdef int32_t o = p.out_of[at]
    if o < 0 or is_nobits(&p.outs[o]) or p.places[o].made:
        return False
    if p.stand_in != NULL and p.stand_in[at] >= 0:
        return False
    # A layout that shrank the section replaced its contents.
    return p.base[at] + p.sections[at].size <= p.places[o].size


cdef inline size_t first_block_of(const Pieces* p, size_t at) noexcept nogil:
    """The first block with bytes of input section `at`, maybe block_count."""
    cdef const uint8_t* start = p.input + p.sections[at].offset
    return 0 if start < p.first_block else min(
        <size_t>(start - p.first_block) // BLOCK, p.block_count)


cdef inline size_t blocks_until(const Pieces* p, size_t at) noexcept nogil:
    """The number of blocks that begin before the end of input section `at`."""
    cdef const uint8_t* end = p.input + p.sections[at].offset + p.sections[at].size
    return 0 if end <= p.first_block else min(
        (<size_t>(end - p.first_block) + BLOCK - 1) // BLOCK, p.block_count)


cdef inline void let_go(const Pieces* p, size_t block) noexcept nogil:
    madvise(p.first_block + block * BLOCK, BLOCK, MADV_DONTNEED)


cdef inline bint give_up_input(Pieces* p, uint64_t size) noexcept nogil:
    """Have the whole blocks of the `size` bytes of all inputs let go once they are copied.

    Where nothing is copied from, that is now. False when memory is exhausted.
    """
    cdef uintptr_t start = <uintptr_t>p.input, end = start + size
    cdef size_t i, block
    start = (start + BLOCK - 1) // BLOCK * BLOCK
    if end < start + BLOCK:
        return True
    p.left = <uint32_t*>calloc((end - start) // BLOCK, sizeof(uint32_t))
    if p.left == NULL:
        return False
    p.first_block = <uint8_t*>start
    p.block_count = (end - start) // BLOCK
    for i in range(p.section_count):
        if is_copied(p, i):
            for block in range(first_block_of(p, i), blocks_until(p, i)):
                p.left[block] += 1
    for block in range(p.block_count):
        if p.left[block] == 0:
            let_go(p, block)
    return True


cdef inline void copy_pieces(void* context, size_t item) noexcept nogil:
    """The task of a chunk of input sections."""
    cdef const Pieces* p = <const Pieces*>context
    cdef size_t i, block
    for i in range(item * CHUNK, min((item + 1) * CHUNK, p.section_count)):
        if not is_copied(p, i):
            continue
        memcpy(p.image + p.places[p.out_of[i]].offset + p.base[i],
               p.input + p.sections[i].offset, p.sections[i].size)
        for block in range(first_block_of(p, i), blocks_until(p, i)):
            if last_to_leave(&p.left[block]):
                let_go(p, block)
