# The sections of cubins as the columns of a table, in the types that the table has: how the readers
# of files and of arenas list one. Names are numbers of a dictionary, since nearly all come again.
#
# Unlike the reader of a link this one looks at section headers alone, and takes any cubin: of
# another release, already linked, with sections that no link knows. An object whose headers do not
# hold is given a fault and no sections; the others are not concerned.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, strlen

from base.elf64 cimport EM_CUDA, Shdr
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ELF_TABLE, ElfFile, has_bytes, lies_in, name_at, open_elf, open_names,
    open_table,
)
from elfnumbers cimport SHT_NULL
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, pool_join, scratch_index, scratch_texts,
)
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_room, scratch_vector, scratch_zeros,
)
from base.stretches cimport NO_SECTION, Stretch, own_stretches
from objectformats cimport FORMAT, FORMAT_COUNT
from base.vector cimport Vec, vec_append, vec_push, vec_take

cdef extern from "fleet/sectioncolumns.h":
    const char** STEM "pylink_stems"
    uint64_t big_endian "pylink_big_endian"(uint64_t value) nogil

# As xxhash.h declares it; canonical are the high and then the low half, each big endian.
ctypedef struct Hash128:
    uint64_t low64
    uint64_t high64

ctypedef Hash128 (*Hasher)(const void* data, size_t size) noexcept nogil

# What is wrong with an object; pylink.fleet.fragment has the sentence for each.
cdef enum IndexFault:
    X_NONE = 0
    X_HEADER = 1                # no ELF header of a cubin
    X_TABLE = 2                 # section headers outside the file
    X_NAMES = 3                 # no section with names
    X_NAME = 4                  # a name outside that section
    X_RANGE = 5                 # a section outside the file
    X_SUM = 6                   # sections that overlap too much
    X_NAME_SUM = 7              # names that overlap too much

cdef enum:
    # Plain and Mercury debug data may share their bytes. More than this many times the file, and
    # hashing would cost what no file of its size should.
    SHARED_BYTES = 4
    STEMS = 7

# One cubin.
cdef packed struct ObjectItem:
    uint32_t fault
    uint32_t section            # that the fault is about
    uint32_t sm
    uint32_t type               # e_type
    uint64_t size
    uint64_t count              # of sections


# Different names in order of mention.
ctypedef struct Dictionary:
    NameIndex index
    Vec ends                    # int64, with a 0 in front
    Vec text

# A whole name: numbers of its family and of what follows the dot.
ctypedef struct Halves:
    int32_t family
    int32_t suffix

ctypedef struct Columns:
    Hasher hasher               # or NULL
    int64_t first               # number of the first object
    Vec objects                 # ObjectItem
    Vec object                  # and of sections, by column
    Vec number
    Vec family
    Vec suffix
    Vec type
    Vec info
    Vec offset                  # of its bytes in the file, none for NOBITS
    Vec size
    Vec stored
    Vec own                     # bytes that no section before it in the file has
    Vec align
    Vec digest
    Dictionary families
    Dictionary suffixes
    NameIndex names
    Vec halves
    TextPool texts              # names


cdef inline void start_dictionary(Dictionary* dictionary, Scratch* scratch) noexcept nogil:
    cdef int64_t* end
    scratch_vector(scratch, &dictionary.ends, sizeof(int64_t))
    scratch_vector(scratch, &dictionary.text, 1)
    scratch_index(scratch, &dictionary.index, 64)
    end = <int64_t*>vec_push(&dictionary.ends)
    if end == NULL:
        scratch.failed = True
    else:
        end[0] = 0


cdef inline int32_t number_of(Dictionary* dictionary, const uint8_t* text,
                              uint32_t size) noexcept nogil:
    """The number of a name, whose text must stay where it is; -1 without memory."""
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


