# The kernels that use a shared variable, as far as creation depends on them, in links that keep all
# code: when idle kernels get their sections (merge/idle.pxd), and with --preserve-relocs, whether
# extern arrays keep their symbols.
#
# nvlink takes symbols of shared memory out that have no place, the value -1; without -g an extern
# array has no place. If sections of shared memory exist for the system's bytes alone, it first adds
# these to all of .nv_debug.shared, if a variable has its place there: arrays then have -1 + 0x400,
# and stay. A variable has its place there if several kernels use it, or no kernel does
# (`shared.pyx`).

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_nones, scratch_room
from merge.state cimport Merge
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, LINK_DEBUG, LINK_KEEP_CODE,
    LINK_KEEP_RELOCS, LINK_RELOCATABLE,
)
from sectionkinds cimport IS_KERNEL_SHARED
from tables.graph cimport CallGraph, is_idle
from tables.kinds cimport is_a
from tables.rows cimport EntityRow
from traits cimport TRAIT_FILLS_SHARED


cdef enum:
    NO_KERNEL = -1
    SEVERAL = -2


cdef inline bint needs_users(const Merge* merge) noexcept nogil:
    cdef uint32_t mode = merge.objects.mode
    return mode & (LINK_KEEP_RELOCS | LINK_KEEP_CODE) and not mode & (LINK_RELOCATABLE | LINK_DEBUG)


cdef inline void allocate_users(Merge* merge, Scratch* scratch) noexcept nogil:
    """Allocate the columns of users: the entity of a kernel, NO_KERNEL or SEVERAL."""
    merge.work.users = scratch_nones(scratch, merge.merged.entity_count)
    merge.work.reaching_kernel = scratch_nones(scratch, merge.work.calls.nodes)
    merge.work.work_list = <uint32_t*>scratch_room(scratch, 2 * merge.work.calls.nodes, 4)


cdef inline bint has_common_variable(const Merge* merge) noexcept nogil:
    """Whether some variable has its place in .nv_debug.shared, when all users are known."""
    cdef size_t i
    if (merge.work.users == NULL or not merge.objects.traits & TRAIT_FILLS_SHARED
            or not merge.objects.mode & LINK_KEEP_RELOCS):
        return False
    for i in range(merge.merged.entity_count):
        if is_common(merge, i) and merge.columns.referenced[i] and merge.work.users[i] < 0:
            return True
    return False


cdef inline bint add_user(int32_t* users, int32_t kernel) noexcept nogil:
    """Add a user, or the users of a caller. Returns whether the set changed."""
    if kernel == NO_KERNEL or users[0] == kernel or users[0] == SEVERAL:
        return False
    users[0] = kernel if users[0] == NO_KERNEL else SEVERAL
    return True


cdef inline void find_reaching_kernels(Merge* merge) noexcept nogil:
    """Fill `reaching_kernel`: propagate kernels down the call graph.

    A node waits at most twice, since it changes so often.
    """
    cdef const CallGraph* graph = &merge.work.calls
    cdef uint32_t* work_list = merge.work.work_list
    cdef size_t i, depth
    cdef uint32_t node, edge
    for i in range(merge.merged.entity_count):
        if (not merge.merged.entities[i].flags & EF_KERNEL
                or not merge.merged.entities[i].flags & EF_LIVE):
            continue
        depth = 0
        if (add_user(&merge.work.reaching_kernel[i], <int32_t>i)
                and not is_idle(&merge.merged.entities[i])):
            work_list[0] = <uint32_t>i
            depth = 1
        while depth:
            depth -= 1
            node = work_list[depth]
            for edge in range(graph.start[node], graph.start[node + 1]):
                if add_user(&merge.work.reaching_kernel[graph.edges[edge]],
                            merge.work.reaching_kernel[node]):
                    work_list[depth] = graph.edges[edge]
                    depth += 1


cdef inline bint is_common(const Merge* merge, size_t entity) noexcept nogil:
    """A shared variable that is not a kernel's own."""
    cdef const EntityRow* e = &merge.merged.entities[entity]
    cdef int32_t section = merge.objects.symbols[e.winner].section
    return (e.kind == E_SHARED and e.flags & EF_DEFINED and not e.flags & EF_UNSIZED
            and (section < 0 or not is_a(merge.objects.sections[section].kind, IS_KERNEL_SHARED)))


cdef inline bint is_unrecorded(const Merge* merge, int32_t entity, int32_t function) noexcept nogil:
    """Whether what is resolved against the entity leaves no record, though that has a symbol.

    Code of kernels takes the address of an array from the kernel, and is done before the rest.
    """
    return (merge.arrays_stay and entity >= 0 and function >= 0
            and merge.merged.entities[entity].flags & EF_UNSIZED
            and merge.merged.entities[entity].kind == E_SHARED
            and merge.work.reaching_kernel[function] != NO_KERNEL)
