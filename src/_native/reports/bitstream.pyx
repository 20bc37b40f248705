"""Reads blocks and records of an LLVM bitstream.

A block begins with ENTER_BLOCK, its number (VBR8), the width of its abbreviation ids (VBR4),
padding to 32 bits and its size in 32-bit words. Its records follow, each after its abbreviation id,
and END_BLOCK. An abbreviation defines the encoding of each operand. A record without an
abbreviation has id 3; its code, the number of its operands, and the operands follow, all in VBR6.

The caller knows the meaning of records. Limits keep the time for a damaged file in proportion to
its size. Errors in a file are ValueErrors that name the byte.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_push, vec_reserve, vec_to_bytes
from bitstreamnumbers cimport (
    ARRAY, BLOB, DEFINE, END_BLOCK, ENTER_BLOCK, FIRST_ABBREVIATION, FIXED, LITERAL,
    OUTER_WIDTH, SET_BLOCK, UNABBREVIATED, VBR,
)
from reports.bits cimport Cursor, align_read, read_bits, read_vbr, stop_reading

cdef enum:
    MOST_WIDTH = 32             # bits of an abbreviation id or operand
    # Limits of what takes few bits of a file and much time or memory here. Files of remarks stay
    # below them; files that exceed them are refused.
    MOST_OPERANDS = 16          # operands of an abbreviation
    MOST_VALUES = 8             # operands of a record
    MOST_ABBREVIATIONS = 64     # those of the block info block, and of one block, together
    MOST_BLOCK = 0x7fffffff     # largest number of a block; in block info, larger ones count as it

# The characters for the 64 values of a CHAR6, an operand of 6 bits in an LLVM bitstream.
cdef const char* CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"

# A block of an LLVM bitstream that is not inside another one.
ctypedef packed struct BlockRow:
    uint32_t number             # what kind of block it is
    uint32_t width              # bits of its abbreviation ids
    uint64_t start              # byte in the file where its contents start
    uint64_t end                # byte after its contents

# An abbreviation of an LLVM bitstream: how records of a block encode their operands.
ctypedef packed struct Abbreviation:
    uint32_t block                      # number of the block
    uint32_t count                      # number of operands; the first is the record's code
    uint8_t encodings[MOST_OPERANDS]    # by operand: its encoding
    uint64_t values[MOST_OPERANDS]      # by operand: the literal, or the width in bits


cdef void open_cursor(Cursor* cursor, bytes data, uint64_t start, uint64_t end) noexcept:
    """Set a cursor to byte `start`, with `end` as the end of its block."""
    cursor.data = <const uint8_t*>PyBytes_AS_STRING(data)
    cursor.size = PyBytes_GET_SIZE(data)
    cursor.bit = start * 8
    cursor.limit = end * 8
    cursor.fault = NULL


cdef int raise_fault(Cursor* cursor) except -1:
    """Raise ValueError if reading stopped with a fault."""
    if cursor.fault != NULL:
        raise ValueError(f"byte {cursor.fault_byte:#x}: {cursor.fault.decode()}")
    return 0


cdef Abbreviation* add_abbreviation(Cursor* cursor, Vec* abbreviations) except NULL:
    """Return a new row for an abbreviation; sets a fault if there are too many."""
    cdef Abbreviation* row = <Abbreviation*>vec_push(abbreviations)
    check_memory(row != NULL)
    if abbreviations.count > MOST_ABBREVIATIONS:
        stop_reading(cursor, b"too many abbreviations")
    return row


def find_blocks(bytes data not None, uint64_t start):
    """Return a BlockRow for each block from byte `start` on; zeros at the end are ignored."""
    cdef Cursor cursor
    cdef Vec rows
    cdef Scratch scratch
    cdef BlockRow* row
    cdef uint64_t size = PyBytes_GET_SIZE(data), start_of_block = start, words, number, width
    if start > size or start % 4:
        raise ValueError("not the start of a block")
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &rows, sizeof(BlockRow))
        while start_of_block < size:
            open_cursor(&cursor, data, start_of_block, size)
            if read_bits(&cursor, OUTER_WIDTH) != ENTER_BLOCK:
                if not data[start_of_block:].strip(b"\0"):
                    break
                raise ValueError(f"byte {start_of_block:#x}: no block starts here")
            number = read_vbr(&cursor, 8)
            width = read_vbr(&cursor, 4)
            align_read(&cursor)
            words = read_bits(&cursor, 32)
            if cursor.fault != NULL or words > (size - (cursor.bit >> 3)) // 4:
                raise ValueError(
                    f"byte {start_of_block:#x}: the file ends within the block that starts here")
            if not 2 <= width <= MOST_WIDTH or number > MOST_BLOCK:
                raise ValueError(f"byte {start_of_block:#x}: no block has such a head")
            row = <BlockRow*>vec_push(&rows)
            check_memory(row != NULL)
            row.number = <uint32_t>number
            row.width = <uint32_t>width
            row.start = cursor.bit >> 3
            start_of_block = row.end = row.start + words * 4
        return vec_to_bytes(&rows)
    finally:
        scratch_free(&scratch)


cdef void read_definition(Cursor* cursor, Abbreviation* abbreviation,
                          uint32_t block) noexcept nogil:
    """Read what follows the id of a definition: how an abbreviation for `block` encodes records."""
    cdef uint64_t count = read_vbr(cursor, 5), i
    cdef uint32_t encoding
    cdef uint64_t value
    abbreviation.block = block
    abbreviation.count = 0
    if count == 0 or count > MOST_OPERANDS:
        stop_reading(cursor, b"an abbreviation has too many operands" if count
                     else b"an empty abbreviation")
        return
    for i in range(count):
        value = 0
        if read_bits(cursor, 1):
            encoding = LITERAL
            value = read_vbr(cursor, 8)
        else:
            encoding = <uint32_t>read_bits(cursor, 3)
            if encoding == FIXED or encoding == VBR:
                value = read_vbr(cursor, 5)
                if value > MOST_WIDTH or (encoding == VBR and value == 1):
                    stop_reading(cursor,
                                 b"an abbreviation has an operand of a width that does not exist")
                elif value == 0:    # means the literal 0
                    encoding = LITERAL
            elif encoding < FIXED or encoding > BLOB:
                stop_reading(cursor, b"an abbreviation has an operand of an unknown encoding")
            # One operand follows an array: the encoding of its elements. None follows a blob.
            if encoding == ARRAY and i + 2 != count or encoding == BLOB and i + 1 != count:
                stop_reading(cursor, b"an abbreviation goes on behind its last operand")
        if i and abbreviation.encodings[i - 1] == ARRAY and (encoding == ARRAY or encoding == BLOB):
            stop_reading(cursor, b"an abbreviation has an array of no scalars")
        abbreviation.encodings[i] = <uint8_t>encoding
        abbreviation.values[i] = value
    if abbreviation.encodings[0] == ARRAY or abbreviation.encodings[0] == BLOB:
        stop_reading(cursor, b"an abbreviation has no number for its records")
    abbreviation.count = <uint32_t>count


cdef inline uint64_t read_scalar(Cursor* cursor, uint32_t encoding, uint64_t value) noexcept nogil:
    """Read an operand that is not an array or blob; `value` is the literal or the width."""
    if encoding == LITERAL:
        return value
    if encoding == FIXED:
        return read_bits(cursor, <uint32_t>value)
    if encoding == VBR:
        return read_vbr(cursor, <uint32_t>value)
    return <uint8_t>CHARACTERS[read_bits(cursor, 6)]


# A record that was read.
cdef struct Record:
    uint64_t code               # what kind of record it is
    uint64_t values[MOST_VALUES]
    uint64_t count              # number of values; the first MOST_VALUES of them are in `values`
    uint64_t blob               # byte in the file where its blob starts
    int64_t blob_size           # bytes; -1 without a blob


cdef inline void add_value(Record* record, uint64_t value) noexcept nogil:
    """Count a value of a record, and keep it if there is room."""
    if record.count < MOST_VALUES:
        record.values[record.count] = value
    record.count += 1


cdef void read_unabbreviated(Cursor* cursor, Record* record) noexcept nogil:
    """Read a record without abbreviation, after its id."""
    cdef uint64_t count, _index
    record.code = read_vbr(cursor, 6)
    record.count = 0
    record.blob = 0
    record.blob_size = -1
    count = read_vbr(cursor, 6)
    if count > (cursor.limit - cursor.bit) // 6:
        stop_reading(cursor, b"the block ends within a record")
        return
    for _index in range(count):
        add_value(record, read_vbr(cursor, 6))


cdef void read_abbreviated(Cursor* cursor, const Abbreviation* abbreviation,
                           Record* record) noexcept nogil:
    """Read a record with an abbreviation, after its id."""
    cdef uint64_t count, _index
    cdef uint32_t i
    record.code = read_scalar(cursor, abbreviation.encodings[0], abbreviation.values[0])
    record.count = 0
    record.blob = 0
    record.blob_size = -1
    for i in range(1, abbreviation.count):
        if abbreviation.encodings[i] == ARRAY:
            count = read_vbr(cursor, 6)
            if count > (MOST_VALUES if abbreviation.encodings[i + 1] == LITERAL
                        else cursor.limit - cursor.bit):
                stop_reading(cursor, b"an array is longer than its block")
                return
            for _index in range(count):
                add_value(record, read_scalar(cursor, abbreviation.encodings[i + 1],
                                              abbreviation.values[i + 1]))
            return
        if abbreviation.encodings[i] == BLOB:
            count = read_vbr(cursor, 6)
            align_read(cursor)
            if count > (cursor.limit - cursor.bit) >> 3:
                stop_reading(cursor, b"the block ends within a record")
                return
            record.blob = cursor.bit >> 3
            record.blob_size = <int64_t>count
            cursor.bit += count * 8
            align_read(cursor)
            return
        add_value(record, read_scalar(cursor, abbreviation.encodings[i], abbreviation.values[i]))


cdef const Abbreviation* find_abbreviation(const Abbreviation* abbreviations, size_t count,
                                           uint32_t block, uint64_t number) noexcept nogil:
    """Return abbreviation `number`, from 0, of those that are defined for a block; NULL for none.

    `abbreviations` has `count` elements: all that the block info block defines, for any block, then
    those that the block itself defines.
    """
    cdef size_t i
    for i in range(count):
        if abbreviations[i].block == block:
            if number == 0:
                return &abbreviations[i]
            number -= 1
    return NULL


# `start`, `end` and `width` are those of the block's BlockRow.
def read_block_info(bytes data not None, uint64_t start, uint64_t end, uint32_t width):
    """Return the abbreviations that a block info block defines, for `read_records`."""
    cdef Cursor cursor
    cdef Vec abbreviations
    cdef Scratch scratch
    cdef Record record
    cdef uint32_t block = MOST_BLOCK
    cdef uint64_t id
    if not start <= end <= <uint64_t>PyBytes_GET_SIZE(data) or not 2 <= width <= MOST_WIDTH:
        raise ValueError("no block of this file")
    open_cursor(&cursor, data, start, end)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &abbreviations, sizeof(Abbreviation))
        while cursor.fault == NULL:
            id = read_bits(&cursor, width)
            if id == END_BLOCK:
                align_read(&cursor)
                break
            if id == DEFINE:
                read_definition(&cursor, add_abbreviation(&cursor, &abbreviations), block)
            elif id == UNABBREVIATED:
                read_unabbreviated(&cursor, &record)
                if record.code == SET_BLOCK and record.count:
                    block = <uint32_t>min(record.values[0], <uint64_t>MOST_BLOCK)
            else:
                stop_reading(&cursor, b"the block info block holds something else than definitions")
        if cursor.bit != cursor.limit:
            stop_reading(&cursor, b"the block ends before its size says")
        raise_fault(&cursor)
        return vec_to_bytes(&abbreviations)
    finally:
        scratch_free(&scratch)


# `blocks` are the BlockRows of `find_blocks`; `abbreviations` come from `read_block_info`.
def read_records(bytes data not None, bytes blocks not None, size_t first, size_t last,
                 bytes abbreviations not None):
    """Return a list of records for each block from row `first` to before `last`."""
    cdef Cursor cursor
    cdef Vec all_abbreviations
    cdef Scratch scratch
    cdef const BlockRow* row = <const BlockRow*>PyBytes_AS_STRING(blocks)
    cdef size_t shared_count = PyBytes_GET_SIZE(abbreviations) // sizeof(Abbreviation), i
    cdef list result = [], records
    cdef uint64_t size = PyBytes_GET_SIZE(data)
    if last > PyBytes_GET_SIZE(blocks) // sizeof(BlockRow) or first > last:
        raise ValueError("there are no such rows")
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &all_abbreviations, sizeof(Abbreviation))
        check_memory(vec_reserve(&all_abbreviations, shared_count + 1))
        memcpy(all_abbreviations.data, PyBytes_AS_STRING(abbreviations),
               shared_count * sizeof(Abbreviation))
        for i in range(first, last):
            if not row[i].start <= row[i].end <= size or not 2 <= row[i].width <= MOST_WIDTH:
                raise ValueError("no block of this file")
            open_cursor(&cursor, data, row[i].start, row[i].end)
            all_abbreviations.count = shared_count
            records = []
            read_block(&cursor, &row[i], &all_abbreviations, records)
            raise_fault(&cursor)
            result.append(records)
        return result
    finally:
        scratch_free(&scratch)


cdef int read_block(Cursor* cursor, const BlockRow* row, Vec* abbreviations,
                    list records) except -1:
    """Append the records of one block to `records`, and its abbreviations to `abbreviations`.

    Reading stops at a fault, which the cursor keeps.
    """
    cdef const Abbreviation* abbreviation
    cdef Record record
    cdef uint64_t id, i
    while cursor.fault == NULL:
        id = read_bits(cursor, row.width)
        if id == END_BLOCK:
            align_read(cursor)
            break
        if id == ENTER_BLOCK:
            stop_reading(cursor, b"a block inside a block")
            break
        if id == DEFINE:
            read_definition(cursor, add_abbreviation(cursor, abbreviations), row.number)
            continue
        if id == UNABBREVIATED:
            read_unabbreviated(cursor, &record)
        else:
            abbreviation = find_abbreviation(<const Abbreviation*>abbreviations.data,
                                             abbreviations.count, row.number,
                                             id - FIRST_ABBREVIATION)
            if abbreviation == NULL:
                stop_reading(cursor, b"a record has an abbreviation that is not defined")
                break
            read_abbreviated(cursor, abbreviation, &record)
        if record.count > MOST_VALUES:
            stop_reading(cursor, b"a record has too many operands")
        if cursor.fault != NULL:
            break
        values = [record.code]
        for i in range(record.count):
            values.append(record.values[i])
        if record.blob_size >= 0:
            values.append(PyBytes_FromStringAndSize(<const char*>cursor.data + record.blob,
                                                    record.blob_size))
        records.append(tuple(values))
    if cursor.bit != cursor.limit:
        stop_reading(cursor, b"the block ends before its size says")
    return 0
