# ELF64 structures as they lie in a file, the numbers that kernels test, and unaligned loads.
# Sources: System V gABI, chapter 4; docs/format-notes.md for the numbers of NVIDIA.

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

cdef enum:
    EI_CLASS = 4                # indices into e_ident
    EI_DATA = 5
    EI_OSABI = 7
    EI_ABIVERSION = 8
    ELFCLASS64 = 2
    ELFDATA2LSB = 1

    ET_REL = 1
    ET_WHOLE = 0xff00            # a whole program that may still call libraries: `nvcc -ewp`
    ET_EXEC = 2
    ET_DYN = 3
    EM_CUDA = 190

    SHN_UNDEF = 0
    SHN_LORESERVE = 0xff00
    SHN_ABS = 0xfff1
    SHN_COMMON = 0xfff2
    SHN_XINDEX = 0xffff

    STB_LOCAL = 0
    STB_GLOBAL = 1
    STB_WEAK = 2
    STT_NOTYPE = 0
    STT_OBJECT = 1
    STT_FUNC = 2
    STT_SECTION = 3
    STT_CUDA_OBJECT = 13

    STV_INTERNAL = 1            # st_other, low two bits
    STO_MANAGED = 0x04          # st_other of a variable: in unified memory
    STO_ENTRY = 0x10            # st_other of a function: a kernel
    STO_SPACE = 0xe0            # st_other of a variable: bits of its state space, one of
    STO_GLOBAL = 0x20
    STO_SHARED = 0x40
    STO_CONSTANT = 0x80

# Bytes of an instruction, from sm_70 on.
cdef enum:
    WORD = 16

cdef enum:
    PT_LOAD = 1
    PT_PHDR = 6
    PF_X = 1
    PF_W = 2
    PF_R = 4


cdef inline uint64_t round_up(uint64_t value, uint64_t align) noexcept nogil:
    """Return the next multiple of `align`, and `value` itself for an alignment of 0 or 1."""
    return value if align < 2 else (value + align - 1) // align * align


cdef inline uint16_t load16(const uint8_t* data) noexcept nogil:
    """Return the little-endian number at an address of any alignment; so do the next two."""
    cdef uint16_t value
    memcpy(&value, data, 2)
    return value


cdef inline uint32_t load32(const uint8_t* data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t load64(const uint8_t* data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value
