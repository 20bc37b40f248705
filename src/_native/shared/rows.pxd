# Rows that the layout of shared memory takes and gives (columns: the stub of `shared`), the sort
# that decides ties, and the addresses of extern arrays.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from base.elf64 cimport round_up

cdef enum:
    COMMON = -1         # owner of a variable in .nv_debug.shared
    DEAD = -2           # owner of a variable of a kernel that is not linked
    REFERENCED = 1      # variable flags
    EXTERN = 2
    SAYS_ALIGN = 4      # an extern array whose symbol has its alignment
    LATE = 4            # extern use, kernel while it is placed: it has a section for arrays alone
    STAYS = 8           # variable, kernel while it is placed: its section is there without bytes
    SURVIVES = 1        # kernel flags
    HAS_SYMBOL = 2
    EXTERN_ALIGN = 16

cdef packed struct VariableRow:
    uint64_t size
    uint64_t align
    int32_t owner
    uint32_t flags

cdef packed struct UseRow:
    uint32_t variable
    uint32_t kernel

cdef packed struct ExternUseRow:
    uint32_t kernel
    int32_t tie
    uint64_t align          # of the array, 0 where its symbol does not say
    uint32_t flags

cdef packed struct KernelRow:
    uint64_t size
    uint64_t align
    int64_t extern_address
    uint32_t flags


cdef inline bint goes_first(const VariableRow* a, const VariableRow* b,
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
        if b == count or (a < half and goes_first(&rows[spare[a]], &rows[spare[b]], by_align)):
            items[i] = spare[a]
            a += 1
        else:
            items[i] = spare[b]
            b += 1


cdef inline uint32_t find(uint32_t* leader, uint32_t node) noexcept nogil:
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


cdef inline void place_externs(const ExternUseRow* uses, size_t count, size_t kernel_count,
                        size_t tie_count, uint32_t* leader, int64_t* best, KernelRow* kernels,
                        int64_t* addresses, bint reserve, uint64_t least) noexcept nogil:
    """Tied kernels share the largest of their addresses.

    With `least`, an alignment, this is aligned as the most aligned of their sections. With
    `reserve` (-r) that of an instance, which has no tie, is at least what the array's symbol says.
    `leader` has room for every kernel and tie, `best` for twice as many.
    """
    cdef int64_t* aligns = best + kernel_count + tie_count
    cdef size_t i
    cdef uint32_t k, root
    cdef int64_t end
    for i in range(kernel_count + tie_count):
        leader[i] = <uint32_t>i
        best[i] = -1
        aligns[i] = max(EXTERN_ALIGN, <int64_t>least)
    for i in range(count):
        if uses[i].tie >= 0:
            root = find(leader, uses[i].kernel)
            leader[root] = find(leader, <uint32_t>(kernel_count + uses[i].tie))
    for i in range(count if least else 0):
        root = find(leader, uses[i].kernel)
        aligns[root] = max(aligns[root], <int64_t>kernels[uses[i].kernel].align)
    for i in range(count):
        k = uses[i].kernel
        root = find(leader, k)
        end = <int64_t>round_up(kernels[k].size, max(uses[i].align, <uint64_t>aligns[root]))
        if reserve and uses[i].tie < 0:
            end = max(end, <int64_t>uses[i].align)
        best[root] = max(best[root], end)
    for i in range(count):
        k = uses[i].kernel
        end = best[find(leader, k)]
        kernels[k].extern_address = end
        kernels[k].flags |= uses[i].flags
        kernels[k].size = <uint64_t>end
        kernels[k].align = max(kernels[k].align, uses[i].align, <uint64_t>EXTERN_ALIGN)
    for i in range(tie_count):
        addresses[i] = best[find(leader, <uint32_t>(kernel_count + i))]
