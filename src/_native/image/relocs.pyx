"""Relocation arithmetic: values of resolved relocations.

S is the symbol's offset in its section (sections have address 0), A the addend.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from sectionkinds cimport IS_CODE, IS_VARIABLES
from image.capsules cimport bank_of
from tables.kinds cimport is_a
from pylink._native.tables cimport MergedTables, Patches, PlacedTables, take_rows
from relocationtypes cimport (
    FORM_BYTE, FORM_NONE, FORM_ZERO, PLAIN_TYPES, RELOCATION, R_CUDA_32, R_CUDA_64, R_CUDA_NONE,
    R_CUDA_UNUSED_CLEAR32, R_CUDA_UNUSED_CLEAR64, RelocationFacts, facts_of,
)
from tables.rows cimport (
    EF_UNSIZED, E_CONST0_SIZE, E_CONSTANT, E_SHARED, FIXUP_CLEAR, FIXUP_MERC, FIXUP_REL, FIXUP_ZERO,
    FROM_TWIN, M_DEBUG, M_RELOCATABLE, EntityRow, FixupRow, OutRow, PatchRow, PlaceRow,
)
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_reserve, scratch_vector
from base.vector cimport Vec, vec_push


def find_unfit(Patches patches not None, uint64_t size):
    """The first row that cannot be written into an image of `size` bytes, or -1."""
    cdef const PatchRow* row = patches.rows
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>patches.count):
        if not fits(&row[i], size):
            return i
    return -1


cdef inline bint fits(const PatchRow* row, uint64_t size) noexcept nogil:
    """Whether the type can be resolved, and the field is inside an image of `size` bytes."""
    cdef const RelocationFacts* f
    if row.type >= PLAIN_TYPES:
        return False
    f = &RELOCATION[row.type]
    return f.form != FORM_NONE and row.offset <= size and size - row.offset >= (
        1 if f.form == FORM_BYTE else <uint64_t>((f.shift + f.width + 7) >> 3))


def resolve_values(PlacedTables placed not None):
    """The PatchRow of every FixupRow that changes bytes, in order of the table.

    Records of capsules have none: see image/capsules.pxd.
    """
    cdef MergedTables merged = placed.merged
    cdef Py_ssize_t n = merged.fixups.count, i
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef const OutRow* out = placed.outs.rows
    cdef const PlaceRow* place = placed.places.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const uint64_t* value = placed.values.rows
    cdef const int32_t* home = placed.homes.rows
    cdef const uint64_t* piece = merged.base.rows
    cdef const uint64_t* dynamic = placed.dynamic.rows
    cdef const uint8_t* gone = placed.lost.rows
    cdef Vec patches
    cdef PatchRow* row
    cdef uint64_t addend
    # With -g and -r, extern arrays have an address each instead of one in each function.
    cdef bint arrays_by_name = merged.objects.mode & (M_DEBUG | M_RELOCATABLE) != 0
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &patches, sizeof(PatchRow))
        scratch_reserve(&scratch, &patches, n)
        with nogil:
            for i in range(0 if scratch.failed else n):
                if fixup[i].how & FIXUP_MERC and is_a(out[fixup[i].out].kind, IS_CODE):
                    continue
                if fixup[i].how & FIXUP_MERC and place[fixup[i].out].contents == FROM_TWIN:
                    continue            # the plain section's own relocation does it
                row = <PatchRow*>vec_push(&patches)
                row.offset = place[fixup[i].out].offset + fixup[i].offset
                row.type = plain_type(&fixup[i])
                if is_crowded(fixup, i, n, &out[fixup[i].out]):
                    row.type = low_half(row.type)
                row.implicit = fixup[i].how & FIXUP_REL != 0
                row.bank = 0
                addend = 0 if row.implicit else <uint64_t>fixup[i].addend
                row.value = addend
                if fixup[i].how & (FIXUP_CLEAR | FIXUP_ZERO):
                    if fixup[i].how & FIXUP_ZERO and e[fixup[i].entity].kind != E_SHARED:
                        row.value = 0
                    row.implicit = 0
                elif fixup[i].section >= 0:
                    row.value += piece[fixup[i].section]
                elif fixup[i].entity < 0:
                    pass                # the addend says all
                elif e[fixup[i].entity].kind == E_CONST0_SIZE:
                    row.value = value[fixup[i].entity]
                elif e[fixup[i].entity].flags & EF_UNSIZED and e[fixup[i].entity].kind == E_SHARED:
                    if arrays_by_name:
                        row.value += dynamic[fixup[i].entity]
                    elif fixup[i].function >= 0:
                        row.value += dynamic[fixup[i].function]
                    else:
                        row.value += ~<uint64_t>0
                else:
                    row.value += value[fixup[i].entity]
                    if gone[fixup[i].entity]:
                        row.value = addend - 1
                    if e[fixup[i].entity].kind == E_CONSTANT:
                        row.bank = bank_of(out, home[fixup[i].entity])
                    elif home[fixup[i].entity] >= 0:
                        row.bank = out[home[fixup[i].entity]].bank
        if scratch.failed:
            raise MemoryError
        return Patches(take_rows(&patches))
    finally:
        scratch_free(&scratch)


cdef inline uint32_t plain_type(const FixupRow* fixup) noexcept nogil:
    """The type whose field is filled; R_CUDA_NONE for what no link can."""
    cdef const RelocationFacts* facts = facts_of(fixup.type)
    if fixup.how & FIXUP_CLEAR:
        return fixup.type if facts.form == FORM_ZERO else R_CUDA_UNUSED_CLEAR64
    return R_CUDA_NONE if facts.clear else facts.field


cdef inline bint is_crowded(const FixupRow* fixup, Py_ssize_t i, Py_ssize_t n,
                            const OutRow* out) noexcept nogil:
    """Whether the section, or another address of a table, leaves room for the low half alone.

    ptxas asks for whole addresses in 32-bit variables, too, the last of a table first.
    """
    if not is_a(out.kind, IS_VARIABLES):
        return False
    if out.size - fixup[i].offset < 8:
        return True
    return (i > 0 and follows(&fixup[i], &fixup[i - 1])) or (
        i + 1 < n and follows(&fixup[i], &fixup[i + 1]))


cdef inline bint follows(const FixupRow* fixup, const FixupRow* other) noexcept nogil:
    return other.out == fixup.out and other.offset == fixup.offset + 4


cdef inline uint32_t low_half(uint32_t type) noexcept nogil:
    """The type that fills the low half of the field, where a variable has no room for more."""
    if type == R_CUDA_64:
        return R_CUDA_32
    return R_CUDA_UNUSED_CLEAR32 if type == R_CUDA_UNUSED_CLEAR64 else type
