# Offsets of constants in the records of capsules, the mercury form of code.
#
# The record of an instruction that reads a constant bank has 32 bytes (if it has more, the last 32
# count), and their first two are 02 22. It contains S + A, the offset in the bank. Bytes are
# counted from 0, and in the table positions and values of bytes are hexadecimal:
#
#     bank                              bytes that tell it            S + A
#     3, with an immediate offset       5: 00, 0c to 0e: 42 00 02     4 bytes at 1c
#     4, with an immediate offset       5: 00, 0c to 0e: 47 00 02     4 bytes at 1c
#     2, indexed by a register          0c and 0d: 41 00, 11: 0a      2 bytes at 1c
#
# Code that uses the offset as a plain number (R_CUDA_ABS16_32) has it in no record.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from base.elf64 cimport WORD, load32
from base.vector cimport Vec, vec_push
from exits.capsule cimport CAPSULE_HEADER, CAPSULE_SLOTS, Slot, read_record
from relocationtypes cimport R_CUDA_ABS16_32
from rownumbers cimport E_CONSTANT, FIXUP_MERC
from sectionkinds cimport IS_CODE, PIC_BANK, POOL_BANK
from tables.kinds cimport is_a
from tables.rows cimport FixupRow, OutNumber, OutRow
from tables.views cimport MergedView, PlacedView

cdef enum:
    OPERAND_RECORD = 32         # bytes of a record that holds an operand of a constant bank
    OPERAND_OFFSET = 0x1c       # byte of the record at which the offset in the bank begins


# One reference of code to a constant.
ctypedef struct ConstantReference:
    OutNumber out               # OutRow of the code
    uint32_t bank               # number of the constant bank
    uint64_t offset             # offset of the instruction in the code
    uint64_t value              # S + A: offset in the bank


cdef inline uint32_t bank_of(const OutRow* outs, OutNumber home) noexcept nogil:
    """Return the bank of a constant whose section is the OutRow `home`.

    `home` is -1 for a constant in the pool of a function that no kernel reaches: the output has no
    section for that pool.
    """
    return outs[home].bank if home >= 0 else POOL_BANK


cdef inline int compare_references(const void* a, const void* b) noexcept nogil:
    """Order ConstantReferences by OutRow of the code, then by offset in it, for qsort."""
    cdef const ConstantReference* x = <const ConstantReference*>a
    cdef const ConstantReference* y = <const ConstantReference*>b
    if x.out != y.out:
        return -1 if x.out < y.out else 1
    return -1 if x.offset < y.offset else x.offset > y.offset


cdef inline bint find_references(const MergedView* merged, const PlacedView* placed,
                                 Vec* references) noexcept nogil:
    """List the references to constants in all code that has a capsule; False without memory.

    They are sorted by section of the code (OutRow), and by offset there. Those that no record
    contains (R_CUDA_ABS16_32) are omitted.
    """
    cdef const OutRow* outs = placed.outs
    cdef const FixupRow* fixup
    cdef ConstantReference* reference
    cdef size_t i
    for i in range(merged.fixup_count):
        fixup = &merged.fixups[i]
        if (fixup.how & FIXUP_MERC or fixup.entity < 0 or not is_a(outs[fixup.out].kind, IS_CODE)
                or merged.entities[fixup.entity].kind != E_CONSTANT or outs[fixup.out].merc < 0
                or fixup.type == R_CUDA_ABS16_32):
            continue
        reference = <ConstantReference*>vec_push(references)
        if reference == NULL:
            return False
        reference.out = fixup.out
        reference.bank = bank_of(outs, placed.homes[fixup.entity])
        reference.offset = fixup.offset
        reference.value = placed.values[fixup.entity] + <uint64_t>fixup.addend
    qsort(references.data, references.count, sizeof(ConstantReference), compare_references)
    return True


cdef inline const ConstantReference* references_of(const Vec* references, OutNumber out,
                                                   size_t* count) noexcept nogil:
    """Return the references of the code section `out`, an OutRow; `count` gets their number.

    `references` is sorted, as by `find_references`.
    """
    cdef const ConstantReference* rows = <const ConstantReference*>references.data
    cdef size_t low = 0, high = references.count, middle
    while low < high:
        middle = (low + high) // 2
        if rows[middle].out < out:
            low = middle + 1
        else:
            high = middle
    while high < references.count and rows[high].out == out:
        high += 1
    count[0] = high - low
    return rows + low


cdef inline bint patch_capsule(uint8_t* capsule, uint64_t size, const ConstantReference* references,
                               size_t count) noexcept nogil:
    """Write the values of a function's references into the records of its capsule.

    `references` are sorted by offset. The walk goes slot by slot: a slot is one instruction, or
    those that one record expands to (exits/capsule.pxd). A reference is skipped if its record holds
    no operand of its bank. False if the capsule breaks its format or ends before a reference.
    """
    cdef uint64_t record_offset, code_end = 0
    cdef uint32_t slot_count, k
    cdef size_t i = 0
    cdef uint8_t* record
    cdef Slot slot
    if size < CAPSULE_HEADER:
        return False
    slot_count = load32(capsule + CAPSULE_SLOTS)
    record_offset = CAPSULE_HEADER + 4 * ((<uint64_t>slot_count + 31) // 32)
    if record_offset > size:
        return False
    for k in range(slot_count):
        record = NULL
        slot.count = 1
        if not capsule[CAPSULE_HEADER + k // 8] >> (k % 8) & 1:
            if not read_record(capsule, size, record_offset, &slot):
                return False
            record_offset += slot.record_size
            # A longer record begins with its count of instructions; its last 32 bytes matter.
            if slot.record_size >= OPERAND_RECORD:
                record = capsule + record_offset - OPERAND_RECORD
        code_end += slot.count * WORD
        while i < count and references[i].offset < code_end:
            if record != NULL and is_operand(record, references[i].bank):
                memcpy(record + OPERAND_OFFSET, &references[i].value,
                       2 if references[i].bank == POOL_BANK else 4)
            i += 1
        if i == count:
            return True
    return False


cdef inline bint is_operand(const uint8_t* record, uint32_t bank) noexcept nogil:
    """Return whether a record holds an operand of that constant bank, by the table at the head."""
    if record[0] != 0x02 or record[1] != 0x22 or record[13] != 0:
        return False
    if bank == POOL_BANK:
        return record[12] == 0x41 and record[17] == 0x0a
    return (record[5] == 0 and record[12] == (0x47 if bank == PIC_BANK else 0x42)
            and record[14] == 2)
