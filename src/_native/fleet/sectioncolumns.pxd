# Lists the sections of cubins as columns of a table. Names are numbers of a dictionary, since
# nearly all of them repeat.
#
# Unlike the reader of a link, this one reads only headers and names of sections; it hashes their
# bytes, but does not interpret them. It accepts any cubin: of another release, already linked, or
# with unknown kinds of sections. A cubin with invalid headers gets a fault and no sections; other
# cubins are not affected.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, strlen

from base.elf64 cimport Shdr
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ELF_TABLE, ElfFile, has_bytes, is_in_file, name_at, open_elf,
    open_names, open_table,
)
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, pool_join, scratch_index, scratch_texts,
)
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_room, scratch_vector, scratch_zeros,
)
from base.stretches cimport NO_SECTION, Stretch, list_own_stretches
from base.texts cimport has_prefix
from base.vector cimport Vec, vec_append, vec_push, vec_to_bytes
from elfnumbers cimport EI_OSABI, EM_CUDA, SHT_NULL
from objectformats cimport FORMAT, FORMAT_COUNT
from outcomes cimport X_HEADER, X_NAME, X_NAMES, X_NAME_SUM, X_NONE, X_RANGE, X_SUM, X_TABLE

cdef extern from "fleet/sectioncolumns.h":
    const char** STEM "pylink_stems"        # STEMS names of section families, e.g. ".text"
    uint64_t big_endian "pylink_big_endian"(uint64_t value) nogil

# XXH128_hash_t of xxhash.h. Its canonical form is the high half, then the low one, both big endian.
ctypedef struct Hash128:
    uint64_t low64
    uint64_t high64

# A function like `XXH3_128bits` of xxhash.h.
ctypedef Hash128 (*Hasher)(const void* data, size_t size) noexcept nogil

cdef enum:
    # Limit of the sum of section sizes, as a multiple of the file's size; beyond it the fault is
    # X_SUM. It is above 1, since plain and Mercury debug data may share bytes. Without it, damaged
    # headers could make hashing slow.
    SHARED_BYTES = 4
    STEMS = 7                   # number of entries of STEM

# One cubin.
cdef packed struct ObjectItem:
    uint32_t fault              # an IndexFault; 0 (NONE): the sections are listed
    uint32_t section            # number of the section with the fault, or 0
    uint32_t sm                 # SM number; 0 for an unknown OS ABI
    uint32_t type               # e_type
    uint64_t size               # bytes of the file
    uint64_t count              # number of listed sections


# Distinct names in order of mention; a name's number is its place in this order.
ctypedef struct Dictionary:
    NameIndex index             # number of each name
    Vec ends                    # int64_t: where each name ends in `text`; a 0 before the first
    Vec text                    # uint8_t: all names, one after the other

# The two parts of a section's name, as numbers in the dictionaries `families` and `suffixes`: of
# `.text.F` they are `.text` and `F`.
ctypedef struct Halves:
    int32_t family
    int32_t suffix

# The cubins and sections that were listed, as columns of tables.
ctypedef struct Columns:
    Hasher hasher               # NULL: digests are zeros
    int64_t first               # number of the first cubin in the index
    Vec objects                 # ObjectItem: one for each cubin
    # Columns of sections, a row for each:
    Vec object                  # int64_t: number of its cubin in the index
    Vec number                  # int32_t: its section index
    Vec family                  # int32_t: number in `families`
    Vec suffix                  # int32_t: number in `suffixes`
    Vec type                    # uint32_t: sh_type
    Vec info                    # uint32_t: sh_info
    Vec offset                  # uint64_t: file offset of the bytes, 0 without bytes (`has_bytes`)
    Vec size                    # uint64_t: sh_size
    Vec stored                  # uint64_t: number of bytes in the file, or 0
    Vec own                     # uint64_t: bytes in no header and no section before it (by offset)
    Vec align                   # uint64_t: sh_addralign
    Vec digest                  # Hash128 in canonical form, of the section's bytes in the file
    Dictionary families
    Dictionary suffixes
    NameIndex names             # number in `halves` of each distinct section name
    Vec halves                  # Halves
    TextPool texts              # distinct section names


