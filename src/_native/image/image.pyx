# cython: auto_pickle=False
"""The output file: copying section contents, and writing tables and headers."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from elf64 cimport *
from imagecontents cimport *
from imagefile cimport map_file, munmap
from imageheaders cimport *
from imagesymbols cimport *
from imagewriter cimport *
from kinds cimport *
from pages cimport *
from pylink._native.tables cimport MergedTables, ObjectTables, PlacedTables, Spans
from rows cimport *
from traits cimport *
from vec cimport *
from workers cimport *


cdef class Canvas:
    def __cinit__(self, size_t size):
        if size:
            self.memory = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            self.data = <uint8_t*>PyBytes_AS_STRING(self.memory)
            self.size = size

    @staticmethod
    def of(bytes image not None):
        """Over bytes that exist."""
        cdef Canvas canvas = Canvas(0)
        canvas.memory = image
        canvas.data = <uint8_t*>PyBytes_AS_STRING(image)
        canvas.size = PyBytes_GET_SIZE(image)
        return canvas

    @staticmethod
    def on_file(int descriptor, size_t size):
        """In a file that is mapped, or None."""
        cdef void* data
        with nogil:
            data = map_file(descriptor, size)
        if data == NULL:
            return None
        cdef Canvas canvas = Canvas(0)
        canvas.data = <uint8_t*>data
        canvas.size = size
        return canvas

    @property
    def image(self):
        if self.memory is None:
            raise ValueError("the bytes are not in memory")
        return self.memory

    def close(self):
        if self.memory is None and self.data != NULL:
            with nogil:
                munmap(self.data, self.size)
        self.memory = None
        self.data = NULL
        self.size = 0

    def __dealloc__(self):
        if self.memory is None and self.data != NULL:
            munmap(self.data, self.size)


cdef int expect_size(Canvas image, PlacedTables placed) except -1:
    """Kernels begin with this: they write where `placed` says."""
    if image.size != placed.size:
        raise ValueError(f"{image.size} bytes for an output of {placed.size}")
    return 0


def copy_contents(Canvas image not None, PlacedTables placed not None, bint gives_up=False):
    """Write the contents of every section that comes from the inputs or from a blob.

    The rest of the image is zeros. Sections that another one stands for are left out. With
    `gives_up` the arena has lost its bytes afterwards.
    """
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef const PlaceRow* place = placed.places.rows
    cdef uint8_t* data = image.data
    expect_size(image, placed)
    cdef uint64_t size = placed.size
    cdef const SpanRow* span
    cdef Spans table
    cdef bytes blob
    cdef const uint8_t* made
    cdef size_t spans_here, i
    cdef Pieces p
    memset(&p, 0, sizeof(Pieces))
    p.input = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    p.image = data
    p.sections = objects.sections.rows
    p.section_count = objects.sections.count
    p.outs = placed.outs.rows
    p.places = place
    p.out_of = merged.out_of.rows
    p.base = merged.base.rows
    p.stand_in = merged.stand_ins.rows if merged.stand_ins.count else NULL
    if image.memory is not None:        # an empty file is zeros
        clear_gaps(&p, placed)
    if gives_up and not give_up_input(&p, PyBytes_GET_SIZE(objects.arena)):
        raise MemoryError
    with nogil:
        for_each(copy_pieces, &p, (p.section_count + CHUNK - 1) // CHUNK, size)
    free(p.left)
    for table, blob in zip(placed.spans, placed.blobs):
        span = table.rows
        spans_here = table.count
        made = <const uint8_t*>PyBytes_AS_STRING(blob)
        with nogil:
            for i in range(spans_here):
                memcpy(data + place[span[i].out].offset, made + span[i].offset, span[i].size)


cdef int clear_gaps(const Pieces* p, PlacedTables placed) except -1:
    """Zeros where nothing is copied to: between the pieces of a section, and between sections."""
    cdef size_t n = placed.outs.count, count = placed.section_order.count, i
    cdef const int32_t* order = placed.section_order.rows
    cdef uint64_t at = 0, size = placed.size
    cdef uint64_t* filled = <uint64_t*>calloc(n + 1, 8)
    cdef const PlaceRow* place
    cdef Spans table
    cdef int32_t o
    if filled == NULL:
        raise MemoryError
    for table in placed.spans:
        for i in range(table.count):
            filled[table.rows[i].out] = table.rows[i].size
    with nogil:
        prefer_large_pages(p.image, size)
        for i in range(p.section_count):
            if not is_copied(p, i):
                continue
            o = p.out_of[i]
            if p.base[i] > filled[o]:
                memset(p.image + p.places[o].offset + filled[o], 0, p.base[i] - filled[o])
            filled[o] = p.base[i] + p.sections[i].size
        for i in range(count):
            o = order[i]
            place = &p.places[o]
            if place.made == 2:
                continue
            if place.offset > at:
                memset(p.image + at, 0, place.offset - at)
            at = place.offset
            if not is_nobits(&p.outs[o]):
                at = place.offset + place.size
                memset(p.image + place.offset + filled[o], 0, place.size - filled[o])
        memset(p.image + at, 0, size - at)
    free(filled)
    return 0


def write_relocations(Canvas image not None, PlacedTables placed not None):
    """Write the entries of every relocation section that stays, newest first."""
    cdef MergedTables merged = placed.merged
    cdef size_t n = placed.outs.count, i
    cdef const OutRow* row = placed.outs.rows
    cdef const uint32_t* index = placed.section_index.rows
    cdef const PlaceRow* place = placed.places.rows
    cdef const KeepRow* keep = merged.keeps.rows
    cdef const uint32_t* symbol = placed.symbol_index.rows
    cdef const uint32_t* section = placed.section_symbol_index.rows
    cdef const uint32_t* instance = placed.instance_index.rows
    cdef uint8_t* start = image.data
    cdef uint8_t* data
    cdef int32_t at
    cdef Rela entry
    expect_size(image, placed)
    with nogil:
        for i in range(n):
            if KIND[row[i].kind].info != HEAD_TARGET or index[i] == 0:
                continue
            data = start + place[i].offset
            at = row[i].head
            while at >= 0:
                entry.r_offset = keep[at].offset
                entry.r_type = keep[at].type
                if keep[at].entity >= 0:
                    entry.r_sym = symbol[keep[at].entity]
                elif keep[at].section < -1:
                    entry.r_sym = instance[-2 - keep[at].section]
                else:
                    entry.r_sym = section[keep[at].section] if keep[at].section >= 0 else 0
                entry.r_addend = keep[at].addend
                memcpy(data, &entry, row[i].entsize)
                data += row[i].entsize
                at = keep[at].next


cdef int open_writer(Writer* w, Canvas image, PlacedTables placed) except -1:
    cdef MergedTables merged = placed.merged
    cdef size_t i
    cdef int32_t wide
    expect_size(image, placed)
    memset(w, 0, sizeof(Writer))
    w.image = image.data
    w.sections = merged.objects.sections.rows
    w.symbols = merged.objects.symbols.rows
    w.entities = merged.entities.rows
    w.outs = placed.outs.rows
    w.places = placed.places.rows
    w.index = placed.section_index.rows
    w.traits = merged.objects.traits
    memset(w.only, 0xff, sizeof(w.only))
    for i in range(placed.outs.count):
        w.only[w.outs[i].kind] = <int32_t>i
    wide = w.only[K_SYMTAB_SHNDX]
    if wide >= 0:
        w.late = w.outs[wide].marks & OF_LATE != 0
        w.wide = not w.late
    w.executable = merged.objects.executable
    return 0


def write_symbols(Canvas image not None, PlacedTables placed not None, bint preserved):
    """Write .symtab and .nv.merc.symtab; returns their sh_info values.

    With `preserved` (--preserve-relocs) shared variables have internal visibility.
    """
    cdef Writer w
    cdef size_t n = placed.symbol_order.count, i
    cdef const int32_t* order = placed.symbol_order.rows
    cdef const OutSymbolRow* symbol = placed.out_symbols.rows
    cdef const uint64_t* mercury_value = placed.merc_values.rows
    cdef Sym* table = NULL
    cdef Sym* mercury = NULL
    cdef uint32_t* wide = NULL
    cdef uint32_t* merc_wide = NULL
    cdef uint32_t info = 1, mercury_info = 0
    cdef uint64_t null_value = placed.null_value
    open_writer(&w, image, placed)
    w.values = placed.symbol_values.rows
    w.homes = placed.homes.rows
    w.dynamic = placed.dynamic.rows
    w.preserved = preserved
    with nogil:
        table = <Sym*>contents_of(&w, K_SYMTAB)
        mercury = <Sym*>contents_of(&w, K_MERC_SYMTAB)
        wide = <uint32_t*>contents_of(&w, K_SYMTAB_SHNDX)
        merc_wide = <uint32_t*>contents_of(&w, K_MERC_SYMTAB_SHNDX)
        if wide != NULL:
            memset(wide, 0, w.places[w.only[K_SYMTAB_SHNDX]].size)
        if merc_wide != NULL:
            memset(merc_wide, 0, w.places[w.only[K_MERC_SYMTAB_SHNDX]].size)
        memset(table, 0, sizeof(Sym))
        table[0].st_value = null_value
        if mercury != NULL:
            memset(mercury, 0, sizeof(Sym))
            mercury[0].st_value = null_value
        for i in range(n):
            write_symbol(&w, &symbol[order[i]], &table[i + 1],
                         wide + i + 1 if wide != NULL else NULL)
            # From sm_100 on section symbols stand behind the global ones, and count since 13.0.
            if symbol[order[i]].part == PART_LOCAL or (
                    symbol[order[i]].part == PART_TAIL and not w.traits & TRAIT_EARLY_FILES):
                info = <uint32_t>(i + 2)
            if mercury != NULL and symbol[order[i]].part != PART_TAIL:
                if merc_wide != NULL:
                    merc_wide[i + 1] = wide[i + 1]
                write_mercury_symbol(&w, &symbol[order[i]], &table[i + 1], &mercury[i + 1],
                                     mercury_value,
                                     merc_wide + i + 1 if merc_wide != NULL else NULL)
                if symbol[order[i]].part == PART_LOCAL or (
                        w.traits & TRAIT_LEAN_NAMES and table[i + 1].st_info >> 4 == STB_LOCAL):
                    mercury_info = <uint32_t>(i + 2)
    return info, mercury_info


def write_headers(Canvas image not None, PlacedTables placed not None, uint32_t symtab_info,
                  uint32_t mercury_info, bytes abi not None, uint32_t e_version,
                  uint32_t e_flags, int64_t note, uint32_t late_compat):
    """Write string tables, capsule heads, section headers, program headers and the ELF header.

    `abi` are OS ABI and ABI version. The index that e_flags have of a note is added. `note` is by
    how many bytes nvlink's own note is longer than ours, `late_compat` how many of .nv.compat the
    mercury file has not yet.
    """
    cdef size_t count = placed.section_order.count, i
    cdef const int32_t* order = placed.section_order.rows
    cdef Writer w
    cdef Shdr* table
    cdef Ehdr* header
    cdef const OutRow* row
    cdef uint32_t cuinfo = 0
    cdef uint16_t number
    cdef uint64_t shoff = placed.table_offset
    cdef uint64_t phnum = PyBytes_GET_SIZE(placed.phdrs) // sizeof(Phdr)
    cdef const char* shstrings = PyBytes_AS_STRING(placed.shstrtab)
    cdef const char* strings = PyBytes_AS_STRING(placed.strtab)
    cdef const char* abi_bytes = PyBytes_AS_STRING(abi)
    if PyBytes_GET_SIZE(abi) != 2:
        raise ValueError("abi: two bytes")
    open_writer(&w, image, placed)
    w.symbol_index = placed.symbol_index.rows
    w.locals = [symtab_info, mercury_info]
    table = <Shdr*>(w.image + shoff)
    header = <Ehdr*>w.image
    memcpy(w.image + shoff + (count + 1) * sizeof(Shdr), PyBytes_AS_STRING(placed.phdrs),
           PyBytes_GET_SIZE(placed.phdrs))
    with nogil:
        cuinfo = index_of(&w, K_CUINFO)
        memset(table, 0, sizeof(Shdr))
        for i in range(count):
            row = &w.outs[order[i]]
            write_header(&w, order[i], &table[i + 1])
            if is_a(row.kind, IS_CAPSULE):
                number = <uint16_t>w.index[row.twin]
                memcpy(w.image + w.places[order[i]].offset, &number, 2)
        memcpy(contents_of(&w, K_SHSTRTAB), shstrings, w.places[w.only[K_SHSTRTAB]].size)
        memcpy(contents_of(&w, K_STRTAB), strings, w.places[w.only[K_STRTAB]].size)
        if index_of(&w, K_MERC_SYSTEM_SHARED) and not w.traits & TRAIT_LEAN_NAMES:
            write_system_shared(&w, order, count, w.only[K_MERC_SYSTEM_SHARED], strings, note,
                                late_compat)
        memset(header, 0, sizeof(Ehdr))
        memcpy(header.e_ident, <const char*>b"\x7fELF\x02\x01\x01", 7)
        memcpy(header.e_ident + 7, abi_bytes, 2)
        header.e_type = ET_EXEC if w.executable else ET_REL
        header.e_machine = EM_CUDA
        header.e_version = e_version
        header.e_shoff = shoff
        if not w.traits & TRAIT_MERCURY:
            cuinfo = min(cuinfo, <uint32_t>0xff)
        header.e_flags = e_flags | cuinfo << 24
        header.e_ehsize = sizeof(Ehdr)
        header.e_shentsize = sizeof(Shdr)
        header.e_shstrndx = 1
        if phnum:
            header.e_phoff = shoff + (count + 1) * sizeof(Shdr)
            header.e_phnum = <uint16_t>phnum
        if phnum or not w.traits & TRAIT_MERCURY:
            header.e_phentsize = sizeof(Phdr)
        if count + 1 < SHN_LORESERVE:
            header.e_shnum = <uint16_t>(count + 1)
        else:
            table[0].sh_size = count + 1
