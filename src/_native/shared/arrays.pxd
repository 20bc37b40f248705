# Addresses of extern arrays, and the groups of kernels that share them.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from base.elf64 cimport round_up
from base.scratch cimport Scratch, scratch_room
from pylink._native.tables cimport SharedTables
from tables.sharedrows cimport EXTERN_ALIGN, ExternUseRow, KernelRow


cdef inline uint32_t find_leader(uint32_t* leader, uint32_t node) noexcept nogil:
    """The representative of the node's set (union-find, with path halving)."""
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


ctypedef struct ArrayTies:
    const ExternUseRow* uses
    size_t count
    size_t kernel_count
    size_t tie_count
    uint32_t* leader        # union-find over kernels, then ties
    int64_t* best           # by leader: the address
    int64_t* aligns         # by leader: its alignment
    KernelRow* kernels
    int64_t* addresses      # by tie
    bint reserve            # -r: an instance is at least what the array's symbol says
    uint64_t least          # an alignment: addresses follow the most aligned section; or 0


cdef inline void allocate_ties(ArrayTies* ties, SharedTables shared, Scratch* scratch) noexcept:
    """Allocate the columns of the ties."""
    cdef size_t n
    ties.uses = shared.extern_uses.rows
    ties.count = shared.extern_uses.count
    ties.kernel_count = <size_t>shared.kernel_count
    ties.tie_count = <size_t>shared.tie_count
    n = ties.kernel_count + ties.tie_count
    ties.leader = <uint32_t*>scratch_room(scratch, n, 4)
    ties.best = <int64_t*>scratch_room(scratch, n, 8)
    ties.aligns = <int64_t*>scratch_room(scratch, n, 8)


cdef inline void place_externs(ArrayTies* ties) noexcept nogil:
    """Tied kernels share the largest of their addresses."""
    cdef const ExternUseRow* uses = ties.uses
    cdef KernelRow* kernels = ties.kernels
    cdef uint32_t* leader = ties.leader
    cdef int64_t* best = ties.best
    cdef int64_t* aligns = ties.aligns
    cdef size_t i
    cdef uint32_t k, root
    cdef int64_t end
    for i in range(ties.kernel_count + ties.tie_count):
        leader[i] = <uint32_t>i
        best[i] = -1
        aligns[i] = max(EXTERN_ALIGN, <int64_t>ties.least)
    for i in range(ties.count):
        if uses[i].tie >= 0:
            root = find_leader(leader, uses[i].kernel)
            leader[root] = find_leader(leader, <uint32_t>(ties.kernel_count + uses[i].tie))
    for i in range(ties.count if ties.least else 0):
        root = find_leader(leader, uses[i].kernel)
        aligns[root] = max(aligns[root], <int64_t>kernels[uses[i].kernel].align)
    for i in range(ties.count):
        k = uses[i].kernel
        root = find_leader(leader, k)
        end = <int64_t>round_up(kernels[k].size, max(uses[i].align, <uint64_t>aligns[root]))
        if ties.reserve and uses[i].tie < 0:
            end = max(end, <int64_t>uses[i].align)
        best[root] = max(best[root], end)
    for i in range(ties.count):
        k = uses[i].kernel
        end = best[find_leader(leader, k)]
        kernels[k].extern_address = end
        kernels[k].flags |= uses[i].flags
        kernels[k].size = <uint64_t>end
        kernels[k].align = max(kernels[k].align, uses[i].align, <uint64_t>EXTERN_ALIGN)
    for i in range(ties.tie_count):
        ties.addresses[i] = best[find_leader(leader, <uint32_t>(ties.kernel_count + i))]
