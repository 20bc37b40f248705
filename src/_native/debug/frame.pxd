# Call frames: a kept FDE brings the CIE before it along and points to it.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport load32, load64
from base.vector cimport Vec, vec_append, vec_reserve
from debug.rows cimport (
    FDE_ADDRESS, FDE_POINTER, LIVE, R_CUT_OFF, R_FORMAT, R_LENGTH, R_MEMORY, R_NO_CIE, Cut,
    PieceRow, Rebuilt, keep_row, read_cuts, set_rebuild_fault,
)


cdef inline bint move_piece_frames(Rebuilt* section, const PieceRow* piece,
                                   uint64_t* places) noexcept nogil:
    """Append the records of one piece; `places` receives each row's new offset.

    The CIE of a function inside of another has the address of that one (-ewp).
    """
    cdef const uint8_t* data = section.arena + piece.offset
    cdef const Cut* cuts = <const Cut*>section.cuts.data
    cdef uint64_t start = 0, length, cie = 0, cie_size = 0, cie_base = 0
    cdef bint is_new_cie = False
    cdef size_t at = 0, in_cie = 0
    while start < piece.size:
        if piece.size - start < FDE_ADDRESS:
            return set_rebuild_fault(&section.fault, start, R_CUT_OFF)
        if load32(data + start) != 0xffffffffU:
            return set_rebuild_fault(&section.fault, start, R_FORMAT)
        length = load64(data + start + 4)
        if length > piece.size - start - FDE_POINTER or length < 8:
            return set_rebuild_fault(&section.fault, start, R_LENGTH)
        length += FDE_POINTER
        if load64(data + start + FDE_POINTER) == <uint64_t>-1:
            cie = start
            cie_size = length
            is_new_cie = True
            start += length
            continue
        if cie_size == 0:
            return set_rebuild_fault(&section.fault, start, R_NO_CIE)
        if length < FDE_ADDRESS + 16:
            return set_rebuild_fault(&section.fault, start, R_LENGTH)
        while at < section.cuts.count and cuts[at].offset < start + FDE_ADDRESS:
            at += 1
        if (at == section.cuts.count or cuts[at].offset != start + FDE_ADDRESS
                or cuts[at].outcome == LIVE):
            if is_new_cie:
                cie_base = section.out.count
                vec_append(&section.out, data + cie, cie_size)
                is_new_cie = False
                while in_cie < section.cuts.count and cuts[in_cie].offset < cie + cie_size:
                    if cuts[in_cie].offset > cie and cuts[in_cie].outcome == LIVE:
                        places[cuts[in_cie].row] = cie_base + cuts[in_cie].offset - cie
                    in_cie += 1
            if at < section.cuts.count and cuts[at].offset == start + FDE_ADDRESS:
                places[cuts[at].row] = section.out.count + FDE_ADDRESS
            vec_append(&section.out, data + start, length)
            memcpy(section.out.data + section.out.count - length + FDE_POINTER, &cie_base, 8)
        start += length
    return True


cdef inline bint move_all_frames(Rebuilt* section, Vec* places) noexcept nogil:
    """Rebuild the whole section; False with a fault."""
    cdef uint64_t reloc = 0, row
    cdef uint64_t* place
    cdef size_t i
    if not vec_reserve(places, section.reloc_count):
        return set_rebuild_fault(&section.fault, 0, R_MEMORY)
    place = <uint64_t*>places.data
    memset(place, 0, section.reloc_count * sizeof(uint64_t))    # no address field is at offset 0
    for i in range(section.count):
        section.fault.piece = i
        if not read_cuts(section, reloc, section.pieces[i].count, 0):
            return False
        if not move_piece_frames(section, &section.pieces[i], place):
            return False
        reloc += section.pieces[i].count
    row = section.reloc_count
    while row > 0:                                      # each kept relocation is put in front
        row -= 1
        if place[row] != 0 and not keep_row(section, place[row], row):
            return False
    return True
