# Constant offsets in the records of mercury capsules.
#
# The record of an instruction that reads a constant bank has 32 bytes and begins 02 22. Bank 3
# with an immediate offset: byte 5 is 00, bytes 12 to 14 are 42 00 02, the word at 0x1c takes
# S + A; bank 4 has 47 for 42. Bank 2, indexed by a register: bytes 12 and 13 are 41 00, byte 17 is
# 0a, the half-word at 0x1c takes S + A. An offset that the code takes as a number (type 59) stands
# in no record.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from base.elf64 cimport WORD, load32
from base.vector cimport Vec, vec_push
from exits.capsule cimport CAPSULE_HEADER, Slot, read_record
from relocationtypes cimport R_CUDA_ABS16_32
from rownumbers cimport E_CONSTANT, FIXUP_MERC
from sectionkinds cimport IS_CODE, PIC_BANK, POOL_BANK
from tables.kinds cimport is_a
from tables.rows cimport FixupRow, OutRow
from tables.views cimport MergedView, PlacedView

cdef enum:
    OPERAND = 32                # bytes of a record that holds an operand of a constant bank
    OPERAND_OFFSET = 0x1c       # where in it the offset stands


# One reference of code to a constant.
ctypedef struct ConstantReference:
    int32_t out                 # OutRow of the code
    uint32_t bank
    uint64_t offset             # offset of the instruction
    uint64_t value


cdef inline uint32_t bank_of(const OutRow* out, int32_t home) noexcept nogil:
    """The bank of a constant; the pool of a function that no kernel reaches has no section."""
    return out[home].bank if home >= 0 else POOL_BANK


cdef inline int compare_references(const void* a, const void* b) noexcept nogil:
    cdef const ConstantReference* x = <const ConstantReference*>a
    cdef const ConstantReference* y = <const ConstantReference*>b
    if x.out != y.out:
        return -1 if x.out < y.out else 1
    return -1 if x.offset < y.offset else x.offset > y.offset


cdef inline bint find_references(const MergedView* merged, const PlacedView* placed,
                                 Vec* references) noexcept nogil:
    """List the references of all code with a capsule, by OutRow and offset; False without memory.
    """
    cdef const OutRow* out = placed.outs
    cdef const FixupRow* fixup
    cdef ConstantReference* row
    cdef size_t i
    for i in range(merged.fixup_count):
        fixup = &merged.fixups[i]
        if (fixup.how & FIXUP_MERC or fixup.entity < 0 or not is_a(out[fixup.out].kind, IS_CODE)
                or merged.entities[fixup.entity].kind != E_CONSTANT or out[fixup.out].merc < 0
                or fixup.type == R_CUDA_ABS16_32):
            continue
        row = <ConstantReference*>vec_push(references)
        if row == NULL:
            return False
        row.out = fixup.out
        row.bank = bank_of(out, placed.homes[fixup.entity])
        row.offset = fixup.offset
        row.value = placed.values[fixup.entity] + <uint64_t>fixup.addend
    qsort(references.data, references.count, sizeof(ConstantReference), compare_references)
    return True


cdef inline const ConstantReference* references_of(const Vec* references, int32_t out,
                                                   size_t* count) noexcept nogil:
    """The references of one function's code, `count` in all."""
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


cdef inline bint patch_capsule(uint8_t* capsule, uint64_t size, const ConstantReference* row,
                               size_t n) noexcept nogil:
    """Follow the code of one function slot by slot; False where the capsule breaks its format."""
    cdef uint64_t offset, end = 0
    cdef uint32_t slots, k
    cdef size_t i = 0
    cdef uint8_t* record
    cdef Slot slot
    if size < CAPSULE_HEADER:
        return False
    slots = load32(capsule + 8)
    offset = CAPSULE_HEADER + 4 * ((<uint64_t>slots + 31) // 32)
    if offset > size:
        return False
    for k in range(slots):
        record = NULL
        slot.count = 1
        if not capsule[CAPSULE_HEADER + k // 8] >> (k % 8) & 1:
            if not read_record(capsule, size, offset, &slot):
                return False
            offset += slot.record_size
            if slot.record_size >= OPERAND:
                record = capsule + offset - OPERAND
        end += slot.count * WORD
        while i < n and row[i].offset < end:
            if record != NULL and is_operand(record, row[i].bank):
                memcpy(record + OPERAND_OFFSET, &row[i].value, 2 if row[i].bank == 2 else 4)
            i += 1
        if i == n:
            return True
    return False


cdef inline bint is_operand(const uint8_t* record, uint32_t bank) noexcept nogil:
    if record[0] != 0x02 or record[1] != 0x22 or record[13] != 0:
        return False
    if bank == 2:
        return record[12] == 0x41 and record[17] == 0x0a
    return (record[5] == 0 and record[12] == (0x47 if bank == PIC_BANK else 0x42)
            and record[14] == 2)
