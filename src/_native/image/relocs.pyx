"""Relocation arithmetic: the values of the relocations that the link resolves.

S is the symbol's offset in its section, since sections have address 0, and A the addend. The value
is S + A. The implicit form (REL) has A in the field, so the row has only S, and the writer adds A.
For example, three relocations in code:

    refers to                       A          value
    shared variable at 0x40         8          0x48
    the same variable, by REL       in field   0x40, which is added to the field
    constant of bank 3 at 0x10      4          0x14, with the bank

`resolve_values` makes a row (PatchRow) for each relocation that needs one, with the offset of its
field in the image:

1. `is_done_elsewhere` finds relocations of mercury sections that need no row: their bytes are
   those of the plain section, which lies at the same place, or `patch_capsule` fills them.
2. `plain_type` finds the type whose field is filled. `is_crowded` detects whole addresses in
   variables of 32 bits, of which only the low half is written.
3. `resolve_value` computes the value by the kind of the symbol.

`find_unfit` then finds the first row that cannot be written: its type has no field, or the field
is not inside the image.
"""

from libc.stdint cimport uint32_t, uint64_t

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_reserve, scratch_vector
from base.vector cimport Vec, vec_push
from image.capsules cimport bank_of
from pylink._native.results cimport PlacedTables
from pylink._native.tables cimport Patches, detach_rows
from relocationtypes cimport (
    FORM_BYTE, FORM_NONE, FORM_ZERO, PLAIN_TYPES, RELOCATION, R_CUDA_32, R_CUDA_64, R_CUDA_NONE,
    R_CUDA_UNUSED_CLEAR32, R_CUDA_UNUSED_CLEAR64, RelocationFacts, facts_of,
)
from rownumbers cimport (
    EF_UNSIZED, E_CONST0_SIZE, E_CONSTANT, E_SHARED, FIXUP_CLEAR, FIXUP_MERC, FIXUP_REL, FIXUP_ZERO,
    FROM_TWIN, LINK_DEBUG, LINK_RELOCATABLE,
)
from sectionkinds cimport IS_CODE, IS_VARIABLES
from tables.kinds cimport is_a
from tables.rows cimport EntityRow, FixupRow, OutNumber, OutRow, PatchRow
from tables.views cimport MergedView, PlacedView


# A row cannot be written if its type has no field, or if its field ends after the image, which has
# `size` bytes.
def find_unfit(Patches patches not None, uint64_t size):
    """Return the number of the first row of `patches` that cannot be written, or -1."""
    cdef const PatchRow* row = patches.rows
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>patches.count):
        if not can_write(&row[i], size):
            return i
    return -1


cdef inline bint can_write(const PatchRow* row, uint64_t size) noexcept nogil:
    """Return whether the type can be resolved, and the field is inside an image of `size` bytes."""
    cdef const RelocationFacts* facts
    cdef uint64_t field_bytes
    if row.type >= PLAIN_TYPES:
        return False
    facts = &RELOCATION[row.type]
    field_bytes = 1 if facts.form == FORM_BYTE else (facts.shift + facts.width + 7) >> 3
    return facts.form != FORM_NONE and row.offset <= size and size - row.offset >= field_bytes


# A field of a mercury section has no row if it is filled in another way (`is_done_elsewhere`).
def resolve_values(PlacedTables placed not None):
    """Make a row for every FixupRow that has to fill a field, in order of the FixupRow table."""
    cdef Patching patching
    cdef const FixupRow* fixup
    cdef PatchRow* row
    cdef Vec patches
    cdef size_t i
    cdef Scratch scratch
    placed.merged.view(&patching.merged)
    placed.view(&patching.placed)
    patching.arrays_by_name = placed.merged.objects.mode & (LINK_DEBUG | LINK_RELOCATABLE) != 0
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &patches, sizeof(PatchRow))
        scratch_reserve(&scratch, &patches, patching.merged.fixup_count)
        with nogil:
            for i in range(0 if scratch.failed else patching.merged.fixup_count):
                fixup = &patching.merged.fixups[i]
                if is_done_elsewhere(&patching, fixup):
                    continue
                row = <PatchRow*>vec_push(&patches)
                row.offset = patching.placed.places[fixup.out].offset + fixup.offset
                row.type = plain_type(fixup)
                if is_crowded(&patching, i):
                    row.type = low_half(row.type)
                resolve_value(&patching, fixup, row)
        check_memory(not scratch.failed)
        return Patches(detach_rows(&patches))
    finally:
        scratch_free(&scratch)


# The tables and options that the values of relocations depend on.
ctypedef struct Patching:
    MergedView merged
    PlacedView placed
    # -r, or -g with debug data: extern arrays have addresses of their own; otherwise all arrays
    # that a function uses have one address.
    bint arrays_by_name


