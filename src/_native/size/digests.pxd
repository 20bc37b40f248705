# Digests of contents: of functions, of initialized data, of a cubin as a whole.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen

from attributetypes cimport EIATTR_SW2861232_WAR
from base.elf64 cimport SHN_LORESERVE, Shdr, Sym
from base.elffile cimport ElfFile, name_at
from base.texts cimport has_start
from elfnumbers cimport SHT_RELA
from tables.attributes cimport record_size

cdef extern from "size/fingerprint.h":
    ctypedef struct Fingerprint "struct Fingerprint":
        uint64_t a
        uint64_t b
    void absorb_words "pylink_absorb_words"(Fingerprint* f, uint64_t x, uint64_t y) nogil
    void absorb "pylink_absorb"(Fingerprint* f, const uint8_t* data, size_t size) nogil

ctypedef struct Digest:
    uint32_t owner              # in the entry
    uint32_t part
    uint64_t size
    Fingerprint contents


cdef inline void absorb_text(Fingerprint* f, const char* text) noexcept nogil:
    absorb(f, <const uint8_t*>text, strlen(text))


cdef inline bint has_records(const char* name) noexcept nogil:
    return has_start(name, b".nv.info")


cdef inline void absorb_records(Fingerprint* f, const uint8_t* data, uint64_t size) noexcept nogil:
    """Records without the mark of a workaround by which the driver treats some chips alone."""
    cdef uint64_t offset = 0
    cdef uint32_t step
    while size - offset >= 4 and record_size(data + offset) <= size - offset:
        step = record_size(data + offset)
        if data[offset + 1] != EIATTR_SW2861232_WAR:
            absorb(f, data + offset, step)
        offset += step
    absorb(f, data + offset, size - offset)


cdef inline void absorb_header(Fingerprint* f, const Shdr* section, const char* name,
                               bint sized) noexcept nogil:
    absorb_text(f, name)
    absorb_words(f, section.sh_type, section.sh_flags)
    absorb_words(f, section.sh_info, section.sh_link)
    absorb_words(f, section.sh_addralign, section.sh_size if sized else 0)


cdef inline void absorb_relocations(Fingerprint* f, const ElfFile* elf, const Shdr* table,
                                    const Shdr* symbols, uint64_t strings) noexcept nogil:
    """Absorb relocations by the names of symbols; section symbols count by the section's name."""
    cdef uint64_t width = 24 if table.sh_type == SHT_RELA else 16
    cdef uint64_t offset = 0, info, symbol
    cdef const uint8_t* row
    cdef const char* name
    cdef Sym entry
    while table.sh_size - offset >= width:
        row = elf.data + table.sh_offset + offset
        memcpy(&info, row + 8, 8)
        absorb(f, row, 8)
        if width == 24:
            absorb(f, row + 16, 8)
        absorb_words(f, <uint32_t>info, 1)
        symbol = info >> 32
        offset += width
        if (symbol + 1) * sizeof(Sym) > symbols.sh_size:
            continue
        memcpy(&entry, elf.data + symbols.sh_offset + symbol * sizeof(Sym), sizeof(Sym))
        name = NULL
        if strings and entry.st_name and entry.st_name < elf.table[strings].sh_size:
            name = <const char*>elf.data + elf.table[strings].sh_offset + entry.st_name
        elif 0 < entry.st_shndx < SHN_LORESERVE and entry.st_shndx < elf.count:
            name = name_at(elf, &elf.table[entry.st_shndx])
        if name != NULL:
            absorb_text(f, name)
        else:
            absorb_words(f, symbol, 2)
