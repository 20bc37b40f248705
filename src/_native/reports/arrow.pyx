"""Columns as an Arrow stream, for libraries that read such streams."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport PyObject, Py_INCREF
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from base.memory cimport check_memory

cdef extern from "reports/arrow.h":
    ctypedef struct ArrowColumn:
        const char* format          # Arrow's letter for the type of `values`
        const char* name
        const void* values          # numbers, a bit for each row, or indices of texts
        const void* valid           # a bit for each row, 0 for null; NULL without nulls
        int64_t nulls               # number of nulls
        int64_t texts               # number of texts in the dictionary; -1: no dictionary
        const void* offsets         # int32: where each text starts in `bytes`; the end of the last
        const void* bytes           # UTF-8

    ctypedef struct ArrowTable:
        PyObject* owner             # keeps the buffers of the columns
        int64_t rows
        int64_t count               # number of columns
        ArrowColumn* columns

    struct ArrowArrayStream:
        void (*release)(ArrowArrayStream*) noexcept

    ArrowArrayStream* arrow_new_stream(ArrowTable* table) noexcept

# Bytes of a value, by Arrow's letter for its type: uint64, int64, double. Columns of bits (`b`) and
# of codes of texts (`i`) are checked in other ways.
WIDTHS = {b"L": 8, b"l": 8, b"g": 8}


def export_stream(int64_t rows, tuple columns not None):
    """Return a PyCapsule `arrow_array_stream` with one batch: `rows` rows of `columns`."""
    cdef int64_t count = len(columns), i
    cdef ArrowTable* table
    cdef ArrowArrayStream* stream = NULL
    cdef object capsule
    for _name, form, values, valid, _nulls, offsets, texts in columns:
        check_column(rows, form, values, valid, offsets, texts)
    table = <ArrowTable*>calloc(1, sizeof(ArrowTable))
    if table != NULL:
        table.columns = <ArrowColumn*>calloc(count + 1, sizeof(ArrowColumn))
    if table != NULL and table.columns != NULL:
        table.rows = rows
        table.count = count
        for i in range(count):
            fill_column(&table.columns[i], columns[i])
        stream = arrow_new_stream(table)
    if stream == NULL:
        if table != NULL:
            free(table.columns)
        free(table)
    check_memory(stream != NULL)
    # The buffers of the columns live as long as the stream or one of its arrays.
    Py_INCREF(columns)
    table.owner = <PyObject*>columns
    try:
        capsule = PyCapsule_New(stream, "arrow_array_stream", release_capsule)
    except BaseException:
        stream.release(stream)
        free(stream)
        raise
    return capsule


cdef check_column(
    int64_t rows, bytes form, bytes values, bytes valid, bytes offsets, bytes texts
):
    """Raise ValueError for a column that an Arrow consumer would read past its end.

    The parameters after `rows`, the number of rows, are parts of a Column of arrow.pyi: `form` is
    Arrow's format, `texts` the bytes of the texts. KeyError for an unknown format without texts.
    """
    cdef int64_t size = PyBytes_GET_SIZE(values), text_count, i
    cdef const int32_t* code
    cdef const int32_t* offset
    if valid is not None and PyBytes_GET_SIZE(valid) * 8 < rows:
        raise ValueError("not a bit for each row")
    if texts is None:
        need = (rows + 7) // 8 if form == b"b" else rows * WIDTHS[form]
        if size < need:
            raise ValueError("columns differ in length")
        return
    text_count = PyBytes_GET_SIZE(offsets) // 4 - 1
    code = <const int32_t*>PyBytes_AS_STRING(values)
    offset = <const int32_t*>PyBytes_AS_STRING(offsets)
    if form != b"i" or size != rows * 4 or text_count < 0 or offset[0] != 0:
        raise ValueError("codes or texts that do not fit")
    for i in range(rows):
        if code[i] < 0 or code[i] >= text_count:
            raise ValueError("a code without a text")
    for i in range(text_count):
        if offset[i + 1] < offset[i]:
            raise ValueError("texts that end before they begin")
    if offset[text_count] > PyBytes_GET_SIZE(texts):
        raise ValueError("texts that run past their bytes")


cdef void fill_column(ArrowColumn* column, tuple parts) noexcept:
    """Fill `column` from a Column of arrow.pyi that was checked: with pointers into its objects."""
    cdef bytes name = parts[0], form = parts[1], values = parts[2]
    column.name = PyBytes_AS_STRING(name)
    column.format = PyBytes_AS_STRING(form)
    column.values = PyBytes_AS_STRING(values)
    column.valid = NULL if parts[3] is None else PyBytes_AS_STRING(<bytes>parts[3])
    column.nulls = parts[4]
    column.texts = -1
    if parts[6] is not None:
        column.offsets = PyBytes_AS_STRING(<bytes>parts[5])
        column.bytes = PyBytes_AS_STRING(<bytes>parts[6])
        column.texts = PyBytes_GET_SIZE(<bytes>parts[5]) // 4 - 1


cdef void release_capsule(object capsule) noexcept:
    """Free the stream of a PyCapsule that ends; release it first, unless a consumer took it."""
    cdef ArrowArrayStream* stream = NULL
    stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)
