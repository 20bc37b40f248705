# Converts code of one release to the form in which nvlink's finalizer of another release leaves it
# (docs/older-objects.md).
#
# A finalizer writes all code in the form of its own release, also code of another ptxas. pylink
# keeps the schedule that ptxas gave to optimized code. The forms differ as follows:
#
# * From 13.1 on, the MEMBAR of a fence waits for the fence's guard, another MEMBAR in front of it.
# * From 13.1 on, two more instructions follow those that acquire a tensor map.
# * From 13.1 on, functions for sm_120 and sm_121 that were not optimized have IADD for IADD3 of two
#   operands.
# * From 13.2.86 on, a NOP is in front of each BSYNC.RECONVERGENT and BSYNC.RELIABLE.
# * From 13.3 on, functions that were not optimized have no stalls and no scoreboards.

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
    CONTROL_BYTE, MEMBAR_BYTE, MEMBAR_GUARD, OPERATION, OP_EXIT, OP_NOP, UNOPTIMIZED_BARE,
    UNOPTIMIZED_WAITING, UPDATE_ANY, UPDATE_UNOPTIMIZED, W_NOP, is_dummy_load, is_membar,
    is_unoptimized, opcode, operation, put_instruction, set_stall, stall,
)
from instructions cimport OP_IADD3
from kernelmodes cimport (
    UPDATE_AWAITED_FENCES, UPDATE_BARE_WORDS, UPDATE_GUARD_BSYNC, UPDATE_SHORT_ADDS,
    UPDATE_UNGUARD_BSYNC,
)

cdef enum:
    OP_BSYNC = 0x941
    OP_ERRBAR = 0x9ab
    OP_CCTL = 0x5ab
    BSYNC_FORM_BYTE = 9         # byte of a BSYNC that has the next two bits
    RELIABLE = 1                # BSYNC.RELIABLE
    RECONVERGENT = 2            # BSYNC.RECONVERGENT
    BSYNC_BODY = 16             # bytes of the body of the record for a NOP and a BSYNC
    BSYNC_RECORD = 0x0a000901   # first 4 bytes of that body; the third one varies
    BSYNC_MASK = 0xff00ffffU
    QUICK = 0x0fe2              # control bytes of that NOP in optimized code: only a stall of 1

    # Bits that are set in the control bytes of unoptimized code up to 13.2: the longest stall, and
    # waits for scoreboards 0 and 1. Its HMMA and ERRBAR have WAITS_ALONE: waits, no stall.
    UNOPTIMIZED_MASK = 0x301e
    WAITS_ALONE = 0x3fc0
    # From 13.1 on, the MEMBAR of a fence waits for its guard. The control bytes of the guard are
    # GUARD_READS, and AWAITS_READ is added to those of the MEMBAR. In unoptimized code the guard
    # has GUARD_UNOPTIMIZED, and the MEMBAR stays.
    GUARD_READS = 0x03ec
    AWAITS_READ = 0x2000
    GUARD_UNOPTIMIZED = 0x33de
    # `fence.proxy.tensormap::generic.acquire` is a slot of ACQUIRE_COUNT instructions, the last of
    # them OP_ACQUIRE. The body of the slot's record begins with ACQUIRE_RECORD. From 13.1 on,
    # OP_FLUSH follows, and then a NOP that waits until OP_FLUSH has read its operands. In optimized
    # code, their control bytes are FLUSH_READS and FLUSH_AWAITED.
    ACQUIRE_RECORD = 0x16144901
    ACQUIRE_COUNT = 3
    OP_ACQUIRE = 0x9b9
    OP_FLUSH = 0x9b7
    FLUSH_READS = 0x03e4
    FLUSH_AWAITED = 0x2fe2

    # An IADD3 of two operands becomes an IADD. It is known by the upper 8 bytes of the instruction:
    # masked by THIRD they are THIRD_NONE if the third source is RZ, not negated, and there is no
    # second carry. OP_IADD is a result of `operation`.
    OP_IADD = 0x035
    THIRD = 0x71e8ff
    THIRD_NONE = 0x71e0ff
    CARRY = 1 << 10             # bit of the upper 8 bytes, .X: adds a carry
    # Kinds of the second operand, in bits 9 to 11 of an opcode, as `opcode >> 8 & 0xe`.
    FORM_REGISTER = 0x2
    FORM_IMMEDIATE = 0x8
    FORM_UNIFORM = 0xc


