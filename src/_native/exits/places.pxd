# Offsets into a kernel's code that other sections hold: attribute lists, jump tables, registers of
# the debugger and call frame programs. All keep their size.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr

from attributetypes cimport ATTRIBUTE, EIATTR_ANNOTATIONS, EIATTR_INDIRECT_BRANCH_TARGETS
from base.elf64 cimport load16, load32, load64
from exits.file cimport File
from exits.rows cimport (
    R_FRAME, R_FRAME_OP, R_INFO, R_MEMORY, R_REGISTERS, R_TABLE, Code, Fault, Place, View, editable,
    fail, moved, put32, put64, read_uleb,
)
from base.nameindex cimport NameIndex, NameSlot, index_find
from relocationtypes cimport R_MERCURY_CODE_OFFSET32


cdef enum:
    EIFMT_SVAL = 4
    ANNOTATED_INSTRUCTION = 1   # {1, place}
    ANNOTATED_WITH_TEXT = 2     # {2, place, length, text}
    ANNOTATED_FUNCTION = 3      # {3, length, text}

    FRAME_ADDRESS = 20      # 64-bit DWARF: marker, length, CIE pointer, then initial_location
    FRAME_LENGTH = 8        # bytes of initial_location and of address_range

cdef enum FrameOp:
    CFA_NOP = 0x00
    CFA_ADVANCE_LOC4 = 0x04
    CFA_OFFSET_EXTENDED = 0x05
    CFA_RESTORE_EXTENDED = 0x06
    CFA_UNDEFINED = 0x07
    CFA_SAME_VALUE = 0x08
    CFA_REGISTER = 0x09
    CFA_REMEMBER_STATE = 0x0a
    CFA_RESTORE_STATE = 0x0b
    CFA_DEF_CFA = 0x0c
    CFA_DEF_CFA_REGISTER = 0x0d
    CFA_DEF_CFA_OFFSET = 0x0e
    CFA_EXPRESSION = 0x10


cdef inline void move_word(uint8_t* at, const Code* code, const Place* places,
                           bint own) noexcept nogil:
    put32(at, <uint32_t>moved(code, places, load32(at), own))


cdef inline void move_annotations(uint8_t* data, uint64_t at, uint64_t end, const Code* code,
                                  const Place* places) noexcept nogil:
    """ANNOTATIONS: of an instruction, with text or without, and of a function; 4 bytes each.

    How long others are is not known.
    """
    cdef uint32_t what
    cdef uint64_t text
    while end - at >= 8:
        what = load32(data + at)
        if what == ANNOTATED_INSTRUCTION or what == ANNOTATED_WITH_TEXT:
            move_word(data + at + 4, code, places, True)
        at += 4 + 4 * <uint64_t>(what != ANNOTATED_FUNCTION)
        if what == ANNOTATED_INSTRUCTION:
            continue
        if (what != ANNOTATED_WITH_TEXT and what != ANNOTATED_FUNCTION) or end - at < 4:
            return
        text = 4 + (<uint64_t>load32(data + at) + 3) // 4 * 4
        if text > end - at:
            return
        at += text


cdef inline bint move_targets(uint8_t* data, uint64_t at, uint64_t end, const Code* code,
                              const Place* places) noexcept nogil:
    """INDIRECT_BRANCH_TARGETS: offset of the branch, one word, count, offsets of the targets."""
    cdef uint64_t count, i
    while at < end:
        if end - at < 12:
            return False
        move_word(data + at, code, places, True)
        count = load32(data + at + 8)
        at += 12
        if count > (end - at) // 4:
            return False
        for i in range(count):
            move_word(data + at + 4 * i, code, places, False)
        at += 4 * count
    return True


cdef inline uint64_t counted_back(const Code* code, const Place* places, uint64_t offset,
                                  bint early) noexcept nogil:
    """Where a range of a register that began at `offset` begins, or an instruction is listed.

    nvlink counts from the end of a slot. In one that has lost its last instruction, as that of a
    WARPSYNC from before 13.0, each place comes to lie an instruction earlier.
    """
    cdef uint64_t at = moved(code, places, offset, False)
    cdef const Place* place
    if early and offset % 16 == 0 and offset // 16 + 2 < code.count:
        place = places + code.first + offset // 16
        if at >= 16 and (place[0].own == place[1].own or place[1].own == place[2].own):
            return at - 16
    return at


