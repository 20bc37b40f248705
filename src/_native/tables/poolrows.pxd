# The table of `pools.place_pools`: what other kernels read of it.

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef enum PoolFlag:
    POOL_BORN = 1               # the kernel had no pool before
    POOL_LOST = 2               # the piece comes from a copy of the function that lost
    POOL_ALONE = 4              # the copy that stays has no pool

# Where a piece of a function's pool goes, in one kernel.
cdef packed struct PoolRow:
    int32_t section             # input section with the bytes
    int32_t kernel              # entity
    uint64_t offset             # in .nv.constant2 of the kernel
    uint64_t end                # size of .nv.constant2 of the kernel with this function's pieces
    uint32_t function           # entity; the kernel itself for pieces of its own
    uint32_t align              # of .nv.constant2 of the kernel from here on
    uint32_t flags              # PoolFlag
