# Code from before 13.0 as the finalizer of 13.0 leaves it: a WARPSYNC without the NOP that followed
# it, a barrier with another form of a shift, waits of several NOPs with the rest in the last of
# them instead of the first, and capsules of 12.8 in the form of all later ones
# (docs/older-objects.md).

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from base.elf64 cimport load16, load32
from exits.capsule cimport (
    ONE_WORD, Draft, Slot, Walk, emit, emit_counted, emit_record, emit_slot, next_slot,
    start_walk,
)
from exits.code cimport finish_changed, put_capsule, start_draft
from exits.rows cimport R_MEMORY, Code, Fault, View, fail, put32
from exits.words cimport LONGEST_STALL, M_EARLY, OP_NOP, WORD, opcode, set_stall, stall
from base.vector cimport Vec

cdef enum:
    OP_SHIFT = 0x819
    OP_CALL = 0x943
    OP_RETURN = 0x950
    # Records that 12.8 does not have. As numbers: the first byte is the lowest.
    CALL_RECORD = 0x0e020a42
    RETURN_RECORD = 0x0e003342
    # Of slots whose instructions differ: WARPSYNC, whose third byte varies, and a barrier with a
    # number that is not constant.
    WARPSYNC_RECORD = 0x0a004701
    WARPSYNC_MASK = 0xff00ffffU
    BARRIER_RECORD = 0x06644702
    BARRIER_SHIFT = 4           # its instruction that is another
    NO_REGISTER = 0xff


cdef inline bint is_dropped(uint32_t record) noexcept nogil:
    """Whether a record of 4 bytes is one that only 12.8 has.

    Seen: 0x941 and 0x945 (BSYNC, BSSY), conversions, and single ones. Any other stays.
    """
    return record in (
        0x0a000941, 0x0a040941, 0x0c040841, 0x06000842, 0x0a401241, 0x0a941241, 0x0abc1241,
        0x0ac01241, 0x063a2242, 0x06024242, 0x142e2542, 0x0e0a0a42,
    )


cdef inline bint emit_converted(Draft* draft, const Slot* slot, uint32_t added) noexcept nogil:
    """A slot of 12.8 without its record, or with one that it lacks."""
    cdef uint8_t record[4]
    cdef Slot fresh = slot[0]
    put32(record, added)
    fresh.record = record
    fresh.record_size = 4 if added else 0
    return emit_slot(draft, &fresh)


cdef inline bint emit_short(Draft* draft, const uint8_t* body) noexcept nogil:
    """The record of one instruction that says no more than the kind of the body."""
    cdef uint8_t* place = emit_record(draft, 4)
    if place == NULL:
        return False
    memcpy(place, body, 4)
    place[0] |= 0x40
    return True


cdef inline uint8_t* last_word(Draft* draft) noexcept nogil:
    return draft.words.data + (draft.words.count - 1) * WORD


cdef inline bint swap_shift(uint8_t* word) noexcept nogil:
    """A shift of the upper of two registers, the lower of which is none, as one of that lower."""
    if opcode(word) == OP_SHIFT and word[3] == NO_REGISTER:
        word[3] = word[8]
        word[8] = NO_REGISTER
        word[10] &= 0xfe
    return True


cdef inline bint is_wait(const Slot* slot) noexcept nogil:
    return (slot.record_size == 2 and slot.count == 1 and load16(slot.record) == ONE_WORD
            and opcode(slot.words) == OP_NOP)


cdef inline void order_waits(Draft* draft) noexcept nogil:
    """Put a full wait that was just added before one that is not full."""
    cdef uint8_t* last = last_word(draft)
    cdef uint32_t rest = stall(last - WORD)
    if stall(last) != LONGEST_STALL or stall(last - WORD) == LONGEST_STALL:
        return
    set_stall(last - WORD, LONGEST_STALL)
    set_stall(last, rest)


cdef inline bint emit_early(Draft* draft, const Slot* slot, int mode, bint early) noexcept nogil:
    """Any slot but the last; `early` is that of its capsule."""
    cdef uint32_t op = opcode(slot.words)
    if mode == M_EARLY and slot.count > 1 and slot.record_size > 6:
        if (load32(slot.record + 2) & WARPSYNC_MASK == WARPSYNC_RECORD and slot.count == 2
                and opcode(slot.words + WORD) == OP_NOP):
            return (emit_short(draft, slot.record + 2)
                    and emit(draft, slot.words, slot.offset))
        if load32(slot.record + 2) == BARRIER_RECORD and slot.count > BARRIER_SHIFT:
            return (emit_slot(draft, slot)
                    and swap_shift(last_word(draft) - (slot.count - 1 - BARRIER_SHIFT) * WORD))
    if early and slot.record_size == 4 and is_dropped(load32(slot.record)):
        return emit_converted(draft, slot, 0)
    if early and not slot.recorded and op == OP_CALL:
        return emit_converted(draft, slot, CALL_RECORD)
    if early and not slot.recorded and op == OP_RETURN:
        return emit_converted(draft, slot, RETURN_RECORD)
    return emit_slot(draft, slot)


cdef inline bint convert_code(View* text, View* capsule, int mode, Code* code, Draft* draft,
                              Vec* places, bint* changed, Fault* fault) noexcept nogil:
    """Bring one function up to date; `changed` says whether its text did, not only the capsule."""
    cdef Walk walk
    cdef Slot slot
    cdef size_t i
    cdef bint done, waits = False
    changed[0] = False
    if not start_walk(&walk, capsule, code.capsule, fault):
        return False
    start_draft(draft)
    while walk.next < walk.slots:
        if not next_slot(&walk, text, &slot, fault):
            return False
        if slot.last:
            done = emit_counted(draft, 1, NULL, 0) and emit(draft, slot.words, slot.offset)
        else:
            done = emit_early(draft, &slot, mode, walk.early)
        if not done:
            return fail(fault, 0, 0, R_MEMORY)
        if waits and not slot.last and is_wait(&slot):
            order_waits(draft)
        waits = mode == M_EARLY and is_wait(&slot)
    # Instructions were also changed where they stand.
    for i in range(draft.words.count):
        changed[0] = changed[0] or memcmp(draft.words.data + i * WORD, text.data + i * WORD,
                                          WORD) != 0
    if not finish_changed(text, capsule, draft, code, places, slot.offset + WORD, changed):
        return fail(fault, 0, 0, R_MEMORY)
    if walk.early and not changed[0] and not put_capsule(capsule, draft, slot.count):
        return fail(fault, 0, 0, R_MEMORY)
    return True
