# The code of one kernel, rewritten slot by slot.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from exits.capsule cimport (
    APPENDED, CAPSULE_HEADER, INSERTED, VERSION, CodeBuffer, Slot, Walk, emit, emit_counted,
    emit_slot, next_slot, start_buffer, start_walk,
)
from exits.rows cimport R_MEMORY, Code, Fault, Place, View, fail, put16, put32, renew
from exits.slots cimport emit_exit, emit_fence, is_barrier
from exits.words cimport OP_EXIT, WORD, W_NOP, Needs, needs_of, opcode, put_instruction, retarget
from base.vector cimport Vec, vec_extend


cdef enum:
    PADDING = 0x80          # bytes of NOP after the code, before rounding up
    ALIGNMENT = 128


# A function while its code is rewritten.
ctypedef struct Rewriting:
    View* text
    View* capsule
    int mode
    Code code
    CodeBuffer buffer
    Walk walk
    Slot slot               # the one at hand
    Vec* places             # Place
    Fault* fault
    bint changed            # the text becomes another, not only the capsule
    Needs needs             # of code whose exits are rewritten
    bint careful            # code that is brought up to date was not scheduled
    bint waits              # the slot before waits, in code from before 13.0


# Emits the slot at hand, which is not the last; False when memory is exhausted.
ctypedef bint (*EmitSlot)(Rewriting* r) noexcept nogil


cdef inline bint emit_code(Rewriting* r, EmitSlot emit_one) noexcept nogil:
    """Rewrite the whole function, slot by slot; the last one is the branch that ends all code."""
    cdef bint done
    start_buffer(&r.buffer)
    if not start_walk(&r.walk, r.capsule, r.code.capsule, r.fault):
        return False
    while r.walk.next < r.walk.slots:
        if not next_slot(&r.walk, r.text, &r.slot, r.fault):
            return False
        if r.slot.last:
            done = (emit_counted(&r.buffer, 1, NULL, 0)
                    and emit(&r.buffer, r.slot.words, r.slot.offset))
        else:
            done = emit_one(r)
        if not done:
            return fail(r.fault, 0, 0, R_MEMORY)
    return True


cdef inline bint finish(Rewriting* r) noexcept nogil:
    """Write the new text, capsule and places; False when memory is exhausted."""
    cdef Code* code = &r.code
    cdef View* text = r.text
    cdef uint64_t count = r.buffer.words.count, old = code.count - 1, i, after = 0, source, nops
    cdef const uint64_t* sources = <const uint64_t*>r.buffer.sources.data
    cdef Place* place = <Place*>vec_extend(r.places, code.count)
    if place == NULL:
        return False
    code.first = r.places.count - code.count
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
    if renew(text, code.fresh_size) == NULL:
        return False
    memcpy(text.fresh, r.buffer.words.data, count * WORD)
    for i in range(count):
        source = sources[i]
        if source < <uint64_t>APPENDED:
            retarget(text.fresh + i * WORD, source + WORD, (i + 1) * WORD, code,
                     <const Place*>r.places.data)
    for i in range(count, count + nops):
        put_instruction(text.fresh + i * WORD, W_NOP)
    return put_capsule(r.capsule, &r.buffer, nops + 1)


cdef inline bint put_capsule(View* capsule, const CodeBuffer* buffer, uint64_t tail) noexcept nogil:
    """Write the new capsule; its last slot stands for `tail` instructions."""
    cdef uint64_t slots = buffer.sizes.count, bits_size = (slots + 31) // 32 * 4, i
    cdef uint8_t* at = renew(capsule, CAPSULE_HEADER + bits_size + buffer.records.count)
    if at == NULL:
        return False
    memcpy(at, capsule.data, 4)
    put32(at + 4, VERSION)
    put32(at + 8, <uint32_t>slots)
    memset(at + CAPSULE_HEADER, 0, bits_size)
    for i in range(slots):
        if not buffer.sizes.data[i]:
            at[CAPSULE_HEADER + i // 8] |= 1 << i % 8
    memcpy(at + CAPSULE_HEADER + bits_size, buffer.records.data, buffer.records.count)
    put16(at + capsule.fresh_size - 2, <uint16_t>(0x50 | tail << 7))
    return True


cdef inline bint finish_changed(Rewriting* r) noexcept nogil:
    """Write what is new, if anything moved or was changed."""
    cdef uint64_t old = r.slot.offset + WORD    # bytes of the code, without padding
    cdef size_t i
    r.changed = r.changed or r.buffer.sources.count * WORD != old
    for i in range(r.buffer.sources.count):
        if (<uint64_t*>r.buffer.sources.data)[i] != i * WORD:
            r.changed = True
            break
    if not r.changed:
        return True
    r.code.size = r.text.size
    r.code.count = old // WORD + 1
    return finish(r) or fail(r.fault, 0, 0, R_MEMORY)


cdef inline bint emit_rewritten(Rewriting* r) noexcept nogil:
    """Any slot but the last of a kernel, or of a function that exits."""
    if r.needs.barrier and r.slot.count and opcode(
            r.text.data + r.walk.offset - WORD) == OP_EXIT and (
            not r.slot.recorded or is_barrier(&r.slot)):
        return emit_exit(&r.buffer, &r.slot, &r.needs)
    if r.slot.count > 1 and r.slot.record_size > 2:
        return emit_fence(&r.buffer, &r.slot, &r.needs)
    return emit_slot(&r.buffer, &r.slot)


cdef inline bint rewrite_code(Rewriting* r) noexcept nogil:
    """Rewrite one kernel; `changed` says whether anything did, else nothing is written."""
    r.needs = needs_of(r.text.data, r.text.size, r.mode)
    return emit_code(r, emit_rewritten) and finish_changed(r)
