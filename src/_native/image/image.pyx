# cython: auto_pickle=False
"""The output file: its memory or descriptor, contents of its sections, its tables and headers."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strerror

from base.elf64 cimport Ehdr, Phdr, Shdr
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec
from image.capsules cimport ConstantReference, find_references
from image.contents cimport (
    CONTENTS, Contents, CopyExtent, list_extents, list_windows, make_contents,
)
from image.headers cimport HEADERS, copy_header_bytes, list_headers, make_headers, start_header
from image.symbols cimport count_locals, list_symbols, make_symbols
from image.windows cimport (
    Make, Window, WindowQueue, clear_gaps, list_bytes, make_windows, reserve, sort_windows,
    write_at,
)
from image.writer cimport Writer, contents_at, index_of
from pylink._native.tables cimport Blob, Patches, PlacedTables, Spans
from sectionkinds cimport K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB, K_SYMTAB_SHNDX
from tables.rows cimport OF_LATE
from traits cimport TRAIT_LEAN_NAMES


cdef class Canvas:
    def __cinit__(self, size_t size):
        self.file = -1
        if size:
            self.memory = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            self.data = <uint8_t*>PyBytes_AS_STRING(self.memory)
            self.size = size

    @staticmethod
    def on_file(int descriptor, size_t size):
        cdef bint done
        with nogil:
            done = reserve(descriptor, size)
        if not done:
            return None
        cdef Canvas canvas = Canvas(0)
        canvas.file = descriptor
        canvas.size = size
        return canvas

    @property
    def image(self):
        if self.memory is None:
            raise ValueError("the bytes are not in memory")
        return self.memory

    def close(self):
        self.memory = None
        self.data = NULL
        self.file = -1
        self.size = 0


cdef int expect_size(Canvas image, PlacedTables placed) except -1:
    """Kernels begin with this: they write where `placed` says."""
    if image.size != placed.size:
        raise ValueError(f"{image.size} bytes for an output of {placed.size}")
    return 0


cdef void start_queue(WindowQueue* queue, Canvas image, Make make, void* context, Vec* windows):
    memset(queue, 0, sizeof(WindowQueue))
    queue.make = make
    queue.context = context
    queue.windows = <const Window*>windows.data
    queue.count = windows.count
    queue.memory = image.data
    queue.file = image.file


cdef int raise_error(int error) except -1:
    """Raise MemoryError or OSError for an errno; 0 for none."""
    if error == ENOMEM:
        raise MemoryError
    if error:
        raise OSError(error, strerror(error).decode("utf-8", "replace"))
    return 0


cdef int put_bytes(Canvas image, uint64_t offset, const void* data, size_t size) except -1:
    """Write a few bytes over what is there."""
    cdef int error = 0
    with nogil:
        if image.data != NULL:
            memcpy(image.data + offset, data, size)
        else:
            error = write_at(image.file, <const uint8_t*>data, size, offset)
    return raise_error(error)


def write_contents(Canvas image not None, PlacedTables placed not None, Patches patches not None):
    return draw_output(image, placed, patches, False, False)


def write_output(Canvas image not None, PlacedTables placed not None, Patches patches not None,
                 *, bint preserved):
    return draw_output(image, placed, patches, True, preserved)


# Makes the windows of a whole output.
ctypedef struct Output:
    Contents contents
    Writer tables


cdef void make_window(void* context, const Window* window, uint8_t* to) noexcept nogil:
    cdef Output* output = <Output*>context
    if window.kind == CONTENTS:
        make_contents(&output.contents, window, to)
    else:
        make_table(&output.tables, window, to)


cdef draw_output(Canvas image, PlacedTables placed, Patches patches, bint is_whole, bint preserved):
    """Draw contents and, for the `is_whole` output, tables."""
    cdef Output output
    cdef Contents* c = &output.contents
    cdef WindowQueue queue
    cdef Vec tables
    cdef int error = ENOMEM
    cdef Scratch lists, scratch
    expect_size(image, placed)
    bind_contents(c, placed, patches)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &c.extents, sizeof(CopyExtent))
        scratch_vector(&scratch, &c.windows, sizeof(Window))
        scratch_vector(&scratch, &c.references, sizeof(ConstantReference))
        scratch_vector(&scratch, &tables, sizeof(Window))
        c.span_bytes = <const uint8_t**>scratch_zeros(&scratch, placed.outs.count, sizeof(uint8_t*))
        if is_whole and not scratch.failed:
            open_writer(&output.tables, placed, preserved)
            scratch.failed = not list_tables(&tables, &output.tables)
            sort_windows(&tables)
        if not scratch.failed:
            find_spans(c, placed)
            scratch_init(&lists)
            with nogil:
                scratch.failed = not list_extents(c, &lists)
                scratch_free(&lists)
                if not scratch.failed:
                    scratch.failed = not (list_windows(c, &scratch, &tables)
                                          and find_references(&c.merged, &c.placed,
                                                              &c.references))
        if not scratch.failed:
            start_queue(&queue, image, make_window, &output, &c.windows)
            with nogil:
                clear_gaps(&queue, image.size)
                error = make_windows(&queue, &scratch)
        raise_error(error)
        return c.bad
    finally:
        scratch_free(&scratch)


cdef void bind_contents(Contents* contents, PlacedTables placed, Patches patches):
    memset(contents, 0, sizeof(Contents))
    placed.merged.objects.view(&contents.objects)
    placed.merged.view(&contents.merged)
    placed.view(&contents.placed)
    contents.patches = patches.rows
    contents.patch_count = patches.count
    contents.bad = -1


cdef void find_spans(Contents* contents, PlacedTables placed):
    """The contents of sections that the link made."""
    cdef Spans table
    cdef Blob blob
    cdef size_t i
    for table, blob in zip(placed.spans, placed.blobs):
        for i in range(table.count):
            contents.span_bytes[table.rows[i].out] = blob.rows + table.rows[i].offset


def write_tables(Canvas image not None, PlacedTables placed not None, *, bint preserved):
    cdef Writer writer
    cdef WindowQueue queue
    cdef Vec windows
    cdef int error = ENOMEM
    cdef Scratch scratch
    expect_size(image, placed)
    open_writer(&writer, placed, preserved)
    scratch_init(&scratch)
    scratch_vector(&scratch, &windows, sizeof(Window))
    if not scratch.failed and list_tables(&windows, &writer):
        sort_windows(&windows)
        start_queue(&queue, image, make_table, &writer, &windows)
        with nogil:
            error = make_windows(&queue, &scratch)
    scratch_free(&scratch)
    raise_error(error)


def write_header(Canvas image not None, PlacedTables placed not None, tuple identity not None,
                 int64_t note, uint32_t late_compat):
    cdef bytes abi = identity[0]
    cdef uint32_t e_version = identity[1], e_flags = identity[2]
    cdef Writer writer
    cdef Ehdr header
    cdef Shdr[3] heads
    cdef uint64_t offset = 0, size = 0
    if PyBytes_GET_SIZE(abi) != 2:
        raise ValueError("abi: two bytes")
    expect_size(image, placed)
    bind_tables(&writer, placed)
    put_bytes(image, writer.placed.table_offset + (writer.placed.section_order_count + 1)
              * sizeof(Shdr), PyBytes_AS_STRING(placed.phdrs), PyBytes_GET_SIZE(placed.phdrs))
    if index_of(&writer, K_MERC_SYSTEM_SHARED) and not writer.objects.traits & TRAIT_LEAN_NAMES:
        size = copy_header_bytes(&writer, note, late_compat, heads, &offset)
        put_bytes(image, offset, heads, size)
    start_header(&header, &writer, PyBytes_GET_SIZE(placed.phdrs) // sizeof(Phdr))
    memcpy(header.e_ident + 7, PyBytes_AS_STRING(abi), 2)
    header.e_version = e_version
    header.e_flags |= e_flags
    put_bytes(image, 0, &header, sizeof(header))


cdef void open_writer(Writer* writer, PlacedTables placed, bint preserved):
    """Have tables ready to be written."""
    bind_tables(writer, placed)
    writer.preserved = preserved
    with nogil:
        count_locals(writer)


cdef void bind_tables(Writer* writer, PlacedTables placed):
    """Fill a Writer with views of the tables and the sections that the output has once."""
    cdef size_t i
    cdef int32_t wide
    memset(writer, 0, sizeof(Writer))
    placed.merged.objects.view(&writer.objects)
    placed.merged.view(&writer.merged)
    placed.view(&writer.placed)
    memset(writer.only, 0xff, sizeof(writer.only))
    for i in range(writer.placed.out_count):
        writer.only[writer.placed.outs[i].kind] = <int32_t>i
    wide = writer.only[K_SYMTAB_SHNDX]
    if wide >= 0:
        writer.late = writer.placed.outs[wide].marks & OF_LATE != 0
        writer.wide = not writer.late


cdef bint list_tables(Vec* windows, Writer* writer) noexcept:
    """Windows of all tables; False without memory."""
    return (list_symbols(windows, writer) and list_headers(windows, writer)
            and list_strings(windows, writer, K_SHSTRTAB, writer.placed.shstrtab)
            and list_strings(windows, writer, K_STRTAB, writer.placed.strtab))


cdef bint list_strings(Vec* windows, Writer* writer, uint16_t kind,
                       const uint8_t* strings) noexcept:
    return list_bytes(windows, contents_at(writer, kind), strings,
                      writer.placed.places[writer.only[kind]].size)


cdef void make_table(void* context, const Window* window, uint8_t* to) noexcept nogil:
    if window.kind == HEADERS:
        make_headers(<Writer*>context, window, <Shdr*>to)
    else:
        make_symbols(<Writer*>context, window, to)