cdef inline bint is_done_elsewhere(const Patching* patching, const FixupRow* fixup) noexcept nogil:
    """Return whether a relocation of a mercury section needs no patch.

    The field is also the plain section's, which lies at the same place in the file, or
    `patch_capsule` (capsules.pxd) fills it.
    """
    return fixup.how & FIXUP_MERC != 0 and (
        is_a(patching.placed.outs[fixup.out].kind, IS_CODE)
        or patching.placed.places[fixup.out].contents == FROM_TWIN)


cdef inline void resolve_value(const Patching* patching, const FixupRow* fixup,
                               PatchRow* row) noexcept nogil:
    """Fill in `value`, `implicit` and `bank` of a row: S + A, or S where the field holds A."""
    cdef const EntityRow* entity = &patching.merged.entities[fixup.entity]
    cdef OutNumber home
    row.implicit = fixup.how & FIXUP_REL != 0
    row.bank = 0
    row.value = 0 if row.implicit else <uint64_t>fixup.addend
    if fixup.how & (FIXUP_CLEAR | FIXUP_ZERO):
        # S is 0, and what the field holds does not count. With FIXUP_ZERO an explicit addend counts
        # for shared memory only; with FIXUP_CLEAR the type writes zeros, whatever the value.
        if fixup.how & FIXUP_ZERO and entity.kind != E_SHARED:
            row.value = 0
        row.implicit = 0
    elif fixup.section >= 0:
        # A section symbol: S is the start of the input section in the output section.
        row.value += patching.merged.base[fixup.section]
    elif fixup.entity < 0:
        return                  # without a symbol S is 0
    elif entity.kind == E_CONST0_SIZE:
        # S is the size of the file-scope bank of constants, -1 without it; an explicit addend does
        # not count.
        row.value = patching.placed.values[fixup.entity]
    elif entity.flags & EF_UNSIZED and entity.kind == E_SHARED:
        # An extern array: S is its own address, or the address that all arrays have in this
        # function, or -1 in data outside of functions. `dynamic` is by entity: for an array its own
        # address, for a function the one of all arrays that it uses.
        if patching.arrays_by_name:
            row.value += patching.placed.dynamic[fixup.entity]
        elif fixup.function >= 0:
            row.value += patching.placed.dynamic[fixup.function]
        else:
            row.value += ~<uint64_t>0
    else:
        # S is -1 for a shared variable that has no place in an executable.
        row.value += (~<uint64_t>0 if patching.placed.lost[fixup.entity]
                      else patching.placed.values[fixup.entity])
        home = patching.placed.homes[fixup.entity]
        if entity.kind == E_CONSTANT:
            row.bank = bank_of(patching.placed.outs, home)
        elif home >= 0:
            row.bank = patching.placed.outs[home].bank


cdef inline uint32_t plain_type(const FixupRow* fixup) noexcept nogil:
    """Return the plain type by which a fixup's field is filled; R_CUDA_NONE if none can fill it.

    A mercury type has a plain twin. With FIXUP_CLEAR the result is a type that writes zeros; such a
    type without FIXUP_CLEAR gives R_CUDA_NONE.
    """
    cdef const RelocationFacts* facts = facts_of(fixup.type)
    if fixup.how & FIXUP_CLEAR:
        return fixup.type if facts.form == FORM_ZERO else R_CUDA_UNUSED_CLEAR64
    return R_CUDA_NONE if facts.clear else facts.field


cdef inline bint is_crowded(const Patching* patching, size_t i) noexcept nogil:
    """Return whether the field of fixup `i` has room only for the low half of its value.

    ptxas makes relocations for 64-bit addresses even in 32-bit variables. Then the section ends
    within 8 bytes, or the next 4 bytes are another address, whose fixup is the row before or after.
    """
    cdef const FixupRow* fixup = &patching.merged.fixups[i]
    cdef const OutRow* out = &patching.placed.outs[fixup.out]
    if not is_a(out.kind, IS_VARIABLES):
        return False
    if out.size - fixup.offset < 8:
        return True
    return (i > 0 and is_next_word(fixup, fixup - 1)) or (
        i + 1 < patching.merged.fixup_count and is_next_word(fixup, fixup + 1))


cdef inline bint is_next_word(const FixupRow* fixup, const FixupRow* other) noexcept nogil:
    """Return whether `other` patches the 4 bytes after the first 4 bytes of `fixup`'s field."""
    return other.out == fixup.out and other.offset == fixup.offset + 4


cdef inline uint32_t low_half(uint32_t type) noexcept nogil:
    """Return the type that fills the low 32 bits of the field of `type`, if that has 64 bits.

    Only R_CUDA_64 and the type that clears 64 bits have such a type; any other is returned itself.
    """
    if type == R_CUDA_64:
        return R_CUDA_32
    return R_CUDA_UNUSED_CLEAR32 if type == R_CUDA_UNUSED_CLEAR64 else type
