# Changes that nvlink's finalizer makes in a slot, which is what one bit of a capsule stands for
# (exits/capsule.pxd): fences lose the parts that their kernel does not need, and EXITs get the
# error barrier.
#
# The error barrier is ERRBAR and CCTL.IVALL in front of an EXIT, and a MEMBAR in front of these if
# the kernel needs one. The three or four instructions become one slot:
#
#     input     MUFU    NOP (stall 9)    EXIT (stall 5)       three slots
#     output    MUFU    ERRBAR, CCTL, EXIT (stall 7)          two slots
#
# ERRBAR and CCTL take 7 of the 14 cycles that the NOP and the EXIT wait for the result of MUFU.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport WORD, load16, load32
from exits.capsule cimport INSERTED, ONE_WORD, CodeBuffer, Slot, emit, emit_counted
from exits.rows cimport put64
from exits.words cimport (
    LONGEST_STALL, MEMBAR_BYTE, MEMBAR_GUARD, OP_NOP, W_CCTL, W_ERRBAR, W_MEMBAR, W_NOP, Needs,
    WordKind, can_write_predicate, is_dummy_load, is_membar, is_unoptimized, opcode,
    put_instruction, put_unoptimized, put_waits, set_stall, sets_of, stall, waits_of,
)


cdef enum:
    BARRIER_BODY = 16       # bytes of the error barrier's body in a capsule record
    BARRIER_RECORD = 0x0a001101     # first four bytes of that body
    BARRIER_CYCLES = 7      # cycles that an inserted barrier takes
    EXIT_CYCLES = 5         # least stall of an EXIT after an inserted barrier, in cycles
    PREDICATE_CYCLES = 13   # cycles until an instruction can use the predicate of a comparison
    ALWAYS = 7              # PT, the predicate of an instruction without one


cdef inline bint emit_fence(CodeBuffer* buffer, const Slot* slot,
                            const Needs* needs) noexcept nogil:
    """Emit a fence, a slot of several instructions, without parts that `needs` does not ask for.

    False without memory.
    """
    cdef uint64_t i, before = buffer.words.count, kept_count
    cdef const uint8_t* word
    for i in range(slot.count):
        word = slot.words + i * WORD
        if not needs.loads and is_dummy_load(word):
            continue
        if (not needs.guards and is_membar(word) and word[MEMBAR_BYTE] == MEMBAR_GUARD
                and i + 1 < slot.count and is_membar(word + WORD)):
            continue
        if not emit(buffer, word, slot.offset + i * WORD):
            return False
    kept_count = buffer.words.count - before
    return emit_counted(buffer, kept_count, slot.record + 2, slot.record_size - 2)


cdef inline bint is_barrier(const Slot* slot) noexcept nogil:
    """Return whether a slot is an EXIT that has an error barrier in the input."""
    return slot.record_size == 2 + BARRIER_BODY and load32(slot.record + 2) == BARRIER_RECORD


cdef inline bint emit_barrier_instruction(CodeBuffer* buffer, const Slot* slot, WordKind kind,
                                          uint32_t waits) noexcept nogil:
    """Emit the error barrier's instruction of this `kind`: the slot's own if any, or a new one.

    `slot` ends with the EXIT. In optimized code a new instruction, except CCTL, waits for the
    scoreboards `waits`, a bit each. False without memory.
    """
    cdef uint8_t word[WORD]
    cdef const uint8_t* exit_word = slot.words + (slot.count - 1) * WORD
    cdef uint64_t i
    put_instruction(word, kind)
    if is_unoptimized(exit_word):
        put_unoptimized(word, kind, exit_word)
    elif kind != W_CCTL:
        put_waits(word, waits)
    word[1] = (word[1] & 0x0f) | (exit_word[1] & 0xf0)      # the predicate of the EXIT
    for i in range(slot.count):
        if load16(slot.words + i * WORD) == load16(word):
            return emit(buffer, slot.words + i * WORD, slot.offset + i * WORD)
    return emit(buffer, word, <uint64_t>INSERTED)


cdef inline void put_barrier(uint8_t* body) noexcept nogil:
    """Write the body of the capsule record for an error barrier and an EXIT without predicates."""
    put64(body, 0x000000f80a001101ULL)
    put64(body + 8, 0x00000000f8000000ULL)


cdef inline uint8_t encode_predicate(uint8_t predicate) noexcept nogil:
    """Return a predicate as capsules have it: number in bits 3 to 7 (PT: 0x1f), "not" in bit 0.

    `predicate` has the number in bits 0 to 2, and "not" in bit 3.
    """
    return (0x1f if predicate & 7 == 7 else predicate & 7) << 3 | predicate >> 3


