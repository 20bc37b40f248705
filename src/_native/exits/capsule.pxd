# The code of one kernel: instructions of 16 bytes and the capsule that counts them.
#
# A slot is one instruction, or several that a record expands to. The capsule says which:
#
#     u32           section index of .text
#     u32           VERSION
#     u32           number of slots (in 12.8 it is in the low bits of the version, which begins with
#                   EARLY_VERSION)
#     bitmap        one bit per slot, in words of 32
#     records       one for each slot whose bit is 0, in slot order
#
# The record of a slot of several instructions begins with a u16 of 0x50 | count << 7, and 1 in the
# low nibble when a body follows. The first byte of a body gives its size. A body of HINT tells the
# compiler something about what follows, and its slot has no instruction.
#
# The last slot is the branch to itself that ends the code. Its count also covers the NOPs after it.
#
# `next_slot` reads slot after slot, and `emit_slot`, `emit_counted` and `emit_record` write them to
# a buffer.

from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport WORD, load16, load32
from base.vector cimport Vec, vec_extend, vec_push, vec_reserve
from exits.rows cimport (
    R_BITMAP, R_CUT_OFF, R_INSTRUCTION_COUNT, R_LAST_SLOT, R_RECORD, RewriteFault, View, put16,
    set_fault,
)


cdef enum:
    CAPSULE_HEADER = 12
    VERSION = 0xc0000001U
    EARLY_VERSION = 4       # the highest hex digit
    EARLY_HEADER = 8
    ONE_WORD = 0x00d0       # record without body for one instruction
    HINT = 0x31             # first byte of a record for no instruction


# One slot of the code while it is rewritten.
ctypedef struct Slot:
    const uint8_t* words    # instructions of the slot
    uint64_t count
    const uint8_t* record   # with its count, NULL for none
    uint64_t record_size
    uint64_t offset         # offset of the first instruction
    bint has_record
    bint last


# The code being rewritten.
ctypedef struct CodeBuffer:
    Vec words               # uint8_t, 16 for each instruction
    Vec sources             # uint64_t: offset in the old text for each word, or INSERTED, APPENDED
    Vec records             # uint8_t
    Vec sizes               # uint8_t: bytes of the record of each slot

cdef enum:
    INSERTED = -1           # in front of what follows: jumps to that reach it
    APPENDED = -2           # after the rest of its slot


cdef inline void start_buffer(CodeBuffer* buffer) noexcept nogil:
    buffer.words.count = buffer.sources.count = buffer.records.count = buffer.sizes.count = 0


cdef inline bint emit(CodeBuffer* buffer, const uint8_t* word, uint64_t source) noexcept nogil:
    """Add one instruction and the offset that it came from; False without memory."""
    cdef uint8_t* place = <uint8_t*>vec_push(&buffer.words)
    cdef uint64_t* origin = <uint64_t*>vec_push(&buffer.sources)
    if place == NULL or origin == NULL:
        return False
    memcpy(place, word, WORD)
    origin[0] = source
    return True


cdef inline uint8_t* emit_record(CodeBuffer* buffer, uint64_t size) noexcept nogil:
    """Return room for the record of the next slot; NULL without memory."""
    cdef uint8_t* slot_size = <uint8_t*>vec_push(&buffer.sizes)
    if slot_size == NULL or not vec_reserve(&buffer.records, buffer.records.count + size + 1):
        return NULL
    slot_size[0] = <uint8_t>size
    return <uint8_t*>vec_extend(&buffer.records, size)


cdef inline bint emit_counted(CodeBuffer* buffer, uint64_t count, const uint8_t* body,
                              uint64_t size) noexcept nogil:
    """Add a record for `count` instructions. A count of one is implied; False without memory."""
    cdef uint64_t prefix = 2 if count != 1 or not size else 0
    cdef uint8_t* place = emit_record(buffer, prefix + size)
    if place == NULL:
        return False
    if prefix:
        put16(place, <uint16_t>(0x50 | (size != 0) | count << 7))
    if size:
        memcpy(place + prefix, body, size)
    return True


