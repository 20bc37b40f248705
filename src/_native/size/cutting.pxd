# Counts of the bytes of a payload, i.e. of one entry of a fat binary without its header: a row for
# each function and one for bytes that no function owns, with a count for each part, such as code.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_vector
from base.vector cimport Vec, vec_push
from size.digests cimport Digest, Fingerprint, OwnerRef

cdef enum:
    PARTS = 16                  # counts of a row, of which some are unused

# Owner of bytes without a function; functions count from 1.
cdef enum:
    SHARED = 0

# A name; its bytes belong to the payload, or in a ledger to the pool of names.
ctypedef struct Text:
    const uint8_t* data
    uint32_t size

# The counts of a payload, the contents of a fat binary's entry, while it is cut into functions and
# parts.
ctypedef struct Cutting:
    NameIndex index             # by name: the row of a function in `functions`
    Vec functions               # Text: the name of function 1, 2 and so on
    Vec counts                  # uint64_t[PARTS] by function; the first row is for shared bytes
    Text unit                   # part of a symbol's name that identifies the source file, or NULL
    uint32_t type               # e_type of a cubin, 0 for another payload
    Vec digests                 # Digest, of linked cubins alone
    # Fingerprints of a linked cubin, zeros for another payload. They ignore the contents of notes
    # and the SM number; `like` also ignores the attribute that `absorb_records` omits.
    Fingerprint exact
    Fingerprint like
    bint is_damaged             # the payload is not what its entry says


cdef inline void start_cutting(Cutting* cutting, Scratch* scratch) noexcept nogil:
    """Set up empty counts, without functions; `scratch.failed` says if memory is exhausted."""
    memset(cutting, 0, sizeof(Cutting))
    scratch_vector(scratch, &cutting.functions, sizeof(Text))
    scratch_vector(scratch, &cutting.counts, PARTS * sizeof(uint64_t))
    scratch_vector(scratch, &cutting.digests, sizeof(Digest))
    scratch_index(scratch, &cutting.index, 64)
    scratch.failed |= not add_counts(cutting)


cdef inline bint add_counts(Cutting* cutting) noexcept nogil:
    """Add a row of zeros to the counts, for one more owner."""
    cdef uint64_t* row = <uint64_t*>vec_push(&cutting.counts)
    if row == NULL:
        return False
    memset(row, 0, PARTS * sizeof(uint64_t))
    return True


cdef inline void count_bytes(Cutting* cutting, OwnerRef owner, uint32_t part,
                             uint64_t size) noexcept nogil:
    """Add `size` bytes to a part of a function, or of SHARED."""
    (<uint64_t*>cutting.counts.data)[owner * PARTS + part] += size


cdef inline int64_t find_function(Cutting* cutting, const uint8_t* name,
                                  uint32_t size) noexcept nogil:
    """Return the number of the function of that name, or SHARED; -1 if memory is exhausted."""
    cdef NameSlot* slot = index_find(&cutting.index, name, size)
    if slot == NULL:
        return -1
    return slot.value + 1


cdef inline int64_t add_function(Cutting* cutting, const uint8_t* name,
                                 uint32_t size) noexcept nogil:
    """Return the number of the function of that name, which is added if it is new.

    `name` is not copied. -1 if memory is exhausted.
    """
    cdef NameSlot* slot = index_find(&cutting.index, name, size)
    cdef Text* text
    if slot == NULL:
        return -1
    if slot.value < 0:
        text = <Text*>vec_push(&cutting.functions)
        if text == NULL or not add_counts(cutting):
            return -1
        text.data, text.size = name, size
        slot.value = <int>(cutting.functions.count - 1)
        cutting.index.count += 1
    return slot.value + 1
