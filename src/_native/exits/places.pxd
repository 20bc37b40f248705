# Offsets into a kernel's code that other sections hold: attribute lists, jump tables, registers of
# the debugger and call frame programs. Each changed kernel has a Code and its InstructionMaps
# (`places`), from which `map_offset` finds new offsets. Offsets are corrected in a copy of the
# section, which keeps its size. For example, `.nv.info.K` has these EXIT offsets of a kernel that
# loses an instruction at 0x20:
#
#     EIATTR_EXIT_INSTR_OFFSETS    0x10, 0x80    becomes    0x10, 0x70

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr

from attributetypes cimport (
    ATTRIBUTE, EIATTR_ANNOTATIONS, EIATTR_INDIRECT_BRANCH_TARGETS, EIFMT_SVAL,
)
from base.elf64 cimport WORD, Rela, load16, load32, load64
from base.nameindex cimport NameIndex, NameSlot, index_find
from dwarf cimport (
    CFA_ADVANCE_LOC4, CFA_DEF_CFA, CFA_DEF_CFA_OFFSET, CFA_DEF_CFA_REGISTER, CFA_EXPRESSION,
    CFA_NOP, CFA_OFFSET_EXTENDED, CFA_REGISTER, CFA_REMEMBER_STATE, CFA_RESTORE_EXTENDED,
    CFA_RESTORE_STATE, CFA_SAME_VALUE, FDE_ADDRESS, FDE_INSTRUCTIONS, FDE_MARKER, FDE_POINTER,
    FDE_RANGE,
)
from exits.file cimport RewrittenFile
from exits.rows cimport (
    R_FRAME, R_FRAME_OP, R_INFO, R_MEMORY, R_REGISTERS, R_TABLE, Code, CodeNumber, InstructionMap,
    RewriteFault, View, make_writable, map_offset, put32, put64, read_uleb, set_fault,
)
from relocationtypes cimport R_MERCURY_CODE_OFFSET32
from tables.rows cimport FileSectionCounter


cdef enum:
    # The first word of an annotation, which is its kind. Beside each kind: all words of such an
    # annotation; place is an offset in .text.
    ANNOTATED_INSTRUCTION = 1   # {1, place}
    ANNOTATED_WITH_TEXT = 2     # {2, place, length, text}
    ANNOTATED_FUNCTION = 3      # {3, length, text}


cdef inline void move_word(uint8_t* word, const Code* code, const InstructionMap* places,
                           bint is_own) noexcept nogil:
    """Correct one 32-bit offset into the code.

    With `is_own` it follows the instruction itself, otherwise it becomes what a jump must reach.
    """
    put32(word, <uint32_t>map_offset(code, places, load32(word), is_own))


