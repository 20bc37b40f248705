"""Remarks, and what they are as blocks of an LLVM bitstream.

The record is native because a link may emit one for every relocation. A remark is one block, which
starts and ends at a 32-bit word, so blocks made in several calls can be joined. Layout, names and
abbreviations are in pylink/remarks/container.py.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Size
from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from reports.bits cimport Bits, align_write, put, put_vbr
from base.vector cimport Vec, vec_push
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_reserve, scratch_room, scratch_vector,
)
from base.memory cimport check_memory

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
    """See remarkstream.pyi."""
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
            self.line = limited(line)
            self.column = limited(column)
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
            self.args.append((key, text, file, limited(line), limited(column)))
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


cdef tuple fields(Remark one):
    return (one.kind, one.pass_name, one.name, one.function, one.file, one.line, one.column,
            one.hotness, one.args)


cdef uint32_t limited(value) except? 0xffffffff:
    """A line or column: one that does not fit 32 bits becomes the greatest that does."""
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


cdef inline void put_place(Bits* b, uint32_t file, uint32_t line, uint32_t column) noexcept nogil:
    put_vbr(b, file, 7)
    put(b, line, 32)
    put(b, column, 32)


# Strings of one call to `encode` whose number is known, found by their address: most strings of
# remarks are constants of the code that makes them, and the call keeps all others alive.
ctypedef struct Seen:
    PyObject* text
    uint32_t number

ctypedef struct Numbers:
    PyObject* strings       # the table, borrowed
    PyObject* following     # the number of the next new string, owned
    Seen seen[SEEN]


cdef inline uint32_t number(Numbers* n, str text) except? 0xffffffff:
    """The number of a string in the table, the next one for a new string."""
    cdef PyObject* key = <PyObject*>text
    cdef Seen* seen = &n.seen[(<size_t>key >> 4) % SEEN]
    cdef PyObject* found
    cdef object following
    if seen.text == key:
        return seen.number
    found = PyDict_SetDefault(<object>n.strings, text, <object>n.following)
    if found == n.following:
        following = PyDict_Size(<object>n.strings)
        Py_DECREF(<object>n.following)
        Py_INCREF(following)
        n.following = <PyObject*>following
    seen.number = <uint32_t><object>found
    seen.text = key
    return seen.number


def encode(list remarks, dict strings):
    """The blocks of `remarks`, one after the other.

    `strings` is the string table, each string with its number: new ones are added in the order of
    LLVM's writer, which is pass, name, function, file, then key, value and file of each argument.
    TypeError for what is not a remark.
    """
    cdef Vec rows, args
    cdef Scratch scratch
    cdef Numbers numbers
    cdef object following = len(strings)
    cdef RemarkRow* row
    cdef ArgRow* arg
    cdef size_t n = PyList_GET_SIZE(remarks), i
    cdef size_t room, size = 0
    cdef uint8_t* data = NULL
    scratch_init(&scratch)
    memset(&numbers, 0, sizeof(Numbers))
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


cdef int add_remark(Remark remark, Numbers* numbers, Vec* rows, Vec* args) except -1:
    """Put one remark and its arguments into rows, its strings into the table."""
    cdef RemarkRow* row = <RemarkRow*>vec_push(rows)
    cdef ArgRow* arg
    cdef tuple piece
    row.kind = remark.kind
    row.pass_name = number(numbers, remark.pass_name)
    row.name = number(numbers, remark.name)
    row.function = number(numbers, remark.function)
    row.has_file = remark.file is not None
    if row.has_file:
        row.file = number(numbers, remark.file)
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
        arg.key = number(numbers, <str?>piece[0])
        arg.value = number(numbers, <str?>piece[1])
        arg.has_file = piece[2] is not None
        if arg.has_file:
            arg.file = number(numbers, <str?>piece[2])
            arg.line = <uint32_t>piece[3]
            arg.column = <uint32_t>piece[4]
    return 0


cdef size_t write_blocks(uint8_t* data, const RemarkRow* row, const ArgRow* arg,
                         size_t n) noexcept nogil:
    """Write the blocks, for which there is room; their size."""
    cdef Bits b
    cdef uint8_t* start
    cdef uint32_t words
    cdef size_t i, _j
    b.at = data
    b.word = 0
    b.used = 0
    for i in range(n):
        put(&b, ENTER_REMARK, 32)
        start = b.at
        put(&b, 0, 32)
        put(&b, HEADER, 4)
        put(&b, row[i].kind, 3)
        put_vbr(&b, row[i].name, 6)
        put_vbr(&b, row[i].pass_name, 6)
        put_vbr(&b, row[i].function, 8)
        if row[i].has_file:
            put(&b, LOCATION, 4)
            put_place(&b, row[i].file, row[i].line, row[i].column)
        if row[i].has_hotness:
            put(&b, HOTNESS, 4)
            put_vbr(&b, row[i].hotness, 8)
        for _j in range(row[i].args):
            put(&b, ARGUMENT_WITH_LOCATION if arg.has_file else ARGUMENT, 4)
            put_vbr(&b, arg.key, 7)
            put_vbr(&b, arg.value, 7)
            if arg.has_file:
                put_place(&b, arg.file, arg.line, arg.column)
            arg += 1
        put(&b, 0, 4)
        align_write(&b)
        words = <uint32_t>((b.at - start) // 4 - 1)
        memcpy(start, &words, 4)
    return b.at - data
