# Writing a resolved field into bytes of the output.
#
# The position of a field is counted in bits from r_offset on, little endian. Many names of
# relocation types end in width and position: R_CUDA_ABS32_20 has 32 bits from bit 20 on
# (pylink/facts/relocations.py).

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from relocationtypes cimport (
    FORM_BANK14, FORM_BANK16, FORM_BANK17, FORM_BYTE, FORM_HIGH, FORM_NOTHING, FORM_SPLIT19,
    FORM_WHOLE, FORM_WORDS, RELOCATION, RelocationFacts,
)
from tables.rows cimport PatchRow


cdef inline uint64_t bits_of(const RelocationFacts* facts, uint64_t value,
                             uint32_t bank) noexcept nogil:
    """Return what the field contains for a value, by the form of the relocation type.

    `bank` is the number of the symbol's constant bank, which some fields contain, too. A form that
    is not listed here gives 0.
    """
    if facts.form == FORM_WHOLE:
        return value
    if facts.form == FORM_HIGH:
        return value >> 32
    if facts.form == FORM_WORDS:
        return value >> 2
    # The field has the offset in the bank, then the number of the bank. An offset of 14 bits is in
    # words of 4 bytes, a longer one in bytes.
    if facts.form == FORM_BANK14 or facts.form == FORM_SPLIT19:
        return (value >> 2 & 0x3fff) | <uint64_t>bank << 14
    if facts.form == FORM_BANK16:
        return (value & 0xffff) | <uint64_t>bank << 16
    if facts.form == FORM_BANK17:
        return (value & 0x1ffff) | <uint64_t>bank << 17
    return 0


cdef inline void patch_field(uint8_t* field, uint64_t size, const PatchRow* row) noexcept nogil:
    """Write the value of a patch into its field.

    `field` is the byte at r_offset; `size` bytes from there on may be read and written.
    """
    cdef const RelocationFacts* facts = &RELOCATION[row.type]
    cdef uint64_t word = 0, mask, value = row.value
    if facts.form == FORM_BYTE:
        value += field[0] if row.implicit else 0
        field[0] = <uint8_t>(value >> facts.shift)
        return
    if facts.form == FORM_NOTHING:
        return
    if size >= sizeof(word):
        memcpy(&word, field, sizeof(word))
    else:
        memcpy(&word, field, size)
    mask = ~<uint64_t>0 if facts.width >= 64 else (<uint64_t>1 << facts.width) - 1
    mask <<= facts.shift
    if row.implicit and facts.form != FORM_HIGH:    # the field holds A, the addend
        value += (word & mask) >> facts.shift << (2 if facts.form == FORM_WORDS else 0)
    value = bits_of(facts, value, row.bank)
    if facts.form == FORM_SPLIT19:
        # The low 18 of the 19 bits begin at bit 28, the highest one is bit 26.
        mask = (<uint64_t>0x3ffff << 28) | (<uint64_t>1 << 26)
        word = (word & ~mask) | (value & 0x3ffff) << 28 | (value >> 18 & 1) << 26
    else:
        word = (word & ~mask) | (value << facts.shift & mask)
    if size >= sizeof(word):    # with a size that the compiler knows, a store instead of a call
        memcpy(field, &word, sizeof(word))
    else:
        memcpy(field, &word, size)