cdef inline void move_annotations(uint8_t* data, uint64_t offset, uint64_t end, const Code* code,
                                  const InstructionMap* places) noexcept nogil:
    """Correct the offsets in the value of EIATTR_ANNOTATIONS, from `offset` to `end` of `data`.

    The value is a list of annotations (ANNOTATED_). Reading stops at an unknown kind, since its
    length is not known, and at a text that is cut off.
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
    """Correct the offsets in the value of EIATTR_INDIRECT_BRANCH_TARGETS, from `offset` to `end`.

    The value is a list of {offset of the branch, a word, count, offsets of the targets}. False if
    it is damaged.
    """
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
    """Return the new offset for an old `offset` in an attribute list or a register range.

    It is the one that a jump reaches, except at a WARPSYNC in `early` code (from before 13.0) and
    at the NOP after it. nvlink counts from the end of a slot, and this slot loses its NOP, so the
    result is 16 bytes less.
    """
    cdef uint64_t mapped = map_offset(code, places, offset, False)
    cdef const InstructionMap* row
    if early and offset % WORD == 0 and offset // WORD + 2 < code.count:
        row = places + code.first + offset // WORD
        # A dropped instruction has the new offset of the next one.
        if (mapped >= WORD
                and (row[0].instruction == row[1].instruction
                     or row[1].instruction == row[2].instruction)):
            return mapped - WORD
    return mapped


cdef inline uint32_t map_range_start(const Code* code, const InstructionMap* places,
                                     uint64_t offset) noexcept nogil:
    """Return the new start of a register range at `offset`, in code converted to another release.
    """
    if offset % WORD or offset // WORD + 1 >= code.count:
        return <uint32_t>map_offset(code, places, offset, True)
    return <uint32_t>places[code.first + offset // WORD].range_start


cdef inline bint move_info(View* view, FileSectionCounter section, const Code* code,
                           const InstructionMap* places, bint early,
                           RewriteFault* fault) noexcept nogil:
    """Correct the offsets in an attribute list, `.nv.info.K`; False with a fault.

    `early` says that the code is from before 13.0.
    """
    cdef uint8_t* data = make_writable(view)
    cdef uint64_t offset = 0, end, item     # offsets in the list
    cdef uint32_t size                      # bytes of an entry that begins with an offset, or 0
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


cdef inline bint move_table(View* view, FileSectionCounter section, const View* relocs,
                            const Code* code, const InstructionMap* places,
                            RewriteFault* fault) noexcept nogil:
    """Correct a jump table, `.nv.constant2.K`; False with a fault.

    Its words that hold offsets are those that `relocs`, the RELA section of its mercury twin,
    relocates with R_MERCURY_CODE_OFFSET32.
    """
    cdef uint8_t* data = make_writable(view)
    cdef const Rela* entry
    cdef uint64_t i, offset
    if data == NULL:
        return set_fault(fault, section, 0, R_MEMORY)
    for i in range(relocs.size // sizeof(Rela)):
        entry = <const Rela*>relocs.data + i
        if entry.r_type == R_MERCURY_CODE_OFFSET32:
            offset = entry.r_offset
            if offset > view.size or view.size - offset < 4:
                return set_fault(fault, section, offset, R_TABLE)
            move_word(data + offset, code, places, False)
    return True


cdef inline bint move_registers(RewrittenFile* file, FileSectionCounter section, NameIndex* names,
                                RewriteFault* fault) noexcept nogil:
    """Correct the register ranges of changed kernels in .nv_debug_info_reg_sass.

    The section is a list of {name of a function, NUL, u32 n, n of {u32, name of a register, NUL,
    u32, u32 start, u32 end}}. `names` has the row in `file.kernels` of each changed function.
    False with a fault.

    A range begins and ends at the offset that a jump reaches (`map_offset`). In early code it
    begins where `map_listed_offset` says. In code that is updated to another release, its end
    follows the instruction itself, and its start is that of `map_range_start`.
    """
    cdef View* view = &file.views[section]
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const InstructionMap* places = <const InstructionMap*>file.places.data
    cdef uint8_t* data = make_writable(view)
    cdef const uint8_t* nul
    cdef const Code* code       # of the function at hand; NULL if it has not changed
    cdef NameSlot* slot
    cdef uint64_t offset = 0, start, count, range_start
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
        code = codes + <CodeNumber>slot.value if slot.value >= 0 else NULL
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
                range_start = load32(data + offset - 8)
                if file.update:
                    range_start = map_range_start(code, places, range_start)
                else:
                    range_start = map_listed_offset(code, places, range_start, file.early)
                put32(data + offset - 8, <uint32_t>range_start)
                move_word(data + offset - 4, code, places, file.update)
    return True


cdef inline bint move_frame(View* view, FileSectionCounter section, uint64_t address,
                            const Code* code, const InstructionMap* places,
                            RewriteFault* fault) noexcept nogil:
    """Correct address_range and the advances of an FDE of .debug_frame; False with a fault.

    `address` is the offset of its initial_location, which has a relocation.
    """
    cdef uint8_t* data = view.rewritten
    cdef uint64_t start = address - FDE_ADDRESS, end, offset    # offsets in the section
    cdef uint64_t old_place = 0, new_place = 0, following       # offsets in .text
    cdef uint64_t value
    cdef uint8_t op
    if (address < FDE_ADDRESS or address > view.size or view.size - start < FDE_INSTRUCTIONS
            or load32(data + start) != FDE_MARKER
            or load64(data + start + 4) > view.size - start - FDE_POINTER
            or load64(data + start + 4) < FDE_INSTRUCTIONS - FDE_POINTER):
        return set_fault(fault, section, address, R_FRAME)
    end = start + FDE_POINTER + load64(data + start + 4)
    offset = start + FDE_RANGE
    put64(data + offset, map_offset(code, places, load64(data + offset), False))
    offset = start + FDE_INSTRUCTIONS
    while offset < end:
        op = data[offset]
        offset += 1
        if op == CFA_ADVANCE_LOC4:
            if end - offset < 4:
                return set_fault(fault, section, offset, R_FRAME)
            # An advance counts units of the code alignment factor, which is 4 bytes.
            old_place += 4 * <uint64_t>load32(data + offset)
            following = map_offset(code, places, old_place, False)
            put32(data + offset, <uint32_t>((following - new_place) // 4))
            new_place = following
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
