"""Sections for Python code, of an ELF64 file or of an input of a link; and such an input as bytes.

This serves reports, hints, `pylink dedup`, links that fold, the device-link step, and the reader of
shared libraries of -l. A link of cubins alone that does not fold needs none of it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, strcmp, strlen

from base.elf64 cimport Shdr
from base.elffile cimport (
    ELF_CLASS, ELF_ENDIAN, ELF_GOOD, ELF_MAGIC, ELF_NAMES, ELF_NO_TABLE, ELF_SHORT, ELF_STRINGS,
    ELF_TABLE, ElfFile, has_bytes, is_in_file, name_at, open_elf, open_sections, open_table,
)
from pylink._native.results cimport ObjectTables
from sectionkinds cimport KIND
from tables.rows cimport FileCounter, FileRow, SectionRow
from tables.views cimport ObjectsView

cdef enum:
    # Names may share their bytes. This limit on the bytes of all names, for each byte of the file,
    # keeps the memory that they take proportional to the file.
    NAMES_PER_BYTE = 16


cdef str text_of(int fault, const ElfFile* elf):
    """Return the text for the ElfFault that was found in a file."""
    return {
        ELF_SHORT: f"{elf.value} bytes are too few for an ELF header",
        ELF_MAGIC: "not an ELF file",
        ELF_CLASS: "not a 64-bit ELF file",
        ELF_ENDIAN: "not a little-endian ELF file",
        ELF_TABLE: "section headers run past the file, or do not have 64 bytes",
        ELF_STRINGS: "no section has the names of the others",
        ELF_NAMES: "section names run past the file, or have no end",
    }[fault]


cdef class Section:
    """A section header, its own offset (`header`), and the bytes that the file has (`stored`)."""
    cdef readonly bytes name
    cdef readonly uint32_t type
    cdef readonly uint32_t link
    cdef readonly uint32_t info
    cdef readonly uint64_t flags
    cdef readonly uint64_t offset
    cdef readonly uint64_t size
    cdef readonly int64_t stored
    cdef readonly uint64_t header
    cdef readonly uint64_t align
    cdef readonly uint64_t entsize


cdef class ElfSections:
    """The sections of a file, with two fields of its header: e_type and e_machine."""
    cdef readonly uint16_t type
    cdef readonly uint16_t machine
    cdef readonly list sections


def read_sections(data not None):
    """Return the sections of an ELF64 file, of which only headers and names are read."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return list_sections(<const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef ElfSections list_sections(const uint8_t* data, uint64_t size):
    """Return the sections of a file, none without a section table; ValueError if it is damaged."""
    cdef ElfSections file = ElfSections.__new__(ElfSections)
    cdef ElfFile elf
    cdef const Shdr* header
    cdef const char* name
    cdef Section section
    cdef uint64_t i, names = 0
    cdef int fault = open_sections(&elf, data, size)
    if fault != ELF_GOOD and fault != ELF_NO_TABLE:
        raise ValueError(text_of(fault, &elf))
    file.type, file.machine, file.sections = elf.header.e_type, elf.header.e_machine, []
    for i in range(elf.count if fault == ELF_GOOD else 0):
        header = &elf.table[i]
        name = name_at(&elf, header)
        if name == NULL:
            raise ValueError(f"section {i}: its name at {header.sh_name:#x} is not a name")
        section = Section.__new__(Section)
        section.name = name
        names += strlen(name)
        if names > NAMES_PER_BYTE * size:
            raise ValueError(f"section {i}: names have more than {NAMES_PER_BYTE} times the bytes "
                             "of the file")
        section.type = header.sh_type
        section.link = header.sh_link
        section.info = header.sh_info
        section.flags = header.sh_flags
        section.offset = header.sh_offset
        section.size = header.sh_size
        section.align = header.sh_addralign
        section.entsize = header.sh_entsize
        section.header = <uint64_t>(<const uint8_t*>header - data)
        if has_bytes(header.sh_type):
            section.stored = <int64_t>header.sh_size if is_in_file(&elf, header) else -1
        file.sections.append(section)
    return file


def find_section(data not None, bytes name not None):
    """Return offset and size of the first section of this name that has bytes; None without one."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return find_contents(<const uint8_t*>view.buf, view.len, PyBytes_AS_STRING(name))
    finally:
        PyBuffer_Release(&view)


cdef tuple find_contents(const uint8_t* data, uint64_t size, const char* wanted_name):
    """Return offset and size of the first section with this name that has bytes in the file.

    None without one. ValueError for a damaged table, and if that section runs past the file.
    """
    cdef ElfFile elf
    cdef const char* name
    cdef uint64_t i
    cdef int fault = open_sections(&elf, data, size)
    if fault == ELF_NO_TABLE:
        return None
    if fault != ELF_GOOD:
        raise ValueError(text_of(fault, &elf))
    for i in range(elf.count):
        name = name_at(&elf, &elf.table[i])
        if name == NULL:
            raise ValueError(f"section {i}: its name at {elf.table[i].sh_name:#x} is not a name")
        if strcmp(name, wanted_name) == 0 and has_bytes(elf.table[i].sh_type):
            if not is_in_file(&elf, &elf.table[i]):
                raise ValueError(f"section {i} runs past the file")
            return elf.table[i].sh_offset, elf.table[i].sh_size
    return None


def file_sections(ObjectTables objects not None, FileCounter number):
    """Return the sections of an input of a link; `offset` is in the buffer of all inputs' bytes."""
    cdef ObjectsView view
    objects.view(&view)
    cdef const FileRow* file = &view.files[number]
    cdef const SectionRow* row
    cdef Section section
    cdef uint32_t i
    cdef list sections = []
    for i in range(file.section_count):
        row = &view.sections[file.first_section + i]
        section = Section.__new__(Section)
        section.name = view.arena[row.name:row.name + row.name_size]
        section.type = row.type
        section.link = row.link
        section.info = row.info
        section.flags = row.flags
        section.offset = row.offset
        section.size = row.size
        section.stored = <int64_t>row.size if KIND[row.kind].given else 0
        section.align = row.align
        section.entsize = row.entsize
        sections.append(section)
    return sections


def file_image(ObjectTables objects not None, FileCounter number):
    """Return an input of a link as an ELF file, with the contents that the link gave it so far."""
    cdef ObjectsView view
    objects.view(&view)
    cdef const FileRow* file = &view.files[number]
    cdef const SectionRow* sections = view.sections + file.first_section
    cdef uint64_t size = file.size
    cdef uint8_t* contents
    cdef ElfFile elf
    cdef uint32_t i
    for i in range(file.section_count):
        size += sections[i].size if is_moved(file, &sections[i]) else 0
    cdef bytes image = PyBytes_FromStringAndSize(NULL, size)
    contents = <uint8_t*>PyBytes_AS_STRING(image)
    memcpy(contents, view.arena + file.offset, file.size)
    open_elf(&elf, contents, file.size)
    open_table(&elf)
    size = file.size
    for i in range(file.section_count):
        if is_moved(file, &sections[i]):
            (<Shdr*>elf.table)[i].sh_offset = size
            (<Shdr*>elf.table)[i].sh_size = sections[i].size
            memcpy(contents + size, view.arena + sections[i].offset, sections[i].size)
            size += sections[i].size
    return image


cdef inline bint is_moved(const FileRow* file, const SectionRow* section) noexcept:
    """Return whether the link gave the section contents that do not lie in the file."""
    return KIND[section.kind].given and not (
        file.offset <= section.offset <= file.offset + file.size)
