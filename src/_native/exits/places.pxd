# Offsets into a kernel's code that other sections hold: attribute lists, jump tables, registers of
# the debugger and call frame programs. All keep their size.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr

from attributetypes cimport ATTRIBUTE, EIATTR_ANNOTATIONS, EIATTR_INDIRECT_BRANCH_TARGETS
from base.elf64 cimport load16, load32, load64
from base.nameindex cimport NameIndex, NameSlot, index_find
from exits.file cimport RewrittenFile
from exits.rows cimport (
    R_FRAME, R_FRAME_OP, R_INFO, R_MEMORY, R_REGISTERS, R_TABLE, Code, InstructionMap, RewriteFault,
    View, make_writable, map_offset, put32, put64, read_uleb, set_fault,
)
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


cdef inline void move_word(uint8_t* word, const Code* code, const InstructionMap* places,
                           bint is_own) noexcept nogil:
    """Correct one 32-bit offset into the code."""
    put32(word, <uint32_t>map_offset(code, places, load32(word), is_own))


cdef inline void move_annotations(uint8_t* data, uint64_t offset, uint64_t end, const Code* code,
                                  const InstructionMap* places) noexcept nogil:
    """ANNOTATIONS: of an instruction, with text or without, and of a function; 4 bytes each.

    How long others are is not known.
    """
    cdef uint32_t annotation_kind
    cdef uint64_t text
    while end - offset >= 8:
        annotation_kind = load32(data + offset)
        if annotation_kind == ANNOTATED_INSTRUCTION or annotation_kind == ANNOTATED_WITH_TEXT:
            move_word(data + offset + 4, code, places, True)
        offset += 4 + 4 * <uint64_t>(annotation_kind != ANNOTATED_FUNCTION)
        if annotation_kind == ANNOTATED_INSTRUCTION:
            continue
        if ((annotation_kind != ANNOTATED_WITH_TEXT and annotation_kind != ANNOTATED_FUNCTION)
                or end - offset < 4):
            return
        text = 4 + (<uint64_t>load32(data + offset) + 3) // 4 * 4
        if text > end - offset:
            return
        offset += text


cdef inline bint move_targets(uint8_t* data, uint64_t offset, uint64_t end, const Code* code,
                              const InstructionMap* places) noexcept nogil:
    """INDIRECT_BRANCH_TARGETS: offset of the branch, one word, count, offsets of the targets."""
    cdef uint64_t count, i
    while offset < end:
        if end - offset < 12:
            return False
        move_word(data + offset, code, places, True)
        count = load32(data + offset + 8)
        offset += 12
        if count > (end - offset) // 4:
            return False
        for i in range(count):
            move_word(data + offset + 4 * i, code, places, False)
        offset += 4 * count
    return True


cdef inline uint64_t map_listed_offset(const Code* code, const InstructionMap* places,
                                       uint64_t offset, bint early) noexcept nogil:
    """Return the new offset of a register range or listed instruction from `offset`.

    nvlink counts from the end of a slot. In one that has lost its last instruction, as that of a
    WARPSYNC from before 13.0, each place comes to lie an instruction earlier.
    """
    cdef uint64_t mapped = map_offset(code, places, offset, False)
    cdef const InstructionMap* place
    if early and offset % 16 == 0 and offset // 16 + 2 < code.count:
        place = places + code.first + offset // 16
        if (mapped >= 16
                and (place[0].instruction == place[1].instruction
                     or place[1].instruction == place[2].instruction)):
            return mapped - 16
    return mapped


