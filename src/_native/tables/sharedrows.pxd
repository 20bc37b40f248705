# Rows that the layout of shared memory takes and gives (columns: the stub of `shared`), and the
# sort that decides ties.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    COMMON = -1         # owner of a variable in .nv_debug.shared
    DEAD = -2           # owner of a variable of a kernel that is not linked
    REFERENCED = 1      # variable flags
    EXTERN = 2
    FILE_ALIGN = 4      # an extern array whose symbol has its alignment
    LATE = 4            # extern use, kernel while it is placed: it has a section for arrays alone
    STAYS = 8           # variable, kernel while it is placed: its section is there without bytes
    SURVIVES = 1        # kernel flags
    HAS_SYMBOL = 2
    EXTERN_ALIGN = 16
    RESERVED = 0x400    # bytes that the system keeps from sm_90 on

# A shared variable, or an unsized extern array.
cdef packed struct VariableRow:
    uint64_t size
    uint64_t align
    int32_t owner           # number of a kernel, COMMON or DEAD
    uint32_t flags          # REFERENCED, EXTERN, FILE_ALIGN, STAYS

# A kernel whose code, or that of a function that it reaches, refers to a variable.
cdef packed struct UseRow:
    uint32_t variable       # number of a VariableRow
    uint32_t kernel

# A kernel that uses an extern array.
cdef packed struct ExternUseRow:
    uint32_t kernel
    int32_t tie             # device function with the use, or the array with -g; -1: own code
    uint64_t align          # alignment of the array, 0 if unknown
    uint32_t flags          # LATE

# The section `.nv.shared.K` of a kernel; the last row is that of `.nv_debug.shared`.
cdef packed struct KernelRow:
    uint64_t size
    uint64_t align          # sh_addralign
    int64_t extern_address  # of extern arrays in the kernel's own code, -1 without
    uint32_t flags          # SURVIVES, HAS_SYMBOL


cdef inline bint is_before(const VariableRow* a, const VariableRow* b,
                           bint by_align) noexcept nogil:
    if by_align and a.align != b.align:
        return a.align > b.align
    return a.size <= b.size


cdef inline void sort_list(const VariableRow* rows, uint32_t* items, uint32_t* spare, size_t count,
                           bint by_align) noexcept nogil:
    """Sort variables in place; spare has room for as many. Recursion is log2(count) deep."""
    cdef size_t half = (count + 1) // 2, i, a = 0, b = half
    if count < 2:
        return
    for i in range(count):      # pushing to the front reverses each list
        if i & 1:
            spare[count - 1 - i // 2] = items[i]
        else:
            spare[half - 1 - i // 2] = items[i]
    sort_list(rows, spare, items, half, by_align)
    sort_list(rows, spare + half, items + half, count - half, by_align)
    for i in range(count):
        if b == count or (a < half and is_before(&rows[spare[a]], &rows[spare[b]], by_align)):
            items[i] = spare[a]
            a += 1
        else:
            items[i] = spare[b]
            b += 1
