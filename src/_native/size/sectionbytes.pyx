"""Counts the bytes of one cubin by section, in the way in which a ledger counts payloads."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from base.elffile cimport (
    ELF_GOOD, ElfFile, has_bytes, is_in_file, name_at, open_elf, open_names, open_table,
)
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room
from base.stretches cimport NO_SECTION, Stretch, list_own_stretches
from size.cubincut cimport part_of_section
from sizenumbers cimport PART_HEADERS, PART_PADDING


def section_bytes(cubin not None):
    """List (section, part, number of bytes) for each range of a cubin, in the order of offsets."""
    cdef Py_buffer view
    PyObject_GetBuffer(cubin, &view, PyBUF_SIMPLE)
    try:
        return bytes_by_section(<const uint8_t*>view.buf, <uint64_t>view.len)
    finally:
        PyBuffer_Release(&view)


cdef list bytes_by_section(const uint8_t* cubin, uint64_t size):
    """List (section, part, number of bytes) for each range of the file, in order.

    The section is an index, -1 for headers and padding. The part is a PART_ number.
    """
    cdef ElfFile elf
    cdef Stretch* stretches
    cdef Scratch scratch
    cdef uint64_t i, count, offset = 0
    cdef list rows = []
    if (open_elf(&elf, cubin, size) != ELF_GOOD or open_table(&elf) != ELF_GOOD
            or open_names(&elf) != ELF_GOOD):
        raise ValueError("not a cubin")
    for i in range(elf.count):
        if (name_at(&elf, &elf.table[i]) == NULL
                or (has_bytes(elf.table[i].sh_type) and not is_in_file(&elf, &elf.table[i]))):
            raise ValueError("not a cubin")
    scratch_init(&scratch)
    try:
        stretches = <Stretch*>scratch_room(&scratch, elf.count + 3, sizeof(Stretch))
        check_memory(not scratch.failed)
        with nogil:
            count = list_own_stretches(stretches, &elf)
        for i in range(count):
            if stretches[i].start > offset:
                rows.append((-1, <int>PART_PADDING, <int64_t>(stretches[i].start - offset)))
            offset = stretches[i].end
            number, part = -1, <int>PART_HEADERS
            if stretches[i].section != <uint32_t>NO_SECTION:
                number = <int64_t>stretches[i].section
                part = <int>part_of_section(&elf.table[number], name_at(&elf, &elf.table[number]))
            rows.append((number, part, <int64_t>(offset - stretches[i].start)))
        if size > offset:
            rows.append((-1, <int>PART_PADDING, <int64_t>(size - offset)))
        return rows
    finally:
        scratch_free(&scratch)