cdef inline void start_dictionary(Dictionary* dictionary, Scratch* scratch) noexcept nogil:
    """Make an empty dictionary, whose ends have a 0 already."""
    cdef int64_t* end
    scratch_vector(scratch, &dictionary.ends, sizeof(int64_t))
    scratch_vector(scratch, &dictionary.text, 1)
    scratch_index(scratch, &dictionary.index, 64)
    end = <int64_t*>vec_push(&dictionary.ends)
    if end == NULL:
        scratch.failed = True
    else:
        end[0] = 0


cdef inline int32_t number_name(Dictionary* dictionary, const uint8_t* text,
                                uint32_t size) noexcept nogil:
    """Return the number of a name, which is added if it is new; -1 without memory.

    The index keeps a pointer to `text`.
    """
    cdef NameSlot* slot = index_find(&dictionary.index, text, size)
    cdef int64_t* end
    if slot == NULL:
        return -1
    if slot.value < 0:
        end = <int64_t*>vec_push(&dictionary.ends)
        if end == NULL or not vec_append(&dictionary.text, text, size):
            return -1
        end[0] = <int64_t>dictionary.text.count
        slot.value = <int32_t>(dictionary.index.count)
        dictionary.index.count += 1
    return slot.value


cdef inline void start_columns(Columns* columns, Scratch* scratch, Hasher hasher,
                               int64_t first) noexcept nogil:
    """Make columns without rows; `first` is the number of the first cubin in the index."""
    columns.hasher, columns.first = hasher, first
    scratch_vector(scratch, &columns.objects, sizeof(ObjectItem))
    scratch_vector(scratch, &columns.object, sizeof(int64_t))
    scratch_vector(scratch, &columns.number, sizeof(int32_t))
    scratch_vector(scratch, &columns.family, sizeof(int32_t))
    scratch_vector(scratch, &columns.suffix, sizeof(int32_t))
    scratch_vector(scratch, &columns.type, sizeof(uint32_t))
    scratch_vector(scratch, &columns.info, sizeof(uint32_t))
    scratch_vector(scratch, &columns.offset, sizeof(uint64_t))
    scratch_vector(scratch, &columns.size, sizeof(uint64_t))
    scratch_vector(scratch, &columns.stored, sizeof(uint64_t))
    scratch_vector(scratch, &columns.own, sizeof(uint64_t))
    scratch_vector(scratch, &columns.align, sizeof(uint64_t))
    scratch_vector(scratch, &columns.digest, sizeof(Hash128))
    scratch_vector(scratch, &columns.halves, sizeof(Halves))
    scratch_index(scratch, &columns.names, 64)
    scratch_texts(scratch, &columns.texts)
    start_dictionary(&columns.families, scratch)
    start_dictionary(&columns.suffixes, scratch)


cdef inline tuple columns_to_tuple(Columns* columns):
    """Return the columns as a tuple for Python code: `Columns` of sectionindex.pyi."""
    return (vec_to_bytes(&columns.objects),
            (vec_to_bytes(&columns.object), vec_to_bytes(&columns.number),
             vec_to_bytes(&columns.family), vec_to_bytes(&columns.suffix),
             vec_to_bytes(&columns.type), vec_to_bytes(&columns.info),
             vec_to_bytes(&columns.offset), vec_to_bytes(&columns.size),
             vec_to_bytes(&columns.stored), vec_to_bytes(&columns.own),
             vec_to_bytes(&columns.align), vec_to_bytes(&columns.digest)),
            (vec_to_bytes(&columns.families.ends), vec_to_bytes(&columns.families.text)),
            (vec_to_bytes(&columns.suffixes.ends), vec_to_bytes(&columns.suffixes.text)),)


