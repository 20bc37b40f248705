"""The sections of many cubins as columns: names, sizes and digests, for an index of a build.

Unlike the reader of a link this one looks at section headers alone, and takes any cubin: of another
release, already linked, with sections that no link knows. An object whose headers do not hold is
given a fault and no sections; the others are not concerned.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, strlen

from elf64 cimport EM_CUDA, Shdr
from elffile cimport *
from elfnumbers cimport SHT_NULL
from extents cimport count_files
from objectformats cimport *
from vec cimport *

cdef extern from *:
    """
    static inline uint64_t pylink_big_endian(uint64_t value) { return __builtin_bswap64(value); }
    """
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

# How names begin that a file may have several of, up to the dot behind which they differ.
cdef const char* STEM[STEMS]
STEM[:] = [b".text", b".nv.info", b".nv.shared", b".nv.local", b".nv_debug_ptx_txt",
           b".nv.resolvedrela", b".nv.constant.optimizer"]

# One cubin.
cdef packed struct ObjectItem:
    uint32_t fault
    uint32_t section            # that the fault is about
    uint32_t sm
    uint32_t type               # e_type
    uint64_t size
    uint64_t first              # SectionItem
    uint64_t count

# One section. `offset` and `stored` are its bytes in the file, none for NOBITS.
cdef packed struct SectionItem:
    uint32_t object
    uint32_t number
    uint32_t type
    uint32_t info
    uint64_t offset
    uint64_t size
    uint64_t stored
    uint64_t align

ctypedef struct Columns:
    Vec objects
    Vec sections
    Vec digests
    Vec families                # bytes of all, side by side
    Vec family_ends
    Vec suffixes
    Vec suffix_ends


def list_sections(bytes arena not None, bytes extents not None, uintptr_t hasher):
    """The objects and sections of every cubin of the arena; see sectionindex.pyi."""
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = count_files(arena, extents), i
    cdef Columns c
    cdef bint ok
    vec_init(&c.objects, sizeof(ObjectItem))
    vec_init(&c.sections, sizeof(SectionItem))
    vec_init(&c.digests, sizeof(Hash128))
    vec_init(&c.families, 1)
    vec_init(&c.family_ends, sizeof(int64_t))
    vec_init(&c.suffixes, 1)
    vec_init(&c.suffix_ends, sizeof(int64_t))
    with nogil:
        ok = push_end(&c.family_ends, 0) and push_end(&c.suffix_ends, 0)
        for i in range(n):
            if not ok:
                break
            ok = list_object(&c, <uint32_t>i, base + extent[2 * i], extent[2 * i + 1],
                             <Hasher>hasher)
    if not ok:
        vec_free(&c.objects)
        vec_free(&c.sections)
        vec_free(&c.digests)
        vec_free(&c.families)
        vec_free(&c.family_ends)
        vec_free(&c.suffixes)
        vec_free(&c.suffix_ends)
        raise MemoryError
    return (vec_take(&c.objects), vec_take(&c.sections), vec_take(&c.digests),
            vec_take(&c.family_ends), vec_take(&c.families),
            vec_take(&c.suffix_ends), vec_take(&c.suffixes))


cdef inline bint push_end(Vec* ends, size_t end) noexcept nogil:
    cdef int64_t* place = <int64_t*>vec_push(ends)
    if place == NULL:
        return False
    place[0] = <int64_t>end
    return True


cdef bint list_object(Columns* c, uint32_t number, const uint8_t* data, uint64_t size,
                      Hasher hasher) noexcept nogil:
    """False when memory is exhausted."""
    cdef ObjectItem* row = <ObjectItem*>vec_push(&c.objects)
    cdef ElfFile elf
    cdef const Shdr* header
    cdef const char* name
    cdef uint64_t i, names = 0, stored = 0
    cdef int fault
    if row == NULL:
        return False
    row.fault, row.section, row.sm, row.type = X_HEADER, 0, 0, 0
    row.size, row.first, row.count = size, c.sections.count, 0
    if open_elf(&elf, data, size) != ELF_GOOD or elf.header.e_machine != EM_CUDA:
        return True
    row.type = elf.header.e_type
    for i in range(FORMAT_COUNT):
        if FORMAT[i].os_abi == elf.header.e_ident[7]:
            row.sm = elf.header.e_flags >> FORMAT[i].sm_first & FORMAT[i].sm_mask
    fault = open_table(&elf)
    if fault == ELF_GOOD:
        fault = open_names(&elf)
    if fault != ELF_GOOD:
        row.fault = (X_NONE if fault == ELF_NO_TABLE else X_TABLE if fault == ELF_TABLE
                     else X_NAMES)
        return True
    # All is checked before the first section is listed.
    for i in range(elf.count):
        header = &elf.table[i]
        row.section = <uint32_t>i
        if header.sh_type == SHT_NULL:
            continue
        row.fault = X_NAME
        name = name_at(&elf, header)
        if name == NULL:
            return True
        names += strlen(name)
        row.fault = X_NAME_SUM
        if names > size:
            return True
        if not has_bytes(header.sh_type):
            continue
        row.fault = X_RANGE
        if not lies_in(&elf, header):
            return True
        stored += header.sh_size
        row.fault = X_SUM
        if stored > SHARED_BYTES * size:
            return True
    row.fault = row.section = 0
    for i in range(elf.count):
        header = &elf.table[i]
        if header.sh_type != SHT_NULL:
            if not list_section(c, number, <uint32_t>i, header,
                                <const uint8_t*>name_at(&elf, header), data, hasher):
                return False
            row.count += 1
    return True


cdef bint list_section(Columns* c, uint32_t owner, uint32_t number, const Shdr* header,
                       const uint8_t* name, const uint8_t* data, Hasher hasher) noexcept nogil:
    """False when memory is exhausted."""
    cdef SectionItem* row = <SectionItem*>vec_push(&c.sections)
    cdef Hash128* digest = <Hash128*>vec_push(&c.digests)
    cdef Hash128 found
    cdef size_t length = strlen(<const char*>name), stem = stem_size(name, length)
    if row == NULL or digest == NULL:
        return False
    row.object, row.number, row.type, row.info = owner, number, header.sh_type, header.sh_info
    row.size, row.align = header.sh_size, header.sh_addralign
    row.offset, row.stored = header.sh_offset, header.sh_size
    if not has_bytes(header.sh_type):
        row.offset = row.stored = 0
    digest.low64 = digest.high64 = 0
    if hasher != NULL:
        found = hasher(data + row.offset, row.stored)
        digest.low64, digest.high64 = big_endian(found.high64), big_endian(found.low64)
    if not (vec_append(&c.families, name, stem) and push_end(&c.family_ends, c.families.count)):
        return False
    stem += stem < length       # the dot
    return (vec_append(&c.suffixes, name + stem, length - stem)
            and push_end(&c.suffix_ends, c.suffixes.count))


cdef inline size_t skip(const uint8_t* name, size_t length, size_t at, const char* word,
                        size_t size) noexcept nogil:
    """Where `name` goes on behind `word`; `at` when that does not follow, or no dot behind it."""
    if length - at <= size or memcmp(name + at, word, size) != 0 or name[at + size] != 46:
        return at
    return at + size


cdef size_t stem_size(const uint8_t* name, size_t length) noexcept nogil:
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
        while at < length and 48 <= name[at] <= 57:
            at += 1
        if at > start + 12 and at < length and name[at] == 46:
            return at
    return length
