# Program headers of an executable.
#
#     up to sm_90         PT_PHDR, PT_LOAD of constants and code, PT_LOAD of writable data, PT_LOAD
#                         of the program headers
#     from sm_100 on      PT_PHDR, PT_LOAD of the program headers, PT_LOAD for each run of allocated
#                         sections with the same permissions

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport Phdr, round_up
from base.vector cimport Vec, vec_push
from elfnumbers cimport (
    PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_MERCURY, SHF_WRITE,
)
from layout.plan cimport Plan
from tables.kinds cimport is_nobits
from tables.rows cimport OutNumber, OutRow, PlaceRow


cdef inline bint is_in_segment(const OutRow* row) noexcept nogil:
    """Return whether a section is in a load (PT_LOAD) from sm_100 on."""
    return row.flags & SHF_ALLOC != 0 and row.flags & SHF_MERCURY == 0


cdef inline uint32_t permissions(const OutRow* row) noexcept nogil:
    """Return p_flags of the load that a section is in."""
    return (PF_R | (PF_W if row.flags & SHF_WRITE else 0)
            | (PF_X if row.flags & SHF_EXECINSTR else 0))


cdef inline bint add_header(Vec* headers, uint32_t type, uint32_t flags, uint64_t offset,
                            uint64_t filesz, uint64_t memsz) noexcept nogil:
    """Add one program header; False without memory."""
    cdef Phdr* header = <Phdr*>vec_push(headers)
    if header == NULL:
        return False
    memset(header, 0, sizeof(Phdr))
    header.p_type = type
    header.p_flags = flags
    header.p_offset = offset
    header.p_filesz = filesz
    header.p_memsz = memsz
    header.p_align = 8
    return True


cdef inline bint add_program_headers(const Plan* plan, uint64_t table_offset,
                                     Vec* headers) noexcept nogil:
    """Add all program headers, which are at `table_offset` of the file; False without memory."""
    cdef uint64_t size
    cdef size_t i
    cdef Phdr* header
    cdef bint done
    if plan.has_finalizer:
        done = (add_header(headers, PT_PHDR, PF_R, table_offset, 0, 0)
                and add_header(headers, PT_LOAD, PF_R, table_offset, 0, 0)
                and add_runs(plan, headers))
    else:
        done = (add_header(headers, PT_PHDR, PF_R | PF_X, table_offset, 0, 0)
                and add_load(plan, headers, False)
                and add_load(plan, headers, True)
                and add_header(headers, PT_LOAD, PF_R | PF_X, table_offset, 0, 0))
    # The size of the headers is known only now.
    size = headers.count * sizeof(Phdr)
    for i in range(headers.count):
        header = <Phdr*>headers.data + i
        if header.p_offset == table_offset:
            header.p_filesz = header.p_memsz = size
    return done


cdef inline bint add_load(const Plan* plan, Vec* headers, bint writable) noexcept nogil:
    """Add one of the two loads (PT_LOAD) of sections up to sm_90: `writable` data, or all else.

    A load without sections is omitted. False without memory.
    """
    cdef const OutRow* row = plan.placed.outs
    cdef const OutNumber* order = plan.placed.section_order
    cdef const PlaceRow* place = plan.place
    cdef size_t i
    cdef OutNumber first = -1           # the first section, or -1
    cdef uint64_t end = 0, memory = 0   # ends of the load in the file and in memory
    cdef const OutRow* section
    for i in range(plan.count):
        section = &row[order[i]]
        if not section.flags & SHF_ALLOC or (section.flags & SHF_WRITE != 0) != writable:
            continue
        if first < 0:
            first = order[i]
            memory = place[first].offset
        end = place[order[i]].offset + (0 if is_nobits(section) else place[order[i]].size)
        if not is_nobits(section):
            memory = end
    if first < 0:
        return True
    if writable:
        memory = end
        for i in range(plan.count):
            section = &row[order[i]]
            if section.flags & SHF_ALLOC and is_nobits(section):
                memory = round_up(memory, section.align) + place[order[i]].size
    return add_header(headers, PT_LOAD, PF_R | (PF_W if writable else PF_X),
                      place[first].offset, end - place[first].offset, memory - place[first].offset)


cdef inline bint add_runs(const Plan* plan, Vec* headers) noexcept nogil:
    """Add the loads from sm_100 on: one for each run of allocated sections of equal permissions.

    False without memory.
    """
    cdef const OutRow* row = plan.placed.outs
    cdef const OutNumber* order = plan.placed.section_order
    cdef const PlaceRow* place = plan.place
    cdef size_t i, j                    # first section of a run, and the one after its last
    cdef uint32_t flags
    cdef uint64_t start, end = 0, memory    # the load's start and end in the file, end in memory
    cdef const OutRow* section
    i = 0
    while i < plan.count:
        if not is_in_segment(&row[order[i]]):
            i += 1
            continue
        flags = permissions(&row[order[i]])
        start = place[order[i]].offset
        j = i
        while (j < plan.count and is_in_segment(&row[order[j]])
                and permissions(&row[order[j]]) == flags):
            section = &row[order[j]]
            end = place[order[j]].offset + (0 if is_nobits(section) else place[order[j]].size)
            j += 1
        memory = end
        while i < j:
            section = &row[order[i]]
            if is_nobits(section):
                memory = round_up(memory, section.align) + place[order[i]].size
            i += 1
        if not add_header(headers, PT_LOAD, flags, start, end - start, memory - start):
            return False
    return True