cdef inline bint list_object(Columns* columns, const uint8_t* data, uint64_t size) noexcept nogil:
    """Add a cubin and its sections, or only a row with a fault; False without memory."""
    cdef ObjectItem* row = <ObjectItem*>vec_push(&columns.objects)
    cdef ElfFile elf
    cdef Scratch scratch
    cdef int fault, format
    cdef bint good
    if row == NULL:
        return False
    row.fault, row.section, row.sm, row.type = X_HEADER, 0, 0, 0
    row.size, row.count = size, 0
    if open_elf(&elf, data, size) != ELF_GOOD or elf.header.e_machine != EM_CUDA:
        return True
    row.type = elf.header.e_type
    for format in range(FORMAT_COUNT):
        if FORMAT[format].os_abi == elf.header.e_ident[EI_OSABI]:
            row.sm = elf.header.e_flags >> FORMAT[format].sm_first & FORMAT[format].sm_mask
    fault = open_table(&elf)
    if fault == ELF_GOOD:
        fault = open_names(&elf)
    if fault != ELF_GOOD:
        row.fault = (X_NONE if fault == ELF_NO_TABLE else X_TABLE if fault == ELF_TABLE
                     else X_NAMES)
        return True
    # All headers are checked before the first section is listed.
    if not check_headers(row, &elf):
        return True
    scratch_init(&scratch)
    good = list_sections(columns, row, &elf, &scratch)
    scratch_free(&scratch)
    return good


cdef inline bint check_headers(ObjectItem* row, const ElfFile* elf) noexcept nogil:
    """Return whether headers, names and sizes of all sections are valid; set the fault of `row`.

    The fault is 0 (X_NONE) if they are valid.
    """
    cdef const Shdr* header
    cdef const char* name
    cdef uint64_t i, names = 0, stored = 0      # bytes so far of all names, and of all contents
    for i in range(elf.count):
        header = &elf.table[i]
        row.section = <uint32_t>i
        if header.sh_type == SHT_NULL:
            continue
        row.fault = X_NAME
        name = name_at(elf, header)
        if name == NULL:
            return False
        names += strlen(name)
        row.fault = X_NAME_SUM
        if names > elf.size:
            return False
        if not has_bytes(header.sh_type):
            continue
        row.fault = X_RANGE
        if not is_in_file(elf, header):
            return False
        stored += header.sh_size
        row.fault = X_SUM
        if stored > SHARED_BYTES * elf.size:
            return False
    row.fault = row.section = 0
    return True


cdef inline bint list_sections(Columns* columns, ObjectItem* row, const ElfFile* elf,
                               Scratch* scratch) noexcept nogil:
    """List all sections of a cubin except null sections; False without memory."""
    # By section: number of its bytes that neither headers nor sections before it (by offset) have.
    cdef uint64_t* own = <uint64_t*>scratch_zeros(scratch, elf.count + 1, sizeof(uint64_t))
    cdef Stretch* stretches = <Stretch*>scratch_room(scratch, elf.count + 3, sizeof(Stretch))
    cdef uint64_t i
    if scratch.failed:
        return False
    for i in range(list_own_stretches(stretches, elf)):
        if stretches[i].section != <uint32_t>NO_SECTION:
            own[stretches[i].section] = stretches[i].end - stretches[i].start
    for i in range(elf.count):
        if elf.table[i].sh_type != SHT_NULL:
            if not list_section(columns, <uint32_t>i, elf, own[i]):
                return False
            row.count += 1
    return True


