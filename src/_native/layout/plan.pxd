# The offset of every section in the output file: the tables that `place` of layout.pyx works with.
# From 13.5 on, files for sm_100 and later are lean: without the names that only the mercury file
# needs (`has_lean_names` in layout/order.pxd).

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from base.elf64 cimport Ehdr, round_up
from base.prefetch cimport AHEAD, prefetch
from base.texts cimport is_named
from mercury.ties cimport can_fold
from rownumbers cimport FILE_WHOLE_PROGRAM, FROM_TWIN
from sectionkinds cimport IS_DEBUG, IS_VARIABLES, K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport OF_OWN_BYTES, OutNumber, OutRow, PlaceRow, SectionRow
from tables.views cimport ObjectsView, PlacedView


# The places of sections, and what they depend on.
ctypedef struct Plan:
    ObjectsView objects
    PlacedView placed
    size_t count                # number of sections of the output
    PlaceRow* place             # by OutRow: its offset and size in the file
    bint has_finalizer          # a second program makes the final file (docs/order.md)
    bint is_lean                # the output omits names that only the mercury file needs
    uint32_t shstrtab_gap       # bytes that the second program leaves free after .shstrtab
    uint32_t strtab_gap         # bytes that it leaves free after .strtab


cdef inline bint has_twin_bytes(const Plan* plan, const OutRow* row, bint same_size) noexcept nogil:
    """Return whether a mercury section has the bytes, and so the place, of its plain form.

    Sections of variables share their bytes, unless the two forms differ in an input (OF_OWN_BYTES:
    whole programs). Some debug sections always share them (`has_plain_bytes` in mercury/ties.pxd),
    in lean files .debug_info, too. Other debug sections do if three conditions hold: the two forms
    are equal in every input, they have the same size in the output (`same_size`), and the plain one
    has no RELA section or comes from a whole program. An example is .debug_line without sequences.
    """
    cdef const SectionRow* source
    if is_a(row.kind, IS_VARIABLES):
        return row.marks & OF_OWN_BYTES == 0
    if not is_a(row.kind, IS_DEBUG) or row.source < 0:
        return False
    source = &plan.objects.sections[row.source]
    if not can_fold(plan.objects.arena, source):
        return True
    if plan.is_lean and is_named(plan.objects.arena + source.name, source.name_size,
                                 b".nv.merc.debug_info"):
        return True
    return (row.marks & OF_OWN_BYTES == 0 and same_size
            and (plan.placed.outs[row.twin].rela < 0
                 or plan.objects.files[source.file].flags & FILE_WHOLE_PROGRAM))


cdef inline uint64_t assign_offsets(Plan* plan) noexcept nogil:
    """Set the offsets of sections, in file order. Returns the offset of the section header table.

    The table follows the sections, at a multiple of 8. In lean files (from 13.5 on) nvlink does not
    align it, and the Mercury section before it need not end at a multiple of 8.
    """
    cdef uint64_t offset = sizeof(Ehdr)
    cdef const OutRow* row
    cdef PlaceRow* place
    cdef OutNumber ahead
    cdef size_t i
    for i in range(plan.count):
        if i + AHEAD < plan.count:
            ahead = plan.placed.section_order[i + AHEAD]
            prefetch(&plan.placed.outs[ahead])
            prefetch(&plan.placed.outs[ahead].marks)
            prefetch(&plan.place[ahead])
        row = &plan.placed.outs[plan.placed.section_order[i]]
        place = &plan.place[plan.placed.section_order[i]]
        if row.twin >= 0 and has_twin_bytes(plan, row, plan.place[row.twin].size == place.size):
            place.offset = plan.place[row.twin].offset
            place.size = plan.place[row.twin].size
            place.contents = FROM_TWIN
            continue
        offset = place.offset = round_up(offset, row.align)
        # In a lean file, .nv.merc.nv.shared.reserved.0 has a size but no bytes. In others its bytes
        # are a copy of a part of the mercury file (image/headers.pxd).
        if not (is_nobits(row) or (plan.is_lean and row.kind == K_MERC_SYSTEM_SHARED)):
            offset += place.size
        if row.kind == K_SHSTRTAB:
            offset += plan.shstrtab_gap
        elif row.kind == K_STRTAB:
            offset += plan.strtab_gap
    return offset if plan.is_lean else round_up(offset, 8)
