# The code of one kernel, rewritten slot by slot.
#
# A slot is what one entry of the capsule stands for, mostly one instruction (exits/capsule.pxd).
# Code is not edited in place: `emit_code` copies it slot by slot to a buffer, and a function of the
# caller adds, omits or changes instructions on the way. The buffer keeps the old offset of each
# instruction.
#
# 1. `rewrite_code` asks `needs_of` what the kernel needs, then copies with `emit_rewritten`, which
#    shortens fences and puts the error barrier before EXITs.
# 2. `write_if_changed` writes nothing if no instruction has moved or changed.
# 3. `write_function` makes the map from old offsets to new ones, by which the offsets in all other
#    sections are corrected. It writes the text with corrected branches, pads it with NOPs, and
#    writes the capsule.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport WORD
from base.vector cimport Vec, vec_extend
from exits.capsule cimport (
    APPENDED, CAPSULE_HEADER, INSERTED, VERSION, CodeBuffer, Slot, SlotWalk, emit, emit_counted,
    emit_slot, next_slot, start_buffer, start_walk,
)
from exits.rows cimport (
    R_MEMORY, Code, InstructionMap, RewriteFault, View, put16, put32, replace_contents, set_fault,
)
from exits.slots cimport emit_exit, emit_fence, is_barrier
from exits.words cimport OP_EXIT, W_NOP, Needs, needs_of, opcode, put_instruction, retarget


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
    SlotWalk walk
    Slot slot               # the one at hand
    Vec* places             # InstructionMap
    RewriteFault* fault
    bint changed            # the text changes, not only the capsule
    Needs needs             # needs of code whose exits are rewritten
    bint careful            # code that is brought up to date was not scheduled
    bint waits              # the slot before waits, in code from before 13.0


# Emits the slot at hand, which is not the last; False when memory is exhausted.
ctypedef bint (*EmitSlot)(Rewriting* r) noexcept nogil


cdef inline bint emit_code(Rewriting* rewriting, EmitSlot emit_one) noexcept nogil:
    """Rewrite the whole function, slot by slot; the last one is the branch that ends all code."""
    cdef bint done
    start_buffer(&rewriting.buffer)
    if not start_walk(&rewriting.walk, rewriting.capsule, rewriting.code.capsule, rewriting.fault):
        return False
    while rewriting.walk.next_index < rewriting.walk.slots:
        if not next_slot(&rewriting.walk, rewriting.text, &rewriting.slot, rewriting.fault):
            return False
        if rewriting.slot.last:
            done = (emit_counted(&rewriting.buffer, 1, NULL, 0)
                    and emit(&rewriting.buffer, rewriting.slot.words, rewriting.slot.offset))
        else:
            done = emit_one(rewriting)
        if not done:
            return set_fault(rewriting.fault, 0, 0, R_MEMORY)
    return True


cdef inline bint write_function(Rewriting* rewriting) noexcept nogil:
    """Write the new text, capsule and places; False when memory is exhausted."""
    cdef Code* code = &rewriting.code
    cdef View* text = rewriting.text
    cdef uint64_t count = rewriting.buffer.words.count, old = code.count - 1, i, after = 0, source
    cdef uint64_t nops
    cdef const uint64_t* sources = <const uint64_t*>rewriting.buffer.sources.data
    cdef InstructionMap* place = <InstructionMap*>vec_extend(rewriting.places, code.count)
    if place == NULL:
        return False
    code.first = rewriting.places.count - code.count
    for i in range(code.count):
        place[i].instruction = <uint64_t>INSERTED
    for i in range(count):
        if sources[i] < <uint64_t>APPENDED:
            place[sources[i] // WORD].instruction = i * WORD
    place[old].instruction = count * WORD
    for i in range(code.count):
        place[i].jump_target = after
        if place[i].instruction == <uint64_t>INSERTED:
            place[i].instruction = after
        else:
            after = place[i].instruction + WORD
            while after // WORD < count and sources[after // WORD] == <uint64_t>APPENDED:
                after += WORD
        place[i].range_start = place[i].instruction
    code.rewritten_size = (count * WORD + PADDING + ALIGNMENT - 1) & ~<uint64_t>(ALIGNMENT - 1)
    nops = code.rewritten_size // WORD - count
    if replace_contents(text, code.rewritten_size) == NULL:
        return False
    memcpy(text.rewritten, rewriting.buffer.words.data, count * WORD)
    for i in range(count):
        source = sources[i]
        if source < <uint64_t>APPENDED:
            retarget(text.rewritten + i * WORD, source + WORD, (i + 1) * WORD, code,
                     <const InstructionMap*>rewriting.places.data)
    for i in range(count, count + nops):
        put_instruction(text.rewritten + i * WORD, W_NOP)
    return put_capsule(rewriting.capsule, &rewriting.buffer, nops + 1)


cdef inline bint put_capsule(View* capsule, const CodeBuffer* buffer, uint64_t tail) noexcept nogil:
    """Write the new capsule; its last slot stands for `tail` instructions."""
    cdef uint64_t slots = buffer.sizes.count, bits_size = (slots + 31) // 32 * 4, i
    cdef uint8_t* at = replace_contents(capsule, CAPSULE_HEADER + bits_size + buffer.records.count)
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
    put16(at + capsule.rewritten_size - 2, <uint16_t>(0x50 | tail << 7))
    return True


cdef inline bint write_if_changed(Rewriting* rewriting) noexcept nogil:
    """Write the new text and capsule, if anything moved or changed."""
    cdef uint64_t old = rewriting.slot.offset + WORD    # bytes of the code, without padding
    cdef size_t i
    rewriting.changed = rewriting.changed or rewriting.buffer.sources.count * WORD != old
    for i in range(rewriting.buffer.sources.count):
        if (<uint64_t*>rewriting.buffer.sources.data)[i] != i * WORD:
            rewriting.changed = True
            break
    if not rewriting.changed:
        return True
    rewriting.code.size = rewriting.text.size
    rewriting.code.count = old // WORD + 1
    return write_function(rewriting) or set_fault(rewriting.fault, 0, 0, R_MEMORY)


cdef inline bint emit_rewritten(Rewriting* rewriting) noexcept nogil:
    """Emit any slot except the last one of a kernel or of a function that exits."""
    if rewriting.needs.barrier and rewriting.slot.count and opcode(
            rewriting.text.data + rewriting.walk.offset - WORD) == OP_EXIT and (
            not rewriting.slot.has_record or is_barrier(&rewriting.slot)):
        return emit_exit(&rewriting.buffer, &rewriting.slot, &rewriting.needs)
    if rewriting.slot.count > 1 and rewriting.slot.record_size > 2:
        return emit_fence(&rewriting.buffer, &rewriting.slot, &rewriting.needs)
    return emit_slot(&rewriting.buffer, &rewriting.slot)


cdef inline bint rewrite_code(Rewriting* rewriting) noexcept nogil:
    """Rewrite one kernel; if nothing changes, `changed` is False and nothing is written."""
    rewriting.needs = needs_of(rewriting.text.data, rewriting.text.size, rewriting.mode)
    return emit_code(rewriting, emit_rewritten) and write_if_changed(rewriting)
