"""Remarks, and their form as blocks of an LLVM bitstream.

The record is native because a link may emit one for every relocation. A remark is one block, which
starts and ends at a 32-bit word, so blocks made in several calls can be joined. Layout, names and
abbreviations are in pylink/remarks/container.py.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Size
from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_reserve, scratch_room, scratch_vector,
)
from base.vector cimport Vec, vec_push
from reports.bits cimport Bits, align_write, write_bits, write_vbr

cdef extern from "Python.h":
    # Declared here because the result is borrowed.
    PyObject* PyDict_SetDefault(object table, object key, object value) except NULL

cdef enum:
    # Abbreviations of a remark block, in order of their definition.
    HEADER = 4
    LOCATION = 5
    HOTNESS = 6
    ARGUMENT_WITH_LOCATION = 7
    ARGUMENT = 8
    # The first bits of a block: enter a block, id 9 in VBR8, new width 4 in VBR4, up to the word.
    ENTER_REMARK = 1 | 9 << 2 | 4 << 10
    # Upper bounds of what a remark takes without its arguments, and of an argument, in bytes.
    MOST_REMARK = 64
    MOST_ARGUMENT = 32
    SEEN = 512

TEXT = "String"


@cython.final
@cython.freelist(64)
cdef class Remark:
    cdef readonly uint32_t kind, line, column
    cdef readonly str pass_name, name, function, file
    cdef public object hotness
    cdef readonly list args

    __hash__ = None     # a remark grows while it is built

    def __init__(self, kind, str pass_name not None, str name not None, str function not None, *,
                 str file=None, line=0, column=0, hotness=None, args=()):
        if not (pass_name and name and function):
            raise ValueError("a remark needs a pass, a name and a function")
        if not 1 <= kind <= 6:
            raise ValueError(f"there is no kind {kind} of remarks")
        self.kind = kind
        self.pass_name = pass_name
        self.name = name
        self.function = function
        self.file = file
        if file is not None:
            self.line = clamp32(line)
            self.column = clamp32(column)
        if hotness is not None:
            self.hotness = min(max(hotness, 0), MOST_HOTNESS)
        self.args = list(args)

    def text(self, str text not None):
        self.args.append((TEXT, text, None, 0, 0))
        return self

    def arg(self, str key not None, value, *, str file=None, line=0, column=0):
        cdef str text
        if not key:
            raise ValueError("an argument needs a key")
        if type(value) is str:
            text = value
        elif value is True:
            text = "true"
        elif value is False:
            text = "false"
        else:
            text = str(value)
        if file is None:
            self.args.append((key, text, None, 0, 0))
        else:
            self.args.append((key, text, file, clamp32(line), clamp32(column)))
        return self

    @property
    def message(self):
        return "".join([piece[1] for piece in self.args])

    def __eq__(self, other):
        if type(other) is not Remark:
            return NotImplemented
        return fields(self) == fields(other)

    def __repr__(self):
        return f"<Remark {self.kind} {self.pass_name} {self.name}: {self.message}>"


cdef MOST_HOTNESS = 0xffffffffffffffff


cdef tuple fields(Remark remark):
    return (remark.kind, remark.pass_name, remark.name, remark.function, remark.file, remark.line,
            remark.column, remark.hotness, remark.args)


cdef uint32_t clamp32(value) except? 0xffffffff:
    """Return a line or column, limited to the largest 32-bit number."""
    return <uint32_t>min(max(value, 0), 0xffffffff)


# A remark, and after it its arguments: strings by number, hotness apart from whether there is one.
ctypedef struct RemarkRow:
    uint32_t kind
    uint32_t name
    uint32_t pass_name
    uint32_t function
    uint32_t file
    uint32_t line
    uint32_t column
    uint32_t args
    uint64_t hotness
    uint8_t has_file
    uint8_t has_hotness

ctypedef struct ArgRow:
    uint32_t key
    uint32_t value
    uint32_t file
    uint32_t line
    uint32_t column
    uint32_t has_file


cdef inline void write_place(Bits* bits, uint32_t file, uint32_t line,
                             uint32_t column) noexcept nogil:
    write_vbr(bits, file, 7)
    write_bits(bits, line, 32)
    write_bits(bits, column, 32)


# Strings of one call to `encode` whose number is known, found by their address: most strings of
# remarks are constants of the code that makes them, and the call keeps all others alive.
ctypedef struct SeenString:
    PyObject* text
    uint32_t number

ctypedef struct StringNumbers:
    PyObject* strings       # the table, borrowed
    PyObject* following     # the number of the next new string, owned
    SeenString seen[SEEN]


cdef inline uint32_t number_string(StringNumbers* numbers, str text) except? 0xffffffff:
    """The number of a string in the table, the next one for a new string."""
    cdef PyObject* key = <PyObject*>text
    cdef SeenString* cached = &numbers.seen[(<size_t>key >> 4) % SEEN]
    cdef PyObject* number
    cdef object following
    if cached.text == key:
        return cached.number
    number = PyDict_SetDefault(<object>numbers.strings, text, <object>numbers.following)
    if number == numbers.following:
        following = PyDict_Size(<object>numbers.strings)
        Py_DECREF(<object>numbers.following)
        Py_INCREF(following)
        numbers.following = <PyObject*>following
    cached.number = <uint32_t><object>number
    cached.text = key
    return cached.number


def encode(list remarks, dict strings):
    cdef Vec rows, args
    cdef Scratch scratch
    cdef StringNumbers numbers
    cdef object following = len(strings)
    cdef RemarkRow* row
    cdef ArgRow* arg
    cdef size_t n = PyList_GET_SIZE(remarks), i
    cdef size_t room, size = 0
    cdef uint8_t* data = NULL
    scratch_init(&scratch)
    memset(&numbers, 0, sizeof(StringNumbers))
    Py_INCREF(following)
    numbers.strings = <PyObject*>strings
    numbers.following = <PyObject*>following
    try:
        scratch_vector(&scratch, &rows, sizeof(RemarkRow))
        scratch_vector(&scratch, &args, sizeof(ArgRow))
        scratch_reserve(&scratch, &rows, n)
        check_memory(not scratch.failed)
        for i in range(n):
            add_remark(<Remark?>remarks[i], &numbers, &rows, &args)
        room = n * MOST_REMARK + args.count * MOST_ARGUMENT + 8
        data = <uint8_t*>scratch_room(&scratch, room, 1)
        check_memory(data != NULL)
        row = <RemarkRow*>rows.data
        arg = <ArgRow*>args.data
        with nogil:
            size = write_blocks(data, row, arg, n)
        return PyBytes_FromStringAndSize(<char*>data, size)
    finally:
        Py_DECREF(<object>numbers.following)
        scratch_free(&scratch)


cdef int add_remark(Remark remark, StringNumbers* numbers, Vec* rows, Vec* args) except -1:
    """Append rows for a remark and its arguments, and its strings to the table."""
    cdef RemarkRow* row = <RemarkRow*>vec_push(rows)
    cdef ArgRow* arg
    cdef tuple piece
    row.kind = remark.kind
    row.pass_name = number_string(numbers, remark.pass_name)
    row.name = number_string(numbers, remark.name)
    row.function = number_string(numbers, remark.function)
    row.has_file = remark.file is not None
    if row.has_file:
        row.file = number_string(numbers, remark.file)
        row.line = remark.line
        row.column = remark.column
    row.has_hotness = remark.hotness is not None
    if row.has_hotness:
        row.hotness = remark.hotness
    row.args = <uint32_t>PyList_GET_SIZE(remark.args)
    for piece in remark.args:
        if len(piece) != 5:
            raise ValueError("an argument has five parts")
        arg = <ArgRow*>vec_push(args)
        check_memory(arg != NULL)
        arg.key = number_string(numbers, <str?>piece[0])
        arg.value = number_string(numbers, <str?>piece[1])
        arg.has_file = piece[2] is not None
        if arg.has_file:
            arg.file = number_string(numbers, <str?>piece[2])
            arg.line = <uint32_t>piece[3]
            arg.column = <uint32_t>piece[4]
    return 0


cdef size_t write_blocks(uint8_t* data, const RemarkRow* row, const ArgRow* arg,
                         size_t n) noexcept nogil:
    """Write the blocks, for which there is room; return their size."""
    cdef Bits bits
    cdef uint8_t* start
    cdef uint32_t words
    cdef size_t i, _j
    bits.at = data
    bits.word = 0
    bits.used = 0
    for i in range(n):
        write_bits(&bits, ENTER_REMARK, 32)
        start = bits.at
        write_bits(&bits, 0, 32)
        write_bits(&bits, HEADER, 4)
        write_bits(&bits, row[i].kind, 3)
        write_vbr(&bits, row[i].name, 6)
        write_vbr(&bits, row[i].pass_name, 6)
        write_vbr(&bits, row[i].function, 8)
        if row[i].has_file:
            write_bits(&bits, LOCATION, 4)
            write_place(&bits, row[i].file, row[i].line, row[i].column)
        if row[i].has_hotness:
            write_bits(&bits, HOTNESS, 4)
            write_vbr(&bits, row[i].hotness, 8)
        for _j in range(row[i].args):
            write_bits(&bits, ARGUMENT_WITH_LOCATION if arg.has_file else ARGUMENT, 4)
            write_vbr(&bits, arg.key, 7)
            write_vbr(&bits, arg.value, 7)
            if arg.has_file:
                write_place(&bits, arg.file, arg.line, arg.column)
            arg += 1
        write_bits(&bits, 0, 4)
        align_write(&bits)
        words = <uint32_t>((bits.at - start) // 4 - 1)
        memcpy(start, &words, 4)
    return bits.at - data
