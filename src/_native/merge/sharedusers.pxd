# The kernels that use each shared variable: none, one, or several. What the merge creates depends
# on them in two sorts of links: those that keep dead code, for the order in which idle kernels
# (neither selected nor launched by device code) get their sections (merge/idle.pxd); and those with
# --preserve-relocs, where extern arrays may keep their symbols.
#
#     K1 calls F, K2 calls F, F uses v, K2 uses w        users of v: SEVERAL; of w: K2
#
# `find_reaching_kernels` propagates kernels down the call graph, so that each function knows the
# kernels that reach it. `mark_referenced_entities` then adds these to the users of what the
# function's code names.
#
# Extern arrays keep their symbols (`arrays_stay`) by an accident. nvlink removes symbols of shared
# memory with the value -1, which extern arrays have without -g. But on sm_90, where the system's
# bytes alone create .nv.shared sections, it may first add 0x400 to every value in .nv_debug.shared.
# It does so if some variable has its place there, because several kernels use it or none does
# (`shared.pyx`). Arrays then have the value -1 + 0x400, and keep their symbols.

from libc.stdint cimport uint32_t

from base.scratch cimport Scratch, scratch_nones, scratch_room
from merge.state cimport Merge
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, LINK_DEBUG, LINK_KEEP_CODE,
    LINK_KEEP_RELOCS, LINK_NO_RESERVE, LINK_RELOCATABLE,
)
from sectionkinds cimport IS_KERNEL_SHARED
from tables.graph cimport CallGraph, NodeRef, is_idle
from tables.kinds cimport is_a
from tables.rows cimport EntityCounter, EntityNumber, EntityRow, SectionNumber
from traits cimport TRAIT_FILLS_SHARED


# A set of kernels is one number: the entity of its only kernel, or one of these.
cdef enum:
    NO_KERNEL = -1              # the empty set
    SEVERAL = -2                # any set of two or more kernels


cdef inline bint needs_users(const Merge* merge) noexcept nogil:
    """Return whether the options of the link make the users of shared variables matter."""
    cdef uint32_t mode = merge.objects.mode
    return mode & (LINK_KEEP_RELOCS | LINK_KEEP_CODE) and not mode & (LINK_RELOCATABLE | LINK_DEBUG)


cdef inline void allocate_users(Merge* merge, Scratch* scratch) noexcept nogil:
    """Allocate the sets of users and of reaching kernels, all empty, and the work list."""
    merge.work.users = scratch_nones(scratch, merge.merged.entity_count)
    merge.work.reaching_kernel = scratch_nones(scratch, merge.work.calls.nodes)
    merge.work.work_list = <NodeRef*>scratch_room(scratch, 2 * merge.work.calls.nodes, 4)


cdef inline bint has_common_variable(const Merge* merge) noexcept nogil:
    """Return whether a variable has its place in .nv_debug.shared, so extern arrays keep symbols.

    Always False except for sm_90 with --preserve-relocs, and without -r, -g or
    --disable-smem-reservation. The users of all variables must be known.
    """
    cdef size_t i
    if (merge.work.users == NULL or not merge.objects.traits & TRAIT_FILLS_SHARED
            or not merge.objects.mode & LINK_KEEP_RELOCS
            or merge.objects.mode & LINK_NO_RESERVE):
        return False
    for i in range(merge.merged.entity_count):
        if is_common(merge, i) and merge.columns.referenced[i] and merge.work.users[i] < 0:
            return True
    return False


cdef inline bint add_user(EntityNumber* users, EntityNumber kernel) noexcept nogil:
    """Add the set `kernel` to the set `users`. Returns whether `users` changed."""
    if kernel == NO_KERNEL or users[0] == kernel or users[0] == SEVERAL:
        return False
    users[0] = kernel if users[0] == NO_KERNEL else SEVERAL
    return True


cdef inline void find_reaching_kernels(Merge* merge) noexcept nogil:
    """Fill `reaching_kernel`: propagate live kernels down the call graph; idle ones reach no other.

    A node enters the work list at most twice, since its set changes at most twice.
    """
    cdef const CallGraph* graph = &merge.work.calls
    cdef NodeRef* work_list = merge.work.work_list
    cdef size_t i, depth
    cdef NodeRef node
    cdef uint32_t edge
    for i in range(merge.merged.entity_count):
        if (not merge.merged.entities[i].flags & EF_KERNEL
                or not merge.merged.entities[i].flags & EF_LIVE):
            continue
        depth = 0
        if (add_user(&merge.work.reaching_kernel[i], <EntityNumber>i)
                and not is_idle(&merge.merged.entities[i])):
            work_list[0] = <NodeRef>i
            depth = 1
        while depth:
            depth -= 1
            node = work_list[depth]
            for edge in range(graph.start[node], graph.start[node + 1]):
                if add_user(&merge.work.reaching_kernel[graph.edges[edge]],
                            merge.work.reaching_kernel[node]):
                    work_list[depth] = graph.edges[edge]
                    depth += 1


cdef inline bint is_common(const Merge* merge, EntityCounter entity) noexcept nogil:
    """Return whether an entity is a defined shared variable that does not belong to one kernel.

    Extern arrays do not count.
    """
    cdef const EntityRow* entity_row = &merge.merged.entities[entity]
    cdef SectionNumber section = merge.objects.symbols[entity_row.winner].section
    return (entity_row.kind == E_SHARED and entity_row.flags & EF_DEFINED
            and not entity_row.flags & EF_UNSIZED
            and (section < 0 or not is_a(merge.objects.sections[section].kind, IS_KERNEL_SHARED)))


cdef inline bint is_unrecorded(const Merge* merge, EntityNumber entity,
                               EntityNumber function) noexcept nogil:
    """Return whether --preserve-relocs does not record what `function` resolved against an entity.

    That is so for extern arrays which keep their symbols, in code that a kernel reaches: nvlink
    resolves these entries with the kernel's own address of the array, before it makes records.
    """
    return (merge.arrays_stay and entity >= 0 and function >= 0
            and merge.merged.entities[entity].flags & EF_UNSIZED
            and merge.merged.entities[entity].kind == E_SHARED
            and merge.work.reaching_kernel[function] != NO_KERNEL)
