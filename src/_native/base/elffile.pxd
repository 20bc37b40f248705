# The headers of an ELF64 file. Native functions that read its sections first check here that the
# header, the section table and the section with the names lie in the file.
#
# Python code gets sections by `elfheaders.read_sections`. Three modules have readers of their own.
# `inspect/embedded.py` reads a file in pieces, since a program with device code may be large;
# `pylink prune` uses it, too. `inspect/image.py` is independent of the linker whose outputs it
# shows. `inputs/libraryfile.py` finds the headers of a shared library in the file, and has them
# checked here.
#
# A file is opened step by step: `open_elf`, `open_table`, `open_names`. Each returns an ElfFault.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport Ehdr, Shdr
from base.texts cimport has_text
from elfnumbers cimport (
    EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB, SHN_XINDEX, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL,
    SHT_CUDA_RESERVED_SHARED, SHT_CUDA_SHARED, SHT_NOBITS, SHT_NULL,
)

cdef enum ElfFault:
    ELF_GOOD = 0                # nothing is wrong
    ELF_SHORT                   # the file is shorter than a header
    ELF_MAGIC                   # it does not begin with "\x7fELF"
    ELF_CLASS                   # not of 64 bits
    ELF_ENDIAN                  # not little endian
    ELF_NO_TABLE                # there are no section headers
    # The section headers run past the file, overlap its header, or are not of 64 bytes.
    ELF_TABLE
    ELF_STRINGS                 # the index of the section with the names is not below `count`
    ELF_NAMES                   # the names are empty, run past the file, or do not end with NUL

# An ELF64 file that is read.
ctypedef struct ElfFile:
    const uint8_t* data
    uint64_t size               # bytes of the file
    const Ehdr* header
    const Shdr* table           # section headers
    uint64_t count              # number of sections
    uint64_t strings            # index of the section with their names
    const uint8_t* names        # contents of that section
    uint64_t names_size         # bytes
    uint64_t value              # after a fault: the wrong value; for ELF_STRINGS it is `count`
    uint64_t limit              # after a fault: the right value, or the largest


cdef inline int set_elf_fault(ElfFile* elf, int fault, uint64_t value,
                              uint64_t limit) noexcept nogil:
    """Record the wrong `value`, and `limit`, which would be right or is the most. Returns `fault`.
    """
    elf.value = value
    elf.limit = limit
    return fault


cdef inline int open_elf(ElfFile* elf, const uint8_t* data, uint64_t size) noexcept nogil:
    """Check the header of a file of `size` bytes, and start `elf`; return an ElfFault."""
    memset(elf, 0, sizeof(ElfFile))
    elf.data = data
    elf.size = size
    elf.header = <const Ehdr*>data
    if size < sizeof(Ehdr):
        return set_elf_fault(elf, ELF_SHORT, size, sizeof(Ehdr))
    if not has_text(data, b"\x7fELF"):
        return set_elf_fault(elf, ELF_MAGIC, 0, 0)
    if data[EI_CLASS] != ELFCLASS64:
        return set_elf_fault(elf, ELF_CLASS, data[EI_CLASS], ELFCLASS64)
    if data[EI_DATA] != ELFDATA2LSB:
        return set_elf_fault(elf, ELF_ENDIAN, data[EI_DATA], ELFDATA2LSB)
    return ELF_GOOD


cdef inline int open_table(ElfFile* elf) noexcept nogil:
    """Find the section headers of a file whose header is good; return an ElfFault."""
    cdef const Ehdr* header = elf.header
    cdef uint64_t room
    if header.e_shoff == 0:
        return set_elf_fault(elf, ELF_NO_TABLE, 0, elf.size)
    if (header.e_shentsize != sizeof(Shdr) or header.e_shoff < sizeof(Ehdr)
            or header.e_shoff > elf.size or elf.size - header.e_shoff < sizeof(Shdr)):
        return set_elf_fault(elf, ELF_TABLE, header.e_shoff, elf.size)
    room = (elf.size - header.e_shoff) // sizeof(Shdr)
    elf.table = <const Shdr*>(elf.data + header.e_shoff)
    # The number of sections and the index of the section with the names, if 0xff00 or more, are in
    # the null section header (gABI, 4-7).
    elf.count = header.e_shnum if header.e_shnum else elf.table[0].sh_size
    elf.strings = header.e_shstrndx if header.e_shstrndx != SHN_XINDEX else elf.table[0].sh_link
    if elf.count > room:
        return set_elf_fault(elf, ELF_TABLE, elf.count, room)
    if elf.strings >= elf.count:
        return set_elf_fault(elf, ELF_STRINGS, elf.count, room)
    return ELF_GOOD


cdef inline bint is_in_file(const ElfFile* elf, const Shdr* section) noexcept nogil:
    """Return whether the offset and the size of a section lie inside the file."""
    return section.sh_offset <= elf.size and section.sh_size <= elf.size - section.sh_offset


cdef inline bint is_string_table(const ElfFile* elf, const Shdr* section) noexcept nogil:
    """Return whether a section lies in the file, is not empty, and ends with NUL."""
    return (is_in_file(elf, section) and section.sh_size != 0
            and elf.data[section.sh_offset + section.sh_size - 1] == 0)


cdef inline int open_names(ElfFile* elf) noexcept nogil:
    """Find the names of the sections of a file whose section headers are good; return an ElfFault.
    """
    cdef const Shdr* strings = &elf.table[elf.strings]
    if not is_string_table(elf, strings):
        return set_elf_fault(elf, ELF_NAMES, strings.sh_size, elf.size)
    elf.names = elf.data + strings.sh_offset
    elf.names_size = strings.sh_size
    return ELF_GOOD


cdef inline int open_sections(ElfFile* elf, const uint8_t* data, uint64_t size) noexcept nogil:
    """Open a file of `size` bytes as `elf`, with section headers and names; return an ElfFault."""
    cdef int fault = open_elf(elf, data, size)
    if fault == ELF_GOOD:
        fault = open_table(elf)
    return fault if fault != ELF_GOOD else open_names(elf)


cdef inline const char* name_at(const ElfFile* elf, const Shdr* section) noexcept nogil:
    """Return the name of a section; NULL if its offset is outside the names."""
    return <const char*>elf.names + section.sh_name if section.sh_name < elf.names_size else NULL


cdef inline bint has_bytes(uint32_t type) noexcept nogil:
    """Return whether sections of a type have bytes in the file, unlike SHT_NULL and SHT_NOBITS.

    The types of CUDA for uninitialized memory are like SHT_NOBITS.
    """
    return type not in (SHT_NULL, SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED,
                        SHT_CUDA_RESERVED_SHARED)
