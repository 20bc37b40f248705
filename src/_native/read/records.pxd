# Sections of records: attributes (.nv.info) and the call graph.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen

from attributetypes cimport ATTRIBUTE, AttributeFacts
from base.elf64 cimport load32
from read.faults cimport (
    F_CALLGRAPH_BLOCK, F_CALLGRAPH_STRING, F_CALLGRAPH_SYMBOL, F_NAME_BYTES, F_RECORD_END,
    F_RECORD_FORMAT, F_RECORD_SIZE, F_RECORD_SYMBOL, F_TABLE_SIZE, Reader, count_name, refuse,
)
from rownumbers cimport BLOCK_INDIRECT, BLOCK_TAKEN
from sectionkinds cimport K_CALLGRAPH
from tables.attributes cimport record_size
from tables.rows cimport FileRow, SectionRow


cdef inline bint check_info(Reader* reader, FileRow* row, SectionRow* s,
                            uint32_t index) noexcept nogil:
    """EIATTR records: {u8 format, u8 attribute, u16}, and with format 4 that many bytes more."""
    cdef const uint8_t* data = reader.arena + s.offset
    cdef const uint8_t* record
    cdef uint64_t offset = 0, size
    while offset < s.size:
        record = data + offset
        if s.size - offset < 4:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_END, 4, s.size - offset)
        if record[0] < 1 or record[0] > 4:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_FORMAT, record[0], 4)
        size = record_size(record)
        if size > s.size - offset:
            return refuse(reader, <int32_t>index, <int64_t>offset, F_RECORD_END, size,
                          s.size - offset)
        if not check_record(reader, row, record, size - 4, index, <int64_t>offset):
            return False
        offset += size
    return True


cdef inline bint check_record(Reader* reader, FileRow* row, const uint8_t* record,
                              uint64_t length, uint32_t index, int64_t offset) noexcept nogil:
    """Check the size and the symbols of one record; False with a fault."""
    cdef uint8_t attribute = record[1]
    cdef const AttributeFacts* facts = &ATTRIBUTE[attribute]
    cdef uint32_t words = facts.words, symbol, symbols, i
    if words == 0 and not facts.symbols:
        return True
    if record[0] != 4:
        return refuse(reader, <int32_t>index, offset, F_RECORD_FORMAT, record[0], 4)
    if length % 4 or (words and length != 4 * words):
        return refuse(reader, <int32_t>index, offset, F_RECORD_SIZE, length, 4 * words)
    symbols = <uint32_t>(length // 4) if facts.symbols else words - 1
    for i in range(symbols):
        symbol = load32(record + 4 + 4 * i)
        if symbol >= row.symbol_count:
            return refuse(reader, <int32_t>index, offset, F_RECORD_SYMBOL, symbol, row.symbol_count)
    return True


cdef inline bint check_pairs(Reader* reader, FileRow* row, SectionRow* s,
                             uint32_t index) noexcept nogil:
    """.nv.callgraph and .nv.prototype: pairs of u32, symbol and symbol or string offset.

    A pair of 0 and a negative number begins a block of the call graph: -1 calls, -2 functions
    whose address is taken, -3 indirect calls, -4 their candidates.
    """
    cdef const uint8_t* data = reader.arena + s.offset
    cdef uint32_t pair[2]
    cdef uint64_t i
    cdef int32_t block = 0
    cdef bint graph = s.kind == K_CALLGRAPH
    if s.size % 8:
        return refuse(reader, <int32_t>index, -1, F_TABLE_SIZE, s.size, 8)
    for i in range(s.size // 8):
        memcpy(pair, data + 8 * i, 8)
        if pair[0] == 0 and graph:
            block = <int32_t>pair[1]
            if block > -1 or block < -4:
                return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_BLOCK, pair[1], 0)
            continue
        if block == 0 and graph:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_BLOCK, 0, 0)
        if pair[0] >= row.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_SYMBOL, pair[0],
                          row.symbol_count)
        if not graph or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
            if pair[1] >= row.strtab_size:
                return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_STRING, pair[1],
                              row.strtab_size)
            if not count_name(reader, strlen(<const char*>reader.arena + row.strtab + pair[1]),
                              row.size):
                return refuse(reader, <int32_t>index, <int64_t>i, F_NAME_BYTES, reader.names,
                              row.size)
        elif pair[1] >= row.symbol_count:
            return refuse(reader, <int32_t>index, <int64_t>i, F_CALLGRAPH_SYMBOL, pair[1],
                          row.symbol_count)
    return True
