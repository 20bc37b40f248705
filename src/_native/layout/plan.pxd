# The place of every section in the output file: the tables that `place` of layout.pyx works with.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted.
# `join_all` and the functions below it also return False if the one pool becomes too large.

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from base.elf64 cimport Ehdr, round_up
from base.texts cimport is_named
from mercury.ties cimport can_fold
from rownumbers cimport FILE_WHOLE_PROGRAM, FROM_TWIN
from sectionkinds cimport IS_DEBUG, IS_VARIABLES, K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport OF_OWN_BYTES, OutRow, PlaceRow, SectionRow
from tables.views cimport ObjectsView, PlacedView


ctypedef struct Plan:
    ObjectsView objects
    PlacedView placed
    size_t count                # sections of the file
    PlaceRow* place             # by OutRow
    bint has_finalizer          # a second program makes the final file
    bint lean
    uint32_t gap                # bytes that the second program leaves after .shstrtab
    uint32_t reserve            # bytes that it leaves after .strtab


cdef inline bint has_twin_bytes(const Plan* plan, const OutRow* row, bint same_size) noexcept nogil:
    """Mercury sections that repeat their plain twin's bytes point at them instead.

    Variables do but in whole programs, others without relocations where the inputs' do: lines that
    are headers alone, types of registers of device functions. In lean files .debug_info shares,
    too, as in the objects of these releases, and in whole programs. What was written anew with
    another size has its own place.
    """
    cdef const SectionRow* source
    if is_a(row.kind, IS_VARIABLES):
        return row.marks & OF_OWN_BYTES == 0
    if not is_a(row.kind, IS_DEBUG) or row.source < 0:
        return False
    source = &plan.objects.sections[row.source]
    if not can_fold(plan.objects.arena, source):
        return True
    if plan.lean and is_named(plan.objects.arena + source.name, source.name_size,
                             b".nv.merc.debug_info"):
        return True
    return (row.marks & OF_OWN_BYTES == 0 and same_size
            and (plan.placed.outs[row.twin].rela < 0
                 or plan.objects.files[source.file].flags & FILE_WHOLE_PROGRAM))


cdef inline uint64_t assign_offsets(Plan* plan) noexcept nogil:
    """Set the offsets, in file order. Returns the offset of the table of sections after them.

    nvlink does not align that table after Mercury sections. Only from 13.5 on can the end of one
    not be a multiple of 8.
    """
    cdef uint64_t offset = sizeof(Ehdr)
    cdef const OutRow* row
    cdef PlaceRow* place
    cdef size_t i
    for i in range(plan.count):
        row = &plan.placed.outs[plan.placed.section_order[i]]
        place = &plan.place[plan.placed.section_order[i]]
        if row.twin >= 0 and has_twin_bytes(plan, row, plan.place[row.twin].size == place.size):
            place.offset = plan.place[row.twin].offset
            place.size = plan.place[row.twin].size
            place.contents = FROM_TWIN
            continue
        offset = place.offset = round_up(offset, row.align)
        # One has no room where a release does not copy what the mercury file has in its place.
        if not (is_nobits(row) or (plan.lean and row.kind == K_MERC_SYSTEM_SHARED)):
            offset += place.size
        if row.kind == K_SHSTRTAB:
            offset += plan.gap
        elif row.kind == K_STRTAB:
            offset += plan.reserve
    return offset if plan.lean else round_up(offset, 8)