cdef inline uint32_t remove_waits(CodeBuffer* buffer) noexcept nogil:
    """Remove the NOPs at the end of the buffer that only fill time; return the sum of their stalls.

    Only slots of one instruction are removed, whose record is a count without a body.
    """
    cdef uint32_t cycles = 0
    cdef const uint8_t* word
    while buffer.sizes.count and buffer.sizes.data[buffer.sizes.count - 1] == 2:
        word = buffer.words.data + (buffer.words.count - 1) * WORD
        if (opcode(word) != OP_NOP
                or load16(buffer.records.data + buffer.records.count - 2) != ONE_WORD):
            break
        cycles += stall(word)
        buffer.words.count -= 1
        buffer.sources.count -= 1
        buffer.sizes.count -= 1
        buffer.records.count -= 2
    return cycles


cdef inline bint is_predicate_ready(const uint8_t* words, size_t count,
                                    uint32_t predicate) noexcept nogil:
    """Return whether a predicate can be read if the last instruction of `words` stalls one cycle.

    `count` is the number of `words`. `can_write_predicate` also finds instructions that do not
    write the predicate: then the wait gets longer, never shorter.
    """
    cdef uint32_t cycles = 1
    cdef const uint8_t* word
    if predicate == ALWAYS:
        return True
    while count and cycles < PREDICATE_CYCLES:
        count -= 1
        word = words + count * WORD
        if can_write_predicate(word, predicate):
            return False
        if count:
            cycles += stall(word - WORD)
    return True


cdef inline bint emit_exit(CodeBuffer* buffer, const Slot* slot, const Needs* needs) noexcept nogil:
    """Emit an EXIT with its error barrier, whose instructions have the predicate of the EXIT.

    `slot` is the EXIT, alone or with the barrier of the input. An inserted barrier takes
    BARRIER_CYCLES of the time that NOPs and the EXIT itself wait for the results of earlier
    instructions. `needs` says whether it begins with a MEMBAR. False without memory.
    """
    cdef uint8_t body[BARRIER_BODY]
    cdef uint8_t exit_word[WORD]
    cdef uint8_t nop[WORD]
    cdef uint8_t predicate = slot.words[(slot.count - 1) * WORD + 1] >> 4   # of the EXIT
    cdef uint8_t* last                      # the instruction in front of the barrier
    cdef uint32_t cycles = 0                # for which the EXIT and a NOP in front of it wait
    cdef uint32_t waits = 0                 # scoreboards that the barrier waits for, a bit each
    cdef bint inserted = not slot.record_size
    memcpy(exit_word, slot.words + (slot.count - 1) * WORD, WORD)
    if inserted and not is_unoptimized(exit_word):
        cycles = remove_waits(buffer) + stall(exit_word)
        cycles = max(cycles - BARRIER_CYCLES, EXIT_CYCLES) if cycles > BARRIER_CYCLES \
            else EXIT_CYCLES
        set_stall(exit_word, min(cycles, LONGEST_STALL))
        # The barrier reads the predicate of the EXIT earlier than the EXIT does, so it must wait.
        waits = waits_of(exit_word) if predicate & 7 != ALWAYS else 0
        if buffer.words.count:
            last = buffer.words.data + (buffer.words.count - 1) * WORD
            if (stall(last) == 2 and waits_of(exit_word) & sets_of(last)
                    and is_predicate_ready(buffer.words.data, buffer.words.count, predicate & 7)):
                # The stall of two cycles was for a scoreboard that the next instruction reads.
                # The barrier does not wait for it, so one cycle is enough.
                set_stall(last, 1)
                waits &= ~sets_of(last)
    if inserted:
        put_barrier(body)
        body[4] = encode_predicate(predicate)           # as in `@P1 EXIT`
        # The operand of `EXIT P2`.
        body[11] = encode_predicate((exit_word[11] & 7) << 1 | exit_word[10] >> 7)
    else:
        memcpy(body, slot.record + 2, BARRIER_BODY)
    if cycles > LONGEST_STALL and not emit_counted(buffer, 1, NULL, 0):
        return False
    if not emit_counted(buffer, 4 if needs.membar else 3, body, BARRIER_BODY):
        return False
    if needs.membar and not emit_barrier_instruction(buffer, slot, W_MEMBAR, waits):
        return False
    if (not emit_barrier_instruction(buffer, slot, W_ERRBAR, waits)
            or not emit_barrier_instruction(buffer, slot, W_CCTL, 0)):
        return False
    if cycles > LONGEST_STALL:
        put_instruction(nop, W_NOP)
        set_stall(nop, min(cycles - LONGEST_STALL, LONGEST_STALL))
        if not emit(buffer, nop, <uint64_t>INSERTED):
            return False
    return emit(buffer, exit_word, slot.offset + (slot.count - 1) * WORD)
