# The code of one kernel, rewritten slot by slot.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from exits.capsule cimport (
    APPENDED, CAPSULE_HEADER, INSERTED, VERSION, Draft, Slot, Walk, emit, emit_counted, emit_slot,
    next_slot, start_walk,
)
from exits.rows cimport R_MEMORY, Code, Fault, Place, View, fail, put16, put32
from exits.slots cimport emit_exit, emit_fence, is_barrier
from exits.words cimport OP_EXIT, WORD, W_NOP, Needs, needs_of, opcode, put_instruction, retarget
from base.vector cimport Vec, vec_extend


cdef enum:
    PADDING = 0x80          # bytes of NOP behind the code, before rounding up
    ALIGNMENT = 128


cdef inline bint finish(View* text, View* capsule, Draft* draft, Code* code,
                        Vec* places) noexcept nogil:
    """Write the new text, capsule and places; False when memory is exhausted."""
    cdef uint64_t count = draft.words.count, old = code.count - 1, i, after = 0, source, nops
    cdef const uint64_t* sources = <const uint64_t*>draft.sources.data
    cdef Place* place = <Place*>vec_extend(places, code.count)
    if place == NULL:
        return False
    code.first = places.count - code.count
    for i in range(code.count):
        place[i].own = <uint64_t>INSERTED
    for i in range(count):
        if sources[i] < <uint64_t>APPENDED:
            place[sources[i] // WORD].own = i * WORD
    place[old].own = count * WORD
    for i in range(code.count):
        place[i].label = after
        if place[i].own == <uint64_t>INSERTED:
            place[i].own = after
        else:
            after = place[i].own + WORD
            while after // WORD < count and sources[after // WORD] == <uint64_t>APPENDED:
                after += WORD
        place[i].begin = place[i].own
    code.fresh_size = (count * WORD + PADDING + ALIGNMENT - 1) & ~<uint64_t>(ALIGNMENT - 1)
    nops = code.fresh_size // WORD - count
    text.fresh_size = code.fresh_size
    text.fresh = <uint8_t*>malloc(text.fresh_size)
    if text.fresh == NULL:
        return False
    memcpy(text.fresh, draft.words.data, count * WORD)
    for i in range(count):
        source = sources[i]
        if source < <uint64_t>APPENDED:
            retarget(text.fresh + i * WORD, source + WORD, (i + 1) * WORD, code,
                     <const Place*>places.data)
    for i in range(count, count + nops):
        put_instruction(text.fresh + i * WORD, W_NOP)
    return put_capsule(capsule, draft, nops + 1)


cdef inline bint put_capsule(View* capsule, const Draft* draft, uint64_t tail) noexcept nogil:
    """Write the new capsule; its last slot stands for `tail` instructions."""
    cdef uint64_t slots = draft.sizes.count, bits_size = (slots + 31) // 32 * 4, i
    cdef uint8_t* at
    capsule.fresh_size = CAPSULE_HEADER + bits_size + draft.records.count
    capsule.fresh = <uint8_t*>malloc(capsule.fresh_size)
    if capsule.fresh == NULL:
        return False
    at = capsule.fresh
    memcpy(at, capsule.data, 4)
    put32(at + 4, VERSION)
    put32(at + 8, <uint32_t>slots)
    memset(at + CAPSULE_HEADER, 0, bits_size)
    for i in range(slots):
        if not draft.sizes.data[i]:
            at[CAPSULE_HEADER + i // 8] |= 1 << i % 8
    memcpy(at + CAPSULE_HEADER + bits_size, draft.records.data, draft.records.count)
    put16(at + capsule.fresh_size - 2, <uint16_t>(0x50 | tail << 7))
    return True


cdef inline void start_draft(Draft* draft) noexcept nogil:
    draft.words.count = draft.sources.count = draft.records.count = draft.sizes.count = 0


cdef inline bint finish_changed(View* text, View* capsule, Draft* draft, Code* code, Vec* places,
                                uint64_t old, bint* changed) noexcept nogil:
    """Write what is new, if anything moved or was changed in a text whose code took `old` bytes."""
    cdef size_t i
    changed[0] = changed[0] or draft.sources.count * WORD != old
    for i in range(draft.sources.count):
        if (<uint64_t*>draft.sources.data)[i] != i * WORD:
            changed[0] = True
            break
    if not changed[0]:
        return True
    code.size = text.size
    code.count = old // WORD + 1
    return finish(text, capsule, draft, code, places)


cdef inline bint rewrite_code(View* text, View* capsule, int mode, Code* code, Draft* draft,
                              Vec* places, bint* changed, Fault* fault) noexcept nogil:
    """Rewrite one kernel; `changed` says whether anything did, else nothing is written."""
    cdef Needs needs = needs_of(text.data, text.size, mode)
    cdef Walk walk
    cdef Slot slot
    cdef bint done
    changed[0] = False
    if not start_walk(&walk, capsule, code.capsule, fault):
        return False
    start_draft(draft)
    while walk.next < walk.slots:
        if not next_slot(&walk, text, &slot, fault):
            return False
        if slot.last:
            done = emit_counted(draft, 1, NULL, 0) and emit(draft, slot.words, slot.offset)
        elif needs.barrier and slot.count and opcode(
                text.data + walk.offset - WORD) == OP_EXIT and (
                not slot.recorded or is_barrier(&slot)):
            done = emit_exit(draft, &slot, &needs)
        elif slot.count > 1 and slot.record_size > 2:
            done = emit_fence(draft, &slot, &needs)
        else:
            done = emit_slot(draft, &slot)
        if not done:
            return fail(fault, 0, 0, R_MEMORY)
    if not finish_changed(text, capsule, draft, code, places, slot.offset + WORD, changed):
        return fail(fault, 0, 0, R_MEMORY)
    return True
