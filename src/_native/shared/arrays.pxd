# Addresses of extern arrays, and the groups of kernels that share an address.
#
# A tie is a function that uses an extern array, or with -g the array itself. Kernels that reach the
# same tie get one address for their extern arrays. For example, K1 with 20 bytes of shared memory
# and K2 with 40 bytes both call F, which uses an array. K3 with 8 bytes uses one in its own code:
#
#     ends rounded up to 16        K1: 32, K2: 48, K3: 16
#     addresses                    K1, K2 and the tie F: 48, K3: 16

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from base.elf64 cimport round_up
from base.scratch cimport Scratch, scratch_room
from pylink._native.results cimport SharedTables
from tables.sharedrows cimport EXTERN_ALIGN, ExternUseRow, KernelRef, KernelRow


# The number of a kernel or of a tie (a function that uses an extern array or, with -g, the array),
# in one sequence, kernels first. With three kernels, kernel 2 has number 2, and tie 2 number 5.
ctypedef uint32_t MemberRef


cdef inline MemberRef find_leader(MemberRef* leaders, MemberRef member) noexcept nogil:
    """Return the member that represents the set of `member` (union-find, with path halving)."""
    while leaders[member] != member:
        leaders[member] = leaders[leaders[member]]
        member = leaders[member]
    return member


# Uses of extern arrays, and what `place_externs` finds. A member is a kernel or a tie: a function
# that uses an array or, with -g, the array. Members with one address are a set, which one of them,
# its leader, represents.
ctypedef struct ArrayTies:
    const ExternUseRow* uses
    size_t count                # number of uses
    size_t kernel_count
    size_t tie_count
    MemberRef* leaders          # by member: the next on the way to the leader of its set, or itself
    int64_t* largest_end        # by member, a leader: the address of its set, -1 without uses
    int64_t* aligns             # by member, a leader: alignment of that address
    KernelRow* kernels
    int64_t* addresses          # by entity: the address of a tie, -1 for any other entity
    # -r: the address in a kernel without a tie, which is the value of its instance (the symbol that
    # stands for its extern arrays), is at least the array's alignment.
    bint is_relocatable
    # Each address has at least this alignment, and that of each kernel that shares it. 0: neither.
    uint64_t least_align


cdef inline void allocate_ties(ArrayTies* ties, SharedTables shared, Scratch* scratch) noexcept:
    """Set the uses and the counts of `ties`, and allocate its arrays by member (kernel or tie)."""
    cdef size_t member_count
    ties.uses = shared.extern_uses.rows
    ties.count = shared.extern_uses.count
    ties.kernel_count = <size_t>shared.kernel_count
    ties.tie_count = <size_t>shared.tie_count
    member_count = ties.kernel_count + ties.tie_count
    ties.leaders = <MemberRef*>scratch_room(scratch, member_count, 4)
    ties.largest_end = <int64_t*>scratch_room(scratch, member_count, 8)
    ties.aligns = <int64_t*>scratch_room(scratch, member_count, 8)


cdef inline void place_externs(ArrayTies* ties) noexcept nogil:
    """Set the address of extern arrays in each kernel and each tie.

    A tie is a function that uses an array or, with -g, the array. Kernels that reach the same tie
    get one address, the largest of their ends. Their sizes grow up to that address.
    """
    cdef const ExternUseRow* uses = ties.uses
    cdef KernelRow* kernels = ties.kernels
    cdef MemberRef* leaders = ties.leaders
    cdef int64_t* largest_end = ties.largest_end
    cdef int64_t* aligns = ties.aligns
    cdef size_t i
    cdef KernelRef k
    cdef MemberRef root
    cdef int64_t end
    for i in range(ties.kernel_count + ties.tie_count):
        leaders[i] = <MemberRef>i
        largest_end[i] = -1
        aligns[i] = max(EXTERN_ALIGN, <int64_t>ties.least_align)
    for i in range(ties.count):
        if uses[i].tie >= 0:
            root = find_leader(leaders, <MemberRef>uses[i].kernel)
            leaders[root] = find_leader(leaders, <MemberRef>(ties.kernel_count + uses[i].tie))
    for i in range(ties.count if ties.least_align else 0):
        root = find_leader(leaders, <MemberRef>uses[i].kernel)
        aligns[root] = max(aligns[root], <int64_t>kernels[uses[i].kernel].align)
    for i in range(ties.count):
        k = uses[i].kernel
        root = find_leader(leaders, <MemberRef>k)
        end = <int64_t>round_up(kernels[k].size, max(uses[i].align, <uint64_t>aligns[root]))
        if ties.is_relocatable and uses[i].tie < 0:
            end = max(end, <int64_t>uses[i].align)
        largest_end[root] = max(largest_end[root], end)
    for i in range(ties.count):
        k = uses[i].kernel
        end = largest_end[find_leader(leaders, <MemberRef>k)]
        kernels[k].extern_address = end
        kernels[k].flags |= uses[i].flags
        kernels[k].size = <uint64_t>end
        kernels[k].align = max(kernels[k].align, uses[i].align, <uint64_t>EXTERN_ALIGN)
    for i in range(ties.tie_count):
        ties.addresses[i] = largest_end[find_leader(leaders, <MemberRef>(ties.kernel_count + i))]