cdef inline bint needs_nop(const uint8_t* word) noexcept nogil:
    """Return whether the instruction is a BSYNC that has a NOP in front of it from 13.2.86 on."""
    return (opcode(word) == OP_BSYNC
            and word[BSYNC_FORM_BYTE] & (RELIABLE | RECONVERGENT) != 0)


cdef inline bint is_code_unoptimized(const uint8_t* code, uint64_t size) noexcept nogil:
    """Return whether ptxas up to 13.2 compiled the function without optimizing it.

    Then each instruction has the longest stall and waits for scoreboards 0 and 1, except for dummy
    loads, for HMMA and ERRBAR, which wait and do not stall, and for NOPs and branches that do
    neither.
    """
    cdef uint64_t offset
    cdef uint32_t control
    cdef bint unoptimized = False
    for offset in range(0, size, 16):
        control = load16(code + offset + CONTROL_BYTE)
        if is_dummy_load(code + offset):
            continue
        if control & UNOPTIMIZED_MASK == UNOPTIMIZED_MASK and not code[offset + CONTROL_BYTE + 2]:
            unoptimized = True
        elif control != UNOPTIMIZED_BARE and control != WAITS_ALONE:
            return False
    return unoptimized


cdef inline bint emit_guarded_bsync(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Emit a NOP and the BSYNC of a slot, as one slot; False without memory."""
    cdef uint8_t body[BSYNC_BODY]
    cdef uint8_t nop[WORD]
    cdef const uint8_t* word = slot.words
    cdef bint reliable = word[BSYNC_FORM_BYTE] & RELIABLE != 0
    put32(body, BSYNC_RECORD | (4 if reliable else 2) << 16)
    put32(body + 4, encode_predicate(word[1] >> 4) | (not reliable) << 16)
    put32(body + 8, <uint32_t>(word[2] & 0xf) << 17)    # twice the number of its barrier
    put32(body + 12, 0)
    put_instruction(nop, W_NOP)
    put16(nop + CONTROL_BYTE, load16(word + CONTROL_BYTE) if is_unoptimized(word) else QUICK)
    return (emit_counted(buffer, 2, body, BSYNC_BODY) and emit(buffer, nop, <uint64_t>INSERTED)
            and emit(buffer, word, slot.offset))


cdef inline bint is_guarded(const Slot* slot) noexcept nogil:
    """Return whether a slot is a NOP and a BSYNC, as `emit_guarded_bsync` makes them."""
    return (slot.count == 2 and slot.record_size == 2 + BSYNC_BODY
            and load32(slot.record + 2) & BSYNC_MASK == BSYNC_RECORD
            and opcode(slot.words) == OP_NOP and needs_nop(slot.words + WORD))


cdef inline bint emit_bare(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Emit only the BSYNC of a slot that `is_guarded`; False without memory."""
    return emit_record(buffer, 0) != NULL and emit(buffer, slot.words + WORD, slot.offset + WORD)


cdef inline bint is_short_add(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is a short IADD3: of two operands, with a carry or without."""
    cdef uint64_t high = load64(word + 8)   # upper half of the instruction
    return (operation(word) == OP_IADD3 and high & THIRD == THIRD_NONE
            and high >> 16 & 1 != 0)


cdef inline uint32_t iadd_record(const uint8_t* word) noexcept nogil:
    """Return the capsule record of the IADD that a slot's only instruction becomes, or 0.

    The record has 4 bytes, little endian. 0 is for instructions that are not a short IADD3, and
    for forms that were not seen, such as a uniform operand with a carry.
    """
    cdef uint64_t high = load64(word + 8)
    cdef uint32_t form = opcode(word) >> 8 & 0xe    # FORM_: kind of the second operand
    if not is_short_add(word):
        return 0
    if form == FORM_REGISTER:
        return 0x14300c42 if high & CARRY else 0x04400c41
    if form == FORM_IMMEDIATE:
        return 0x06320c42 if high & CARRY else 0x06420c42
    return 0x04440c41 if form == FORM_UNIFORM and not high & CARRY else 0


cdef inline void shorten_add(uint8_t* word) noexcept nogil:
    """Change a short IADD3 into an IADD."""
    put16(word, (load16(word) & ~<uint32_t>OPERATION) | OP_IADD)
    put64(word + 8, load64(word + 8) & ~<uint64_t>(THIRD | 1 << 16))


cdef inline bint emit_add(CodeBuffer* buffer, const Slot* slot, uint32_t record) noexcept nogil:
    """Emit an IADD with its `record` instead of the slot's IADD3; False without memory."""
    cdef uint8_t word[WORD]
    cdef uint8_t* target = emit_record(buffer, 4)
    memcpy(word, slot.words, WORD)
    shorten_add(word)
    if target == NULL:
        return False
    put32(target, record)
    return emit(buffer, word, slot.offset)


cdef inline void set_guards(CodeBuffer* buffer, uint64_t count, bint unoptimized) noexcept nogil:
    """Make fences among the last `count` instructions wait for their guards, if they do not yet.

    A guard is the MEMBAR in front of a fence's own. `unoptimized` says that ptxas did not optimize
    the code: then the fence waits anyway, and only the guard changes.
    """
    cdef uint8_t* word = buffer.words.data + (buffer.words.count - count) * WORD
    while count > 1:
        if (is_membar(word) and word[MEMBAR_BYTE] == MEMBAR_GUARD and is_membar(word + WORD)
                and load16(word + CONTROL_BYTE) == UNOPTIMIZED_BARE
                and load16(word + WORD + CONTROL_BYTE) != UNOPTIMIZED_BARE):
            put16(word + CONTROL_BYTE, GUARD_UNOPTIMIZED if unoptimized else GUARD_READS)
            if not unoptimized:
                put16(word + WORD + CONTROL_BYTE,
                      <uint16_t>(load16(word + WORD + CONTROL_BYTE) | AWAITS_READ))
        word += WORD
        count -= 1


cdef inline bint is_acquire(const Slot* slot) noexcept nogil:
    """Return whether the slot acquires a tensor map, as code from before 13.1 does."""
    return (slot.count == ACQUIRE_COUNT and slot.record_size > 6
            and load32(slot.record + 2) == ACQUIRE_RECORD
            and opcode(slot.words + (ACQUIRE_COUNT - 1) * WORD) == OP_ACQUIRE)


cdef inline bint emit_acquire(CodeBuffer* buffer, const Slot* slot,
                              bint unoptimized) noexcept nogil:
    """Emit an acquire with the two instructions that follow it from 13.1 on; False without memory.

    The two need not wait for the acquire's last instruction, so it stalls 1 cycle instead of 2.
    """
    cdef uint8_t flush[WORD]
    cdef uint8_t nop[WORD]
    cdef const uint8_t* last = slot.words + (ACQUIRE_COUNT - 1) * WORD
    cdef uint8_t* acquire
    cdef uint64_t i
    put_instruction(nop, W_NOP)
    memcpy(flush, nop, WORD)
    put16(flush, OP_FLUSH | (load16(last) & 0xf000))    # with the predicate of the last
    put16(flush + CONTROL_BYTE, GUARD_UNOPTIMIZED if unoptimized else FLUSH_READS)
    put16(nop + CONTROL_BYTE, UNOPTIMIZED_WAITING if unoptimized else FLUSH_AWAITED)
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
    """Emit the slot that was read, changed as the mode says; False without memory.

    `emit_code` calls this for each slot but the last.
    """
    cdef const Slot* slot = &rewriting.slot
    cdef uint32_t record = 0
    cdef size_t i
    if rewriting.mode & UPDATE_GUARD_BSYNC and not slot.has_record and needs_nop(slot.words):
        return emit_guarded_bsync(&rewriting.buffer, slot)
    if rewriting.mode & UPDATE_UNGUARD_BSYNC and is_guarded(slot):
        return emit_bare(&rewriting.buffer, slot)
    if rewriting.mode & UPDATE_SHORT_ADDS and not slot.has_record:
        record = iadd_record(slot.words)
    if record:
        return emit_add(&rewriting.buffer, slot, record)
    if rewriting.mode & UPDATE_AWAITED_FENCES and is_acquire(slot):
        return emit_acquire(&rewriting.buffer, slot, rewriting.unoptimized)
    if not emit_slot(&rewriting.buffer, slot):
        return False
    if rewriting.mode & UPDATE_AWAITED_FENCES:
        set_guards(&rewriting.buffer, slot.count, rewriting.unoptimized)
    if rewriting.mode & UPDATE_SHORT_ADDS and slot.count > 1:
        # The record of a longer slot does not say where short IADD3 are, so the record stays.
        for i in range(rewriting.buffer.words.count - slot.count, rewriting.buffer.words.count):
            if is_short_add(rewriting.buffer.words.data + i * WORD):
                shorten_add(rewriting.buffer.words.data + i * WORD)
    return True


cdef inline bint is_barrier_end(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is the last of an error barrier.

    It must have an instruction before it and one after it.
    """
    return (opcode(word) == OP_CCTL and opcode(word + WORD) == OP_EXIT
            and opcode(word - WORD) == OP_ERRBAR)


cdef inline bint has_error_barriers(const uint8_t* code, uint64_t size) noexcept nogil:
    """Return whether a function has an EXIT with an error barrier."""
    cdef uint64_t offset
    for offset in range(WORD, size - WORD if size > WORD else 0, 16):
        if is_barrier_end(code + offset):
            return True
    return False


cdef inline void widen_ranges(const uint8_t* text, const Code* code,
                              InstructionMap* places) noexcept nogil:
    """Let register ranges that begin with the last instruction of an error barrier begin earlier.

    Such a range should begin one instruction before the EXIT. Up to 13.0 ptxas counts the barrier
    for that, from 13.1 on it does not: the range begins with the instruction in front of the
    barrier. `text` is the old code, and `places` are the function's own InstructionMaps.
    """
    cdef size_t i, first
    for i in range(1, code.count - 2 if code.count > 2 else 0):
        if is_barrier_end(text + i * WORD):
            first = i - 2 if i > 1 and is_membar(text + (i - 2) * WORD) else i - 1
            if places[first].instruction >= WORD:
                places[i].range_start = places[first].instruction - WORD


cdef inline void clear_schedules(CodeBuffer* buffer) noexcept nogil:
    """Remove stalls and scoreboards from all instructions except dummy loads."""
    cdef uint8_t* word
    cdef size_t i
    for i in range(buffer.words.count):
        word = buffer.words.data + i * WORD
        if not is_dummy_load(word):
            put16(word + CONTROL_BYTE, UNOPTIMIZED_BARE)
            word[CONTROL_BYTE + 2] = 0


cdef inline bint update_code(Rewriting* rewriting) noexcept nogil:
    """Convert one function to the form of another release; False with a fault.

    Sets `rewriting.changed` if anything was written.
    """
    cdef size_t i
    cdef bint widened
    rewriting.unoptimized = (rewriting.mode & (UPDATE_AWAITED_FENCES | UPDATE_UNOPTIMIZED)
                             and is_code_unoptimized(rewriting.text.data, rewriting.text.size))
    if not rewriting.unoptimized:
        rewriting.mode &= ~<int>UPDATE_UNOPTIMIZED
    if not rewriting.mode & UPDATE_ANY:
        return True
    if not emit_code(rewriting, emit_update):
        return False
    if rewriting.mode & UPDATE_BARE_WORDS:
        clear_schedules(&rewriting.buffer)
    widened = (rewriting.unoptimized and rewriting.mode & UPDATE_AWAITED_FENCES
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
