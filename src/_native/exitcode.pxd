# The code of one kernel: instructions of 16 bytes and the capsule that counts them.
#
# A capsule is: u32 section index of .text, u32 version, u32 number of slots, a bitmap with one bit
# per slot in words of 32, then for each slot whose bit is 0 a record, in slot order. A slot is one
# instruction, or the several that a record expands to: the record then begins with a u16 of
# 0x50 | count << 7, and 1 in the low nibble when a body follows. The last slot is the branch to
# itself that ends the code; its count also covers the NOPs behind it. The first byte of a body
# gives its size.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from exitrows cimport *
from vec cimport *


cdef enum:
    WORD = 16
    CAPSULE_HEADER = 12
    PADDING = 0x80          # bytes of NOP behind the code, before rounding up
    ALIGNMENT = 128
    BARRIER_BODY = 16       # capsule record of the error barrier

    OP_EXIT = 0x94d
    OP_MEMBAR = 0x992
    MEMBAR_BYTE = 9         # its level and scope
    MEMBAR_GUARD = 0x80     # level and scope of the one before a fence's own

cdef enum Mode:
    M_FENCES                # executable without error barriers
    M_SHORT                 # executable with error barriers
    M_LONG                  # with -g or -r


cdef enum Kind:
    W_MEMBAR                # MEMBAR.SC.VC
    W_ERRBAR
    W_CCTL                  # CCTL.IVALL
    W_NOP


cdef inline void put_instruction(uint8_t* place, Kind kind) noexcept nogil:
    if kind == W_MEMBAR:
        put64(place, 0x7992)
        put64(place + 8, 0x000fc00000005000ULL)
    elif kind == W_ERRBAR:
        put64(place, 0x79ab)
        put64(place + 8, 0x000fc00000000000ULL)
    elif kind == W_CCTL:
        put64(place, 0x75ab)
        put64(place + 8, 0x000fec0000000000ULL)
    else:
        put64(place, 0x7918)
        put64(place + 8, 0x000fc00000000000ULL)


cdef inline void put_barrier(uint8_t* body) noexcept nogil:
    """The capsule record of an error barrier before an EXIT without predicate."""
    put64(body, 0x000000f80a001101ULL)
    put64(body + 8, 0x00000000f8000000ULL)


cdef inline bint is_dummy_load(const uint8_t* word) noexcept nogil:
    """@!PT LDS RZ, [RZ]; the scheduling bits are any."""
    return get64(word) == 0xfffff984ULL and get64(word + 8) & 0xffffffffffULL == 0x0800


# What the kernel's instructions oblige its fences and EXITs to do.
ctypedef struct Needs:
    bint loads              # dummy shared loads before a fence: LDGSTS, calls
    bint guards             # a second MEMBAR before a fence's own: SYNCS, calls
    bint membar             # MEMBAR before EXIT: surface stores, calls
    bint barrier            # ERRBAR before EXIT


cdef inline uint32_t opcode(const uint8_t* word) noexcept nogil:
    return get16(word) & 0xfff


cdef inline bint is_membar(const uint8_t* word) noexcept nogil:
    return opcode(word) == OP_MEMBAR


cdef inline Needs needs_of(const uint8_t* text, uint64_t size, int mode) noexcept nogil:
    cdef Needs needs
    cdef uint64_t at
    cdef uint32_t op
    needs.loads = needs.guards = needs.membar = mode == M_LONG
    needs.barrier = mode != M_FENCES
    if mode == M_LONG:
        return needs
    for at in range(0, size, 16):
        op = opcode(text + at) & 0x1ff
        if op == 0x143 or op == 0x144:                          # CALL.ABS, CALL.REL
            needs.loads = needs.guards = needs.membar = True
            break
        if op == 0x1ae:                                         # LDGSTS
            needs.loads = True
        elif op == 0x1a7 or op == 0x1b1 or op == 0x1b2:         # SYNCS
            needs.guards = True
        elif op == 0x19b or op == 0x19d or op == 0x19f:         # SUST.P, SUST, SURED
            needs.membar = True
    return needs


