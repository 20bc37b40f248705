# Code of one release as the finalizer of another leaves it (docs/older-objects.md).
#
# The finalizer of a release leaves code in a form of its own, also code of another ptxas. The
# schedule of optimized code stays that of its compiler. The forms differ as follows:
#
# * From 13.1 on, fences wait for their guards.
# * From 13.1 on, functions for sm_120 that were not optimized have another addition.
# * From 13.2.86 on, a NOP is in front of each BSYNC that makes threads reconverge.
# * From 13.3 on, functions that were not optimized have other schedule words.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from base.elf64 cimport WORD, load16, load32, load64
from exits.capsule cimport (
    APPENDED, INSERTED, CodeBuffer, Slot, emit, emit_counted, emit_record, emit_slot,
)
from exits.code cimport Rewriting, emit_code, write_if_changed
from exits.rows cimport Code, InstructionMap, put16, put32, put64
from exits.slots cimport encode_predicate
from exits.words cimport (
    CAREFUL, CARELESS, CONTROL_BYTE, MEMBAR_BYTE, MEMBAR_GUARD, OPERATION, OP_EXIT, OP_NOP,
    UPDATE_ANY, UPDATE_UNSCHEDULED, W_NOP, is_dummy_load, is_membar, is_unscheduled, opcode,
    operation, put_instruction, set_stall, stall,
)
from kernelmodes cimport (
    UPDATE_AWAITED_FENCES, UPDATE_BARE_WORDS, UPDATE_GUARD_BSYNC, UPDATE_SHORT_ADDS,
    UPDATE_UNGUARD_BSYNC,
)

cdef enum:
    OP_BSYNC = 0x941
    OP_ERRBAR = 0x9ab
    OP_CCTL = 0x5ab
    RELIABLE = 1                # bits of byte 9: BSYNC.RELIABLE, BSYNC.RECONVERGENT
    RECONVERGENT = 2
    BSYNC_BODY = 16
    BSYNC_RECORD = 0x0a000901   # record of a BSYNC with a NOP; the third byte varies
    BSYNC_MASK = 0xff00ffffU
    QUICK = 0x0fe2              # control bytes of that NOP: a stall of 1, no scoreboard

    CAREFUL_MASK = 0x301e       # control bytes: stall count, waits for scoreboards 0 and 1
    WAITS_ALONE = 0x3fc0        # HMMA and ERRBAR wait and do not stall
    # From 13.1 on the MEMBAR of a fence waits for its guard, which reads: the control bytes of the
    # guard, and what is added to those of the MEMBAR, in scheduled code and in other.
    GUARD_READS = 0x03ec
    AWAITS_READ = 0x2000
    GUARD_CAREFUL = 0x33de
    # `fence.proxy.tensormap::generic.acquire`: its record, its last instruction, and the two that
    # follow this from 13.1 on, the second of which waits for what the first reads.
    ACQUIRE_RECORD = 0x16144901
    ACQUIRE_COUNT = 3
    OP_ACQUIRE = 0x9b9
    OP_FLUSH = 0x9b7
    FLUSH_READS = 0x03e4
    FLUSH_AWAITED = 0x2fe2

    # IADD3 of two operands and IADD, by the low 9 bits of the operation. The upper half of the
    # instruction has the third source RZ, not negated, and no second carry.
    OP_IADD3 = 0x010
    OP_IADD = 0x035
    THIRD = 0x71e8ff
    THIRD_NONE = 0x71e0ff
    CARRY = 1 << 10             # .X: adds a carry
    FORM_REGISTER = 0x2         # upper 4 of the 12 bits: the kind of the second operand
    FORM_IMMEDIATE = 0x8
    FORM_UNIFORM = 0xc


cdef inline bint needs_nop(const uint8_t* word) noexcept nogil:
    """Whether the instruction is a BSYNC that makes threads reconverge."""
    return opcode(word) == OP_BSYNC and word[9] & (RELIABLE | RECONVERGENT) != 0


cdef inline bint is_code_careful(const uint8_t* code, uint64_t size) noexcept nogil:
    """Whether ptxas up to 13.2 made the function without scheduling it.

    Then each instruction has the longest stall and waits for scoreboards 0 and 1, except for those
    that only wait, dummy loads, and NOPs and branches that nothing waits for.
    """
    cdef uint64_t offset
    cdef uint32_t control
    cdef bint careful = False
    for offset in range(0, size, 16):
        control = load16(code + offset + CONTROL_BYTE)
        if is_dummy_load(code + offset):
            continue
        if control & CAREFUL_MASK == CAREFUL_MASK and not code[offset + CONTROL_BYTE + 2]:
            careful = True
        elif control != CARELESS and control != WAITS_ALONE:
            return False
    return careful


