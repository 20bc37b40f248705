# The kind of an input, by its first bytes: see pylink/facts/inputkinds.py.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport Ehdr, load32
from base.texts cimport has_prefix, has_text
from containernumbers cimport FATBIN_MAGIC
from elfnumbers cimport EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB, EM_CUDA
from inputkinds cimport (
    IN_ARCHIVE, IN_CUBIN, IN_EMPTY, IN_FATBIN, IN_HOST, IN_LTOIR, IN_PTX, IN_THIN_ARCHIVE,
    IN_UNKNOWN,
)

cdef enum:
    LTOIR_MAGIC = 0x7f4e43edU   # the first four bytes, little endian


cdef inline uint8_t input_kind(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return the IN_ number of a file of `size` bytes."""
    cdef const Ehdr* header = <const Ehdr*>data
    cdef uint32_t magic
    if size == 0:
        return IN_EMPTY
    if size >= 4:
        if has_text(data, b"\x7fELF"):
            # A file of another class or byte order, or shorter than an ELF header, counts as a
            # cubin, too: the reader of cubins says what is wrong.
            if (size < sizeof(Ehdr) or data[EI_CLASS] != ELFCLASS64 or data[EI_DATA] != ELFDATA2LSB
                    or header.e_machine == EM_CUDA):
                return IN_CUBIN
            return IN_HOST
        magic = load32(data)
        if magic == FATBIN_MAGIC:
            return IN_FATBIN
        if magic == LTOIR_MAGIC:
            return IN_LTOIR
    if size >= 8:
        if has_text(data, b"!<arch>\n"):
            return IN_ARCHIVE
        if has_text(data, b"!<thin>\n"):
            return IN_THIN_ARCHIVE
    return IN_PTX if is_ptx(data, size) else IN_UNKNOWN


cdef inline bint is_ptx(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return whether `.version` comes first after blanks and comments (PTX ISA, Directives)."""
    cdef uint64_t offset = 0
    while offset < size:
        if data[offset] == c' ' or (data[offset] >= c'\t' and data[offset] <= c'\r'):
            offset += 1
        elif size - offset >= 2 and data[offset] == c'/' and data[offset + 1] == c'/':
            while offset < size and data[offset] != c'\n':
                offset += 1
        elif size - offset >= 4 and data[offset] == c'/' and data[offset + 1] == c'*':
            offset += 2
            while size - offset >= 2 and not (data[offset] == c'*' and data[offset + 1] == c'/'):
                offset += 1
            offset += 2
            if offset > size:
                return False
        else:
            return has_prefix(data + offset, size - offset, b".version")
    return False
