# Scanning for entries: the sections of a host object, containers, the entries in each; with every
# size checked against what is left.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strcmp

from base.elf64 cimport ET_DYN, ET_REL, Shdr
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ElfFile, is_in_file, name_at, open_elf, open_names, open_table,
)
from base.texts cimport has_start
from base.vector cimport Vec, vec_push
from elfnumbers cimport SHT_NOBITS
from inputkinds cimport IN_FATBIN, IN_HOST, IN_SHARED
from inputs.fatbinrows cimport (
    B_COMPRESSED_SIZE, B_ENTRY_HEADER, B_ENTRY_SIZE, B_HEADER, B_MAGIC, B_SECTIONS, B_SECTION_NAME,
    B_SECTION_RANGE, B_SECTION_SUM, B_SIZE, B_TAIL, B_VERSION, COMPRESSED, CONTAINER_HEADER,
    ENTRY_HEADER, ByteRange, EntryRow, FatbinContainer, FatbinEntry, FaultRow, SourceRow,
)
from read.filekinds cimport FATBIN_MAGIC

ctypedef struct Scanner:
    const uint8_t* arena
    Vec entries
    Vec sources
    Vec faults
    uint32_t source
    uint32_t index
    uint32_t containers


cdef inline bint add_fault(Scanner* scanner, bint entry, uint32_t reason, uint64_t value,
                           uint64_t limit) noexcept nogil:
    """Add the fault of the current source; False without memory."""
    cdef FaultRow* row = <FaultRow*>vec_push(&scanner.faults)
    if row == NULL:
        return False
    row.source = scanner.source
    row.index = <int32_t>scanner.index if entry else -1
    row.reason = reason
    row.value = value
    row.limit = limit
    return True


cdef inline void set_range(ByteRange* row, uint64_t base, const Shdr* section) noexcept nogil:
    row.offset = base + section.sh_offset
    row.size = section.sh_size


cdef inline bint scan_container(Scanner* scanner, uint64_t offset, uint64_t end) noexcept nogil:
    """List the entries of one container; False without memory."""
    cdef FatbinEntry e
    cdef EntryRow* row
    cdef uint64_t remaining
    while offset < end:
        remaining = end - offset
        if remaining < ENTRY_HEADER:
            return add_fault(scanner, True, B_TAIL, remaining, ENTRY_HEADER)
        memcpy(&e, scanner.arena + offset, ENTRY_HEADER)
        if e.header_size < ENTRY_HEADER or e.header_size > remaining:
            return add_fault(scanner, True, B_ENTRY_HEADER, e.header_size, remaining)
        remaining -= e.header_size
        if e.size > remaining:
            return add_fault(scanner, True, B_ENTRY_SIZE, e.size, remaining)
        if e.flags & COMPRESSED and e.compressed_size > e.size:
            return add_fault(scanner, True, B_COMPRESSED_SIZE, e.compressed_size, e.size)
        row = <EntryRow*>vec_push(&scanner.entries)
        if row == NULL:
            return False
        row.source = scanner.source
        row.container = scanner.containers
        row.index = scanner.index
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
        scanner.index += 1
        offset += e.header_size + e.size
    return True


cdef inline bint scan_containers(Scanner* scanner, uint64_t offset, uint64_t size) noexcept nogil:
    """Read containers until something else follows; only what comes first must be one."""
    cdef FatbinContainer c
    cdef uint64_t end = offset + size
    cdef bint first = True
    while True:
        while not first and offset < end and scanner.arena[offset] == 0:
            offset += 1             # linkers pad between the parts of a section
        if end - offset < CONTAINER_HEADER:
            return not first or add_fault(scanner, False, B_HEADER, end - offset, CONTAINER_HEADER)
        memcpy(&c, scanner.arena + offset, CONTAINER_HEADER)
        if c.magic != FATBIN_MAGIC:
            return not first or add_fault(scanner, False, B_MAGIC, c.magic, FATBIN_MAGIC)
        if c.version != 1:
            return add_fault(scanner, False, B_VERSION, c.version, 1)
        if c.header_size < CONTAINER_HEADER or c.header_size > end - offset:
            return add_fault(scanner, False, B_HEADER, c.header_size, CONTAINER_HEADER)
        if c.size > end - offset - c.header_size:
            return add_fault(scanner, False, B_SIZE, c.size, end - offset - c.header_size)
        offset += c.header_size
        if not scan_container(scanner, offset, offset + c.size):
            return False
        if (scanner.faults.count
                and (<FaultRow*>scanner.faults.data)[scanner.faults.count - 1].source
                == scanner.source):
            return True
        offset += c.size
        scanner.containers += 1
        first = False


cdef inline bint scan_object(Scanner* scanner, SourceRow* row, uint64_t base, uint64_t size,
                             uint16_t type) noexcept nogil:
    """Look for the sections of CUDA, in a file of that ELF type alone."""
    cdef ElfFile elf
    cdef const Shdr* section
    cdef uint64_t i, total = 0
    cdef const char* name
    cdef int wrong = open_elf(&elf, scanner.arena + base, size)
    if wrong == ELF_GOOD:
        if elf.header.e_type != type:
            return True
        wrong = open_table(&elf)
    if wrong == ELF_NO_TABLE:
        return True
    if wrong != ELF_GOOD:
        return add_fault(scanner, False, B_SECTIONS, elf.value, elf.limit)
    if open_names(&elf) != ELF_GOOD:
        return add_fault(scanner, False, B_SECTION_RANGE, elf.strings, elf.count)
    for i in range(1, elf.count):
        section = &elf.table[i]
        name = name_at(&elf, section)
        if name == NULL:
            return add_fault(scanner, False, B_SECTION_NAME, i, elf.count)
        if not has_start(name, b"__nv_") and not has_start(name, b".nvHR"):
            continue
        if section.sh_type == SHT_NOBITS:
            continue
        if not is_in_file(&elf, section):
            return add_fault(scanner, False, B_SECTION_RANGE, i, elf.count)
        if strcmp(name, b"__nv_relfatbin") == 0:
            # Honest sections share no bytes; without a limit the work could be quadratic.
            if section.sh_size > size - total:
                return add_fault(scanner, False, B_SECTION_SUM, total + section.sh_size, size)
            total += section.sh_size
            if not scan_containers(scanner, base + section.sh_offset, section.sh_size):
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
    if scanner.containers:
        row.machine = elf.header.e_machine
    return True


cdef inline bint scan_source(Scanner* scanner, uint32_t source, uint8_t kind, uint64_t offset,
                             uint64_t size) noexcept nogil:
    """List the entries and sections of one source; False without memory."""
    cdef SourceRow* row = <SourceRow*>vec_push(&scanner.sources)
    if row == NULL:
        return False
    memset(row, 0, sizeof(SourceRow))
    scanner.source = source
    scanner.index = scanner.containers = 0
    if kind == IN_FATBIN:
        if not scan_containers(scanner, offset, size):
            return False
    elif kind == IN_HOST or kind == IN_SHARED:
        if not scan_object(scanner, row, offset, size, ET_REL if kind == IN_HOST else ET_DYN):
            return False
    row.containers = scanner.containers
    return True
