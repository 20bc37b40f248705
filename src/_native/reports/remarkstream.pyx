"""Remarks, and their form as blocks of an LLVM bitstream.

The class is native because a link may emit a remark for every relocation. A remark is one block,
which starts and ends at a 32-bit word, so blocks of several calls can be joined.
pylink/remarks/container.py has the records of a block, with the widths of their operands.
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
    # The declaration has a pointer, since the result is a borrowed reference.
    PyObject* PyDict_SetDefault(object table, object key, object value) except NULL

cdef enum:
    # The bits of an abbreviation id in a remark block, then the ids of its abbreviations, in order
    # of their definition.
    ID_WIDTH = 4
    HEADER = 4
    LOCATION = 5
    HOTNESS = 6
    ARGUMENT_WITH_LOCATION = 7
    ARGUMENT = 8
    # The first 32 bits of a block: ENTER_BLOCK in 2 bits, block number 9 in VBR8, the width of its
    # abbreviation ids in VBR4, zeros.
    ENTER_REMARK = 1 | 9 << 2 | ID_WIDTH << 10
    # Most bytes that a remark takes without its arguments, and that an argument takes.
    MOST_REMARK = 64
    MOST_ARGUMENT = 32
    SEEN_STRINGS = 512          # elements of `StringNumbers.seen`, a cache

TEXT = "String"     # the key that LLVM writes for text that has no key of its own


@cython.final
@cython.freelist(64)
cdef class Remark:
    """A remark: the decision `name`, of a `kind`, that the pass `pass_name` made on `function`."""
    cdef readonly uint32_t kind, line, column   # kind: 1 to 6, as in pylink/remarks/record.py
    cdef readonly str pass_name, name, function, file
    cdef public object hotness      # number of bytes that the decision concerns, or None
    cdef readonly list args         # tuples: key, value, file or None, line, column

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
        """Append text without a key to the message; return the remark."""
        self.args.append((TEXT, text, None, 0, 0))
        return self

    def arg(self, str key not None, value, *, str file=None, line=0, column=0):
        """Append a value with a key, and its place in the source; return the remark."""
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
        """Return the values of all arguments, joined."""
        return "".join([piece[1] for piece in self.args])

    def __eq__(self, other):
        if type(other) is not Remark:
            return NotImplemented
        return comparable_fields(self) == comparable_fields(other)

    def __repr__(self):
        return f"<Remark {self.kind} {self.pass_name} {self.name}: {self.message}>"


cdef MOST_HOTNESS = 0xffffffffffffffff


cdef tuple comparable_fields(Remark remark):
    """Return the fields of a remark by which remarks are compared."""
    return (remark.kind, remark.pass_name, remark.name, remark.function, remark.file, remark.line,
            remark.column, remark.hotness, remark.args)


cdef uint32_t clamp32(value) except? 0xffffffff:
    """Return a line or column, limited to the range from 0 to the largest 32-bit number."""
    return <uint32_t>min(max(value, 0), 0xffffffff)


# A remark. Each string is given by its number in the string table.
ctypedef struct RemarkRow:
    uint32_t kind
    uint32_t name
    uint32_t pass_name
    uint32_t function
    uint32_t file
    uint32_t line
    uint32_t column
    uint32_t args               # number of its arguments: the next ArgRows
    uint64_t hotness
    uint8_t has_file            # 0: file, line and column are not set
    uint8_t has_hotness         # 0: hotness is not set

# An argument of a remark. Each string is given by its number in the string table.
ctypedef struct ArgRow:
    uint32_t key
    uint32_t value
    uint32_t file
    uint32_t line
    uint32_t column
    uint32_t has_file           # 0: file, line and column are not set


cdef inline void write_source_place(Bits* bits, uint32_t file, uint32_t line,
                                    uint32_t column) noexcept nogil:
    """Write a place in the source; `file` is the number of the file's name."""
    write_vbr(bits, file, 7)
    write_bits(bits, line, 32)
    write_bits(bits, column, 32)


# A string whose number is known during a call to `encode`. It is found by its address: no string is
# freed during the call, and equal strings are mostly one object.
ctypedef struct SeenString:
    PyObject* text
    uint32_t number             # in the string table

# The numbers of strings during a call to `encode`.
ctypedef struct StringNumbers:
    PyObject* strings           # the string table, a borrowed reference to a dict
    PyObject* next_number       # number of the next new string, an owned reference to an int
    # By bits of an address: the last such string, or zeros.
    SeenString seen[SEEN_STRINGS]


