"""Blocks and records of an LLVM bitstream.

What a record means is for the caller to know; here are abbreviations and the limits that keep a
damaged file from costing more than its size. Errors are ValueErrors that name the byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from reports.bits cimport Cursor, align_read, fail, take, take_vbr
from base.vector cimport Vec, vec_push, vec_reserve, vec_take
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.memory cimport check_memory

cdef enum:
    # Abbreviation ids that every block has.
    END_BLOCK = 0
    ENTER_BLOCK = 1
    DEFINE = 2
    UNABBREVIATED = 3
    FIRST_ABBREVIATION = 4
    # Encodings of an operand.
    LITERAL = 0
    FIXED = 1
    VBR = 2
    ARRAY = 3
    CHAR6 = 4
    BLOB = 5
    # The block that defines abbreviations for others, and its record that says for which.
    BLOCK_INFO = 0
    SET_BLOCK = 1
    OUTER_WIDTH = 2
    MOST_WIDTH = 32
    # Limits that no file of remarks comes near, on what costs a file next to nothing: operands of
    # an abbreviation, those of a record that a caller gets, and abbreviations.
    MOST_OPERANDS = 16
    MOST_VALUES = 8
    MOST_ABBREVIATIONS = 64
    MOST_BLOCK = 0x7fffffff

# What the 64 values of a CHAR6 stand for.
cdef const char* CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"

# A block at top level: its number, the width of its abbreviation ids, and its contents from byte
# `start` to `end`.
ctypedef packed struct BlockRow:
    uint32_t number
    uint32_t width
    uint64_t start
    uint64_t end

# An abbreviation of a block.
ctypedef packed struct Abbreviation:
    uint32_t block
    uint32_t count
    uint8_t encodings[MOST_OPERANDS]
    uint64_t values[MOST_OPERANDS]      # the literal, or the width


BLOCK_ROW = sizeof(BlockRow)


cdef void open_cursor(Cursor* c, bytes data, uint64_t start, uint64_t end) noexcept:
    c.data = <const uint8_t*>PyBytes_AS_STRING(data)
    c.size = PyBytes_GET_SIZE(data)
    c.bit = start * 8
    c.limit = end * 8
    c.fault = NULL


cdef int check(Cursor* c) except -1:
    if c.fault != NULL:
        raise ValueError(f"byte {c.fault_byte:#x}: {c.fault.decode()}")
    return 0


cdef Abbreviation* new_abbreviation(Cursor* c, Vec* known) except NULL:
    """A row for one more abbreviation; a fault when there are too many."""
    cdef Abbreviation* row = <Abbreviation*>vec_push(known)
    check_memory(row != NULL)
    if known.count > MOST_ABBREVIATIONS:
        fail(c, b"too many abbreviations")
    return row


def find_blocks(bytes data, uint64_t start):
    """The blocks from byte `start` to the end, as packed `BlockRow`s; zeros after them are none.

    ValueError for what is not a block, or runs past the end.
    """
    cdef Cursor c
    cdef Vec rows
    cdef Scratch scratch
    cdef BlockRow* row
    cdef uint64_t size = PyBytes_GET_SIZE(data), at = start, words, number, width
    if start > size or start % 4:
        raise ValueError("not the start of a block")
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &rows, sizeof(BlockRow))
        while at < size:
            open_cursor(&c, data, at, size)
            if take(&c, OUTER_WIDTH) != ENTER_BLOCK:
                if not data[at:].strip(b"\0"):
                    break
                raise ValueError(f"byte {at:#x}: no block starts here")
            number = take_vbr(&c, 8)
            width = take_vbr(&c, 4)
            align_read(&c)
            words = take(&c, 32)
            if c.fault != NULL or words > (size - (c.bit >> 3)) // 4:
                raise ValueError(f"byte {at:#x}: the file ends within the block that starts here")
            if not 2 <= width <= MOST_WIDTH or number > MOST_BLOCK:
                raise ValueError(f"byte {at:#x}: no block has such a head")
            row = <BlockRow*>vec_push(&rows)
            check_memory(row != NULL)
            row.number = <uint32_t>number
            row.width = <uint32_t>width
            row.start = c.bit >> 3
            at = row.end = row.start + words * 4
        return vec_take(&rows)
    finally:
        scratch_free(&scratch)


cdef void define(Cursor* c, Abbreviation* a, uint32_t block) noexcept nogil:
    """Read the definition of an abbreviation after its id."""
    cdef uint64_t count = take_vbr(c, 5), i
    cdef uint32_t encoding
    cdef uint64_t value
    a.block = block
    a.count = 0
    if count == 0 or count > MOST_OPERANDS:
        fail(c, b"an abbreviation has too many operands" if count else b"an empty abbreviation")
        return
    for i in range(count):
        value = 0
        if take(c, 1):
            encoding = LITERAL
            value = take_vbr(c, 8)
        else:
            encoding = <uint32_t>take(c, 3)
            if encoding == FIXED or encoding == VBR:
                value = take_vbr(c, 5)
                if value > MOST_WIDTH or (encoding == VBR and value == 1):
                    fail(c, b"an abbreviation has an operand of a width that does not exist")
                elif value == 0:    # means the literal 0
                    encoding = LITERAL
            elif encoding < FIXED or encoding > BLOB:
                fail(c, b"an abbreviation has an operand of an unknown encoding")
            # An array is followed by its element alone, and a blob by nothing.
            if encoding == ARRAY and i + 2 != count or encoding == BLOB and i + 1 != count:
                fail(c, b"an abbreviation goes on behind its last operand")
        if i and a.encodings[i - 1] == ARRAY and (encoding == ARRAY or encoding == BLOB):
            fail(c, b"an abbreviation has an array of no scalars")
        a.encodings[i] = <uint8_t>encoding
        a.values[i] = value
    if a.encodings[0] == ARRAY or a.encodings[0] == BLOB:
        fail(c, b"an abbreviation has no number for its records")
    a.count = <uint32_t>count


cdef inline uint64_t scalar(Cursor* c, uint32_t encoding, uint64_t value) noexcept nogil:
    if encoding == LITERAL:
        return value
    if encoding == FIXED:
        return take(c, <uint32_t>value)
    if encoding == VBR:
        return take_vbr(c, <uint32_t>value)
    return <uint8_t>CHARACTERS[take(c, 6)]


cdef struct Record:
    uint64_t code
    uint64_t values[MOST_VALUES]
    uint64_t count              # values in all, of which the first MOST_VALUES are kept
    uint64_t blob               # byte where it starts
    int64_t blob_size           # -1 without one


cdef inline void keep(Record* r, uint64_t value) noexcept nogil:
    if r.count < MOST_VALUES:
        r.values[r.count] = value
    r.count += 1


cdef void read_plain(Cursor* c, Record* r) noexcept nogil:
    """A record without abbreviation, after its id."""
    cdef uint64_t count, _i
    r.code = take_vbr(c, 6)
    r.count = 0
    r.blob = 0
    r.blob_size = -1
    count = take_vbr(c, 6)
    if count > (c.limit - c.bit) // 6:
        fail(c, b"the block ends within a record")
        return
    for _i in range(count):
        keep(r, take_vbr(c, 6))


cdef void read_short(Cursor* c, const Abbreviation* a, Record* r) noexcept nogil:
    """A record with an abbreviation, after its id."""
    cdef uint64_t count, _j
    cdef uint32_t i
    r.code = scalar(c, a.encodings[0], a.values[0])
    r.count = 0
    r.blob = 0
    r.blob_size = -1
    for i in range(1, a.count):
        if a.encodings[i] == ARRAY:
            count = take_vbr(c, 6)
            if count > (MOST_VALUES if a.encodings[i + 1] == LITERAL else c.limit - c.bit):
                fail(c, b"an array is longer than its block")
                return
            for _j in range(count):
                keep(r, scalar(c, a.encodings[i + 1], a.values[i + 1]))
            return
        if a.encodings[i] == BLOB:
            count = take_vbr(c, 6)
            align_read(c)
            if count > (c.limit - c.bit) >> 3:
                fail(c, b"the block ends within a record")
                return
            r.blob = c.bit >> 3
            r.blob_size = <int64_t>count
            c.bit += count * 8
            align_read(c)
            return
        keep(r, scalar(c, a.encodings[i], a.values[i]))


cdef const Abbreviation* find(const Abbreviation* known, size_t count, uint32_t block,
                              uint64_t place) noexcept nogil:
    """The abbreviation of a block at a place of its own, NULL for none."""
    cdef size_t i
    for i in range(count):
        if known[i].block == block:
            if place == 0:
                return &known[i]
            place -= 1
    return NULL


def read_block_info(bytes data, uint64_t start, uint64_t end, uint32_t width):
    """The abbreviations that a block info block defines, for `read_records`.

    Its contents are the bytes from `start` to `end`, as `find_blocks` found them. ValueError for a
    damaged block.
    """
    cdef Cursor c
    cdef Vec known
    cdef Scratch scratch
    cdef Record record
    cdef uint32_t block = MOST_BLOCK
    cdef uint64_t id
    if not start <= end <= <uint64_t>PyBytes_GET_SIZE(data) or not 2 <= width <= MOST_WIDTH:
        raise ValueError("no block of this file")
    open_cursor(&c, data, start, end)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &known, sizeof(Abbreviation))
        while c.fault == NULL:
            id = take(&c, width)
            if id == END_BLOCK:
                align_read(&c)
                break
            if id == DEFINE:
                define(&c, new_abbreviation(&c, &known), block)
            elif id == UNABBREVIATED:
                read_plain(&c, &record)
                if record.code == SET_BLOCK and record.count:
                    block = <uint32_t>min(record.values[0], <uint64_t>MOST_BLOCK)
            else:
                fail(&c, b"the block info block holds something else than definitions")
        if c.bit != c.limit:
            fail(&c, b"the block ends before its size says")
        check(&c)
        return vec_take(&known)
    finally:
        scratch_free(&scratch)


def read_records(bytes data, bytes blocks, size_t first, size_t last, bytes abbreviations):
    """The records of the blocks in rows `first` to `last` of the table of `find_blocks`.

    A list for each block; a record is a tuple of its number and its operands, the last of which is
    bytes when it is a blob. ValueError for a damaged block, and for one with a block inside.
    """
    cdef Cursor c
    cdef Vec known
    cdef Scratch scratch
    cdef const BlockRow* row = <const BlockRow*>PyBytes_AS_STRING(blocks)
    cdef size_t shared = PyBytes_GET_SIZE(abbreviations) // sizeof(Abbreviation), i
    cdef list result = [], records
    cdef uint64_t size = PyBytes_GET_SIZE(data)
    if last > PyBytes_GET_SIZE(blocks) // sizeof(BlockRow) or first > last:
        raise ValueError("there are no such rows")
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &known, sizeof(Abbreviation))
        check_memory(vec_reserve(&known, shared + 1))
        memcpy(known.data, PyBytes_AS_STRING(abbreviations), shared * sizeof(Abbreviation))
        for i in range(first, last):
            if not row[i].start <= row[i].end <= size or not 2 <= row[i].width <= MOST_WIDTH:
                raise ValueError("no block of this file")
            open_cursor(&c, data, row[i].start, row[i].end)
            known.count = shared
            records = []
            read_block(&c, &row[i], &known, records)
            check(&c)
            result.append(records)
        return result
    finally:
        scratch_free(&scratch)


cdef int read_block(Cursor* c, const BlockRow* row, Vec* known, list records) except -1:
    """Read the records of one block; `known` gets the abbreviations of its own."""
    cdef const Abbreviation* abbreviation
    cdef Record record
    cdef uint64_t id, i
    while c.fault == NULL:
        id = take(c, row.width)
        if id == END_BLOCK:
            align_read(c)
            break
        if id == ENTER_BLOCK:
            fail(c, b"a block inside a block")
            break
        if id == DEFINE:
            define(c, new_abbreviation(c, known), row.number)
            continue
        if id == UNABBREVIATED:
            read_plain(c, &record)
        else:
            abbreviation = find(<const Abbreviation*>known.data, known.count, row.number,
                                id - FIRST_ABBREVIATION)
            if abbreviation == NULL:
                fail(c, b"a record has an abbreviation that is not defined")
                break
            read_short(c, abbreviation, &record)
        if record.count > MOST_VALUES:
            fail(c, b"a record has too many operands")
        if c.fault != NULL:
            break
        values = [record.code]
        for i in range(record.count):
            values.append(record.values[i])
        if record.blob_size >= 0:
            values.append(PyBytes_FromStringAndSize(<const char*>c.data + record.blob,
                                                    record.blob_size))
        records.append(tuple(values))
    if c.bit != c.limit:
        fail(c, b"the block ends before its size says")
    return 0
