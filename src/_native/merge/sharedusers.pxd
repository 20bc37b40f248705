# Which kernels use a shared variable, as far as creation depends on it, in links that keep all
# code: when idle kernels get their sections (merge/idle.pxd), and with --preserve-relocs, whether
# extern arrays keep their symbols.
#
# nvlink takes symbols of shared memory out that have no place, the value -1; without -g an extern
# array has none. Where sections of shared memory are there for the system's bytes alone, it first
# adds these to all of .nv_debug.shared, if a variable has its place there: arrays then have
# -1 + 0x400, and stay. A variable has its place there that several kernels use, or none
# (`shared.pyx`).

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_nones, scratch_room
from sectionkinds cimport IS_KERNEL_SHARED
from tables.graph cimport CallGraph, is_idle
from tables.kinds cimport is_a
from merge.state cimport Merge
from tables.rows cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, EF_UNSIZED, E_SHARED, M_DEBUG, M_KEEP_CODE, M_KEEP_RELOCS,
    M_RELOCATABLE, EntityRow,
)
from traits cimport TRAIT_FILLS_SHARED


cdef enum:
    NO_KERNEL = -1
    SEVERAL = -2


cdef inline bint asks_for_users(const Merge* m) noexcept nogil:
    cdef uint32_t mode = m.objects.mode
    return mode & (M_KEEP_RELOCS | M_KEEP_CODE) and not mode & (M_RELOCATABLE | M_DEBUG)


cdef inline void take_users(Merge* m, Scratch* scratch) noexcept nogil:
    """Room for users: the entity of a kernel, NO_KERNEL or SEVERAL."""
    m.work.users = scratch_nones(scratch, m.merged.entity_count)
    m.work.reached = scratch_nones(scratch, m.work.calls.nodes)
    m.work.waiting = <uint32_t*>scratch_room(scratch, 2 * m.work.calls.nodes, 4)


cdef inline bint keeps_arrays(const Merge* m) noexcept nogil:
    """Whether some variable has its place in .nv_debug.shared, when all users are known."""
    cdef size_t i
    if (m.work.users == NULL or not m.objects.traits & TRAIT_FILLS_SHARED
            or not m.objects.mode & M_KEEP_RELOCS):
        return False
    for i in range(m.merged.entity_count):
        if is_common(m, i) and m.columns.referenced[i] and m.work.users[i] < 0:
            return True
    return False


cdef inline bint joins(int32_t* users, int32_t kernel) noexcept nogil:
    """Add one more user, or those of a caller; whether that was news."""
    if kernel == NO_KERNEL or users[0] == kernel or users[0] == SEVERAL:
        return False
    users[0] = kernel if users[0] == NO_KERNEL else SEVERAL
    return True


cdef inline void start_users(Merge* m) noexcept nogil:
    """Fill `reached`: carry kernels down the call graph.

    A node waits at most twice, since it changes so often.
    """
    cdef const CallGraph* graph = &m.work.calls
    cdef uint32_t* waiting = m.work.waiting
    cdef size_t i, depth
    cdef uint32_t at, edge
    for i in range(m.merged.entity_count):
        if not m.merged.entities[i].flags & EF_KERNEL or not m.merged.entities[i].flags & EF_LIVE:
            continue
        depth = 0
        if joins(&m.work.reached[i], <int32_t>i) and not is_idle(&m.merged.entities[i]):
            waiting[0] = <uint32_t>i
            depth = 1
        while depth:
            depth -= 1
            at = waiting[depth]
            for edge in range(graph.start[at], graph.start[at + 1]):
                if joins(&m.work.reached[graph.edges[edge]], m.work.reached[at]):
                    waiting[depth] = graph.edges[edge]
                    depth += 1


cdef inline bint is_common(const Merge* m, size_t entity) noexcept nogil:
    """A shared variable that is not a kernel's own."""
    cdef const EntityRow* e = &m.merged.entities[entity]
    cdef int32_t section = m.objects.symbols[e.winner].section
    return (e.kind == E_SHARED and e.flags & EF_DEFINED and not e.flags & EF_UNSIZED
            and (section < 0 or not is_a(m.objects.sections[section].kind, IS_KERNEL_SHARED)))


cdef inline bint is_unrecorded(const Merge* m, int32_t entity, int32_t function) noexcept nogil:
    """Whether what is resolved against the entity leaves no record, though that has a symbol.

    Code of kernels takes the address of an array from the kernel, and is done before the rest.
    """
    return (m.arrays_stay and entity >= 0 and function >= 0
            and m.merged.entities[entity].flags & EF_UNSIZED
            and m.merged.entities[entity].kind == E_SHARED
            and m.work.reached[function] != NO_KERNEL)