cdef inline bint emit_slot(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Copy a slot with its record; False without memory."""
    cdef uint64_t i
    cdef uint8_t* place = emit_record(buffer, slot.record_size)
    if place == NULL:
        return False
    memcpy(place, slot.record, slot.record_size)
    for i in range(slot.count):
        if not emit(buffer, slot.words + i * WORD, slot.offset + i * WORD):
            return False
    return True


cdef inline bint read_record(const uint8_t* data, uint64_t size, uint64_t offset,
                             Slot* slot) noexcept nogil:
    """Set the size of the record and the instructions it stands for; False for an unknown record.
    """
    cdef uint64_t prefix = 0
    cdef uint8_t head
    slot.count = 1
    if offset >= size:
        return False
    head = data[offset]
    if head & 0x70 == 0x50:
        if size - offset < 2:
            return False
        slot.count = load16(data + offset) >> 7
        prefix = 2
        if not head & 0x0f:
            slot.record_size = 2
            return slot.count != 0
        if size - offset < 3:
            return False
        head = data[offset + 2]
    if head == 0x01:
        slot.record_size = prefix + 16
    elif head == 0x02:
        slot.record_size = prefix + 32
    elif head == 0x41 or head == 0x42:
        slot.record_size = prefix + 4
    elif head == HINT and not prefix:
        slot.count = 0
        slot.record_size = 16
        return slot.record_size <= size - offset
    else:
        return False
    return slot.count != 0 and slot.record_size <= size - offset


# A walk over the slots of a capsule and the instructions they stand for.
ctypedef struct SlotWalk:
    size_t section          # the capsule's
    const uint8_t* data
    uint64_t size
    uint64_t slots
    uint64_t bitmap_offset  # offset of its bitmap
    uint64_t next_index     # number of the next slot
    uint64_t record_offset  # offset of that slot's record
    uint64_t offset         # offset of its instructions in the text
    bint early              # the capsule has the form of 12.8


cdef inline bint start_walk(SlotWalk* walk, const View* capsule, size_t section,
                            RewriteFault* fault) noexcept nogil:
    """Start at the first slot of a capsule; False with a fault."""
    memset(walk, 0, sizeof(SlotWalk))
    walk.section = section
    walk.data = capsule.data
    walk.size = capsule.size
    if walk.size < CAPSULE_HEADER:
        return set_fault(fault, section, 0, R_CUT_OFF)
    walk.early = load32(walk.data + 4) >> 28 == EARLY_VERSION
    if walk.early:
        walk.slots = load32(walk.data + 4) & 0xfffffff
        walk.bitmap_offset = EARLY_HEADER
    else:
        walk.slots = load32(walk.data + 8)
        walk.bitmap_offset = CAPSULE_HEADER
    walk.record_offset = walk.bitmap_offset + (walk.slots + 31) // 32 * 4
    if not walk.slots or walk.record_offset > walk.size:
        return set_fault(fault, section, walk.bitmap_offset - 4, R_BITMAP)
    return True


cdef inline bint next_slot(SlotWalk* walk, const View* text, Slot* slot,
                           RewriteFault* fault) noexcept nogil:
    """Read the next slot of the walk, which must have one."""
    slot.record = walk.data + walk.record_offset
    slot.record_size = 0
    slot.count = 1
    slot.has_record = (not walk.data[walk.bitmap_offset + walk.next_index // 8]
                       >> (walk.next_index % 8) & 1)
    slot.last = walk.next_index == walk.slots - 1
    if slot.has_record and not read_record(walk.data, walk.size, walk.record_offset, slot):
        return set_fault(fault, walk.section, walk.record_offset, R_RECORD)
    if slot.count > (text.size - walk.offset) // 16:
        return set_fault(fault, walk.section, walk.record_offset, R_INSTRUCTION_COUNT)
    slot.words = text.data + walk.offset
    slot.offset = walk.offset
    walk.record_offset += slot.record_size
    walk.offset += slot.count * 16
    walk.next_index += 1
    if slot.last:
        if slot.record_size != 2 or walk.record_offset != walk.size:
            return set_fault(fault, walk.section, walk.record_offset, R_LAST_SLOT)
        if walk.offset != text.size:
            return set_fault(fault, walk.section, walk.record_offset, R_INSTRUCTION_COUNT)
    return True
