# Call frames: a kept FDE brings the CIE before it along and points to it.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from debugrows cimport *
from vec cimport *


cdef inline bint move_frames(const uint8_t* data, uint64_t size, const Cut* cuts, size_t count,
                             uint8_t* out, uint64_t* used, uint64_t* places,
                             Fault* fault) noexcept nogil:
    """Append the records of one piece; `places` receives each row's new offset."""
    cdef uint64_t start = 0, length, cie = 0, cie_size = 0, cie_base = 0
    cdef bint fresh = False
    cdef size_t at = 0
    while start < size:
        if size - start < FDE_ADDRESS:
            return fail(fault, start, R_CUT_OFF)
        if load32(data + start) != 0xffffffffU:
            return fail(fault, start, R_FORMAT)
        length = load64(data + start + 4)
        if length > size - start - FDE_POINTER or length < 8:
            return fail(fault, start, R_LENGTH)
        length += FDE_POINTER
        if load64(data + start + FDE_POINTER) == <uint64_t>-1:
            cie = start
            cie_size = length
            fresh = True
            start += length
            continue
        if cie_size == 0:
            return fail(fault, start, R_NO_CIE)
        if length < FDE_ADDRESS + 16:
            return fail(fault, start, R_LENGTH)
        while at < count and cuts[at].offset < start + FDE_ADDRESS:
            at += 1
        if (at == count or cuts[at].offset != start + FDE_ADDRESS
                or cuts[at].outcome == LIVE):
            if fresh:
                memcpy(out + used[0], data + cie, cie_size)
                cie_base = used[0]
                used[0] += cie_size
                fresh = False
            memcpy(out + used[0], data + start, length)
            memcpy(out + used[0] + FDE_POINTER, &cie_base, 8)
            if at < count and cuts[at].offset == start + FDE_ADDRESS:
                places[cuts[at].row] = used[0] + FDE_ADDRESS
            used[0] += length
        start += length
    return True


cdef inline bint move_all_frames(const uint8_t* arena, const PieceRow* pieces, size_t count,
                                 const RelocRow* relocs, size_t reloc_count, uint8_t* out,
                                 uint64_t* used, PlacedRow* placed, Vec* moved, Vec* places,
                                 Vec* cuts, Fault* fault) noexcept nogil:
    cdef uint64_t reloc = 0, row
    cdef uint64_t* place
    cdef MovedRow* kept
    cdef size_t i
    if not vec_reserve(places, reloc_count):
        return fail(fault, 0, R_MEMORY)
    place = <uint64_t*>places.data
    memset(place, 0, reloc_count * sizeof(uint64_t))    # no address field is at offset 0
    for i in range(count):
        fault.piece = i
        placed[i].base = used[0]
        if not read_cuts(relocs, reloc, pieces[i].count, 0, cuts, fault):
            return False
        if not move_frames(arena + pieces[i].offset, pieces[i].size, <const Cut*>cuts.data,
                           cuts.count, out, used, place, fault):
            return False
        placed[i].size = used[0] - placed[i].base
        reloc += pieces[i].count
    row = reloc_count
    while row > 0:                                      # each kept relocation is put in front
        row -= 1
        if place[row] == 0:
            continue
        kept = <MovedRow*>vec_push(moved)
        if kept == NULL:
            return fail(fault, 0, R_MEMORY)
        kept.r_offset = place[row]
        kept.row = row
    return True