cdef inline bint emit_guarded_bsync(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Emit a NOP and the BSYNC after it; the slot now stands for both."""
    cdef uint8_t body[BSYNC_BODY]
    cdef uint8_t nop[WORD]
    cdef const uint8_t* word = slot.words
    cdef bint reliable = word[9] & RELIABLE != 0
    put32(body, BSYNC_RECORD | (4 if reliable else 2) << 16)
    put32(body + 4, encode_predicate(word[1] >> 4) | (not reliable) << 16)
    put32(body + 8, <uint32_t>(word[2] & 0xf) << 17)    # twice the number of its barrier
    put32(body + 12, 0)
    put_instruction(nop, W_NOP)
    put16(nop + CONTROL_BYTE, load16(word + CONTROL_BYTE) if is_unscheduled(word) else QUICK)
    return (emit_counted(buffer, 2, body, BSYNC_BODY) and emit(buffer, nop, <uint64_t>INSERTED)
            and emit(buffer, word, slot.offset))


cdef inline bint is_guarded(const Slot* slot) noexcept nogil:
    return (slot.count == 2 and slot.record_size == 2 + BSYNC_BODY
            and load32(slot.record + 2) & BSYNC_MASK == BSYNC_RECORD
            and opcode(slot.words) == OP_NOP and needs_nop(slot.words + WORD))


cdef inline bint emit_bare(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Emit only the BSYNC of a slot."""
    return emit_record(buffer, 0) != NULL and emit(buffer, slot.words + WORD, slot.offset + WORD)


cdef inline bint is_short(const uint8_t* word) noexcept nogil:
    """Whether an instruction is an IADD3 of two operands, with a carry or without."""
    cdef uint64_t high = load64(word + 8)
    return (operation(word) == OP_IADD3 and high & THIRD == THIRD_NONE
            and high >> 16 & 1 != 0)


cdef inline uint32_t add_record(const uint8_t* word) noexcept nogil:
    """Return the record of a lone IADD3 that becomes an IADD; 0 for all others.

    Uniform operands with a carry were not seen.
    """
    cdef uint64_t high = load64(word + 8)
    cdef uint32_t form = opcode(word) >> 8 & 0xe
    if not is_short(word):
        return 0
    if form == FORM_REGISTER:
        return 0x14300c42 if high & CARRY else 0x04400c41
    if form == FORM_IMMEDIATE:
        return 0x06320c42 if high & CARRY else 0x06420c42
    return 0x04440c41 if form == FORM_UNIFORM and not high & CARRY else 0


cdef inline void shorten_add(uint8_t* word) noexcept nogil:
    put16(word, (load16(word) & ~<uint32_t>OPERATION) | OP_IADD)
    put64(word + 8, load64(word + 8) & ~<uint64_t>(THIRD | 1 << 16))


cdef inline bint emit_add(CodeBuffer* buffer, const Slot* slot, uint32_t record) noexcept nogil:
    """Replace an IADD3 by an IADD."""
    cdef uint8_t word[WORD]
    cdef uint8_t* place = emit_record(buffer, 4)
    memcpy(word, slot.words, WORD)
    shorten_add(word)
    if place == NULL:
        return False
    put32(place, record)
    return emit(buffer, word, slot.offset)


cdef inline void set_guards(CodeBuffer* buffer, uint64_t count, bint careful) noexcept nogil:
    """Make the fences among the last `count` words wait for their guards, if they do not yet."""
    cdef uint8_t* word = buffer.words.data + (buffer.words.count - count) * WORD
    while count > 1:
        if (is_membar(word) and word[MEMBAR_BYTE] == MEMBAR_GUARD and is_membar(word + WORD)
                and load16(word + CONTROL_BYTE) == CARELESS
                and load16(word + WORD + CONTROL_BYTE) != CARELESS):
            put16(word + CONTROL_BYTE, GUARD_CAREFUL if careful else GUARD_READS)
            if not careful:
                put16(word + WORD + CONTROL_BYTE,
                      <uint16_t>(load16(word + WORD + CONTROL_BYTE) | AWAITS_READ))
        word += WORD
        count -= 1


cdef inline bint is_acquire(const Slot* slot) noexcept nogil:
    """Whether the slot acquires a tensor map, as code from before 13.1 does."""
    return (slot.count == ACQUIRE_COUNT and slot.record_size > 6
            and load32(slot.record + 2) == ACQUIRE_RECORD
            and opcode(slot.words + (ACQUIRE_COUNT - 1) * WORD) == OP_ACQUIRE)


cdef inline bint emit_acquire(CodeBuffer* buffer, const Slot* slot, bint careful) noexcept nogil:
    """Emit an acquire with the words that follow it from 13.1 on; the next instruction no longer
    waits for its last.
    """
    cdef uint8_t flush[WORD]
    cdef uint8_t nop[WORD]
    cdef const uint8_t* last = slot.words + (ACQUIRE_COUNT - 1) * WORD
    cdef uint8_t* acquire
    cdef uint64_t i
    put_instruction(nop, W_NOP)
    memcpy(flush, nop, WORD)
    put16(flush, OP_FLUSH | (load16(last) & 0xf000))    # with the predicate of the last
    put16(flush + CONTROL_BYTE, GUARD_CAREFUL if careful else FLUSH_READS)
    put16(nop + CONTROL_BYTE, CAREFUL if careful else FLUSH_AWAITED)
    if not emit_counted(buffer, ACQUIRE_COUNT + 2, slot.record + 2, slot.record_size - 2):
        return False
    for i in range(ACQUIRE_COUNT):
        if not emit(buffer, slot.words + i * WORD, slot.offset + i * WORD):
            return False
    acquire = buffer.words.data + (buffer.words.count - 1) * WORD
    if stall(acquire) == 2:
        set_stall(acquire, 1)
    return emit(buffer, flush, <uint64_t>APPENDED) and emit(buffer, nop, <uint64_t>APPENDED)


cdef inline bint emit_update(Rewriting* rewriting) noexcept nogil:
    """Emit any slot except the last one, with the changes of the mode."""
    cdef const Slot* slot = &rewriting.slot
    cdef uint32_t record = 0
    cdef size_t i
    if rewriting.mode & UPDATE_GUARD_BSYNC and not slot.has_record and needs_nop(slot.words):
        return emit_guarded_bsync(&rewriting.buffer, slot)
    if rewriting.mode & UPDATE_UNGUARD_BSYNC and is_guarded(slot):
        return emit_bare(&rewriting.buffer, slot)
    if rewriting.mode & UPDATE_SHORT_ADDS and not slot.has_record:
        record = add_record(slot.words)
    if record:
        return emit_add(&rewriting.buffer, slot, record)
    if rewriting.mode & UPDATE_AWAITED_FENCES and is_acquire(slot):
        return emit_acquire(&rewriting.buffer, slot, rewriting.careful)
    if not emit_slot(&rewriting.buffer, slot):
        return False
    if rewriting.mode & UPDATE_AWAITED_FENCES:
        set_guards(&rewriting.buffer, slot.count, rewriting.careful)
    if rewriting.mode & UPDATE_SHORT_ADDS and slot.count > 1:
        # The record of a longer slot does not say where these are.
        for i in range(rewriting.buffer.words.count - slot.count, rewriting.buffer.words.count):
            if is_short(rewriting.buffer.words.data + i * WORD):
                shorten_add(rewriting.buffer.words.data + i * WORD)
    return True


cdef inline bint is_barrier_end(const uint8_t* word) noexcept nogil:
    """Whether an instruction is the last of an error barrier, and not the first of a text."""
    return (opcode(word) == OP_CCTL and opcode(word + WORD) == OP_EXIT
            and opcode(word - WORD) == OP_ERRBAR)


cdef inline bint has_error_barriers(const uint8_t* code, uint64_t size) noexcept nogil:
    cdef uint64_t offset
    for offset in range(WORD, size - WORD if size > WORD else 0, 16):
        if is_barrier_end(code + offset):
            return True
    return False


cdef inline void widen_ranges(const uint8_t* code, const Code* row,
                              InstructionMap* place) noexcept nogil:
    """Let ranges that begin at the end of an error barrier begin in front of it.

    They should begin with the instruction before the EXIT. Up to 13.0 ptxas counts the
    barrier, from 13.1 on it does not.
    """
    cdef size_t i, first
    for i in range(1, row.count - 2 if row.count > 2 else 0):
        if is_barrier_end(code + i * WORD):
            first = i - 2 if i > 1 and is_membar(code + (i - 2) * WORD) else i - 1
            if place[first].instruction >= WORD:
                place[i].range_start = place[first].instruction - WORD


cdef inline void unload_words(CodeBuffer* buffer) noexcept nogil:
    """Remove stalls and scoreboards from all instructions except dummy loads."""
    cdef uint8_t* word
    cdef size_t i
    for i in range(buffer.words.count):
        word = buffer.words.data + i * WORD
        if not is_dummy_load(word):
            put16(word + CONTROL_BYTE, CARELESS)
            word[CONTROL_BYTE + 2] = 0


cdef inline bint update_code(Rewriting* rewriting) noexcept nogil:
    """Bring one function up to date; `changed` is True if anything was written."""
    cdef size_t i
    cdef bint widened
    rewriting.careful = (rewriting.mode & (UPDATE_AWAITED_FENCES | UPDATE_UNSCHEDULED)
                         and is_code_careful(rewriting.text.data, rewriting.text.size))
    if not rewriting.careful:
        rewriting.mode &= ~<int>UPDATE_UNSCHEDULED
    if not rewriting.mode & UPDATE_ANY:
        return True
    if not emit_code(rewriting, emit_update):
        return False
    if rewriting.mode & UPDATE_BARE_WORDS:
        unload_words(&rewriting.buffer)
    widened = (rewriting.careful and rewriting.mode & UPDATE_AWAITED_FENCES
               and has_error_barriers(rewriting.text.data, rewriting.text.size))
    rewriting.changed = widened
    for i in range(min(rewriting.buffer.words.count, <size_t>(rewriting.text.size // WORD))):
        if memcmp(rewriting.buffer.words.data + i * WORD, rewriting.text.data + i * WORD,
                  WORD) != 0:
            rewriting.changed = True
            break
    if not write_if_changed(rewriting):
        return False
    if widened:
        widen_ranges(rewriting.text.data, &rewriting.code,
                     <InstructionMap*>rewriting.places.data + rewriting.code.first)
    return True