cdef inline bint list_section(Columns* columns, uint32_t number, const ElfFile* elf,
                              uint64_t own_size) noexcept nogil:
    """Add a section to all columns; False without memory.

    `own_size` (column `own`) is the number of its bytes that neither the headers nor the sections
    before it, by offset in the file, have.
    """
    cdef const Shdr* header = &elf.table[number]
    cdef const Halves* halves = find_halves(columns, <const uint8_t*>name_at(elf, header))
    cdef int64_t* object = <int64_t*>vec_push(&columns.object)
    cdef int32_t* section = <int32_t*>vec_push(&columns.number)
    cdef int32_t* family = <int32_t*>vec_push(&columns.family)
    cdef int32_t* suffix = <int32_t*>vec_push(&columns.suffix)
    cdef uint32_t* type = <uint32_t*>vec_push(&columns.type)
    cdef uint32_t* info = <uint32_t*>vec_push(&columns.info)
    cdef uint64_t* offset = <uint64_t*>vec_push(&columns.offset)
    cdef uint64_t* size = <uint64_t*>vec_push(&columns.size)
    cdef uint64_t* stored = <uint64_t*>vec_push(&columns.stored)
    cdef uint64_t* own_stored = <uint64_t*>vec_push(&columns.own)
    cdef uint64_t* align = <uint64_t*>vec_push(&columns.align)
    cdef Hash128* digest = <Hash128*>vec_push(&columns.digest)
    cdef Hash128 hashed
    if (halves == NULL or object == NULL or section == NULL or family == NULL or suffix == NULL
            or type == NULL or info == NULL or offset == NULL or size == NULL or stored == NULL
            or own_stored == NULL or align == NULL or digest == NULL):
        return False
    object[0] = columns.first + <int64_t>columns.objects.count - 1
    section[0], family[0], suffix[0] = <int32_t>number, halves.family, halves.suffix
    type[0], info[0] = header.sh_type, header.sh_info
    size[0], align[0] = header.sh_size, header.sh_addralign
    offset[0], stored[0], own_stored[0] = header.sh_offset, header.sh_size, own_size
    if not has_bytes(header.sh_type):
        offset[0] = stored[0] = 0
    digest.low64 = digest.high64 = 0
    if columns.hasher != NULL:
        hashed = columns.hasher(elf.data + offset[0], stored[0])
        digest.low64, digest.high64 = big_endian(hashed.high64), big_endian(hashed.low64)
    return True


cdef inline const Halves* find_halves(Columns* columns, const uint8_t* name) noexcept nogil:
    """Return the two parts of a section's name as numbers; NULL without memory."""
    cdef uint32_t length = <uint32_t>strlen(<const char*>name), stem
    cdef NameSlot* slot = index_find(&columns.names, name, length)
    cdef Halves* halves
    if slot == NULL:
        return NULL
    if slot.value < 0:
        slot.text = pool_join(&columns.texts, b"", 0, name, length)
        halves = <Halves*>vec_push(&columns.halves)
        if slot.text == NULL or halves == NULL:
            return NULL
        slot.value = <int32_t>(columns.halves.count - 1)
        columns.names.count += 1
        stem = <uint32_t>stem_size(name, length)
        halves.family = number_name(&columns.families, slot.text, stem)
        stem += stem < length       # the dot
        halves.suffix = number_name(&columns.suffixes, slot.text + stem, length - stem)
        if halves.family < 0 or halves.suffix < 0:
            return NULL
    return <const Halves*>columns.halves.data + slot.value


cdef enum:
    BANK_NUMBER = 12        # bytes of ".nv.constant", which a constant bank's number follows


cdef inline size_t skip_word(const uint8_t* name, size_t length, size_t offset,
                             const char* word) noexcept nogil:
    """Return the offset after `word` if it is at `offset` and a dot follows; else `offset`."""
    cdef size_t size = strlen(word)
    if (length - offset <= size or memcmp(name + offset, word, size) != 0
            or name[offset + size] != c"."):
        return offset
    return offset + size


cdef inline size_t stem_size(const uint8_t* name, size_t length) noexcept nogil:
    """Return the size of the family's name in a section's name: of `.rela.text.F`, 10 bytes."""
    cdef size_t start = 0, end
    cdef int i
    start = skip_word(name, length, start, b".nv.merc")
    start = skip_word(name, length, start, b".nv.capmerc")
    end = skip_word(name, length, start, b".rela")
    start = end if end > start else skip_word(name, length, start, b".rel")
    if skip_word(name, length, start, b".nv.shared.reserved") > start:
        return length
    for i in range(STEMS):
        end = skip_word(name, length, start, STEM[i])
        if end > start:
            return end
    # The family of `.nv.constant0.F`, a bank of a function, is `.nv.constant0`. Any other name is a
    # family's as a whole, such as `.nv.constant3`.
    if has_prefix(name + start, length - start, b".nv.constant"):
        end = start + BANK_NUMBER
        while end < length and c"0" <= name[end] <= c"9":
            end += 1
        if end > start + BANK_NUMBER and end < length and name[end] == c".":
            return end
    return length