cdef inline uint32_t number_string(StringNumbers* numbers, str text) except? 0xffffffff:
    """Return the number of a string in the table, to which a new string is added."""
    cdef PyObject* key = <PyObject*>text
    cdef SeenString* cached = &numbers.seen[(<size_t>key >> 4) % SEEN_STRINGS]
    cdef PyObject* number
    cdef object next_number
    if cached.text == key:
        return cached.number
    number = PyDict_SetDefault(<object>numbers.strings, text, <object>numbers.next_number)
    if number == numbers.next_number:
        next_number = PyDict_Size(<object>numbers.strings)
        Py_DECREF(<object>numbers.next_number)
        Py_INCREF(next_number)
        numbers.next_number = <PyObject*>next_number
    cached.number = <uint32_t><object>number
    cached.text = key
    return cached.number


# `strings` is the string table: the number of each string. New strings are added to it.
def encode(list remarks not None, dict strings not None):
    """Encode `remarks` as blocks of whole 32-bit words."""
    cdef Vec rows, args
    cdef Scratch scratch
    cdef StringNumbers numbers
    cdef object next_number = len(strings)
    cdef RemarkRow* row
    cdef ArgRow* arg
    cdef size_t remark_count = PyList_GET_SIZE(remarks), i
    cdef size_t room, size = 0
    cdef uint8_t* data = NULL
    scratch_init(&scratch)
    memset(&numbers, 0, sizeof(StringNumbers))
    Py_INCREF(next_number)
    numbers.strings = <PyObject*>strings
    numbers.next_number = <PyObject*>next_number
    try:
        scratch_vector(&scratch, &rows, sizeof(RemarkRow))
        scratch_vector(&scratch, &args, sizeof(ArgRow))
        scratch_reserve(&scratch, &rows, remark_count)
        check_memory(not scratch.failed)
        for i in range(remark_count):
            add_remark(<Remark?>remarks[i], &numbers, &rows, &args)
        room = remark_count * MOST_REMARK + args.count * MOST_ARGUMENT + 8
        data = <uint8_t*>scratch_room(&scratch, room, 1)
        check_memory(data != NULL)
        row = <RemarkRow*>rows.data
        arg = <ArgRow*>args.data
        with nogil:
            size = write_blocks(data, row, arg, remark_count)
        return PyBytes_FromStringAndSize(<char*>data, size)
    finally:
        Py_DECREF(<object>numbers.next_number)
        scratch_free(&scratch)


cdef int add_remark(Remark remark, StringNumbers* numbers, Vec* rows, Vec* args) except -1:
    """Append rows for a remark and its arguments, and add its strings to the string table."""
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
                         size_t remark_count) noexcept nogil:
    """Write the blocks of remarks to `data`, which has room for them. Returns how many bytes."""
    cdef Bits bits
    cdef uint8_t* start
    cdef uint32_t words
    cdef size_t i, _j
    bits.target = data
    bits.word = 0
    bits.used = 0
    for i in range(remark_count):
        write_bits(&bits, ENTER_REMARK, 32)
        start = bits.target
        write_bits(&bits, 0, 32)            # the size in words, which is set below
        write_bits(&bits, HEADER, ID_WIDTH)
        write_bits(&bits, row[i].kind, 3)
        write_vbr(&bits, row[i].name, 6)
        write_vbr(&bits, row[i].pass_name, 6)
        write_vbr(&bits, row[i].function, 8)
        if row[i].has_file:
            write_bits(&bits, LOCATION, ID_WIDTH)
            write_source_place(&bits, row[i].file, row[i].line, row[i].column)
        if row[i].has_hotness:
            write_bits(&bits, HOTNESS, ID_WIDTH)
            write_vbr(&bits, row[i].hotness, 8)
        for _j in range(row[i].args):
            write_bits(&bits, ARGUMENT_WITH_LOCATION if arg.has_file else ARGUMENT, ID_WIDTH)
            write_vbr(&bits, arg.key, 7)
            write_vbr(&bits, arg.value, 7)
            if arg.has_file:
                write_source_place(&bits, arg.file, arg.line, arg.column)
            arg += 1
        write_bits(&bits, 0, ID_WIDTH)      # END_BLOCK
        align_write(&bits)
        words = <uint32_t>((bits.target - start) // 4 - 1)
        memcpy(start, &words, 4)
    return bits.target - data
