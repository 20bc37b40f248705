# The reader of one cubin: `read_file` checks its header, and then has its parts read and checked.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport Ehdr, Sym
from base.elffile cimport (
    ELF_CLASS, ELF_ENDIAN, ELF_GOOD, ELF_MAGIC, ELF_NAMES, ELF_SHORT, ElfFile, open_elf, open_names,
    open_table,
)
from base.vector cimport vec_push
from elfnumbers cimport EI_ABIVERSION, EI_OSABI, EM_CUDA, ET_REL, ET_WHOLE, SHT_SYMTAB
from objectformats cimport FORMAT, FORMAT_COUNT, FormatFacts
from outcomes cimport (
    F_ABI_VERSION, F_CLASS, F_ELF_FLAGS, F_ENDIAN, F_MACHINE, F_NOT_ELF, F_NOT_RELOCATABLE, F_OSABI,
    F_SECTION_TABLE, F_STRING_TABLE, F_TOO_LARGE, F_TOO_SHORT,
)
from read.faults cimport MOST_ROWS, Reader, refuse
from read.links cimport check_references
from read.notes cimport read_flags, read_notes
from read.sections cimport read_sections
from read.symbols cimport read_symbols
from tables.rows cimport FileRow, SectionRef, SymbolRef


cdef inline int32_t fault_of_elf(int fault) noexcept nogil:
    """Return the ReadFault for an ElfFault."""
    if fault == ELF_SHORT:
        return F_TOO_SHORT
    if fault == ELF_MAGIC:
        return F_NOT_ELF
    if fault == ELF_CLASS:
        return F_CLASS
    if fault == ELF_ENDIAN:
        return F_ENDIAN
    return F_STRING_TABLE if fault == ELF_NAMES else F_SECTION_TABLE


cdef inline void count_rows(const uint8_t* image, uint64_t size, uint64_t* sections,
                            uint64_t* symbols) noexcept nogil:
    """Add to `sections` and to `symbols` the most rows that a file, `image`, can have.

    A file that `read_file` will refuse may add too few: rows after its fault are not needed.
    """
    cdef ElfFile elf
    cdef uint64_t i, most = 0
    if open_elf(&elf, image, size) != ELF_GOOD or open_table(&elf) != ELF_GOOD:
        return
    sections[0] += elf.count
    for i in range(elf.count):      # one of them is the symbol table
        if elf.table[i].sh_type == SHT_SYMTAB:
            most = max(most, min(elf.table[i].sh_size, size))
    symbols[0] += most // sizeof(Sym)


cdef inline bint read_file(Reader* reader, uint64_t offset, uint64_t size) noexcept nogil:
    """Read one file into the tables; False with a fault, or without memory."""
    cdef ElfFile elf
    cdef const Ehdr* header
    cdef const FormatFacts* facts
    cdef uint8_t format = 0
    cdef FileRow* file
    cdef int fault = open_elf(&elf, reader.arena + offset, size)
    if fault != ELF_GOOD:
        return refuse(reader, -1, -1, fault_of_elf(fault), elf.value, elf.limit)
    header = elf.header
    if header.e_machine != EM_CUDA:
        return refuse(reader, -1, -1, F_MACHINE, header.e_machine, EM_CUDA)
    while format < FORMAT_COUNT and header.e_ident[EI_OSABI] != FORMAT[format].os_abi:
        format += 1
    if format == FORMAT_COUNT:
        return refuse(reader, -1, -1, F_OSABI, header.e_ident[EI_OSABI], FORMAT[0].os_abi)
    facts = &FORMAT[format]
    if header.e_ident[EI_ABIVERSION] != facts.abi_version:
        return refuse(reader, -1, -1, F_ABI_VERSION, header.e_ident[EI_ABIVERSION],
                      facts.abi_version)
    if header.e_flags & facts.refused:
        return refuse(reader, -1, -1, F_ELF_FLAGS, header.e_flags, 0)
    if header.e_type != ET_REL and header.e_type != ET_WHOLE:
        return refuse(reader, -1, -1, F_NOT_RELOCATABLE, header.e_type, ET_REL)
    fault = open_table(&elf)
    if fault != ELF_GOOD:
        return refuse(reader, -1, -1, fault_of_elf(fault), elf.value, elf.limit)
    if reader.sections.count + elf.count > MOST_ROWS:
        return refuse(reader, -1, -1, F_TOO_LARGE, reader.sections.count + elf.count, MOST_ROWS)
    reader.names = 0
    file = <FileRow*>vec_push(&reader.files)
    if file == NULL:
        return False
    memset(file, 0, sizeof(FileRow))
    file.offset = offset
    file.size = size
    file.first_section = <SectionRef>reader.sections.count
    file.section_count = <uint32_t>elf.count
    file.first_symbol = <SymbolRef>reader.symbols.count
    file.format = format
    read_flags(file, facts, header)
    fault = open_names(&elf)
    if fault != ELF_GOOD:
        return refuse(reader, <int32_t>elf.strings, -1, fault_of_elf(fault), elf.value, elf.limit)
    return (read_sections(reader, file, &elf) and read_notes(reader, file)
            and read_symbols(reader, file) and check_references(reader, file))
