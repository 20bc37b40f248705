"""Fat binaries, alone and in host objects: where their entries are, with nothing decompressed.

A fat binary is a row of containers: a header of 16 bytes, then entries back to back, each a header
of 64 bytes or more and a payload. A host object holds one, for each source file that it was made
of, in `__nv_relfatbin`. docs/inputs.md has the fields.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strcmp, strncmp

from elf64 cimport ET_DYN, ET_REL, SHT_NOBITS, Shdr
from elffile cimport *
from elfkinds cimport FATBIN_MAGIC, IN_FATBIN, IN_HOST, IN_SHARED
from extents cimport count_files
from vec cimport *

# Reasons of a FaultRow; pylink/inputs/damage.py has the sentence for each.
cdef enum FatbinFault:
    B_NONE = 0
    B_MAGIC = 1
    B_HEADER = 2                # of a container
    B_VERSION = 3
    B_SIZE = 4                  # of a container
    B_ENTRY_HEADER = 5
    B_ENTRY_SIZE = 6
    B_COMPRESSED_SIZE = 7
    B_TAIL = 8                  # bytes that are too few for an entry
    B_SECTIONS = 9              # of the host object, as the rest
    B_SECTION_RANGE = 10
    B_SECTION_NAME = 11
    B_SECTION_SUM = 12

cdef enum:
    CONTAINER_HEADER = 16
    ENTRY_HEADER = 64
    COMPRESSED = 0x2000 | 0x8000

cdef packed struct Container:
    uint32_t magic
    uint16_t version
    uint16_t header_size
    uint64_t size               # of what follows the header

cdef packed struct Entry:
    uint16_t kind
    uint16_t version
    uint32_t header_size
    uint64_t size
    uint32_t compressed_size
    uint32_t options
    uint16_t minor
    uint16_t major
    uint32_t sm
    uint32_t name
    uint32_t name_size
    uint64_t flags
    uint64_t hash
    uint64_t full_size

# One entry. Offsets are in the arena.
cdef packed struct EntryRow:
    uint32_t source
    uint32_t container          # number in the source
    uint32_t index              # number in the source, counted through all containers
    uint32_t kind
    uint32_t sm
    uint32_t header_size
    uint64_t flags
    uint64_t offset             # of the header
    uint64_t size               # of the payload with its padding
    uint64_t packed_size        # without padding, where that is known
    uint64_t full_size          # when it is decompressed; 0 when it is not compressed

cdef packed struct Range:
    uint64_t offset
    uint64_t size

# What a source is beyond its entries. An offset of 0 says that there is no such section.
cdef packed struct SourceRow:
    uint32_t containers
    uint32_t spare
    Range module                # __nv_module_id
    Range kernels[2]            # .nvHRKE, .nvHRKI
    Range variables[4]          # .nvHRDE, .nvHRDI, .nvHRCE, .nvHRCI

cdef packed struct FaultRow:
    uint32_t source
    int32_t index               # the entry, or -1
    uint32_t reason
    uint32_t spare
    uint64_t value
    uint64_t limit

ctypedef struct Scanner:
    const uint8_t* arena
    Vec entries
    Vec sources
    Vec faults
    uint32_t source
    uint32_t index
    uint32_t containers


def find_entries(bytes arena, bytes extents, bytes kinds):
    """Find the entries of all fat binaries and host objects of the arena.

    `extents` and `kinds` are as in `inputfiles`. Returns `(entries, sources, faults)`: EntryRow
    table in order, a SourceRow each, and a FaultRow for each damaged source, whose entries then
    end before the damage.
    """
    cdef Scanner s
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
    cdef Py_ssize_t n = count_files(arena, extents), i
    cdef bint ok = True
    if PyBytes_GET_SIZE(kinds) != n:
        raise ValueError("one kind per file")
    s.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    vec_init(&s.entries, sizeof(EntryRow))
    vec_init(&s.sources, sizeof(SourceRow))
    vec_init(&s.faults, sizeof(FaultRow))
    with nogil:
        for i in range(n):
            ok = scan(&s, <uint32_t>i, kind[i], extent[2 * i], extent[2 * i + 1])
            if not ok:
                break
    if not ok:
        vec_free(&s.entries)
        vec_free(&s.sources)
        vec_free(&s.faults)
        raise MemoryError
    return vec_take(&s.entries), vec_take(&s.sources), vec_take(&s.faults)


cdef bint scan(Scanner* s, uint32_t source, uint8_t kind, uint64_t offset,
               uint64_t size) noexcept nogil:
    cdef SourceRow* row = <SourceRow*>vec_push(&s.sources)
    if row == NULL:
        return False
    memset(row, 0, sizeof(SourceRow))
    s.source = source
    s.index = s.containers = 0
    if kind == IN_FATBIN:
        if not scan_containers(s, offset, size):
            return False
    elif kind == IN_HOST or kind == IN_SHARED:
        if not scan_object(s, row, offset, size, ET_REL if kind == IN_HOST else ET_DYN):
            return False
    row.containers = s.containers
    return True


cdef bint fault(Scanner* s, bint entry, uint32_t reason, uint64_t value,
                uint64_t limit) noexcept nogil:
    cdef FaultRow* row = <FaultRow*>vec_push(&s.faults)
    if row == NULL:
        return False
    row.source = s.source
    row.index = <int32_t>s.index if entry else -1
    row.reason = reason
    row.spare = 0
    row.value = value
    row.limit = limit
    return True


cdef bint scan_object(Scanner* s, SourceRow* row, uint64_t base, uint64_t size,
                      uint16_t type) noexcept nogil:
    """Look for the sections of CUDA, in a file of that ELF type alone."""
    cdef ElfFile elf
    cdef const Shdr* section
    cdef uint64_t i, total = 0
    cdef const char* name
    cdef int wrong = open_elf(&elf, s.arena + base, size)
    if wrong == ELF_GOOD:
        if elf.header.e_type != type:
            return True
        wrong = open_table(&elf)
    if wrong == ELF_NO_TABLE:
        return True
    if wrong != ELF_GOOD:
        return fault(s, False, B_SECTIONS, elf.value, elf.limit)
    if open_names(&elf) != ELF_GOOD:
        return fault(s, False, B_SECTION_RANGE, elf.strings, elf.count)
    for i in range(1, elf.count):
        section = &elf.table[i]
        name = name_at(&elf, section)
        if name == NULL:
            return fault(s, False, B_SECTION_NAME, i, elf.count)
        if strncmp(name, b"__nv_", 5) != 0 and strncmp(name, b".nvHR", 5) != 0:
            continue
        if section.sh_type == SHT_NOBITS:
            continue
        if not lies_in(&elf, section):
            return fault(s, False, B_SECTION_RANGE, i, elf.count)
        if strcmp(name, b"__nv_relfatbin") == 0:
            # Honest sections share no bytes; without a limit the work could be quadratic.
            if section.sh_size > size - total:
                return fault(s, False, B_SECTION_SUM, total + section.sh_size, size)
            total += section.sh_size
            if not scan_containers(s, base + section.sh_offset, section.sh_size):
                return False
        elif strcmp(name, b"__nv_module_id") == 0:
            set_range(&row.module, base, section)
        elif strcmp(name, b".nvHRKE") == 0:
            set_range(&row.kernels[0], base, section)
        elif strcmp(name, b".nvHRKI") == 0:
            set_range(&row.kernels[1], base, section)
        elif strcmp(name, b".nvHRDE") == 0:
            set_range(&row.variables[0], base, section)
        elif strcmp(name, b".nvHRDI") == 0:
            set_range(&row.variables[1], base, section)
        elif strcmp(name, b".nvHRCE") == 0:
            set_range(&row.variables[2], base, section)
        elif strcmp(name, b".nvHRCI") == 0:
            set_range(&row.variables[3], base, section)
    return True


cdef void set_range(Range* row, uint64_t base, const Shdr* section) noexcept nogil:
    row.offset = base + section.sh_offset
    row.size = section.sh_size


cdef bint scan_containers(Scanner* s, uint64_t offset, uint64_t size) noexcept nogil:
    """Read containers until something else follows; only what comes first must be one."""
    cdef Container c
    cdef uint64_t end = offset + size
    cdef bint first = True
    while True:
        while not first and offset < end and s.arena[offset] == 0:
            offset += 1             # linkers pad between the parts of a section
        if end - offset < CONTAINER_HEADER:
            return not first or fault(s, False, B_HEADER, end - offset, CONTAINER_HEADER)
        memcpy(&c, s.arena + offset, CONTAINER_HEADER)
        if c.magic != FATBIN_MAGIC:
            return not first or fault(s, False, B_MAGIC, c.magic, FATBIN_MAGIC)
        if c.version != 1:
            return fault(s, False, B_VERSION, c.version, 1)
        if c.header_size < CONTAINER_HEADER or c.header_size > end - offset:
            return fault(s, False, B_HEADER, c.header_size, CONTAINER_HEADER)
        if c.size > end - offset - c.header_size:
            return fault(s, False, B_SIZE, c.size, end - offset - c.header_size)
        offset += c.header_size
        if not scan_container(s, offset, offset + c.size):
            return False
        if s.faults.count and (<FaultRow*>s.faults.data)[s.faults.count - 1].source == s.source:
            return True
        offset += c.size
        s.containers += 1
        first = False


cdef bint scan_container(Scanner* s, uint64_t offset, uint64_t end) noexcept nogil:
    cdef Entry e
    cdef EntryRow* row
    cdef uint64_t left
    while offset < end:
        left = end - offset
        if left < ENTRY_HEADER:
            return fault(s, True, B_TAIL, left, ENTRY_HEADER)
        memcpy(&e, s.arena + offset, ENTRY_HEADER)
        if e.header_size < ENTRY_HEADER or e.header_size > left:
            return fault(s, True, B_ENTRY_HEADER, e.header_size, left)
        left -= e.header_size
        if e.size > left:
            return fault(s, True, B_ENTRY_SIZE, e.size, left)
        if e.flags & COMPRESSED and e.compressed_size > e.size:
            return fault(s, True, B_COMPRESSED_SIZE, e.compressed_size, e.size)
        row = <EntryRow*>vec_push(&s.entries)
        if row == NULL:
            return False
        row.source = s.source
        row.container = s.containers
        row.index = s.index
        row.kind = e.kind
        row.sm = e.sm
        row.header_size = e.header_size
        row.flags = e.flags
        row.offset = offset
        row.size = row.packed_size = e.size
        row.full_size = 0
        if e.flags & COMPRESSED:
            row.packed_size = e.compressed_size if e.compressed_size else e.size
            row.full_size = e.full_size
        s.index += 1
        offset += e.header_size + e.size
    return True