cdef inline void start_columns(Columns* c, Scratch* scratch, Hasher hasher,
                               int64_t first) noexcept nogil:
    """Columns without rows."""
    c.hasher, c.first = hasher, first
    scratch_vector(scratch, &c.objects, sizeof(ObjectItem))
    scratch_vector(scratch, &c.object, sizeof(int64_t))
    scratch_vector(scratch, &c.number, sizeof(int32_t))
    scratch_vector(scratch, &c.family, sizeof(int32_t))
    scratch_vector(scratch, &c.suffix, sizeof(int32_t))
    scratch_vector(scratch, &c.type, sizeof(uint32_t))
    scratch_vector(scratch, &c.info, sizeof(uint32_t))
    scratch_vector(scratch, &c.offset, sizeof(int64_t))
    scratch_vector(scratch, &c.size, sizeof(uint64_t))
    scratch_vector(scratch, &c.stored, sizeof(int64_t))
    scratch_vector(scratch, &c.own, sizeof(int64_t))
    scratch_vector(scratch, &c.align, sizeof(uint64_t))
    scratch_vector(scratch, &c.digest, sizeof(Hash128))
    scratch_vector(scratch, &c.halves, sizeof(Halves))
    scratch_index(scratch, &c.names, 64)
    scratch_texts(scratch, &c.texts)
    start_dictionary(&c.families, scratch)
    start_dictionary(&c.suffixes, scratch)


cdef inline tuple columns_take(Columns* c):
    """As bytes: objects, columns in the order of the table, ends and text of both dictionaries."""
    return (
        vec_take(&c.objects),
        (vec_take(&c.object), vec_take(&c.number), vec_take(&c.family), vec_take(&c.suffix),
         vec_take(&c.type), vec_take(&c.info), vec_take(&c.offset), vec_take(&c.size),
         vec_take(&c.stored), vec_take(&c.own), vec_take(&c.align), vec_take(&c.digest)),
        (vec_take(&c.families.ends), vec_take(&c.families.text)),
        (vec_take(&c.suffixes.ends), vec_take(&c.suffixes.text)),
    )


cdef inline bint list_object(Columns* c, const uint8_t* data, uint64_t size) noexcept nogil:
    """False when memory is exhausted."""
    cdef ObjectItem* row = <ObjectItem*>vec_push(&c.objects)
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
        if FORMAT[format].os_abi == elf.header.e_ident[7]:
            row.sm = elf.header.e_flags >> FORMAT[format].sm_first & FORMAT[format].sm_mask
    fault = open_table(&elf)
    if fault == ELF_GOOD:
        fault = open_names(&elf)
    if fault != ELF_GOOD:
        row.fault = (X_NONE if fault == ELF_NO_TABLE else X_TABLE if fault == ELF_TABLE
                     else X_NAMES)
        return True
    # All is checked before the first section is listed.
    if not check_headers(row, &elf):
        return True
    scratch_init(&scratch)
    good = list_sections(c, row, &elf, &scratch)
    scratch_free(&scratch)
    return good


cdef inline bint check_headers(ObjectItem* row, const ElfFile* elf) noexcept nogil:
    """Whether all sections lie in the file; else `row` has the fault and its section."""
    cdef const Shdr* header
    cdef const char* name
    cdef uint64_t i, names = 0, stored = 0
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
        if not lies_in(elf, header):
            return False
        stored += header.sh_size
        row.fault = X_SUM
        if stored > SHARED_BYTES * elf.size:
            return False
    row.fault = row.section = 0
    return True


cdef inline bint list_sections(Columns* c, ObjectItem* row, const ElfFile* elf,
                               Scratch* scratch) noexcept nogil:
    """False when memory is exhausted."""
    cdef uint64_t* own = <uint64_t*>scratch_zeros(scratch, elf.count + 1, sizeof(uint64_t))
    cdef Stretch* stretches = <Stretch*>scratch_room(scratch, elf.count + 3, sizeof(Stretch))
    cdef uint64_t i
    if scratch.failed:
        return False
    for i in range(own_stretches(stretches, elf)):
        if stretches[i].section != <uint32_t>NO_SECTION:
            own[stretches[i].section] = stretches[i].end - stretches[i].start
    for i in range(elf.count):
        if elf.table[i].sh_type != SHT_NULL:
            if not list_section(c, <uint32_t>i, elf, own[i]):
                return False
            row.count += 1
    return True


