# Call frames, `.debug_frame`: a list of CIEs, each with the FDEs that follow and point to it. FDEs
# of functions that are not in the output are omitted, and so are CIEs without FDE.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport load32, load64
from base.vector cimport Vec, vec_append, vec_reserve
from debug.rows cimport (
    LIVE, R_CUT_OFF, R_FORMAT, R_LENGTH, R_MEMORY, R_NO_CIE, FunctionRef, PieceRow, Rebuilt,
    keep_row, read_refs, set_rebuild_fault,
)
from dwarf cimport FDE_ADDRESS, FDE_MARKER, FDE_POINTER


cdef inline bint move_piece_frames(Rebuilt* section, const PieceRow* piece,
                                   uint64_t* places) noexcept nogil:
    """Append the records (CIEs and FDEs) of one piece that stay; False with a fault.

    `places`, by RelocRow, gets the offset of the relocated field in the new section. An FDE without
    relocation stays. The CIE of a function inside of another one (-ewp) has a relocation, too,
    against the other function.
    """
    cdef const uint8_t* data = section.arena + piece.offset
    cdef const FunctionRef* refs = <const FunctionRef*>section.refs.data
    cdef uint64_t start = 0, length         # of the record at hand, in the piece
    cdef uint64_t cie = 0, cie_size = 0     # of the last CIE, in the piece
    cdef uint64_t cie_base = 0              # of the last CIE that stays, in the new section
    cdef bint is_new_cie = False            # the last CIE is not in the new section yet
    # Numbers in `refs`: the first at or after the address of the last FDE, and the first after the
    # last CIE that stays.
    cdef size_t next_ref = 0, next_in_cie = 0
    while start < piece.size:
        if piece.size - start < FDE_ADDRESS:
            return set_rebuild_fault(&section.fault, start, R_CUT_OFF)
        if load32(data + start) != FDE_MARKER:
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
        while next_ref < section.refs.count and refs[next_ref].offset < start + FDE_ADDRESS:
            next_ref += 1
        if (next_ref == section.refs.count or refs[next_ref].offset != start + FDE_ADDRESS
                or refs[next_ref].outcome == LIVE):
            if is_new_cie:
                cie_base = section.out.count
                vec_append(&section.out, data + cie, cie_size)
                is_new_cie = False
                while (next_in_cie < section.refs.count
                       and refs[next_in_cie].offset < cie + cie_size):
                    if refs[next_in_cie].offset > cie and refs[next_in_cie].outcome == LIVE:
                        places[refs[next_in_cie].row] = cie_base + refs[next_in_cie].offset - cie
                    next_in_cie += 1
            if next_ref < section.refs.count and refs[next_ref].offset == start + FDE_ADDRESS:
                places[refs[next_ref].row] = section.out.count + FDE_ADDRESS
            vec_append(&section.out, data + start, length)
            memcpy(section.out.data + section.out.count - length + FDE_POINTER, &cie_base, 8)
        start += length
    return True


cdef inline bint move_all_frames(Rebuilt* section, Vec* places) noexcept nogil:
    """Rebuild the whole section; False with a fault.

    `places` is an empty Vec of uint64_t, memory for the new offset of each RelocRow's field.
    """
    cdef uint64_t reloc = 0, row
    cdef uint64_t* addresses                # the elements of `places`
    cdef size_t i
    if not vec_reserve(places, section.reloc_count):
        return set_rebuild_fault(&section.fault, 0, R_MEMORY)
    addresses = <uint64_t*>places.data
    # An offset of 0 stands for a relocation that is dropped: at 0 the length of a record begins.
    memset(addresses, 0, section.reloc_count * sizeof(uint64_t))
    for i in range(section.count):
        section.fault.piece = i
        if not read_refs(section, reloc, section.pieces[i].count, 0):
            return False
        if not move_piece_frames(section, &section.pieces[i], addresses):
            return False
        reloc += section.pieces[i].count
    row = section.reloc_count
    while row > 0:                          # the output's relocations are in reverse order
        row -= 1
        if addresses[row] != 0 and not keep_row(section, addresses[row], row):
            return False
    return True
