# The code of one kernel, rewritten slot by slot.
#
# A slot is what one bit of the capsule (.nv.capmerc.text.F) stands for, mostly one instruction
# (exits/capsule.pxd). Code is not edited in place: `emit_code` copies it slot by slot to a buffer,
# and a function of the caller adds, omits or changes instructions on the way. The buffer keeps the
# old offset of each instruction.
#
# 1. `rewrite_code` asks `needs_of` what the kernel needs, then copies with `emit_rewritten`, which
#    shortens fences and puts the error barrier before EXITs.
# 2. `write_if_changed` writes nothing if no instruction has moved or changed.
# 3. `write_function` makes the map from old offsets to new ones, by which the offsets in all other
#    sections are corrected. It writes the text with corrected branches, pads it with NOPs, and
#    writes the capsule.
#
# The map of a kernel whose EXIT got an error barrier of two instructions, as an example:
#
#     old text          new text            jump_target   instruction
#     0x00  FADD        0x00  FADD          0x00          0x00
#                       0x10  ERRBAR
#                       0x20  CCTL
#     0x10  EXIT        0x30  EXIT          0x10          0x30
#     0x20  BRA         0x40  BRA           0x40          0x40

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport WORD, round_up
from base.vector cimport Vec, vec_extend
from exits.capsule cimport (
    APPENDED, CAPSULE_HEADER, CAPSULE_SLOTS, CAPSULE_VERSION, INSERTED, VERSION, CodeBuffer, Slot,
    SlotWalk, emit, emit_counted, emit_slot, next_slot, start_buffer, start_walk,
)
from exits.rows cimport (
    R_MEMORY, Code, InstructionMap, RewriteFault, View, put16, put32, replace_contents, set_fault,
)
from exits.slots cimport emit_exit, emit_fence, is_barrier
from exits.words cimport OP_EXIT, W_NOP, Needs, needs_of, opcode, put_instruction, retarget_branch


cdef enum:
    PADDING = 0x80          # least bytes of NOPs after the code
    ALIGNMENT = 128         # the size of .text is a multiple of it


# A function while its code is rewritten.
ctypedef struct Rewriting:
    View* text              # the function's .text
    View* capsule           # the function's capsule
    int mode                # MODE_ number, or UPDATE_ bits
    Code code               # becomes a row of RewrittenFile.kernels if the code changes
    CodeBuffer buffer       # the new code so far
    SlotWalk walk           # position in the old code
    Slot slot               # the slot that was read last
    Vec* places             # InstructionMap: of all functions of the file that changed
    RewriteFault* fault     # filled where a function returns False
    bint changed            # the text changes, not only the capsule
    Needs needs             # what fences and EXITs must have, where `rewrite_code` is used
    bint unoptimized        # ptxas did not optimize the code; only update.pxd sets it
    bint waits              # the previous slot is a NOP that only waits; only early.pxd sets it


# A function that emits `rewriting.slot` with its changes; the slot is never the last of the code.
# False when memory is exhausted.
ctypedef bint (*EmitSlot)(Rewriting* rewriting) noexcept nogil


