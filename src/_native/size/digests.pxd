# Digests of contents: of functions, of initialized data, of a cubin as a whole.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen

from attributetypes cimport EIATTR_SW2861232_WAR
from base.elf64 cimport Rel, Rela, Shdr, Sym
from base.elffile cimport ElfFile, name_at
from base.texts cimport has_start
from elfnumbers cimport SHN_LORESERVE, SHT_RELA
from tables.attributes cimport record_size

cdef extern from "size/fingerprint.h":
    ctypedef struct Fingerprint "struct Fingerprint":
        uint64_t a              # a hash of 128 bits: one half
        uint64_t b              # the other half
    void absorb_words "pylink_absorb_words"(Fingerprint* fingerprint, uint64_t x, uint64_t y) nogil
    void absorb "pylink_absorb"(Fingerprint* fingerprint, const uint8_t* data, size_t size) nogil

# The number of a function in the cubin or PTX, from 1; 0: no function (SHARED in size/cutting.pxd).
ctypedef uint32_t OwnerRef

# The fingerprint of the contents of a function, or of initialized data, of a linked cubin.
ctypedef struct Digest:
    OwnerRef owner              # 0 for data
    uint32_t part               # a Part
    uint64_t size               # bytes of the code or data
    Fingerprint contents

cdef enum:
    # Each is absorbed beside a number: it tells a relocation type from a nameless symbol's number.
    RELOCATION_TYPE = 1
    NAMELESS_SYMBOL = 2


cdef inline void absorb_text(Fingerprint* fingerprint, const char* text) noexcept nogil:
    """Absorb a text that ends in a zero."""
    absorb(fingerprint, <const uint8_t*>text, strlen(text))


cdef inline bint has_records(const char* name) noexcept nogil:
    """Return whether a section of that name consists of attribute records."""
    return has_start(name, b".nv.info")


cdef inline void absorb_records(Fingerprint* fingerprint, const uint8_t* data,
                                uint64_t size) noexcept nogil:
    """Absorb attribute records except for EIATTR_SW2861232_WAR, which only some chips need."""
    cdef uint64_t offset = 0
    cdef uint32_t step
    while size - offset >= 4 and record_size(data + offset) <= size - offset:
        step = record_size(data + offset)
        if data[offset + 1] != EIATTR_SW2861232_WAR:
            absorb(fingerprint, data + offset, step)
        offset += step
    absorb(fingerprint, data + offset, size - offset)


cdef inline void absorb_header(Fingerprint* fingerprint, const Shdr* section, const char* name,
                               bint with_size) noexcept nogil:
    """Absorb name, type, flags, info, link and alignment of a section; if `with_size`, its size."""
    absorb_text(fingerprint, name)
    absorb_words(fingerprint, section.sh_type, section.sh_flags)
    absorb_words(fingerprint, section.sh_info, section.sh_link)
    absorb_words(fingerprint, section.sh_addralign, section.sh_size if with_size else 0)


cdef inline void absorb_relocations(Fingerprint* fingerprint, const ElfFile* elf, const Shdr* table,
                                    const Shdr* symbols, uint64_t strings) noexcept nogil:
    """Absorb relocations by symbols' names, not numbers; a section symbol has its section's name.

    `symbols` is the symbol table, and `strings` the index of the section with the names, or 0.
    """
    cdef uint64_t entry_size = sizeof(Rela) if table.sh_type == SHT_RELA else sizeof(Rel)
    cdef uint64_t offset = 0, info, symbol
    cdef const uint8_t* row
    cdef const char* name
    cdef Sym entry
    while table.sh_size - offset >= entry_size:
        row = elf.data + table.sh_offset + offset
        memcpy(&info, row + 8, 8)               # r_info
        absorb(fingerprint, row, 8)             # r_offset
        if table.sh_type == SHT_RELA:
            absorb(fingerprint, row + 16, 8)    # r_addend
        absorb_words(fingerprint, <uint32_t>info, RELOCATION_TYPE)
        symbol = info >> 32
        offset += entry_size
        if (symbol + 1) * sizeof(Sym) > symbols.sh_size:
            continue
        memcpy(&entry, elf.data + symbols.sh_offset + symbol * sizeof(Sym), sizeof(Sym))
        name = NULL
        if strings and entry.st_name and entry.st_name < elf.table[strings].sh_size:
            name = <const char*>elf.data + elf.table[strings].sh_offset + entry.st_name
        elif 0 < entry.st_shndx < SHN_LORESERVE and entry.st_shndx < elf.count:
            name = name_at(elf, &elf.table[entry.st_shndx])
        if name != NULL:
            absorb_text(fingerprint, name)
        else:
            absorb_words(fingerprint, symbol, NAMELESS_SYMBOL)
