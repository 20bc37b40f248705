# The owner of each byte of an ELF file: a section, the headers, or nothing (padding). Each byte
# counts once: what two share belongs to the one with the lower offset. At equal offsets headers
# come first, then the section with the lower index. `pylink size`, the profile's bytes by origin
# and the column `own` of an index use this. An example of a file of 200 bytes:
#
#     headers 0 to 64, .text 64 to 160, .data 128 to 192
#     stretches: headers 0 to 64, .text 64 to 160, .data 160 to 192; padding 192 to 200

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.elf64 cimport Ehdr, Shdr
from base.elffile cimport ElfFile, has_bytes

cdef enum:
    NO_SECTION = 0xffffffff     # instead of an index: headers, of the file or of its tables

# A range of a file with one owner; `end` is the offset after its last byte.
ctypedef struct Stretch:
    uint64_t start
    uint64_t end
    uint32_t section            # index; NO_SECTION for headers


cdef inline int compare_stretches(const void* a, const void* b) noexcept nogil:
    """Compare two stretches for `qsort`: by offset, headers before sections, then by index."""
    cdef const Stretch* stretch = <const Stretch*>a
    cdef const Stretch* other = <const Stretch*>b
    if stretch.start != other.start:
        return -1 if stretch.start < other.start else 1
    # Headers come first: NO_SECTION + 1 is 0.
    return (-1 if stretch.section + 1 < other.section + 1
            else stretch.section + 1 > other.section + 1)


cdef inline uint64_t push_headers(Stretch* stretches, uint64_t count,
                                  const ElfFile* elf) noexcept nogil:
    """Add headers (of file, segments, sections) to `count` stretches; return the new count.

    Headers that do not lie in the file are omitted.
    """
    cdef uint64_t[3] start, size    # of the headers of the file, of segments, of sections
    cdef int i
    start[0], size[0] = 0, sizeof(Ehdr)
    start[1], size[1] = elf.header.e_phoff, <uint64_t>elf.header.e_phnum * elf.header.e_phentsize
    start[2], size[2] = 0, elf.count * sizeof(Shdr)
    if size[2]:
        start[2] = <uint64_t>(<const uint8_t*>elf.table - elf.data)
    for i in range(3):
        if size[i] and start[i] <= elf.size and size[i] <= elf.size - start[i]:
            stretches[count].start = start[i]
            stretches[count].end = start[i] + size[i]
            stretches[count].section = NO_SECTION
            count += 1
    return count


cdef inline uint64_t list_own_stretches(Stretch* stretches, const ElfFile* elf) noexcept nogil:
    """Fill `stretches` in the order of the file, without overlaps, and return their number.

    Bytes outside of all stretches are padding. There must be room for three more than there are
    sections, and all sections with bytes must lie in the file.
    """
    cdef uint64_t i, count = 0, kept_count = 0, offset = 0
    for i in range(elf.count):
        if has_bytes(elf.table[i].sh_type) and elf.table[i].sh_size:
            stretches[count].start = elf.table[i].sh_offset
            stretches[count].end = elf.table[i].sh_offset + elf.table[i].sh_size
            stretches[count].section = <uint32_t>i
            count += 1
    count = push_headers(stretches, count, elf)
    qsort(stretches, count, sizeof(Stretch), compare_stretches)
    for i in range(count):
        if stretches[i].end > offset:
            stretches[kept_count] = stretches[i]
            stretches[kept_count].start = max(offset, stretches[i].start)
            offset = stretches[kept_count].end
            kept_count += 1
    return kept_count
