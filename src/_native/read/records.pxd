# Checks of sections that consist of records: attributes (.nv.info), and the call graph.
#
# An attribute is a record {u8 format, u8 attribute, u16 n}; in format 4, n bytes of value follow.
# The value of some attributes names symbols of the file. The call graph is a list of pairs of u32,
# and so is `.nv.prototype`. An example of `.nv.callgraph`, where 5 and 6 are symbols:
#
#     0, -1       the block of direct calls begins
#     5, 6        5 calls 6
#     0, -3       the block of indirect calls begins
#     5, 12       5 calls through a pointer to functions of the prototype at offset 12 of .strtab

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen

from attributetypes cimport ATTRIBUTE, AttributeFacts
from base.elf64 cimport load32
from outcomes cimport (
    F_CALLGRAPH_BLOCK, F_CALLGRAPH_STRING, F_CALLGRAPH_SYMBOL, F_NAME_BYTES, F_RECORD_END,
    F_RECORD_FORMAT, F_RECORD_SIZE, F_RECORD_SYMBOL, F_TABLE_SIZE,
)
from read.faults cimport Reader, count_name, refuse
from rownumbers cimport BLOCK_INDIRECT, BLOCK_TAKEN
from sectionkinds cimport K_CALLGRAPH
from tables.attributes cimport record_size
from tables.rows cimport FileRow, SectionRow


cdef inline bint check_attributes(Reader* reader, FileRow* file, SectionRow* section,
                                  uint32_t index) noexcept nogil:
    """Check the attributes of .nv.info, .nv.info.F and their mercury forms; False with a fault."""
    cdef const uint8_t* data = reader.arena + section.offset
    cdef const uint8_t* record
    cdef uint64_t offset = 0, size
    while offset < section.size:
        record = data + offset
        if section.size - offset < 4:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_END, 4,
                          section.size - offset)
        if record[0] < 1 or record[0] > 4:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_FORMAT, record[0], 4)
        size = record_size(record)
        if size > section.size - offset:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_END, size,
                          section.size - offset)
        if not check_attribute(reader, file, record, size - 4, index, <int64_t>offset):
            return False
        offset += size
    return True


cdef inline bint check_attribute(Reader* reader, FileRow* file, const uint8_t* record,
                                 uint64_t value_size, uint32_t index,
                                 int64_t offset) noexcept nogil:
    """Check the size and the symbols of one attribute; False with a fault.

    `value_size` is the number of bytes of its value, `offset` its offset in section `index`. A
    value of `facts.words` words names symbols in all of them but the last.
    """
    cdef uint8_t attribute = record[1]
    cdef const AttributeFacts* facts = &ATTRIBUTE[attribute]
    cdef uint32_t words = facts.words, symbol, symbols, i
    if words == 0 and not facts.symbols:
        return True
    if record[0] != 4:
        return refuse(reader, <int32_t>index, offset, F_RECORD_FORMAT, record[0], 4)
    if value_size % 4 or (words and value_size != 4 * words):
        return refuse(reader, <int32_t>index, offset, F_RECORD_SIZE, value_size, 4 * words)
    symbols = <uint32_t>(value_size // 4) if facts.symbols else words - 1
    for i in range(symbols):
        symbol = load32(record + 4 + 4 * i)
        if symbol >= file.symbol_count:
            return refuse(reader, <int32_t>index, offset, F_RECORD_SYMBOL, symbol,
                          file.symbol_count)
    return True


cdef inline bint check_calls(Reader* reader, FileRow* file, SectionRow* section,
                             uint32_t index) noexcept nogil:
    """Check .nv.callgraph or .nv.prototype: pairs of a symbol and a symbol or string.

    A pair of 0 and a negative number begins a block of the call graph: see CallBlock in
    facts/rownumbers.py. False with a fault.
    """
    cdef const uint8_t* data = reader.arena + section.offset
    cdef uint32_t pair[2]
    cdef uint64_t i
    cdef int32_t block = 0
    cdef bint is_call_graph = section.kind == K_CALLGRAPH
    if section.size % 8:
        return refuse(reader, <int32_t>index, -1, F_TABLE_SIZE, section.size, 8)
    for i in range(section.size // 8):
        memcpy(pair, data + 8 * i, 8)
        if pair[0] == 0 and is_call_graph:
            block = <int32_t>pair[1]
            if block > -1 or block < -4:
                return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_BLOCK, pair[1], 0)
            continue
        if block == 0 and is_call_graph:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_BLOCK, 0, 0)
        if pair[0] >= file.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_SYMBOL, pair[0],
                          file.symbol_count)
        if not is_call_graph or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
            if pair[1] >= file.strtab_size:
                return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_STRING, pair[1],
                              file.strtab_size)
            if not count_name(reader, strlen(<const char*>reader.arena + file.strtab + pair[1]),
                              file.size):
                return refuse(reader, <int32_t>index, <int64_t>i, F_NAME_BYTES, reader.names,
                              file.size)
        elif pair[1] >= file.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_SYMBOL, pair[1],
                          file.symbol_count)
    return True