cdef inline bint emit_code(Rewriting* rewriting, EmitSlot emit_one) noexcept nogil:
    """Rewrite the whole function to the buffer, slot by slot; False with a fault.

    `emit_one` is called for all slots except the last one, the branch to itself after the code.
    """
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
    """Write the new text, capsule and InstructionMaps; False when memory is exhausted."""
    cdef Code* code = &rewriting.code
    cdef View* text = rewriting.text
    cdef uint64_t count = rewriting.buffer.words.count      # number of new instructions
    cdef uint64_t old_count = code.count - 1                # number of old instructions
    cdef uint64_t after = 0     # new offset after the last instruction that stays
    cdef uint64_t i, source
    cdef uint64_t nops          # instructions of padding
    cdef const uint64_t* sources = <const uint64_t*>rewriting.buffer.sources.data
    cdef InstructionMap* rows = <InstructionMap*>vec_extend(rewriting.places, code.count)
    if rows == NULL:
        return False
    code.first = rewriting.places.count - code.count
    for i in range(code.count):
        rows[i].instruction = <uint64_t>INSERTED       # dropped, unless the next loop finds it
    for i in range(count):
        if sources[i] < <uint64_t>APPENDED:
            rows[sources[i] // WORD].instruction = i * WORD
    rows[old_count].instruction = count * WORD
    for i in range(code.count):
        rows[i].jump_target = after
        if rows[i].instruction == <uint64_t>INSERTED:
            rows[i].instruction = after
        else:
            after = rows[i].instruction + WORD
            while after // WORD < count and sources[after // WORD] == <uint64_t>APPENDED:
                after += WORD
        rows[i].range_start = rows[i].instruction
    code.rewritten_size = round_up(count * WORD + PADDING, ALIGNMENT)
    nops = code.rewritten_size // WORD - count
    if replace_contents(text, code.rewritten_size) == NULL:
        return False
    memcpy(text.rewritten, rewriting.buffer.words.data, count * WORD)
    for i in range(count):
        source = sources[i]
        if source < <uint64_t>APPENDED:
            retarget_branch(text.rewritten + i * WORD, source + WORD, (i + 1) * WORD, code,
                            <const InstructionMap*>rewriting.places.data)
    for i in range(count, count + nops):
        put_instruction(text.rewritten + i * WORD, W_NOP)
    return put_capsule(rewriting.capsule, &rewriting.buffer, nops + 1)


cdef inline bint put_capsule(View* capsule, const CodeBuffer* buffer, uint64_t tail) noexcept nogil:
    """Write the new capsule; its last slot stands for `tail` instructions. False without memory."""
    cdef uint64_t slots = buffer.sizes.count, bitmap_size = (slots + 31) // 32 * 4, i
    cdef uint8_t* data = replace_contents(capsule,
                                          CAPSULE_HEADER + bitmap_size + buffer.records.count)
    if data == NULL:
        return False
    memcpy(data, capsule.data, CAPSULE_VERSION)
    put32(data + CAPSULE_VERSION, VERSION)
    put32(data + CAPSULE_SLOTS, <uint32_t>slots)
    memset(data + CAPSULE_HEADER, 0, bitmap_size)
    for i in range(slots):
        if not buffer.sizes.data[i]:
            data[CAPSULE_HEADER + i // 8] |= 1 << i % 8
    memcpy(data + CAPSULE_HEADER + bitmap_size, buffer.records.data, buffer.records.count)
    put16(data + capsule.rewritten_size - 2, <uint16_t>(0x50 | tail << 7))
    return True


cdef inline bint write_if_changed(Rewriting* rewriting) noexcept nogil:
    """Write the new text and capsule, if anything moved or changed; False with a fault."""
    cdef uint64_t old_size = rewriting.slot.offset + WORD   # bytes of the code, without padding
    cdef size_t i
    rewriting.changed = rewriting.changed or rewriting.buffer.sources.count * WORD != old_size
    for i in range(rewriting.buffer.sources.count):
        if (<uint64_t*>rewriting.buffer.sources.data)[i] != i * WORD:
            rewriting.changed = True
            break
    if not rewriting.changed:
        return True
    rewriting.code.size = rewriting.text.size
    rewriting.code.count = old_size // WORD + 1
    return write_function(rewriting) or set_fault(rewriting.fault, 0, 0, R_MEMORY)


cdef inline bint emit_rewritten(Rewriting* rewriting) noexcept nogil:
    """Emit a slot of a kernel, or of a device function with an EXIT: an EmitSlot of `emit_code`."""
    if rewriting.needs.barrier and rewriting.slot.count and opcode(
            rewriting.text.data + rewriting.walk.offset - WORD) == OP_EXIT and (
            not rewriting.slot.has_record or is_barrier(&rewriting.slot)):
        return emit_exit(&rewriting.buffer, &rewriting.slot, &rewriting.needs)
    if rewriting.slot.count > 1 and rewriting.slot.record_size > 2:
        return emit_fence(&rewriting.buffer, &rewriting.slot, &rewriting.needs)
    return emit_slot(&rewriting.buffer, &rewriting.slot)


cdef inline bint rewrite_code(Rewriting* rewriting) noexcept nogil:
    """Rewrite one kernel, or the EXITs of a device function; False with a fault.

    If nothing changes, `rewriting.changed` is False and nothing is written.
    """
    rewriting.needs = needs_of(rewriting.text.data, rewriting.text.size, rewriting.mode)
    return emit_code(rewriting, emit_rewritten) and write_if_changed(rewriting)
