"""Relocation arithmetic: values of resolved relocations, and the loop that writes them.

S is the symbol's offset in its section (sections have address 0), A the addend. Field positions
are bit numbers from r_offset, little endian; names of types (pylink/facts/relocations.py) end in
them.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from elf64 cimport *
from exitcapsule cimport CAPSULE_HEADER, Slot, read_record
from exitwords cimport WORD
from pylink._native.image cimport Canvas
from pylink._native.tables cimport MergedTables, Patches, PlacedTables
from kinds cimport *
from relocationtypes cimport *
from rows cimport *
from vec cimport *


def patch(Canvas image not None, Patches patches not None):
    """Write every PatchRow into `image`, which no one else may hold yet.

    Returns the first row whose type cannot be resolved or whose field runs past the image, or
    -1; rows before it are written.
    """
    cdef uint8_t* data = image.data
    cdef uint64_t size = image.size
    cdef const PatchRow* row = patches.rows
    cdef Py_ssize_t n = patches.count
    cdef Py_ssize_t bad
    with nogil:
        bad = patch_rows(data, size, row, n)
    return bad


def find_unfit(Patches patches not None, uint64_t size):
    """The first row that `patch` cannot write into an image of `size` bytes, or -1."""
    cdef const PatchRow* row = patches.rows
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>patches.count):
        if not fits(&row[i], size):
            return i
    return -1


cdef inline uint64_t bits_of(const RelocationFacts* f, uint64_t value,
                             uint32_t bank) noexcept nogil:
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


cdef inline bint fits(const PatchRow* row, uint64_t size) noexcept nogil:
    """Whether the type can be resolved, and the field is inside an image of `size` bytes."""
    cdef const RelocationFacts* f
    if row.type >= PLAIN_TYPES:
        return False
    f = &RELOCATION[row.type]
    return f.form != FORM_NONE and row.offset <= size and size - row.offset >= (
        1 if f.form == FORM_BYTE else <uint64_t>((f.shift + f.width + 7) >> 3))


cdef Py_ssize_t patch_rows(uint8_t* data, uint64_t size, const PatchRow* row,
                           Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef const RelocationFacts* f
    cdef uint64_t word, mask, value, at
    for i in range(n):
        if not fits(&row[i], size):
            return i
        f = &RELOCATION[row[i].type]
        at = row[i].offset
        if f.form == FORM_BYTE:
            value = row[i].value + (data[at] if row[i].implicit else 0)
            data[at] = <uint8_t>(value >> f.shift)
            continue
        if f.form == FORM_NOTHING:
            continue
        word = 0
        if size - at >= 8:
            memcpy(&word, data + at, 8)
        else:
            memcpy(&word, data + at, size - at)
        mask = (((<uint64_t>1 << (f.width & 63)) - 1) if f.width < 64 else ~<uint64_t>0) << f.shift
        value = row[i].value
        if row[i].implicit and f.form != FORM_HIGH:
            value += (word & mask) >> f.shift << (2 if f.form == FORM_WORDS else 0)
        value = bits_of(f, value, row[i].bank)
        if f.form == FORM_SPLIT19:
            mask = (<uint64_t>0x3ffff << 28) | (<uint64_t>1 << 26)
            word = (word & ~mask) | (value & 0x3ffff) << 28 | (value >> 18 & 1) << 26
        else:
            word = (word & ~mask) | (value << f.shift & mask)
        memcpy(data + at, &word, 8 if size - at >= 8 else size - at)
    return -1


def resolve_values(PlacedTables placed not None):
    """The PatchRow of every FixRow that changes bytes, in order of the table.

    Relocations of capsules are left to `patch_capsules`.
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
    return Patches(vec_take(&patches))


cdef inline uint32_t bank_of(const OutRow* out, int32_t home) noexcept nogil:
    """The bank of a constant; the pool of a function that no kernel reaches has no section."""
    return out[home].bank if home >= 0 else POOL_BANK


cdef inline uint32_t plain_type(const FixRow* fix) noexcept nogil:
    """The type whose field is filled; R_CUDA_NONE for what no link can."""
    cdef const RelocationFacts* facts = facts_of(fix.type)
    if fix.how & FIX_CLEAR:
        return fix.type if facts.form == FORM_ZERO else R_CUDA_UNUSED_CLEAR64
    return R_CUDA_NONE if facts.clear else facts.field


