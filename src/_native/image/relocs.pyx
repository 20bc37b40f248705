"""Relocation arithmetic: the values of the relocations that the link resolves.

S is the symbol's offset in its section, since sections have address 0, and A the addend. The value
is S + A. The implicit form has A in the field, so the row has S alone, and the writer adds it.
Three relocations in code, as an example:

    refers to                       A          value
    shared variable at 0x40         8          0x48
    the same, implicit form         in field   0x40, which is added to the field
    constant of bank 3 at 0x10      4          0x14, with the bank

`resolve_values` makes a row for each relocation, with its place in the image:

1. `is_done_elsewhere` skips entries of the mercury form that are done with those of the plain one,
   or in a capsule.
2. `plain_type` finds the type whose field is filled. `is_crowded` detects whole addresses in
   variables of 32 bits, of which only the low half is written.
3. `resolve_value` computes the value by the kind of the symbol.

`find_unfit` then finds the first row that cannot be written: its type has no field, or the field
is not inside the image.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_reserve, scratch_vector
from base.vector cimport Vec, vec_push
from image.capsules cimport bank_of
from pylink._native.tables cimport Patches, PlacedTables, detach_rows
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
from tables.rows cimport EntityRow, FixupRow, OutRow, PatchRow
from tables.views cimport MergedView, PlacedView


def find_unfit(Patches patches not None, uint64_t size):
    cdef const PatchRow* row = patches.rows
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>patches.count):
        if not can_write(&row[i], size):
            return i
    return -1


cdef inline bint can_write(const PatchRow* row, uint64_t size) noexcept nogil:
    """Whether the type can be resolved, and the field is inside an image of `size` bytes."""
    cdef const RelocationFacts* f
    if row.type >= PLAIN_TYPES:
        return False
    f = &RELOCATION[row.type]
    return f.form != FORM_NONE and row.offset <= size and size - row.offset >= (
        1 if f.form == FORM_BYTE else <uint64_t>((f.shift + f.width + 7) >> 3))


def resolve_values(PlacedTables placed not None):
    cdef Patching r
    cdef const FixupRow* fixup
    cdef PatchRow* row
    cdef Vec patches
    cdef size_t i
    cdef Scratch scratch
    placed.merged.view(&r.merged)
    placed.view(&r.placed)
    r.arrays_by_name = placed.merged.objects.mode & (LINK_DEBUG | LINK_RELOCATABLE) != 0
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &patches, sizeof(PatchRow))
        scratch_reserve(&scratch, &patches, r.merged.fixup_count)
        with nogil:
            for i in range(0 if scratch.failed else r.merged.fixup_count):
                fixup = &r.merged.fixups[i]
                if is_done_elsewhere(&r, fixup):
                    continue
                row = <PatchRow*>vec_push(&patches)
                row.offset = r.placed.places[fixup.out].offset + fixup.offset
                row.type = plain_type(fixup)
                if is_crowded(&r, i):
                    row.type = low_half(row.type)
                resolve_value(&r, fixup, row)
        if scratch.failed:
            raise MemoryError
        return Patches(detach_rows(&patches))
    finally:
        scratch_free(&scratch)


ctypedef struct Patching:
    MergedView merged
    PlacedView placed
    bint arrays_by_name         # -g, -r: extern arrays have an address each, not one by function


cdef inline bint is_done_elsewhere(const Patching* r, const FixupRow* fixup) noexcept nogil:
    """Whether an entry of the mercury form changes no bytes: with the plain one, or in a capsule.
    """
    return fixup.how & FIXUP_MERC != 0 and (
        is_a(r.placed.outs[fixup.out].kind, IS_CODE)
        or r.placed.places[fixup.out].contents == FROM_TWIN)


cdef inline void resolve_value(const Patching* r, const FixupRow* fixup,
                               PatchRow* row) noexcept nogil:
    """Fill in the value and the bank: S + A, or S where the field holds A (`implicit`)."""
    cdef const EntityRow* e = &r.merged.entities[fixup.entity]
    cdef int32_t home
    row.implicit = fixup.how & FIXUP_REL != 0
    row.bank = 0
    row.value = 0 if row.implicit else <uint64_t>fixup.addend
    if fixup.how & (FIXUP_CLEAR | FIXUP_ZERO):
        # S is 0, and what the field holds does not count. An explicit addend counts for shared
        # memory alone. The type of a cleared field writes zeros, whatever the value.
        if fixup.how & FIXUP_ZERO and e.kind != E_SHARED:
            row.value = 0
        row.implicit = 0
    elif fixup.section >= 0:
        # A section symbol: S is the start of the input section in the output section.
        row.value += r.merged.base[fixup.section]
    elif fixup.entity < 0:
        return                  # the addend says all
    elif e.kind == E_CONST0_SIZE:
        # S is the size of the file-scope bank of constants; an explicit addend does not count.
        row.value = r.placed.values[fixup.entity]
    elif e.flags & EF_UNSIZED and e.kind == E_SHARED:
        # An extern array: S is its own address, or the one that all arrays have in this function.
        # Data outside of functions gets -1.
        if r.arrays_by_name:
            row.value += r.placed.dynamic[fixup.entity]
        elif fixup.function >= 0:
            row.value += r.placed.dynamic[fixup.function]
        else:
            row.value += ~<uint64_t>0
    else:
        # S is -1 for a shared variable that has no place in the output.
        row.value += ~<uint64_t>0 if r.placed.lost[fixup.entity] else r.placed.values[fixup.entity]
        home = r.placed.homes[fixup.entity]
        if e.kind == E_CONSTANT:
            row.bank = bank_of(r.placed.outs, home)
        elif home >= 0:
            row.bank = r.placed.outs[home].bank


cdef inline uint32_t plain_type(const FixupRow* fixup) noexcept nogil:
    """The type whose field is filled; R_CUDA_NONE for what no link can."""
    cdef const RelocationFacts* facts = facts_of(fixup.type)
    if fixup.how & FIXUP_CLEAR:
        return fixup.type if facts.form == FORM_ZERO else R_CUDA_UNUSED_CLEAR64
    return R_CUDA_NONE if facts.clear else facts.field


cdef inline bint is_crowded(const Patching* r, size_t i) noexcept nogil:
    """Whether the section, or another address of a table, leaves room for the low half alone.

    ptxas asks for whole addresses in 32-bit variables, too, the last of a table first.
    """
    cdef const FixupRow* fixup = &r.merged.fixups[i]
    cdef const OutRow* out = &r.placed.outs[fixup.out]
    if not is_a(out.kind, IS_VARIABLES):
        return False
    if out.size - fixup.offset < 8:
        return True
    return (i > 0 and is_next_word(fixup, fixup - 1)) or (
        i + 1 < r.merged.fixup_count and is_next_word(fixup, fixup + 1))


cdef inline bint is_next_word(const FixupRow* fixup, const FixupRow* other) noexcept nogil:
    """Whether `other` patches the word that follows the field's first."""
    return other.out == fixup.out and other.offset == fixup.offset + 4


cdef inline uint32_t low_half(uint32_t type) noexcept nogil:
    """The type that fills the low half of the field, where a variable has no room for more."""
    if type == R_CUDA_64:
        return R_CUDA_32
    return R_CUDA_UNUSED_CLEAR32 if type == R_CUDA_UNUSED_CLEAR64 else type