cdef inline uint32_t begins(const Code* code, const Place* places, uint64_t offset) noexcept nogil:
    """Where a range of a register that began at `offset` begins in code that is up to date."""
    if offset % 16 or offset // 16 + 1 >= code.count:
        return <uint32_t>moved(code, places, offset, True)
    return <uint32_t>places[code.first + offset // 16].begin


cdef inline bint move_info(View* view, size_t section, const Code* code, const Place* places,
                           bint early, Fault* fault) noexcept nogil:
    cdef uint8_t* data = editable(view)
    cdef uint64_t at = 0, end, item
    cdef uint32_t size
    if data == NULL:
        return fail(fault, section, 0, R_MEMORY)
    while at < view.size:
        if view.size - at < 4:
            return fail(fault, section, at, R_INFO)
        end = at + 4
        if data[at] == EIFMT_SVAL:
            end += load16(data + at + 2)
            if end > view.size:
                return fail(fault, section, at, R_INFO)
            size = ATTRIBUTE[data[at + 1]].entry
            if data[at + 1] == EIATTR_INDIRECT_BRANCH_TARGETS:
                if not move_targets(data, at + 4, end, code, places):
                    return fail(fault, section, at, R_INFO)
            elif data[at + 1] == EIATTR_ANNOTATIONS:
                move_annotations(data, at + 4, end, code, places)
            elif size:
                if (end - at - 4) % size:
                    return fail(fault, section, at, R_INFO)
                item = at + 4
                while item < end:
                    if early:
                        put32(data + item, <uint32_t>counted_back(code, places,
                                                                  load32(data + item), early))
                    else:
                        move_word(data + item, code, places, True)
                    item += size
        at = end
    return True


cdef inline bint move_table(View* view, size_t section, const View* relocs, const Code* code,
                            const Place* places, Fault* fault) noexcept nogil:
    """A jump table: the words that the mercury side relocates against the kernel's code."""
    cdef uint8_t* data = editable(view)
    cdef uint64_t at, offset
    if data == NULL:
        return fail(fault, section, 0, R_MEMORY)
    for at in range(0, relocs.size // 24 * 24, 24):
        if load32(relocs.data + at + 8) == R_MERCURY_CODE_OFFSET32:
            offset = load64(relocs.data + at)
            if offset > view.size or view.size - offset < 4:
                return fail(fault, section, offset, R_TABLE)
            move_word(data + offset, code, places, False)
    return True


cdef inline bint move_registers(File* file, size_t section, NameIndex* names,
                                Fault* fault) noexcept nogil:
    """.nv_debug_info_reg_sass: {name NUL, u32 n, n of {u32, register NUL, u32, start, end}}.

    Ranges end and, except for those of early code, begin at labels; in code that is brought up to
    date they stay with the instructions themselves.
    """
    cdef View* view = &file.views[section]
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const Place* places = <const Place*>file.places.data
    cdef uint8_t* data = editable(view)
    cdef const uint8_t* nul
    cdef const Code* code
    cdef NameSlot* slot
    cdef uint64_t at = 0, start, count
    if data == NULL:
        return fail(fault, section, 0, R_MEMORY)
    while at < view.size:
        start = at
        nul = <const uint8_t*>memchr(data + at, 0, view.size - at)
        if nul == NULL or view.size - (nul - data) < 5:
            return fail(fault, section, start, R_REGISTERS)
        slot = index_find(names, data + start, <uint32_t>(nul - data - start))
        if slot == NULL:
            return fail(fault, section, start, R_MEMORY)
        code = codes + slot.value if slot.value >= 0 else NULL
        at = nul - data + 1
        count = load32(data + at)
        at += 4
        while count:
            count -= 1
            if view.size - at < 5:
                return fail(fault, section, start, R_REGISTERS)
            nul = <const uint8_t*>memchr(data + at + 4, 0, view.size - at - 4)
            if nul == NULL or view.size - (nul - data) < 13:
                return fail(fault, section, start, R_REGISTERS)
            at = nul - data + 13
            if code != NULL:
                if file.update:
                    put32(data + at - 8, begins(code, places, load32(data + at - 8)))
                else:
                    put32(data + at - 8, <uint32_t>counted_back(code, places,
                                                                load32(data + at - 8),
                                                                file.early))
                move_word(data + at - 4, code, places, file.update)
    return True


cdef inline bint move_frame(View* view, size_t section, uint64_t address, const Code* code,
                            const Place* places, Fault* fault) noexcept nogil:
    """The FDE whose initial_location is at `address`."""
    cdef uint8_t* data = view.fresh
    cdef uint64_t start = address - FRAME_ADDRESS, end, at, place = 0, before = 0, next_, value
    cdef uint8_t op
    if (address < FRAME_ADDRESS or address > view.size or view.size - address < 2 * FRAME_LENGTH
            or load32(data + start) != 0xffffffffU
            or load64(data + start + 4) > view.size - start - 12
            or load64(data + start + 4) < 8 + 2 * FRAME_LENGTH):
        return fail(fault, section, address, R_FRAME)
    end = start + 12 + load64(data + start + 4)
    at = address + FRAME_LENGTH
    put64(data + at, moved(code, places, load64(data + at), False))
    at += FRAME_LENGTH
    while at < end:
        op = data[at]
        at += 1
        if op == CFA_ADVANCE_LOC4:
            if end - at < 4:
                return fail(fault, section, at, R_FRAME)
            place += 4 * <uint64_t>load32(data + at)
            next_ = moved(code, places, place, False)
            put32(data + at, <uint32_t>((next_ - before) // 4))
            before = next_
            at += 4
        elif op == CFA_NOP or op == CFA_REMEMBER_STATE or op == CFA_RESTORE_STATE:
            pass
        elif op == CFA_DEF_CFA or op == CFA_OFFSET_EXTENDED or op == CFA_REGISTER:
            if not read_uleb(data, end, &at, &value) or not read_uleb(data, end, &at, &value):
                return fail(fault, section, at, R_FRAME)
        elif (CFA_RESTORE_EXTENDED <= op <= CFA_SAME_VALUE
                or op == CFA_DEF_CFA_REGISTER or op == CFA_DEF_CFA_OFFSET):
            if not read_uleb(data, end, &at, &value):
                return fail(fault, section, at, R_FRAME)
        elif op == CFA_EXPRESSION:
            if (not read_uleb(data, end, &at, &value) or not read_uleb(data, end, &at, &value)
                    or value > end - at):
                return fail(fault, section, at, R_FRAME)
            at += value
        else:
            return fail(fault, section, at - 1, R_FRAME_OP)
    return True