cdef inline bint retarget(uint8_t* word, uint64_t old, uint64_t new, const Code* code,
                          const Place* places) noexcept nogil:
    """Correct the distance in a relative branch; `old` and `new` are the offsets behind it."""
    cdef uint64_t low = get64(word), high = get64(word + 8)
    cdef int64_t distance, target
    cdef uint32_t op = low & 0x1ff
    if op == 0x145:                 # BSSY: 30 bits at 34, in words of 4
        distance = (<int64_t>low >> 34) * 4
    elif op == 0x144 or op == 0x147 or op == 0x148 or op == 0x149 or op == 0x158:
        # CALL.REL, BRA, WARPSYNC, BRX, BRXU: 8 bits at 16, then 48 at 34, in words of 4
        distance = <int64_t>(((low >> 34 | high << 30) << 8 | (low >> 16 & 0xff)) << 8) >> 6
    else:
        return True
    target = <int64_t>old + distance
    if target < 0 or <uint64_t>target > code.size:
        return True
    distance = <int64_t>(moved(code, places, target, False) - new) >> 2
    if op == 0x145:
        low = (low & 0x3ffffffffULL) | <uint64_t>distance << 34
    else:
        low = (low & ~(0xffULL << 16) & 0x3ffffffffULL) | (<uint64_t>distance & 0xff) << 16
        low |= <uint64_t>(distance >> 8) << 34
        high = (high & ~0x3ffffULL) | (<uint64_t>(distance >> 38) & 0x3ffff)
    put64(word, low)
    put64(word + 8, high)
    return True


# One slot of the code while it is rewritten.
ctypedef struct Slot:
    const uint8_t* words    # its instructions
    uint64_t count
    const uint8_t* record   # with its count, NULL for none
    uint64_t record_size
    uint64_t offset         # of the first instruction


# The code being rewritten.
ctypedef struct Draft:
    Vec words               # 16 bytes each
    Vec sources             # u64 offset in the old text for each word, or INSERTED
    Vec records             # bytes

cdef enum:
    INSERTED = -1


cdef inline bint emit(Draft* draft, const uint8_t* word, uint64_t source) noexcept nogil:
    cdef uint8_t* place = <uint8_t*>vec_push(&draft.words)
    cdef uint64_t* from_ = <uint64_t*>vec_push(&draft.sources)
    if place == NULL or from_ == NULL:
        return False
    memcpy(place, word, WORD)
    from_[0] = source
    return True


cdef inline bint emit_record(Draft* draft, uint64_t count, const uint8_t* body,
                             uint64_t size) noexcept nogil:
    """A record for `count` instructions; a count of one is not written."""
    cdef uint8_t* place
    cdef uint64_t prefix = 2 if count != 1 else 0
    place = <uint8_t*>vec_extend(&draft.records, prefix + size)
    if place == NULL:
        return False
    if prefix:
        put16(place, <uint16_t>(0x50 | (size != 0) | count << 7))
    memcpy(place + prefix, body, size)
    return True


cdef inline bint emit_slot(Draft* draft, const Slot* slot) noexcept nogil:
    cdef uint64_t i
    cdef uint8_t* place
    if slot.record_size:
        place = <uint8_t*>vec_extend(&draft.records, slot.record_size)
        if place == NULL:
            return False
        memcpy(place, slot.record, slot.record_size)
    for i in range(slot.count):
        if not emit(draft, slot.words + i * WORD, slot.offset + i * WORD):
            return False
    return True


cdef inline bint emit_fence(Draft* draft, const Slot* slot, const Needs* needs) noexcept nogil:
    """A slot of several instructions, without what its kernel does not need."""
    cdef uint64_t i, before = draft.words.count, kept
    cdef const uint8_t* word
    for i in range(slot.count):
        word = slot.words + i * WORD
        if not needs.loads and is_dummy_load(word):
            continue
        if (not needs.guards and is_membar(word) and word[MEMBAR_BYTE] == MEMBAR_GUARD
                and i + 1 < slot.count and is_membar(word + WORD)):
            continue
        if not emit(draft, word, slot.offset + i * WORD):
            return False
    kept = draft.words.count - before
    return emit_record(draft, kept, slot.record + 2, slot.record_size - 2)


cdef inline bint is_barrier(const Slot* slot) noexcept nogil:
    return slot.record_size == 2 + BARRIER_BODY and get32(slot.record + 2) == 0x0a001101


