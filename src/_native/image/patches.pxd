# Writing a resolved field into bytes of the output.
#
# Field positions are bit numbers from r_offset, little endian; names of types
# (pylink/facts/relocations.py) end in them.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from relocationtypes cimport (
    FORM_BANK14, FORM_BANK16, FORM_BANK17, FORM_BYTE, FORM_HIGH, FORM_NOTHING, FORM_SPLIT19,
    FORM_WHOLE, FORM_WORDS, RELOCATION, RelocationFacts,
)
from tables.rows cimport PatchRow


cdef inline uint64_t bits_of(const RelocationFacts* f, uint64_t value,
                             uint32_t bank) noexcept nogil:
    """The bits of a value that the field takes, by the form of the relocation."""
    if f.form == FORM_WHOLE:
        return value
    if f.form == FORM_HIGH:
        return value >> 32
    if f.form == FORM_WORDS:
        return value >> 2
    if f.form == FORM_BANK14 or f.form == FORM_SPLIT19:
        return (value >> 2 & 0x3fff) | <uint64_t>bank << 14
    if f.form == FORM_BANK16:
        return (value & 0xffff) | <uint64_t>bank << 16
    if f.form == FORM_BANK17:
        return (value & 0x1ffff) | <uint64_t>bank << 17
    return 0


cdef inline void patch_field(uint8_t* field, uint64_t size, const PatchRow* row) noexcept nogil:
    """Write the value into a field that begins `size` bytes before the end of what may be written.
    """
    cdef const RelocationFacts* f = &RELOCATION[row.type]
    cdef uint64_t word = 0, mask, value = row.value
    if f.form == FORM_BYTE:
        value += field[0] if row.implicit else 0
        field[0] = <uint8_t>(value >> f.shift)
        return
    if f.form == FORM_NOTHING:
        return
    if size >= sizeof(word):
        memcpy(&word, field, sizeof(word))
    else:
        memcpy(&word, field, size)
    mask = (((<uint64_t>1 << (f.width & 63)) - 1) if f.width < 64 else ~<uint64_t>0) << f.shift
    if row.implicit and f.form != FORM_HIGH:
        value += (word & mask) >> f.shift << (2 if f.form == FORM_WORDS else 0)
    value = bits_of(f, value, row.bank)
    if f.form == FORM_SPLIT19:
        mask = (<uint64_t>0x3ffff << 28) | (<uint64_t>1 << 26)
        word = (word & ~mask) | (value & 0x3ffff) << 28 | (value >> 18 & 1) << 26
    else:
        word = (word & ~mask) | (value << f.shift & mask)
    if size >= sizeof(word):    # a store instead of a call
        memcpy(field, &word, sizeof(word))
    else:
        memcpy(field, &word, size)