cdef inline bint list_section(Columns* c, uint32_t number, const ElfFile* elf,
                              uint64_t own_size) noexcept nogil:
    """False when memory is exhausted."""
    cdef const Shdr* header = &elf.table[number]
    cdef const Halves* halves = find_halves(c, <const uint8_t*>name_at(elf, header))
    cdef int64_t* object = <int64_t*>vec_push(&c.object)
    cdef int32_t* own = <int32_t*>vec_push(&c.number)
    cdef int32_t* family = <int32_t*>vec_push(&c.family)
    cdef int32_t* suffix = <int32_t*>vec_push(&c.suffix)
    cdef uint32_t* type = <uint32_t*>vec_push(&c.type)
    cdef uint32_t* info = <uint32_t*>vec_push(&c.info)
    cdef uint64_t* offset = <uint64_t*>vec_push(&c.offset)
    cdef uint64_t* size = <uint64_t*>vec_push(&c.size)
    cdef uint64_t* stored = <uint64_t*>vec_push(&c.stored)
    cdef uint64_t* own_stored = <uint64_t*>vec_push(&c.own)
    cdef uint64_t* align = <uint64_t*>vec_push(&c.align)
    cdef Hash128* digest = <Hash128*>vec_push(&c.digest)
    cdef Hash128 hashed
    if (halves == NULL or object == NULL or own == NULL or family == NULL or suffix == NULL
            or type == NULL or info == NULL or offset == NULL or size == NULL or stored == NULL
            or own_stored == NULL or align == NULL or digest == NULL):
        return False
    object[0] = c.first + <int64_t>c.objects.count - 1
    own[0], family[0], suffix[0] = <int32_t>number, halves.family, halves.suffix
    type[0], info[0] = header.sh_type, header.sh_info
    size[0], align[0] = header.sh_size, header.sh_addralign
    offset[0], stored[0], own_stored[0] = header.sh_offset, header.sh_size, own_size
    if not has_bytes(header.sh_type):
        offset[0] = stored[0] = 0
    digest.low64 = digest.high64 = 0
    if c.hasher != NULL:
        hashed = c.hasher(elf.data + offset[0], stored[0])
        digest.low64, digest.high64 = big_endian(hashed.high64), big_endian(hashed.low64)
    return True


cdef inline const Halves* find_halves(Columns* c, const uint8_t* name) noexcept nogil:
    """What a name consists of; NULL without memory."""
    cdef uint32_t length = <uint32_t>strlen(<const char*>name), stem
    cdef NameSlot* slot = index_find(&c.names, name, length)
    cdef Halves* halves
    if slot == NULL:
        return NULL
    if slot.value < 0:
        slot.text = pool_join(&c.texts, b"", 0, name, length)
        halves = <Halves*>vec_push(&c.halves)
        if slot.text == NULL or halves == NULL:
            return NULL
        slot.value = <int32_t>(c.halves.count - 1)
        c.names.count += 1
        stem = <uint32_t>stem_size(name, length)
        halves.family = number_of(&c.families, slot.text, stem)
        stem += stem < length       # the dot
        halves.suffix = number_of(&c.suffixes, slot.text + stem, length - stem)
        if halves.family < 0 or halves.suffix < 0:
            return NULL
    return <const Halves*>c.halves.data + slot.value


cdef inline size_t skip(const uint8_t* name, size_t length, size_t at, const char* word,
                        size_t size) noexcept nogil:
    """Where `name` goes on after `word`; `at` when that does not follow, or no dot after it."""
    if length - at <= size or memcmp(name + at, word, size) != 0 or name[at + size] != c".":
        return at
    return at + size


cdef inline size_t stem_size(const uint8_t* name, size_t length) noexcept nogil:
    """Bytes of the name before what differs from file to file: `.rela.text` of `.rela.text.F`."""
    cdef size_t start = 0, at
    cdef int i
    start = skip(name, length, start, b".nv.merc", 8)
    start = skip(name, length, start, b".nv.capmerc", 11)
    at = skip(name, length, start, b".rela", 5)
    start = at if at > start else skip(name, length, start, b".rel", 4)
    if skip(name, length, start, b".nv.shared.reserved", 19) > start:
        return length
    for i in range(STEMS):
        at = skip(name, length, start, STEM[i], strlen(STEM[i]))
        if at > start:
            return at
    # Banks have numbers: `.nv.constant0.F`, and bank 3 and the named ones belong to no function.
    if length - start > 12 and memcmp(name + start, b".nv.constant", 12) == 0:
        at = start + 12
        while at < length and c"0" <= name[at] <= c"9":
            at += 1
        if at > start + 12 and at < length and name[at] == c".":
            return at
    return length
