# Scanning for entries: the sections of a host object, the containers in them, the entries of each.
# Every size is compared with the bytes that remain.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strcmp

from base.elf64 cimport Shdr
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ElfFile, is_in_file, name_at, open_elf, open_names, open_table,
)
from base.texts cimport has_start
from base.vector cimport Vec, vec_push
from containernumbers cimport CONTAINER_HEADER, ENTRY_HEADER, FATBIN_MAGIC, FLAGS_OF_CODECS
from elfnumbers cimport ET_DYN, ET_REL, SHT_NOBITS
from inputkinds cimport IN_FATBIN, IN_HOST, IN_SHARED
from inputs.fatbinrows cimport (
    ByteRange, EntryRow, FatbinContainer, FatbinEntry, FaultRow, SourceRow,
)
from outcomes cimport (
    B_COMPRESSED_SIZE, B_ENTRY_HEADER, B_ENTRY_SIZE, B_HEADER, B_MAGIC, B_SECTIONS, B_SECTION_NAME,
    B_SECTION_RANGE, B_SECTION_SUM, B_SIZE, B_TAIL, B_VERSION,
)

# Sources that are scanned one after the other, and what was found.
ctypedef struct Scanner:
    const uint8_t* arena        # of the current source
    Vec entries                 # EntryRow
    Vec sources                 # SourceRow
    Vec faults                  # FaultRow
    uint32_t source             # number of the current source
    uint32_t index              # number of its next entry
    uint32_t containers         # number of its containers so far


cdef inline bint add_fault(Scanner* scanner, bint is_of_entry, uint32_t reason, uint64_t value,
                           uint64_t limit) noexcept nogil:
    """Add a fault of the source or, with `is_of_entry`, of its next entry; False without memory.

    `reason` is a FatbinFault; `value` and `limit` are those of the FaultRow.
    """
    cdef FaultRow* row = <FaultRow*>vec_push(&scanner.faults)
    if row == NULL:
        return False
    row.source = scanner.source
    row.index = <int32_t>scanner.index if is_of_entry else -1
    row.reason = reason
    row.value = value
    row.limit = limit
    return True


cdef inline void set_range(ByteRange* row, uint64_t base, const Shdr* section) noexcept nogil:
    """Set a range of the arena to a section of the file that begins at offset `base` there."""
    row.offset = base + section.sh_offset
    row.size = section.sh_size


cdef inline bint scan_container(Scanner* scanner, uint64_t offset, uint64_t end) noexcept nogil:
    """List the entries of one container, from `offset` to `end`; False without memory."""
    cdef FatbinEntry entry
    cdef EntryRow* row
    cdef uint64_t remaining
    while offset < end:
        remaining = end - offset
        if remaining < ENTRY_HEADER:
            return add_fault(scanner, True, B_TAIL, remaining, ENTRY_HEADER)
        memcpy(&entry, scanner.arena + offset, ENTRY_HEADER)
        if entry.header_size < ENTRY_HEADER or entry.header_size > remaining:
            return add_fault(scanner, True, B_ENTRY_HEADER, entry.header_size, remaining)
        remaining -= entry.header_size
        if entry.size > remaining:
            return add_fault(scanner, True, B_ENTRY_SIZE, entry.size, remaining)
        if entry.flags & FLAGS_OF_CODECS and entry.compressed_size > entry.size:
            return add_fault(scanner, True, B_COMPRESSED_SIZE, entry.compressed_size, entry.size)
        row = <EntryRow*>vec_push(&scanner.entries)
        if row == NULL:
            return False
        row.source = scanner.source
        row.container = scanner.containers
        row.index = scanner.index
        row.kind = entry.kind
        row.sm = entry.sm
        row.header_size = entry.header_size
        row.flags = entry.flags
        row.offset = offset
        row.size = row.packed_size = entry.size
        row.full_size = 0
        if entry.flags & FLAGS_OF_CODECS:
            row.packed_size = entry.compressed_size if entry.compressed_size else entry.size
            row.full_size = entry.full_size
        scanner.index += 1
        offset += entry.header_size + entry.size
    return True


cdef inline bint has_fault(const Scanner* scanner) noexcept nogil:
    """Return whether the source that is scanned is damaged."""
    cdef const FaultRow* rows = <const FaultRow*>scanner.faults.data
    return scanner.faults.count and rows[scanner.faults.count - 1].source == scanner.source


cdef inline bint scan_containers(Scanner* scanner, uint64_t offset, uint64_t size) noexcept nogil:
    """List the entries of all containers in a section or file; False without memory.

    The section or file must begin with a container. Zeros may follow a container, and then another
    container; the list ends at anything else, and at the first fault.
    """
    cdef FatbinContainer header
    cdef uint64_t end = offset + size
    cdef bint first = True
    while True:
        while not first and offset < end and scanner.arena[offset] == 0:
            offset += 1             # linkers pad between the parts of a section
        if end - offset < CONTAINER_HEADER:
            return not first or add_fault(scanner, False, B_HEADER, end - offset, end - offset)
        memcpy(&header, scanner.arena + offset, CONTAINER_HEADER)
        if header.magic != FATBIN_MAGIC:
            return not first or add_fault(scanner, False, B_MAGIC, header.magic, FATBIN_MAGIC)
        if header.version != 1:
            return add_fault(scanner, False, B_VERSION, header.version, 1)
        if header.header_size < CONTAINER_HEADER or header.header_size > end - offset:
            return add_fault(scanner, False, B_HEADER, header.header_size, end - offset)
        if header.size > end - offset - header.header_size:
            return add_fault(scanner, False, B_SIZE, header.size, end - offset - header.header_size)
        offset += header.header_size
        if not scan_container(scanner, offset, offset + header.size):
            return False
        if has_fault(scanner):
            return True
        offset += header.size
        scanner.containers += 1
        first = False


cdef inline bint scan_object(Scanner* scanner, SourceRow* row, uint64_t base, uint64_t size,
                             uint16_t type) noexcept nogil:
    """List the entries in an ELF file at `base`; set the ranges of other CUDA sections in `row`.

    Does nothing if its e_type is not `type`. False without memory.
    """
    cdef ElfFile elf
    cdef const Shdr* section
    cdef uint64_t i, total = 0
    cdef const char* name
    cdef int failure = open_elf(&elf, scanner.arena + base, size)
    if failure == ELF_GOOD:
        if elf.header.e_type != type:
            return True
        failure = open_table(&elf)
    if failure == ELF_NO_TABLE:
        return True
    if failure != ELF_GOOD:
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
            # Sections of valid files share no bytes; without a limit the work could be quadratic.
            if section.sh_size > size - total:
                return add_fault(scanner, False, B_SECTION_SUM, total + section.sh_size, size)
            total += section.sh_size
            if not scan_containers(scanner, base + section.sh_offset, section.sh_size):
                return False
            if has_fault(scanner):
                return True
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
