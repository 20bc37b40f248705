# The code of one kernel: instructions of 16 bytes (words), and the capsule that counts them.
#
# A slot is one instruction, or those that one record expands to: several, one or none. The capsule
# says which:
#
#     u32           section index of .text
#     u32           VERSION
#     u32           number of slots (in 12.8 it is in the low bits of the version, which begins with
#                   EARLY_VERSION)
#     bitmap        one bit per slot, in units of 32 bits
#     records       one for each slot whose bit is 0, in slot order
#
# A record is a u16, a body, or a u16 and a body. The u16 is 0x50 | count << 7, with 1 in the low
# nibble if a body follows. A body alone stands for one instruction. The first byte of a body gives
# its size. A body of HINT, always alone, tells the compiler something about what follows, and its
# slot has no instruction.
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
from tables.rows cimport FileSectionCounter


cdef enum:
    CAPSULE_HEADER = 12     # bytes before the bitmap
    CAPSULE_VERSION = 4     # offset of the version
    CAPSULE_SLOTS = 8       # offset of the number of slots
    VERSION = 0xc0000001U   # the version after 12.8
    EARLY_VERSION = 4       # the highest hex digit of the version in 12.8
    EARLY_HEADER = 8        # bytes before the bitmap in 12.8
    ONE_WORD = 0x00d0       # record without body for one instruction
    HINT = 0x31             # first byte of a record for no instruction


# One slot of the input's code.
ctypedef struct Slot:
    const uint8_t* words    # instructions of the slot
    uint64_t count          # number of instructions
    const uint8_t* record   # its record in the capsule; any address without one
    uint64_t record_size    # bytes of the record; 0 without one
    uint64_t offset         # offset of the first instruction in .text
    bint has_record
    bint last               # the last slot of the code


# The new code, to which slots are appended.
ctypedef struct CodeBuffer:
    Vec words               # uint8_t, in rows of 16: an instruction each
    Vec sources             # uint64_t for each word: old offset in .text, or INSERTED, APPENDED
    Vec records             # uint8_t: records of all slots, one after the other
    Vec sizes               # uint8_t for each slot: bytes of its record, 0 without one

cdef enum:
    # Sources of instructions that the input does not have.
    INSERTED = -1           # in front of the next instruction: jumps to that one reach this one
    APPENDED = -2           # at the end of its slot: jumps to what follows skip it


cdef inline void start_buffer(CodeBuffer* buffer) noexcept nogil:
    """Empty the buffer for the next function."""
    buffer.words.count = buffer.sources.count = buffer.records.count = buffer.sizes.count = 0


cdef inline bint emit(CodeBuffer* buffer, const uint8_t* word, uint64_t source) noexcept nogil:
    """Add one instruction and its source (see CodeBuffer); False without memory."""
    cdef uint8_t* target = <uint8_t*>vec_push(&buffer.words)
    cdef uint64_t* origin = <uint64_t*>vec_push(&buffer.sources)
    if target == NULL or origin == NULL:
        return False
    memcpy(target, word, WORD)
    origin[0] = source
    return True


cdef inline uint8_t* emit_record(CodeBuffer* buffer, uint64_t size) noexcept nogil:
    """Begin a slot: return room for its record of `size` bytes; NULL without memory."""
    cdef uint8_t* slot_size = <uint8_t*>vec_push(&buffer.sizes)
    if slot_size == NULL or not vec_reserve(&buffer.records, buffer.records.count + size + 1):
        return NULL
    slot_size[0] = <uint8_t>size
    return <uint8_t*>vec_extend(&buffer.records, size)


cdef inline bint emit_counted(CodeBuffer* buffer, uint64_t count, const uint8_t* body,
                              uint64_t size) noexcept nogil:
    """Begin a slot of `count` instructions, whose record has a body of `size` bytes, or none for 0.

    A body without a count stands for one instruction. False without memory.
    """
    cdef uint64_t prefix = 2 if count != 1 or not size else 0
    cdef uint8_t* record = emit_record(buffer, prefix + size)
    if record == NULL:
        return False
    if prefix:
        put16(record, <uint16_t>(0x50 | (size != 0) | count << 7))
    if size:
        memcpy(record + prefix, body, size)
    return True


