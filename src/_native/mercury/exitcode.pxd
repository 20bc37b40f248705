# The code of one kernel, rewritten slot by slot.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from exitcapsule cimport *
from exitrows cimport *
from exitslots cimport *
from exitwords cimport *
from vec cimport *


cdef enum:
    PADDING = 0x80          # bytes of NOP behind the code, before rounding up
    ALIGNMENT = 128


cdef inline bint finish(View* text, View* capsule, Draft* draft, Code* code,
                        Vec* places) noexcept nogil:
    """Write the new text, capsule and places; False when memory is exhausted."""
    cdef uint64_t count = draft.words.count, old = code.count - 1, i, after = 0, source, nops
    cdef uint64_t slots = draft.sizes.count, bits_size = (slots + 31) // 32 * 4
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
    capsule.fresh_size = CAPSULE_HEADER + bits_size + draft.records.count
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
    put32(at + 8, <uint32_t>slots)
    memset(at + CAPSULE_HEADER, 0, bits_size)
    for i in range(slots):
        if not draft.sizes.data[i]:
            at[CAPSULE_HEADER + i // 8] |= 1 << i % 8
    memcpy(at + CAPSULE_HEADER + bits_size, draft.records.data, draft.records.count)
    put16(at + capsule.fresh_size - 2, <uint16_t>(0x50 | (nops + 1) << 7))
    return True


cdef inline bint rewrite_code(View* text, View* capsule, int mode, Code* code, Draft* draft,
                              Vec* places, bint* changed, Fault* fault) noexcept nogil:
    """Rewrite one kernel; `changed` says whether anything did, else nothing is written."""
    cdef const uint8_t* data = capsule.data
    cdef uint64_t size = capsule.size, slots, bits_size, at, i, offset = 0
    cdef Needs needs = needs_of(text.data, text.size, mode)
    cdef const uint8_t* bits = data + CAPSULE_HEADER
    cdef Slot slot
    cdef bint done = False, recorded
    changed[0] = False
    if size < CAPSULE_HEADER:
        return fail(fault, code.capsule, 0, R_CUT_OFF)
    slots = load32(data + 8)
    bits_size = (slots + 31) // 32 * 4
    if not slots or bits_size > size - CAPSULE_HEADER:
        return fail(fault, code.capsule, 8, R_BITMAP)
    draft.words.count = draft.sources.count = draft.records.count = draft.sizes.count = 0
    at = CAPSULE_HEADER + bits_size
    for i in range(slots):
        slot.record = data + at
        slot.record_size = 0
        slot.count = 1
        recorded = not bits[i // 8] >> (i % 8) & 1
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
            done = emit_counted(draft, 1, NULL, 0) and emit(draft, slot.words, offset)
            fault.reason = R_NONE if done else R_MEMORY
            offset += WORD
            break
        offset += slot.count * WORD
        fault.reason = R_MEMORY
        if needs.barrier and slot.count and opcode(text.data + offset - WORD) == OP_EXIT and (
                not recorded or is_barrier(&slot)):
            if not emit_exit(draft, &slot, &needs):
                break
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
            done = finish(text, capsule, draft, code, places)
            if not done:
                fault.reason = R_MEMORY
    return done
