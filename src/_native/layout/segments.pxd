# Program headers of an executable.

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, Phdr, round_up
from base.vector cimport Vec, vec_push
from elfnumbers cimport SHF_ALLOC, SHF_EXECINSTR, SHF_MERCURY, SHF_WRITE
from layout.plan cimport Plan
from tables.kinds cimport is_nobits
from tables.rows cimport OutRow, PlaceRow


cdef inline bint is_in_segment(const OutRow* row) noexcept nogil:
    return row.flags & SHF_ALLOC != 0 and row.flags & SHF_MERCURY == 0


cdef inline uint32_t permissions(const OutRow* row) noexcept nogil:
    return (PF_R | (PF_W if row.flags & SHF_WRITE else 0)
            | (PF_X if row.flags & SHF_EXECINSTR else 0))


cdef inline bint add_header(Vec* headers, uint32_t type, uint32_t flags, uint64_t offset,
                            uint64_t filesz, uint64_t memsz) noexcept nogil:
    """Add one program header; False without memory."""
    cdef Phdr* h = <Phdr*>vec_push(headers)
    if h == NULL:
        return False
    memset(h, 0, sizeof(Phdr))
    h.p_type = type
    h.p_flags = flags
    h.p_offset = offset
    h.p_filesz = filesz
    h.p_memsz = memsz
    h.p_align = 8
    return True


cdef inline bint add_program_headers(const Plan* plan, uint64_t table_offset,
                                     Vec* headers) noexcept nogil:
    """PT_PHDR and the loads, where the headers are at `table_offset` of the file."""
    cdef uint64_t size
    cdef size_t i
    cdef Phdr* h
    cdef bint ok
    if plan.has_finalizer:
        ok = (add_header(headers, PT_PHDR, PF_R, table_offset, 0, 0)
              and add_header(headers, PT_LOAD, PF_R, table_offset, 0, 0)
              and add_runs(plan, headers))
    else:
        ok = (add_header(headers, PT_PHDR, PF_R | PF_X, table_offset, 0, 0)
              and add_load(plan, headers, False)
              and add_load(plan, headers, True)
              and add_header(headers, PT_LOAD, PF_R | PF_X, table_offset, 0, 0))
    size = headers.count * sizeof(Phdr)
    for i in range(headers.count):
        h = <Phdr*>headers.data + i
        if h.p_offset == table_offset:
            h.p_filesz = h.p_memsz = size
    return ok


cdef inline bint add_load(const Plan* plan, Vec* headers, bint writable) noexcept nogil:
    """Families A and B: one load for constants and code, one for writable data."""
    cdef const OutRow* row = plan.placed.outs
    cdef const int32_t* order = plan.placed.section_order
    cdef const PlaceRow* place = plan.place
    cdef size_t i
    cdef int32_t first = -1
    cdef uint64_t end = 0, memory = 0
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
    """Family C: one load for each run of allocated sections with equal permissions."""
    cdef const OutRow* row = plan.placed.outs
    cdef const int32_t* order = plan.placed.section_order
    cdef const PlaceRow* place = plan.place
    cdef size_t i, j
    cdef uint32_t flags
    cdef uint64_t start, end = 0, memory
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
