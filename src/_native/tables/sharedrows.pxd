# Rows of the tables for the layout of shared memory, its input and its result, and the sort that
# decides the order of variables.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from tables.rows cimport EntityNumber

cdef enum:
    # VariableRow.owner, if it is not the number of a kernel.
    COMMON = -1         # a variable of .nv_debug.shared, which any kernel may use
    DEAD = -2           # a variable of a kernel that is not linked
    # Bits of VariableRow.flags, of ExternUseRow.flags, and of KernelRow.flags.
    REFERENCED = 1      # variable: code refers to it
    EXTERN = 2          # variable: it is an extern array
    FILE_ALIGN = 4      # variable: an extern array whose symbol has its alignment
    # Extern use, and kernel while it is placed: only extern arrays need the section .nv.shared.K.
    ARRAYS_ONLY = 4
    STAYS = 8           # variable, kernel while it is placed: its section stays even without bytes
    SURVIVES = 1        # kernel: the output has its section
    HAS_SYMBOL = 2      # kernel: the output has the section's symbol
    EXTERN_ALIGN = 16   # bytes: least alignment of extern arrays, and of sections with them
    RESERVED = 0x400    # bytes of shared memory, at its start, that the system has from sm_90 on

# Numbers of rows, as in tables/rows.pxd. A kernel here is one that is linked: an element of
# `SharedTables.kernel_entities`.
ctypedef int32_t VariableNumber
ctypedef int32_t KernelNumber
ctypedef uint32_t VariableRef
ctypedef uint32_t UseRef
ctypedef uint32_t KernelRef
ctypedef size_t KernelCounter

# A shared variable, an unsized extern array, or all bytes of a section .nv.shared.K as one
# variable: of a section without symbols, and of each section in a file compiled with -ewp.
cdef packed struct VariableRow:
    uint64_t size           # bytes
    uint64_t align          # bytes
    KernelNumber owner      # number of a kernel, COMMON or DEAD
    uint32_t flags          # REFERENCED, EXTERN, FILE_ALIGN, STAYS

# A sized variable, and a kernel whose code, or that of a function that it reaches, refers to it.
# With -r, and for an idle kernel (neither selected nor launched by device code), only the kernel's
# own code counts.
cdef packed struct UseRow:
    VariableRef variable    # number of a VariableRow
    KernelRef kernel        # number of a kernel

# A kernel that uses an extern array. Kernels whose `tie` is the same and not -1 have the array at
# one address.
cdef packed struct ExternUseRow:
    KernelRef kernel        # number of a kernel
    EntityNumber tie        # device function that uses the array (-g: the array); -1: own code
    uint64_t align          # alignment of the array in bytes, 0 if unknown
    uint32_t flags          # ARRAYS_ONLY

# The section `.nv.shared.K` of a kernel; the last row is that of `.nv_debug.shared`.
cdef packed struct KernelRow:
    uint64_t size           # bytes
    uint64_t align          # sh_addralign
    int64_t extern_address  # of the extern arrays that the kernel or its callees use, -1 without
    uint32_t flags          # SURVIVES, HAS_SYMBOL


cdef inline bint is_before(const VariableRow* variable, const VariableRow* other,
                           bint by_align) noexcept nogil:
    """Return whether a variable stands before another: larger alignments first, then smaller sizes.

    Alignments are compared only if `by_align` is set. True if the two are equal.
    """
    if by_align and variable.align != other.align:
        return variable.align > other.align
    return variable.size <= other.size


cdef inline void sort_list(const VariableRow* rows, VariableRef* items, VariableRef* spare,
                           size_t count, bint by_align) noexcept nogil:
    """Sort `items`, numbers of variables in `rows`, in place, as nvlink does.

    It is a merge sort whose two halves are the elements at even and at odd indices, each half in
    reverse order. So the order of equal variables depends on their indices. `spare` has room for
    `count` numbers. The recursion is log2(count) deep. `by_align` is for `is_before`.
    """
    cdef size_t half = (count + 1) // 2, i
    cdef size_t first = 0, second = half        # the next elements of the two halves
    if count < 2:
        return
    for i in range(count):
        if i & 1:
            spare[count - 1 - i // 2] = items[i]
        else:
            spare[half - 1 - i // 2] = items[i]
    sort_list(rows, spare, items, half, by_align)
    sort_list(rows, spare + half, items + half, count - half, by_align)
    for i in range(count):
        if second == count or (first < half and is_before(&rows[spare[first]],
                                                          &rows[spare[second]], by_align)):
            items[i] = spare[first]
            first += 1
        else:
            items[i] = spare[second]
            second += 1
