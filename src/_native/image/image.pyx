# cython: auto_pickle=False
"""The output file: its memory or descriptor, contents of its sections, its tables and headers."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strerror

from base.elf64 cimport Ehdr, Phdr, Shdr
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec
from elfnumbers cimport EI_OSABI
from image.capsules cimport ConstantReference, find_references
from image.contents cimport (
    CONTENTS, Contents, CopyExtent, list_extents, list_windows, make_contents,
)
from image.headers cimport (
    FIRST_HEADERS, HEADERS, copy_header_bytes, list_headers, make_headers, start_header,
)
from image.symbols cimport count_locals, list_symbols, make_symbols
from image.windows cimport (
    MakeWindow, Window, WindowQueue, clear_gaps, list_bytes, make_windows, reserve, sort_windows,
    write_at,
)
from image.writer cimport Writer, contents_at, index_of
from pylink._native.results cimport PlacedTables
from pylink._native.tables cimport Blob, Patches, Spans
from sectionkinds cimport K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB, K_SYMTAB_SHNDX
from tables.rows cimport OF_LATE, OutNumber
from traits cimport TRAIT_LEAN_NAMES


cdef class Canvas:
    """The memory or file in which the `size` bytes of the output are written."""

    def __cinit__(self, size_t size):
        self.file = -1
        if size:
            self.memory = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            self.data = <uint8_t*>PyBytes_AS_STRING(self.memory)
            self.size = size

    @staticmethod
    def on_file(int descriptor, size_t size):
        """Return a canvas on an empty file that is open for writing, and set the file's size.

        None if the file cannot have this size.
        """
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
        """Return the bytes in memory; raise ValueError for a file and after `close`."""
        if self.memory is None:
            raise ValueError("the bytes are not in memory")
        return self.memory

    def close(self):
        """Release the memory; a file keeps the bytes."""
        self.memory = None
        self.data = NULL
        self.file = -1
        self.size = 0


cdef int expect_size(Canvas image, PlacedTables placed) except -1:
    """Raise ValueError if the canvas does not have the size of the output in `placed`."""
    if image.size != placed.size:
        raise ValueError(f"{image.size} bytes for an output of {placed.size}")
    return 0


cdef void start_queue(WindowQueue* queue, Canvas image, MakeWindow make, void* context,
                      Vec* windows):
    """Set up a queue of windows; `make` writes those without a source from data in `context`."""
    memset(queue, 0, sizeof(WindowQueue))
    queue.make = make
    queue.context = context
    queue.windows = <const Window*>windows.data
    queue.count = windows.count
    queue.memory = image.data
    queue.file = image.file


cdef int raise_error(int error) except -1:
    """Raise MemoryError or OSError for an errno; return 0 if `error` is 0."""
    check_memory(error != ENOMEM)
    if error:
        raise OSError(error, strerror(error).decode("utf-8", "replace"))
    return 0


cdef int put_bytes(Canvas image, uint64_t offset, const void* data, size_t size) except -1:
    """Write a few bytes at an offset of the output, over what is there."""
    cdef int error = 0
    with nogil:
        if image.data != NULL:
            memcpy(image.data + offset, data, size)
        else:
            error = write_at(image.file, <const uint8_t*>data, size, offset)
    return raise_error(error)


# `write_contents` and `write_output` return the lowest OutRow of a capsule that breaks its format,
# or -1.
def write_contents(Canvas image not None, PlacedTables placed not None, Patches patches not None):
    """Write the contents of every section, with the fields of `patches` filled."""
    return write_image(image, placed, patches, False, False)


def write_output(Canvas image not None, PlacedTables placed not None, Patches patches not None,
                 *, bint preserved):
    """Do the work of `write_contents` and `write_tables`, from the first byte to the last."""
    return write_image(image, placed, patches, True, preserved)


# The context of `make_window`. `tables` is only filled if tables are written, too.
ctypedef struct Output:
    Contents contents
    Writer tables


cdef void make_window(void* context, const Window* window, uint8_t* to) noexcept nogil:
    """Write the bytes of a window to `to`; `context` is an Output."""
    cdef Output* output = <Output*>context
    if window.kind == CONTENTS:
        make_contents(&output.contents, window, to)
    else:
        make_table(&output.tables, window, to)


cdef write_image(Canvas image, PlacedTables placed, Patches patches, bint with_tables,
                 bint preserved):
    """Write contents of sections and, with `with_tables`, what `write_tables` writes.

    `preserved` is the field of Writer. Returns the lowest OutRow of a capsule that breaks its
    format, or -1.
    """
    cdef Output output
    cdef Contents* contents = &output.contents
    cdef WindowQueue queue
    cdef Vec tables                 # Window: of tables
    cdef int error = ENOMEM
    cdef Scratch lists, scratch     # `lists` is freed before the windows are made
    expect_size(image, placed)
    bind_contents(contents, placed, patches)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &contents.extents, sizeof(CopyExtent))
        scratch_vector(&scratch, &contents.windows, sizeof(Window))
        scratch_vector(&scratch, &contents.references, sizeof(ConstantReference))
        scratch_vector(&scratch, &tables, sizeof(Window))
        contents.span_bytes = <const uint8_t**>scratch_zeros(&scratch, placed.outs.count,
                                                             sizeof(uint8_t*))
        if with_tables and not scratch.failed:
            open_writer(&output.tables, placed, preserved)
            scratch.failed = not list_tables(&tables, &output.tables)
            sort_windows(&tables)
        if not scratch.failed:
            find_spans(contents, placed)
            scratch_init(&lists)
            with nogil:
                scratch.failed = not list_extents(contents, &lists)
                scratch_free(&lists)
                if not scratch.failed:
                    scratch.failed = not (list_windows(contents, &scratch, &tables)
                                          and find_references(&contents.merged, &contents.placed,
                                                              &contents.references))
        if not scratch.failed:
            start_queue(&queue, image, make_window, &output, &contents.windows)
            with nogil:
                clear_gaps(&queue, image.size)
                error = make_windows(&queue, &scratch)
        raise_error(error)
        return contents.bad
    finally:
        scratch_free(&scratch)


cdef void bind_contents(Contents* contents, PlacedTables placed, Patches patches):
    """Fill Contents with views of the tables; the caller sets up vectors and `span_bytes`."""
    memset(contents, 0, sizeof(Contents))
    placed.merged.objects.view(&contents.objects)
    placed.merged.view(&contents.merged)
    placed.view(&contents.placed)
    contents.patches = patches.rows
    contents.patch_count = patches.count
    contents.bad = -1


cdef void find_spans(Contents* contents, PlacedTables placed):
    """Fill `span_bytes`: pointers to the contents that the link made for sections."""
    cdef Spans table
    cdef Blob blob
    cdef size_t i
    for table, blob in zip(placed.spans, placed.blobs):
        for i in range(table.count):
            contents.span_bytes[table.rows[i].out] = blob.rows + table.rows[i].offset


def write_tables(Canvas image not None, PlacedTables placed not None, *, bint preserved):
    """Write symbol tables, string tables and section headers."""
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


# `identity` has two bytes (OS ABI, ABI version), e_version, and e_flags. nvlink's .note.nv.tkinfo
# is longer than ours by `note` bytes, and the second program (docs/order.md) adds `late_compat`
# bytes to .nv.compat; .nv.merc.nv.shared.reserved.0 depends on both.
def write_header(Canvas image not None, PlacedTables placed not None, tuple identity not None,
                 int64_t note, uint32_t late_compat):
    """Write the ELF header, the program headers, and .nv.merc.nv.shared.reserved.0."""
    cdef bytes abi = identity[0]
    cdef uint32_t e_version = identity[1], e_flags = identity[2]
    cdef Writer writer
    cdef Ehdr header
    cdef Shdr[FIRST_HEADERS] heads
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
    memcpy(header.e_ident + EI_OSABI, PyBytes_AS_STRING(abi), 2)
    header.e_version = e_version
    header.e_flags |= e_flags
    put_bytes(image, 0, &header, sizeof(header))


cdef void open_writer(Writer* writer, PlacedTables placed, bint preserved):
    """Fill a Writer with all that symbol tables and section headers need."""
    bind_tables(writer, placed)
    writer.preserved = preserved
    with nogil:
        count_locals(writer)


cdef void bind_tables(Writer* writer, PlacedTables placed):
    """Fill a Writer with views of the tables, and with the last section (OutRow) of each kind."""
    cdef size_t i
    cdef OutNumber shndx            # OutRow of .symtab_shndx, or -1
    memset(writer, 0, sizeof(Writer))
    placed.merged.objects.view(&writer.objects)
    placed.merged.view(&writer.merged)
    placed.view(&writer.placed)
    memset(writer.only, 0xff, sizeof(writer.only))
    for i in range(writer.placed.out_count):
        writer.only[writer.placed.outs[i].kind] = <OutNumber>i
    shndx = writer.only[K_SYMTAB_SHNDX]
    if shndx >= 0:
        writer.has_late_shndx = writer.placed.outs[shndx].marks & OF_LATE != 0
        writer.has_early_shndx = not writer.has_late_shndx


cdef bint list_tables(Vec* windows, Writer* writer) noexcept:
    """List windows of symbol tables, string tables and section headers; False without memory."""
    return (list_symbols(windows, writer) and list_headers(windows, writer)
            and list_strings(windows, writer, K_SHSTRTAB, writer.placed.shstrtab)
            and list_strings(windows, writer, K_STRTAB, writer.placed.strtab))


cdef bint list_strings(Vec* windows, Writer* writer, uint16_t kind,
                       const uint8_t* strings) noexcept:
    """List windows of the string table of a section kind; False without memory."""
    return list_bytes(windows, contents_at(writer, kind), strings,
                      writer.placed.places[writer.only[kind]].size)


cdef void make_table(void* context, const Window* window, uint8_t* to) noexcept nogil:
    """Write a window of section headers, symbols or section indices of symbols to `to`.

    `context` is a Writer.
    """
    if window.kind == HEADERS:
        make_headers(<Writer*>context, window, <Shdr*>to)
    else:
        make_symbols(<Writer*>context, window, to)