# --- capsules -----------------------------------------------------------------------------------

cdef enum:
    OPERAND = 32                # bytes of a record that holds an operand of a constant bank
    OPERAND_OFFSET = 0x1c       # where in it the offset stands

# One reference of code to a constant.
ctypedef struct Reference:
    int32_t out                 # OutRow of the code
    uint32_t bank
    uint64_t offset             # of its instruction
    uint64_t value


cdef int by_place(const void* a, const void* b) noexcept nogil:
    cdef const Reference* x = <const Reference*>a
    cdef const Reference* y = <const Reference*>b
    if x.out != y.out:
        return -1 if x.out < y.out else 1
    return -1 if x.offset < y.offset else x.offset > y.offset


def patch_capsules(Canvas image not None, PlacedTables placed not None):
    """Write constant offsets into the records of mercury capsules.

    The record of an instruction that reads a constant bank has 32 bytes and begins 02 22. Bank 3
    with an immediate offset: byte 5 is 00, bytes 12 to 14 are 42 00 02, the word at 0x1c takes
    S + A. Bank 2, indexed by a register: bytes 12 and 13 are 41 00, byte 17 is 0a, the half-word at
    0x1c takes S + A. An offset that the code takes as a number (type 59) stands in no record.
    Returns the OutRow of the first capsule whose records do not follow each other, or -1.
    """
    cdef MergedTables merged = placed.merged
    cdef Py_ssize_t n = merged.fixes.count, i
    cdef const FixRow* fix = merged.fixes.rows
    cdef const OutRow* out = placed.outs.rows
    cdef const PlaceRow* place = placed.places.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const uint64_t* value = placed.values.rows
    cdef const int32_t* home = placed.homes.rows
    cdef uint8_t* data = image.data
    cdef Vec references
    cdef Reference* row
    cdef int32_t bad = -1
    cdef bint ok = True
    vec_init(&references, sizeof(Reference))
    with nogil:
        for i in range(n):
            if (fix[i].how & FIX_MERC or fix[i].entity < 0
                    or not is_a(out[fix[i].out].kind, IS_CODE)
                    or e[fix[i].entity].kind != E_CONSTANT or out[fix[i].out].merc < 0
                    or fix[i].type == R_CUDA_ABS16_32):
                continue
            row = <Reference*>vec_push(&references)
            if row == NULL:
                ok = False
                break
            row.out = fix[i].out
            row.bank = bank_of(out, home[fix[i].entity])
            row.offset = fix[i].offset
            row.value = value[fix[i].entity] + <uint64_t>fix[i].addend
        if ok:
            qsort(references.data, references.count, sizeof(Reference), by_place)
            bad = patch_all(data, place, out, <const Reference*>references.data, references.count)
    vec_free(&references)
    if not ok:
        raise MemoryError
    return bad


cdef int32_t patch_all(uint8_t* data, const PlaceRow* place, const OutRow* out,
                       const Reference* row, size_t n) noexcept nogil:
    """Patch the capsules of all functions; the OutRow of one that breaks the format, or -1."""
    cdef size_t first = 0, last
    cdef int32_t capsule
    while first < n:
        last = first
        while last < n and row[last].out == row[first].out:
            last += 1
        capsule = out[row[first].out].merc
        if not patch_capsule(data + place[capsule].offset, place[capsule].size, row + first,
                             last - first):
            return capsule
        first = last
    return -1


cdef inline bint patch_capsule(uint8_t* capsule, uint64_t size, const Reference* row,
                               size_t n) noexcept nogil:
    """Follow the code of one function slot by slot; False where the capsule breaks its format."""
    cdef uint64_t at, end = 0
    cdef uint32_t slots, k
    cdef size_t i = 0
    cdef uint8_t* record
    cdef Slot slot
    if size < CAPSULE_HEADER:
        return False
    slots = load32(capsule + 8)
    at = CAPSULE_HEADER + 4 * ((<uint64_t>slots + 31) // 32)
    if at > size:
        return False
    for k in range(slots):
        record = NULL
        slot.count = 1
        if not capsule[CAPSULE_HEADER + k // 8] >> (k % 8) & 1:
            if not read_record(capsule, size, at, &slot):
                return False
            at += slot.record_size
            if slot.record_size >= OPERAND:
                record = capsule + at - OPERAND
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
    return record[5] == 0 and record[12] == 0x42 and record[14] == 2
