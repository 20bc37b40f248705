"""Relocation arithmetic: values of resolved relocations.

S is the symbol's offset in its section (sections have address 0), A the addend.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from imagecapsules cimport bank_of
from kinds cimport *
from pylink._native.tables cimport MergedTables, Patches, PlacedTables, take_rows
from relocationtypes cimport *
from rows cimport *
from vec cimport *


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
    """The PatchRow of every FixRow that changes bytes, in order of the table.

    Records of capsules have none: see imagecapsules.pxd.
    """
    cdef MergedTables merged = placed.merged
    cdef Py_ssize_t n = merged.fixes.count, i
    cdef const FixRow* fix = merged.fixes.rows
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
    # With -g and -r, extern arrays have an address each instead of one in each function.
    cdef bint arrays_by_name = merged.objects.mode & (M_DEBUG | M_RELOCATABLE) != 0, ok = True
    vec_init(&patches, sizeof(PatchRow))
    ok = vec_reserve(&patches, n)
    with nogil:
        for i in range(n):
            if not ok:
                break
            if fix[i].how & FIX_MERC and is_a(out[fix[i].out].kind, IS_CODE):
                continue
            if fix[i].how & FIX_MERC and place[fix[i].out].made == 2:
                continue            # the plain section's own relocation does it
            row = <PatchRow*>vec_push(&patches)
            row.offset = place[fix[i].out].offset + fix[i].offset
            row.type = plain_type(&fix[i])
            row.implicit = fix[i].how & FIX_REL != 0
            row.bank = 0
            row.value = <uint64_t>fix[i].addend
            if fix[i].how & (FIX_CLEAR | FIX_ZERO):
                if fix[i].how & FIX_ZERO and e[fix[i].entity].kind != E_SHARED:
                    row.value = 0
                row.implicit = 0
            elif fix[i].section >= 0:
                row.value += piece[fix[i].section]
            elif fix[i].entity < 0:
                pass                # the addend says all
            elif e[fix[i].entity].kind == E_CONST0_SIZE:
                row.value = value[fix[i].entity]
            elif e[fix[i].entity].flags & EF_UNSIZED and e[fix[i].entity].kind == E_SHARED:
                if arrays_by_name:
                    row.value += dynamic[fix[i].entity]
                elif fix[i].function >= 0:
                    row.value += dynamic[fix[i].function]
                else:
                    row.value += ~<uint64_t>0
            else:
                row.value += value[fix[i].entity]
                if gone[fix[i].entity]:
                    row.value = <uint64_t>fix[i].addend - 1
                if e[fix[i].entity].kind == E_CONSTANT:
                    row.bank = bank_of(out, home[fix[i].entity])
                elif home[fix[i].entity] >= 0:
                    row.bank = out[home[fix[i].entity]].bank
    if not ok:
        vec_free(&patches)
        raise MemoryError
    return Patches(take_rows(&patches))


cdef inline uint32_t plain_type(const FixRow* fix) noexcept nogil:
    """The type whose field is filled; R_CUDA_NONE for what no link can."""
    cdef const RelocationFacts* facts = facts_of(fix.type)
    if fix.how & FIX_CLEAR:
        return fix.type if facts.form == FORM_ZERO else R_CUDA_UNUSED_CLEAR64
    return R_CUDA_NONE if facts.clear else facts.field