cdef inline bint emit_slot(CodeBuffer* buffer, const Slot* slot) noexcept nogil:
    """Copy a slot of the input with its record; False without memory."""
    cdef uint64_t i
    cdef uint8_t* record = emit_record(buffer, slot.record_size)
    if record == NULL:
        return False
    memcpy(record, slot.record, slot.record_size)
    for i in range(slot.count):
        if not emit(buffer, slot.words + i * WORD, slot.offset + i * WORD):
            return False
    return True


cdef inline bint read_record(const uint8_t* data, uint64_t size, uint64_t offset,
                             Slot* slot) noexcept nogil:
    """Set `record_size` and `count` of a slot from its record at `offset` of a capsule.

    `data` and `size` are the capsule. False for a record that is unknown, is cut off, or counts 0
    instructions.
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
    FileSectionCounter section  # the capsule's section, for faults
    const uint8_t* data         # the capsule
    uint64_t size               # bytes of the capsule
    uint64_t slots              # number of slots
    uint64_t bitmap_offset      # offset of the bitmap in the capsule
    uint64_t next_index         # number of the next slot, from 0 on
    uint64_t record_offset      # offset of the next slot's record in the capsule
    uint64_t offset             # offset of the next slot's instructions in .text
    bint early                  # the capsule has the form of 12.8


cdef inline bint start_walk(SlotWalk* walk, const View* capsule, FileSectionCounter section,
                            RewriteFault* fault) noexcept nogil:
    """Start at the first slot of a capsule; False with a fault."""
    memset(walk, 0, sizeof(SlotWalk))
    walk.section = section
    walk.data = capsule.data
    walk.size = capsule.size
    if walk.size < CAPSULE_HEADER:
        return set_fault(fault, section, 0, R_CUT_OFF)
    walk.early = load32(walk.data + CAPSULE_VERSION) >> 28 == EARLY_VERSION
    if walk.early:
        walk.slots = load32(walk.data + CAPSULE_VERSION) & 0xfffffff
        walk.bitmap_offset = EARLY_HEADER
    else:
        walk.slots = load32(walk.data + CAPSULE_SLOTS)
        walk.bitmap_offset = CAPSULE_HEADER
    walk.record_offset = walk.bitmap_offset + (walk.slots + 31) // 32 * 4
    if not walk.slots or walk.record_offset > walk.size:
        return set_fault(fault, section, walk.bitmap_offset - 4, R_BITMAP)
    return True


cdef inline bint next_slot(SlotWalk* walk, const View* text, Slot* slot,
                           RewriteFault* fault) noexcept nogil:
    """Read the next slot of the walk, which must have one; False with a fault.

    `text` is the code.
    """
    slot.record = walk.data + walk.record_offset
    slot.record_size = 0
    slot.count = 1
    slot.has_record = (not walk.data[walk.bitmap_offset + walk.next_index // 8]
                       >> (walk.next_index % 8) & 1)
    slot.last = walk.next_index == walk.slots - 1
    if slot.has_record and not read_record(walk.data, walk.size, walk.record_offset, slot):
        return set_fault(fault, walk.section, walk.record_offset, R_RECORD)
    if slot.count > (text.size - walk.offset) // WORD:
        return set_fault(fault, walk.section, walk.record_offset, R_INSTRUCTION_COUNT)
    slot.words = text.data + walk.offset
    slot.offset = walk.offset
    walk.record_offset += slot.record_size
    walk.offset += slot.count * WORD
    walk.next_index += 1
    if slot.last:
        if slot.record_size != 2 or walk.record_offset != walk.size:
            return set_fault(fault, walk.section, walk.record_offset, R_LAST_SLOT)
        if walk.offset != text.size:
            return set_fault(fault, walk.section, walk.record_offset, R_INSTRUCTION_COUNT)
    return True