cdef inline bint emit_guarded(Draft* draft, const Slot* slot, Kind kind) noexcept nogil:
    """An instruction of the error barrier: the slot's own, or a new one."""
    cdef uint8_t word[WORD]
    cdef uint64_t i
    put_instruction(word, kind)
    word[1] = (word[1] & 0x0f) | (slot.words[(slot.count - 1) * WORD + 1] & 0xf0)
    for i in range(slot.count):
        if get16(slot.words + i * WORD) == get16(word):
            return emit(draft, slot.words + i * WORD, slot.offset + i * WORD)
    return emit(draft, word, <uint64_t>INSERTED)


cdef inline bint emit_exit(Draft* draft, const Slot* slot, const Needs* needs) noexcept nogil:
    """An EXIT with its error barrier, whose instructions take over the predicate of the EXIT."""
    cdef uint8_t body[BARRIER_BODY]
    cdef uint8_t predicate = slot.words[(slot.count - 1) * WORD + 1] >> 4
    cdef uint8_t* last
    if not slot.record_size and draft.words.count:
        # The two cycles between an instruction and EXIT are no longer needed.
        last = draft.words.data + (draft.words.count - 1) * WORD
        if last[13] & 0x1e == 2 << 1:
            last[13] = (last[13] & ~0x1e) | 1 << 1
    if needs.membar and not emit_guarded(draft, slot, W_MEMBAR):
        return False
    if not emit_guarded(draft, slot, W_ERRBAR) or not emit_guarded(draft, slot, W_CCTL):
        return False
    if not emit(draft, slot.words + (slot.count - 1) * WORD,
                slot.offset + (slot.count - 1) * WORD):
        return False
    if slot.record_size:
        memcpy(body, slot.record + 2, BARRIER_BODY)
    else:
        put_barrier(body)
        body[4] = (0x1f if predicate & 7 == 7 else predicate & 7) << 3 | predicate >> 3
    return emit_record(draft, 4 if needs.membar else 3, body, BARRIER_BODY)


cdef inline bint read_record(const uint8_t* data, uint64_t size, uint64_t at,
                             Slot* slot) noexcept nogil:
    """Size of the record at `at` and the instructions it stands for; False for an unknown one."""
    cdef uint64_t prefix = 0
    cdef uint8_t head
    slot.count = 1
    if at >= size:
        return False
    head = data[at]
    if head & 0x70 == 0x50:
        if size - at < 2:
            return False
        slot.count = get16(data + at) >> 7
        prefix = 2
        if not head & 0x0f:
            slot.record_size = 2
            return slot.count != 0
        if size - at < 3:
            return False
        head = data[at + 2]
    if head == 0x01:
        slot.record_size = prefix + 16
    elif head == 0x02:
        slot.record_size = prefix + 32
    elif head == 0x41 or head == 0x42:
        slot.record_size = prefix + 4
    else:
        return False
    return slot.count != 0 and slot.record_size <= size - at