cdef inline uint32_t map_range_start(const Code* code, const InstructionMap* places,
                                     uint64_t offset) noexcept nogil:
    """Return the new start of a register range from `offset` in code brought up to date."""
    if offset % 16 or offset // 16 + 1 >= code.count:
        return <uint32_t>map_offset(code, places, offset, True)
    return <uint32_t>places[code.first + offset // 16].range_start


cdef inline bint move_info(View* view, size_t section, const Code* code,
                           const InstructionMap* places, bint early,
                           RewriteFault* fault) noexcept nogil:
    """Correct the offsets in an attribute list; False with a fault."""
    cdef uint8_t* data = make_writable(view)
    cdef uint64_t offset = 0, end, item
    cdef uint32_t size
    if data == NULL:
        return set_fault(fault, section, 0, R_MEMORY)
    while offset < view.size:
        if view.size - offset < 4:
            return set_fault(fault, section, offset, R_INFO)
        end = offset + 4
        if data[offset] == EIFMT_SVAL:
            end += load16(data + offset + 2)
            if end > view.size:
                return set_fault(fault, section, offset, R_INFO)
            size = ATTRIBUTE[data[offset + 1]].entry
            if data[offset + 1] == EIATTR_INDIRECT_BRANCH_TARGETS:
                if not move_targets(data, offset + 4, end, code, places):
                    return set_fault(fault, section, offset, R_INFO)
            elif data[offset + 1] == EIATTR_ANNOTATIONS:
                move_annotations(data, offset + 4, end, code, places)
            elif size:
                if (end - offset - 4) % size:
                    return set_fault(fault, section, offset, R_INFO)
                item = offset + 4
                while item < end:
                    if early:
                        put32(data + item, <uint32_t>map_listed_offset(code, places,
                                                                       load32(data + item), early))
                    else:
                        move_word(data + item, code, places, True)
                    item += size
        offset = end
    return True


cdef inline bint move_table(View* view, size_t section, const View* relocs, const Code* code,
                            const InstructionMap* places, RewriteFault* fault) noexcept nogil:
    """A jump table: the words that the mercury side relocates against the kernel's code."""
    cdef uint8_t* data = make_writable(view)
    cdef uint64_t entry_offset, offset
    if data == NULL:
        return set_fault(fault, section, 0, R_MEMORY)
    for entry_offset in range(0, relocs.size // 24 * 24, 24):
        if load32(relocs.data + entry_offset + 8) == R_MERCURY_CODE_OFFSET32:
            offset = load64(relocs.data + entry_offset)
            if offset > view.size or view.size - offset < 4:
                return set_fault(fault, section, offset, R_TABLE)
            move_word(data + offset, code, places, False)
    return True


cdef inline bint move_registers(RewrittenFile* file, size_t section, NameIndex* names,
                                RewriteFault* fault) noexcept nogil:
    """.nv_debug_info_reg_sass: {name NUL, u32 n, n of {u32, register NUL, u32, start, end}}.

    Ranges end and, except for those of early code, begin at labels; in code that is brought up to
    date they stay with the instructions themselves.
    """
    cdef View* view = &file.views[section]
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const InstructionMap* places = <const InstructionMap*>file.places.data
    cdef uint8_t* data = make_writable(view)
    cdef const uint8_t* nul
    cdef const Code* code
    cdef NameSlot* slot
    cdef uint64_t offset = 0, start, count
    if data == NULL:
        return set_fault(fault, section, 0, R_MEMORY)
    while offset < view.size:
        start = offset
        nul = <const uint8_t*>memchr(data + offset, 0, view.size - offset)
        if nul == NULL or view.size - (nul - data) < 5:
            return set_fault(fault, section, start, R_REGISTERS)
        slot = index_find(names, data + start, <uint32_t>(nul - data - start))
        if slot == NULL:
            return set_fault(fault, section, start, R_MEMORY)
        code = codes + slot.value if slot.value >= 0 else NULL
        offset = nul - data + 1
        count = load32(data + offset)
        offset += 4
        while count:
            count -= 1
            if view.size - offset < 5:
                return set_fault(fault, section, start, R_REGISTERS)
            nul = <const uint8_t*>memchr(data + offset + 4, 0, view.size - offset - 4)
            if nul == NULL or view.size - (nul - data) < 13:
                return set_fault(fault, section, start, R_REGISTERS)
            offset = nul - data + 13
            if code != NULL:
                if file.update:
                    put32(data + offset
                          - 8, map_range_start(code, places, load32(data + offset - 8)))
                else:
                    put32(data + offset - 8, <uint32_t>map_listed_offset(code, places,
                                                                         load32(data + offset - 8),
                                                                         file.early))
                move_word(data + offset - 4, code, places, file.update)
    return True


cdef inline bint move_frame(View* view, size_t section, uint64_t address, const Code* code,
                            const InstructionMap* places, RewriteFault* fault) noexcept nogil:
    """The FDE whose initial_location is at `address`."""
    cdef uint8_t* data = view.rewritten
    cdef uint64_t start = address - FRAME_ADDRESS, end, offset, place = 0, before = 0, following
    cdef uint64_t value
    cdef uint8_t op
    if (address < FRAME_ADDRESS or address > view.size or view.size - address < 2 * FRAME_LENGTH
            or load32(data + start) != 0xffffffffU
            or load64(data + start + 4) > view.size - start - 12
            or load64(data + start + 4) < 8 + 2 * FRAME_LENGTH):
        return set_fault(fault, section, address, R_FRAME)
    end = start + 12 + load64(data + start + 4)
    offset = address + FRAME_LENGTH
    put64(data + offset, map_offset(code, places, load64(data + offset), False))
    offset += FRAME_LENGTH
    while offset < end:
        op = data[offset]
        offset += 1
        if op == CFA_ADVANCE_LOC4:
            if end - offset < 4:
                return set_fault(fault, section, offset, R_FRAME)
            place += 4 * <uint64_t>load32(data + offset)
            following = map_offset(code, places, place, False)
            put32(data + offset, <uint32_t>((following - before) // 4))
            before = following
            offset += 4
        elif op == CFA_NOP or op == CFA_REMEMBER_STATE or op == CFA_RESTORE_STATE:
            pass
        elif op == CFA_DEF_CFA or op == CFA_OFFSET_EXTENDED or op == CFA_REGISTER:
            if (not read_uleb(data, end, &offset, &value)
                    or not read_uleb(data, end, &offset, &value)):
                return set_fault(fault, section, offset, R_FRAME)
        elif (CFA_RESTORE_EXTENDED <= op <= CFA_SAME_VALUE
                or op == CFA_DEF_CFA_REGISTER or op == CFA_DEF_CFA_OFFSET):
            if not read_uleb(data, end, &offset, &value):
                return set_fault(fault, section, offset, R_FRAME)
        elif op == CFA_EXPRESSION:
            if (not read_uleb(data, end, &offset, &value)
                    or not read_uleb(data, end, &offset, &value) or value > end - offset):
                return set_fault(fault, section, offset, R_FRAME)
            offset += value
        else:
            return set_fault(fault, section, offset - 1, R_FRAME_OP)
    return True
