# Changes of the finalizer in a slot: fences lose the parts that their kernel does not need, and
# EXITs get the error barrier.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport WORD, load16, load32
from exits.capsule cimport INSERTED, ONE_WORD, CodeBuffer, Slot, emit, emit_counted
from exits.rows cimport put64
from exits.words cimport (
    LONGEST_STALL, MEMBAR_BYTE, MEMBAR_GUARD, OP_NOP, W_CCTL, W_ERRBAR, W_MEMBAR, W_NOP, Needs,
    WordKind, can_write_predicate, is_dummy_load, is_membar, is_unscheduled, opcode,
    put_instruction, put_unscheduled, put_waits, set_stall, sets_of, stall, waits_of,
)


cdef enum:
    BARRIER_BODY = 16       # capsule record of the error barrier
    BARRIER_CYCLES = 7      # cycles of the barrier
    EXIT_CYCLES = 5         # least cycles that an EXIT waits
    PREDICATE_CYCLES = 13   # cycles from a comparison to the instruction that it guards
    ALWAYS = 7              # PT, the predicate of an instruction without one


cdef inline bint emit_fence(CodeBuffer* buffer, const Slot* slot,
                            const Needs* needs) noexcept nogil:
    """A slot of several instructions, without what its kernel does not need."""
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
    return slot.record_size == 2 + BARRIER_BODY and load32(slot.record + 2) == 0x0a001101


cdef inline bint emit_barrier_instruction(CodeBuffer* buffer, const Slot* slot, WordKind kind,
                                          uint32_t waits) noexcept nogil:
    """An instruction of the error barrier: the slot's own, or a new one."""
    cdef uint8_t word[WORD]
    cdef const uint8_t* exit_word = slot.words + (slot.count - 1) * WORD
    cdef uint64_t i
    put_instruction(word, kind)
    if is_unscheduled(exit_word):
        put_unscheduled(word, kind, exit_word)
    elif kind != W_CCTL:
        put_waits(word, waits)
    word[1] = (word[1] & 0x0f) | (exit_word[1] & 0xf0)
    for i in range(slot.count):
        if load16(slot.words + i * WORD) == load16(word):
            return emit(buffer, slot.words + i * WORD, slot.offset + i * WORD)
    return emit(buffer, word, <uint64_t>INSERTED)


cdef inline void put_barrier(uint8_t* body) noexcept nogil:
    """The capsule record of an error barrier before an EXIT without predicates."""
    put64(body, 0x000000f80a001101ULL)
    put64(body + 8, 0x00000000f8000000ULL)


cdef inline uint8_t encode_predicate(uint8_t predicate) noexcept nogil:
    """A predicate, its number and a bit for "not", in a capsule."""
    return (0x1f if predicate & 7 == 7 else predicate & 7) << 3 | predicate >> 3


cdef inline uint32_t remove_waits(CodeBuffer* buffer) noexcept nogil:
    """Remove the NOPs that only fill time at the end of the buffer; return their cycles."""
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
    """Whether a predicate can be read when the last of the instructions so far takes one cycle.

    What is not a result at the place of one makes the wait longer, never shorter.
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
    """An EXIT with its error barrier, whose instructions take over the predicate of the EXIT.

    An inserted barrier takes BARRIER_CYCLES of the time that NOPs and the EXIT itself wait for
    the results of earlier instructions.
    """
    cdef uint8_t body[BARRIER_BODY]
    cdef uint8_t exit_word[WORD]
    cdef uint8_t nop[WORD]
    cdef uint8_t predicate = slot.words[(slot.count - 1) * WORD + 1] >> 4
    cdef uint8_t* last
    cdef uint32_t cycles = 0, waits = 0
    cdef bint inserted = not slot.record_size
    memcpy(exit_word, slot.words + (slot.count - 1) * WORD, WORD)
    if inserted and not is_unscheduled(exit_word):
        cycles = remove_waits(buffer) + stall(exit_word)
        cycles = max(cycles - BARRIER_CYCLES, EXIT_CYCLES) if cycles > BARRIER_CYCLES \
            else EXIT_CYCLES
        set_stall(exit_word, min(cycles, LONGEST_STALL))
        # The barrier reads the predicate before the EXIT that waits for it.
        waits = waits_of(exit_word) if predicate & 7 != ALWAYS else 0
        if buffer.words.count:
            last = buffer.words.data + (buffer.words.count - 1) * WORD
            if (stall(last) == 2 and waits_of(exit_word) & sets_of(last)
                    and is_predicate_ready(buffer.words.data, buffer.words.count, predicate & 7)):
                # A scoreboard takes two cycles to be set; the next instruction no longer asks.
                set_stall(last, 1)
                waits &= ~sets_of(last)
    if inserted:
        put_barrier(body)
        body[4] = encode_predicate(predicate)
        body[11] = encode_predicate((exit_word[11] & 7) << 1 | exit_word[10] >> 7)    # of `EXIT P2`
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
