# ELF64 structures as they lie in a file, and unaligned loads.
# Source: System V gABI, chapter 4. pylink/facts/elf.py has the values of their fields.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef packed struct Ehdr:
    uint8_t e_ident[16]
    uint16_t e_type
    uint16_t e_machine
    uint32_t e_version
    uint64_t e_entry
    uint64_t e_phoff
    uint64_t e_shoff
    uint32_t e_flags
    uint16_t e_ehsize
    uint16_t e_phentsize
    uint16_t e_phnum
    uint16_t e_shentsize
    uint16_t e_shnum
    uint16_t e_shstrndx

cdef packed struct Shdr:
    uint32_t sh_name
    uint32_t sh_type
    uint64_t sh_flags
    uint64_t sh_addr
    uint64_t sh_offset
    uint64_t sh_size
    uint32_t sh_link
    uint32_t sh_info
    uint64_t sh_addralign
    uint64_t sh_entsize

cdef packed struct Phdr:
    uint32_t p_type
    uint32_t p_flags
    uint64_t p_offset
    uint64_t p_vaddr
    uint64_t p_paddr
    uint64_t p_filesz
    uint64_t p_memsz
    uint64_t p_align

cdef packed struct Sym:
    uint32_t st_name
    uint8_t st_info
    uint8_t st_other
    uint16_t st_shndx
    uint64_t st_value
    uint64_t st_size

cdef packed struct Rel:
    uint64_t r_offset
    uint32_t r_type
    uint32_t r_sym

cdef packed struct Rela:
    uint64_t r_offset
    uint32_t r_type
    uint32_t r_sym
    int64_t r_addend

# Bytes of an instruction, from sm_70 on.
cdef enum:
    WORD = 16


cdef inline uint64_t round_up(uint64_t value, uint64_t align) noexcept nogil:
    """Return the least multiple of `align` that is not below `value`; `value` if `align` is 0."""
    return value if align < 2 else (value + align - 1) // align * align


cdef inline uint16_t load16(const uint8_t* data) noexcept nogil:
    """Return the little-endian number of 16 bits at an address of any alignment."""
    cdef uint16_t value
    memcpy(&value, data, 2)
    return value


cdef inline uint32_t load32(const uint8_t* data) noexcept nogil:
    """Return the little-endian number of 32 bits at an address of any alignment."""
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t load64(const uint8_t* data) noexcept nogil:
    """Return the little-endian number of 64 bits at an address of any alignment."""
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value
