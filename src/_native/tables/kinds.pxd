# Questions about the kind of a section, answered from its row in pylink/facts/sectiontable.py.
#
# `kind` is the number of a kind, and "sections" are all sections of that kind. Plain and mercury
# are the two forms of a section; code in mercury form is a capsule.

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_LITERALS, IS_PARAMETERS, IS_RECORDS, KIND, K_NULL, PIC_BANK, POOL_BANK,
    USER_BANK, KindFacts,
)
from tables.rows cimport OutRow, start_out_row


cdef inline bint is_a(uint16_t kind, uint32_t bits) noexcept nogil:
    """Return whether a kind has any of `bits`, which are IS_ bits."""
    return KIND[kind].what & bits != 0


cdef inline bint is_function(uint16_t kind) noexcept nogil:
    """Return whether sections of a kind are code of a function, in plain or mercury form."""
    return is_a(kind, IS_CODE | IS_CAPSULE)


cdef inline bint is_owned(uint16_t kind) noexcept nogil:
    """Return whether sections of a kind belong to a function: `target` is its code or capsule."""
    return KIND[kind].owner != K_NULL


cdef inline bint is_plain(uint16_t kind, uint32_t bits) noexcept nogil:
    """Return whether a kind has any of `bits` (IS_ bits), and plain form."""
    return is_a(kind, bits) and not KIND[kind].mercury


cdef inline bint is_merc(uint16_t kind, uint32_t bits) noexcept nogil:
    """Return whether a kind has any of `bits` (IS_ bits), and mercury form."""
    return is_a(kind, bits) and KIND[kind].mercury


cdef inline bint is_function_info(uint16_t kind) noexcept nogil:
    """Return whether sections of a kind have the attributes of a function: `.nv.info.F`."""
    return is_plain(kind, IS_RECORDS) and is_owned(kind)


cdef inline bint is_pool(uint16_t kind, uint16_t bank) noexcept nogil:
    """Return whether sections of this kind and bank are a function's pool: `.nv.constant2.F`.

    A pool has the literals and jump tables of the function.
    """
    return bank == POOL_BANK and is_plain(kind, IS_LITERALS)


cdef inline bint is_function_bank(uint16_t kind) noexcept nogil:
    """Return whether sections of a kind are a constant bank of a function: `.nv.constant0.F`."""
    return is_plain(kind, IS_PARAMETERS | IS_LITERALS)


cdef inline bint is_user_bank(uint16_t kind, uint16_t bank) noexcept nogil:
    """Return whether sections of this kind and bank are a file's constants: `.nv.constant3`."""
    return (bank == USER_BANK and KIND[kind].first_bank == USER_BANK
            and not KIND[kind].mercury)


cdef inline bint is_renamed(const OutRow* row) noexcept nogil:
    """Return whether, from sm_100 on, the final file has another name for a section.

    The second program, which makes that file, renames banks of constants (docs/order.md).
    """
    return KIND[row.kind].bytes_shrunk != 0 and has_twin(row.kind, row.bank)


cdef inline bint has_twin(uint16_t kind, uint16_t bank) noexcept nogil:
    """Return whether sections of this kind and bank have a mercury form, if any of the kind do."""
    cdef uint16_t first = KIND[kind].first_bank
    return first == 0 or bank == first or bank == PIC_BANK


cdef inline const char* first_name(uint16_t kind, uint16_t bank) noexcept nogil:
    """Return the name of a file-scope constant bank before the final file renames it."""
    if bank == PIC_BANK:
        return b".nv.constant.pic"
    return KIND[kind].first


cdef inline uint8_t bytes_shrunk(const OutRow* row) noexcept nogil:
    """Return the bytes by which a renamed section's final name is shorter than its first name."""
    return KIND[row.kind].bytes_shrunk - (KIND[row.kind].first_bank != 0 and row.bank == PIC_BANK)


cdef inline bint is_nobits(const OutRow* row) noexcept nogil:
    """Return whether the section takes memory but no bytes of the file."""
    return KIND[row.kind].nobits


cdef inline void start_out_row_of_kind(OutRow* row, uint16_t kind) noexcept nogil:
    """Fill a new row with the header fields of a section of that kind that the link creates."""
    cdef const KindFacts* facts = &KIND[kind]
    start_out_row(row, kind, facts.type, facts.flags, facts.align, facts.entsize)
