# Converts code of ptxas 12.8 and 12.9 to the form in which the finalizer of 13.0 leaves it
# (docs/older-objects.md):
#
# * A WARPSYNC loses the NOP that follows it.
# * A barrier with a variable number has a shift of `R, RZ` in place of `RZ, R`.
# * A long wait is several NOPs, of which all except one have the longest stall. The last NOP, not
#   the first, has the remainder.
# * Capsules of 12.8 get the form of all later ones. With MODE_EARLY_CAPSULES, only this changes.

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

from base.elf64 cimport WORD, load16, load32
from exits.capsule cimport ONE_WORD, CodeBuffer, Slot, emit, emit_record, emit_slot
from exits.code cimport Rewriting, emit_code, put_capsule, write_if_changed
from exits.rows cimport R_MEMORY, put32, set_fault
from exits.words cimport LONGEST_STALL, OP_NOP, opcode, set_stall, stall
from instructions cimport NO_REGISTER
from kernelmodes cimport MODE_EARLY_CODE

cdef enum:
    OP_SHIFT = 0x819
    OP_CALL = 0x943
    OP_RETURN = 0x950
    # Capsule records of 4 bytes that 12.8 does not have, as little-endian numbers.
    CALL_RECORD = 0x0e020a42
    RETURN_RECORD = 0x0e003342
    # First 4 bytes of the record bodies of the slots whose instructions change: that of a WARPSYNC,
    # of which the third byte varies, and that of a barrier whose number is not constant.
    WARPSYNC_RECORD = 0x0a004701
    WARPSYNC_MASK = 0xff00ffffU
    BARRIER_RECORD_EARLY = 0x06644702
    BARRIER_SHIFT = 4           # number of the shift in the slot of such a barrier, from 0 on


cdef inline bint is_dropped(uint32_t record) noexcept nogil:
    """Return whether only 12.8 has this capsule record of 4 bytes, so that it is dropped.

    BSYNC (0x941), BSSY (0x945) and conversions have such records, and a few records were each seen
    with one other instruction. All records that are not listed here stay.
    """
    return record in (
        0x0a000941, 0x0a040941, 0x0c040841, 0x06000842, 0x0a401241, 0x0a941241, 0x0abc1241,
        0x0ac01241, 0x063a2242, 0x06024242, 0x142e2542, 0x0e0a0a42,
    )


cdef inline bint emit_converted(CodeBuffer* buffer, const Slot* slot,
                                uint32_t added) noexcept nogil:
    """Emit a slot of 12.8 with the record `added` of 4 bytes, or without one if that is 0.

    False without memory.
    """
    cdef uint8_t record[4]
    cdef Slot converted = slot[0]
    put32(record, added)
    converted.record = record
    converted.record_size = 4 if added else 0
    return emit_slot(buffer, &converted)


cdef inline bint emit_short(CodeBuffer* buffer, const uint8_t* body) noexcept nogil:
    """Begin a slot whose record is the first 4 bytes of `body`; False without memory.

    0x40 in the first byte says that the record ends after these 4 bytes.
    """
    cdef uint8_t* record = emit_record(buffer, 4)
    if record == NULL:
        return False
    memcpy(record, body, 4)
    record[0] |= 0x40
    return True


cdef inline uint8_t* last_word(CodeBuffer* buffer) noexcept nogil:
    """Return the last instruction of the buffer, which is not empty."""
    return buffer.words.data + (buffer.words.count - 1) * WORD


cdef inline bint swap_shift(uint8_t* word) noexcept nogil:
    """Swap the registers of a funnel shift whose lower one is RZ: RZ becomes the upper one.

    Other instructions stay. Always returns True, so that an emit function can end with it.
    """
    if opcode(word) == OP_SHIFT and word[3] == NO_REGISTER:
        word[3] = word[8]
        word[8] = NO_REGISTER
        word[10] &= 0xfe
    return True


cdef inline bint is_wait(const Slot* slot) noexcept nogil:
    """Return whether a slot is a NOP that only fills time."""
    return (slot.record_size == 2 and slot.count == 1 and load16(slot.record) == ONE_WORD
            and opcode(slot.words) == OP_NOP)


cdef inline void order_waits(CodeBuffer* buffer) noexcept nogil:
    """Swap the stalls of the last two NOPs if only the last one has the longest stall."""
    cdef uint8_t* last = last_word(buffer)
    cdef uint32_t rest = stall(last - WORD)     # if they are swapped, shorter than LONGEST_STALL
    if stall(last) != LONGEST_STALL or stall(last - WORD) == LONGEST_STALL:
        return
    set_stall(last - WORD, LONGEST_STALL)
    set_stall(last, rest)


cdef inline bint emit_early(CodeBuffer* buffer, const Slot* slot, int mode,
                            bint early) noexcept nogil:
    """Emit a slot in the form of 13.0; False without memory.

    `mode` is MODE_EARLY_CODE or MODE_EARLY_CAPSULES. `early` says that the capsule has the form of
    12.8.
    """
    cdef uint32_t op = opcode(slot.words)
    if mode == MODE_EARLY_CODE and slot.count > 1 and slot.record_size > 6:
        if (load32(slot.record + 2) & WARPSYNC_MASK == WARPSYNC_RECORD and slot.count == 2
                and opcode(slot.words + WORD) == OP_NOP):
            return (emit_short(buffer, slot.record + 2)
                    and emit(buffer, slot.words, slot.offset))
        if load32(slot.record + 2) == BARRIER_RECORD_EARLY and slot.count > BARRIER_SHIFT:
            return (emit_slot(buffer, slot)
                    and swap_shift(last_word(buffer) - (slot.count - 1 - BARRIER_SHIFT) * WORD))
    if early and slot.record_size == 4 and is_dropped(load32(slot.record)):
        return emit_converted(buffer, slot, 0)
    if early and not slot.has_record and op == OP_CALL:
        return emit_converted(buffer, slot, CALL_RECORD)
    if early and not slot.has_record and op == OP_RETURN:
        return emit_converted(buffer, slot, RETURN_RECORD)
    return emit_slot(buffer, slot)


cdef inline bint emit_in_order(Rewriting* rewriting) noexcept nogil:
    """Emit the slot that was read; adjacent NOPs that wait get the order of 13.0.

    `emit_code` calls this for each slot but the last. False without memory.
    """
    cdef bint wait = is_wait(&rewriting.slot)
    if not emit_early(&rewriting.buffer, &rewriting.slot, rewriting.mode, rewriting.walk.early):
        return False
    if rewriting.waits and wait:
        order_waits(&rewriting.buffer)
    rewriting.waits = rewriting.mode == MODE_EARLY_CODE and wait
    return True


cdef inline bint convert_code(Rewriting* rewriting) noexcept nogil:
    """Convert one function from before 13.0 to the form of 13.0; False with a fault.

    Sets `rewriting.changed` if its text changed. A capsule of 12.8 is written in any case.
    """
    cdef size_t i
    if not emit_code(rewriting, emit_in_order):
        return False
    # Compare instructions, too: `write_if_changed` only sees those that moved.
    for i in range(rewriting.buffer.words.count):
        rewriting.changed = (rewriting.changed
                             or memcmp(rewriting.buffer.words.data + i * WORD,
                                       rewriting.text.data + i * WORD, WORD) != 0)
    if not write_if_changed(rewriting):
        return False
    if (rewriting.walk.early and not rewriting.changed
            and not put_capsule(rewriting.capsule, &rewriting.buffer, rewriting.slot.count)):
        return set_fault(rewriting.fault, 0, 0, R_MEMORY)
    return True