cdef inline bint finish(View* text, View* capsule, Draft* draft, Code* code, Vec* places,
                        const uint8_t* bits, uint64_t bits_size) noexcept nogil:
    """Write the new text, capsule and places; False when memory is exhausted."""
    cdef uint64_t count = draft.words.count, old = code.count - 1, i, after = 0, source, nops
    cdef const uint64_t* sources = <const uint64_t*>draft.sources.data
    cdef Place* place = <Place*>vec_extend(places, code.count)
    cdef uint8_t* at
    if place == NULL:
        return False
    code.first = places.count - code.count
    for i in range(code.count):
        place[i].own = <uint64_t>INSERTED
    for i in range(count):
        if sources[i] != <uint64_t>INSERTED:
            place[sources[i] // WORD].own = i * WORD
    place[old].own = count * WORD
    for i in range(code.count):
        place[i].label = after
        if place[i].own == <uint64_t>INSERTED:
            place[i].own = after
        else:
            after = place[i].own + WORD
    code.fresh_size = (count * WORD + PADDING + ALIGNMENT - 1) & ~<uint64_t>(ALIGNMENT - 1)
    nops = code.fresh_size // WORD - count
    text.fresh_size = code.fresh_size
    text.fresh = <uint8_t*>malloc(text.fresh_size)
    capsule.fresh_size = CAPSULE_HEADER + bits_size + draft.records.count + 2
    capsule.fresh = <uint8_t*>malloc(capsule.fresh_size)
    if text.fresh == NULL or capsule.fresh == NULL:
        return False
    memcpy(text.fresh, draft.words.data, count * WORD)
    for i in range(count):
        source = sources[i]
        if source != <uint64_t>INSERTED:
            retarget(text.fresh + i * WORD, source + WORD, (i + 1) * WORD, code,
                     <const Place*>places.data)
    for i in range(count, count + nops):
        put_instruction(text.fresh + i * WORD, W_NOP)
    at = capsule.fresh
    memcpy(at, capsule.data, CAPSULE_HEADER)
    memcpy(at + CAPSULE_HEADER, bits, bits_size)
    memcpy(at + CAPSULE_HEADER + bits_size, draft.records.data, draft.records.count)
    put16(at + capsule.fresh_size - 2, <uint16_t>(0x50 | (nops + 1) << 7))
    return True


cdef inline bint rewrite_code(View* text, View* capsule, int mode, Code* code, Draft* draft,
                              Vec* places, bint* changed, Fault* fault) noexcept nogil:
    """Rewrite one kernel; `changed` says whether anything did, else nothing is written."""
    cdef const uint8_t* data = capsule.data
    cdef uint64_t size = capsule.size, slots, bits_size, at, i, offset = 0
    cdef Needs needs = needs_of(text.data, text.size, mode)
    cdef Vec bits
    cdef Slot slot
    cdef bint done = False, recorded
    changed[0] = False
    if size < CAPSULE_HEADER:
        return fail(fault, code.capsule, 0, R_CUT_OFF)
    slots = get32(data + 8)
    bits_size = (slots + 31) // 32 * 4
    if not slots or bits_size > size - CAPSULE_HEADER:
        return fail(fault, code.capsule, 8, R_BITMAP)
    draft.words.count = draft.sources.count = draft.records.count = 0
    vec_init(&bits, 1)
    if vec_extend(&bits, bits_size) == NULL:
        return fail(fault, code.capsule, 0, R_MEMORY)
    memcpy(bits.data, data + CAPSULE_HEADER, bits_size)
    at = CAPSULE_HEADER + bits_size
    for i in range(slots):
        slot.record = data + at
        slot.record_size = 0
        slot.count = 1
        recorded = not bits.data[i // 8] >> (i % 8) & 1
        if recorded and not read_record(data, size, at, &slot):
            fail(fault, code.capsule, at, R_RECORD)
            break
        if slot.count > (text.size - offset) // WORD:
            fail(fault, code.capsule, at, R_COUNT)
            break
        slot.words = text.data + offset
        slot.offset = offset
        at += slot.record_size
        if i == slots - 1:
            if slot.record_size != 2 or at != size:
                fail(fault, code.capsule, at, R_LAST_SLOT)
                break
            if slot.count * WORD != text.size - offset:
                fail(fault, code.capsule, at, R_COUNT)
                break
            done = emit(draft, slot.words, offset)
            fault.reason = R_NONE if done else R_MEMORY
            offset += WORD
            break
        offset += slot.count * WORD
        fault.reason = R_MEMORY
        if needs.barrier and opcode(text.data + offset - WORD) == OP_EXIT and (
                not recorded or is_barrier(&slot)):
            if not emit_exit(draft, &slot, &needs):
                break
            bits.data[i // 8] &= ~(1 << (i % 8))
        elif slot.count > 1 and slot.record_size > 2:
            if not emit_fence(draft, &slot, &needs):
                break
        elif not emit_slot(draft, &slot):
            break
    if done:
        for i in range(draft.sources.count):
            if (<uint64_t*>draft.sources.data)[i] != i * WORD:
                changed[0] = True
                break
        if draft.sources.count * WORD != offset:
            changed[0] = True
        if changed[0]:
            code.size = text.size
            code.count = offset // WORD + 1
            done = finish(text, capsule, draft, code, places, bits.data, bits_size)
            if not done:
                fault.reason = R_MEMORY
    vec_free(&bits)
    return done
