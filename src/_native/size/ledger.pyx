"""Where the bytes of device code are: payloads by part and function, added up without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from base.blocks cimport block_free, block_widen
from base.heap cimport return_blocks
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, index_free, index_init, pool_free, pool_take,
)
from base.elffile cimport (
    ELF_GOOD, ElfFile, has_bytes, lies_in, name_at, open_elf, open_names, open_table,
)
from base.stretches cimport NO_SECTION, Stretch, own_stretches
from base.vector cimport Vec, vec_free, vec_init, vec_push
from inputs.codecs cimport decompress, open_codec
from size.cubincut cimport cut_cubin, memmem, part_of
from size.digests cimport Digest, Fingerprint
from size.cutting cimport (
    PART_HEADERS, PART_LTOIR, PART_OTHER, PART_PADDING, PARTS, SHARED, Cutting, Text, count_bytes,
    cutting_free, cutting_init,
)
from size.ptxcut cimport cut_ptx
from inputs.fatbinrows cimport ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX
from base.memory cimport check_memory

cdef extern from "size/recompress.h":
    bint open_frames "pylink_open_frames"(const char* path) nogil
    size_t frame_room "pylink_frame_room"(size_t size) noexcept nogil
    size_t make_frame "pylink_make_frame"(
        const void* from_, size_t size, void* to, size_t room, int level
    ) noexcept nogil

cdef enum:
    RETURNED = 1 << 20
    ZSTD_FRAME = 2              # of the codecs

# One entry's bytes of one part and function. Sizes of an entry have 32 bits.
cdef packed struct LedgerRow:
    uint32_t entry
    uint32_t function           # 0: shared
    uint32_t part
    uint32_t unpacked
    uint32_t installed
    uint32_t download

# Contents of a function, or of initialized data, of one linked cubin.
cdef packed struct DigestRow:
    uint32_t entry
    uint32_t function           # 0: data
    uint64_t size
    Fingerprint contents

ctypedef struct SumCell:
    uint64_t key                # 0: empty
    uint64_t rows
    uint64_t unpacked
    uint64_t installed
    uint64_t download


def use_codec(int codec, bytes path not None):
    """Decompress with the library at `path` from now on; whether it can."""
    if codec == ZSTD_FRAME:     # compressing again is extra
        open_frames(PyBytes_AS_STRING(path))
    return bool(open_codec(codec, PyBytes_AS_STRING(path)))


def frame_of(bytes payload not None, int level, bint checked=True):
    """A Zstandard frame that becomes the payload again; see `ledger.pyi`."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(payload)
    cdef uint64_t size = <uint64_t>PyBytes_GET_SIZE(payload)
    cdef size_t room = frame_room(size), made = 0
    cdef uint8_t* frame = NULL
    cdef uint8_t* again = NULL
    cdef bint good = False
    if room == 0:
        return None
    try:
        with nogil:
            frame = <uint8_t*>malloc(room)
            again = <uint8_t*>malloc(size + 1) if checked else NULL
            if frame != NULL and (again != NULL or not checked):
                made = make_frame(data, size, frame, room, level)
                good = made != 0 and (not checked
                                      or (decompress(ZSTD_FRAME, frame, made, again, size)
                                          and memcmp(data, again, size) == 0))
        check_memory(frame != NULL and (again != NULL or not checked))
        return PyBytes_FromStringAndSize(<const char*>frame, made) if good else None
    finally:
        free(frame)
        free(again)


def return_memory():
    """Give blocks back when they are freed; see `ledger.pyi`."""
    return_blocks(RETURNED)


def find_marks(const uint8_t[::1] data not None, bytes mark not None):
    """Offsets of a mark, in order."""
    cdef const uint8_t* base
    cdef const uint8_t* found
    cdef uint64_t at = 0, size = <uint64_t>data.shape[0]
    cdef uint64_t width = <uint64_t>PyBytes_GET_SIZE(mark)
    cdef const char* wanted = PyBytes_AS_STRING(mark)
    cdef list places = []
    if size < width or width == 0:
        return places
    base = &data[0]
    while size - at >= width:
        with nogil:
            found = <const uint8_t*>memmem(base + at, size - at, wanted, width)
        if found == NULL:
            break
        at = <uint64_t>(found - base)
        places.append(at)
        at += 1
    return places


def section_bytes(const uint8_t[::1] cubin not None):
    """Bytes of each section of a cubin; see `ledger.pyi`."""
    cdef ElfFile elf
    cdef Stretch* stretches = NULL
    cdef uint64_t i, count, at = 0, size = <uint64_t>cubin.shape[0]
    cdef list found = []
    if (size == 0 or open_elf(&elf, &cubin[0], size) != ELF_GOOD or open_table(&elf) != ELF_GOOD
            or open_names(&elf) != ELF_GOOD):
        raise ValueError("not a cubin")
    for i in range(elf.count):
        if (name_at(&elf, &elf.table[i]) == NULL
                or (has_bytes(elf.table[i].sh_type) and not lies_in(&elf, &elf.table[i]))):
            raise ValueError("not a cubin")
    stretches = <Stretch*>malloc((elf.count + 3) * sizeof(Stretch))
    check_memory(stretches != NULL)
    try:
        with nogil:
            count = own_stretches(stretches, &elf)
        for i in range(count):
            if stretches[i].start > at:
                found.append((-1, <int>PART_PADDING, <int64_t>(stretches[i].start - at)))
            at = stretches[i].end
            number, part = -1, <int>PART_HEADERS
            if stretches[i].section != <uint32_t>NO_SECTION:
                number = <int64_t>stretches[i].section
                part = <int>part_of(&elf.table[number], name_at(&elf, &elf.table[number]))
            found.append((number, part, <int64_t>(at - stretches[i].start)))
        if size > at:
            found.append((-1, <int>PART_PADDING, <int64_t>(size - at)))
        return found
    finally:
        free(stretches)


cdef class Ledger:
    """Rows of all entries that were measured; see `ledger.pyi`."""
    cdef Vec rows
    cdef NameIndex index
    cdef TextPool pool
    cdef Vec names              # Text of functions, from number 1 on
    cdef Vec digests

    def __cinit__(self):
        vec_init(&self.rows, sizeof(LedgerRow))
        vec_init(&self.names, sizeof(Text))
        vec_init(&self.digests, sizeof(DigestRow))
        self.pool.chunk = NULL
        self.pool.used = self.pool.room = 0
        check_memory(index_init(&self.index, 1024))

    def __dealloc__(self):
        vec_free(&self.rows)
        vec_free(&self.names)
        vec_free(&self.digests)
        index_free(&self.index)
        pool_free(&self.pool)

    def measure(self, bytes payload not None, int codec, uint64_t full, int kind, uint32_t entry,
                tuple shared not None):
        """Decompress and count a payload; see `ledger.pyi`."""
        cdef uint64_t installed = shared[0], download = shared[1]
        cdef const uint8_t* packed = <const uint8_t*>PyBytes_AS_STRING(payload)
        cdef uint64_t packed_size = <uint64_t>PyBytes_GET_SIZE(payload)
        cdef const uint8_t* data = packed
        cdef uint8_t* room = NULL
        cdef uint64_t size = packed_size
        cdef Cutting c
        cdef bint good, unpacked = True
        if full > 0xffffffff or installed > 0xffffffff or download > 0xffffffff:
            raise ValueError("more than 4 GiB in an entry")
        good = cutting_init(&c)
        try:
            with nogil:
                if good and codec:
                    room = <uint8_t*>block_widen(NULL, 0, full + 8)
                    good = room != NULL
                    if good:
                        unpacked = decompress(codec, packed, packed_size, room, full)
                        data, size = room, full
                if good and unpacked:
                    if kind == ENTRY_ELF:
                        good = cut_cubin(&c, data, size)
                    elif kind == ENTRY_PTX:
                        good = cut_ptx(&c, data, size)
                    else:
                        count_bytes(&c, SHARED, PART_LTOIR if kind == ENTRY_LTOIR else PART_OTHER,
                                    size)
            check_memory(good)
            if not unpacked or c.bad:
                return None
            self.enter(&c, entry, size, installed, download)
            self.enter_digests(&c, entry)
            unit = (<const char*>c.unit.data)[:c.unit.size] if c.unit.data != NULL else b""
            if c.exact.a == 0 and c.exact.b == 0:
                return c.type, unit, b"", b""
            return (c.type, unit, (<const char*>&c.exact)[:sizeof(Fingerprint)],
                    (<const char*>&c.like)[:sizeof(Fingerprint)])
        finally:
            if room != NULL:
                block_free(room, full + 8)
            cutting_free(&c)

    cdef int enter(self, const Cutting* c, uint32_t entry, uint64_t size, uint64_t installed,
                   uint64_t download) except -1:
        """Rows of one entry, which share its bytes in proportion, with running sums."""
        cdef const uint64_t* counts = <const uint64_t*>c.counts.data
        cdef uint64_t owner, part, sum = 0, before_i = 0, before_d = 0, now_i, now_d
        cdef uint32_t function
        cdef LedgerRow* row
        for owner in range(c.counts.count):
            function = 0
            for part in range(PARTS):
                if counts[owner * PARTS + part] == 0:
                    continue
                if owner and function == 0:
                    function = self.number_of(&(<const Text*>c.functions.data)[owner - 1])
                sum += counts[owner * PARTS + part]
                now_i = sum * installed // size     # both below 2 ** 32
                now_d = sum * download // size
                row = <LedgerRow*>vec_push(&self.rows)
                check_memory(row != NULL)
                row.entry, row.function, row.part = entry, function, <uint32_t>part
                row.unpacked = <uint32_t>counts[owner * PARTS + part]
                row.installed = <uint32_t>(now_i - before_i)
                row.download = <uint32_t>(now_d - before_d)
                before_i, before_d = now_i, now_d
        return 0

    cdef int enter_digests(self, const Cutting* c, uint32_t entry) except -1:
        cdef const Digest* found = <const Digest*>c.digests.data
        cdef const Text* functions = <const Text*>c.functions.data
        cdef DigestRow* row
        cdef uint64_t i
        for i in range(c.digests.count):
            row = <DigestRow*>vec_push(&self.digests)
            check_memory(row != NULL)
            row.entry, row.size, row.contents = entry, found[i].size, found[i].contents
            row.function = self.number_of(&functions[found[i].owner - 1]) if found[i].owner else 0
        return 0

    def repeats(self, bytes entry_groups not None):
        """Contents that several entries of a group have; see `ledger.pyi`."""
        cdef const int32_t* entries = <const int32_t*>PyBytes_AS_STRING(entry_groups)
        cdef uint64_t n_entries = <uint64_t>PyBytes_GET_SIZE(entry_groups) // 4
        cdef const DigestRow* rows = <const DigestRow*>self.digests.data
        cdef uint64_t i
        cdef dict first = {}
        cdef list found = []
        for i in range(self.digests.count):
            if rows[i].entry >= n_entries or entries[rows[i].entry] < 0:
                continue
            key = (entries[rows[i].entry], rows[i].function, rows[i].size, rows[i].contents.a,
                   rows[i].contents.b)
            if first.setdefault(key, rows[i].entry) != rows[i].entry:
                found.append((<int64_t>entries[rows[i].entry], <int64_t>rows[i].function,
                              <int64_t>rows[i].entry, <int64_t>rows[i].size))
        return found

    cdef uint32_t number_of(self, const Text* name) except? 0:
        """The number of a function in all of the ledger."""
        cdef NameSlot* slot = index_find(&self.index, name.data, name.size)
        cdef Text* text
        cdef uint8_t* place
        check_memory(slot != NULL)
        if slot.value < 0:
            place = pool_take(&self.pool, name.size)
            text = <Text*>vec_push(&self.names)
            check_memory(place != NULL and text != NULL)
            memcpy(place, name.data, name.size)
            text.data, text.size = place, name.size
            slot.text = place
            slot.value = <int32_t>self.names.count
            self.index.count += 1
        return <uint32_t>slot.value

    def functions(self):
        """Names of all functions; number 0 is what is shared."""
        cdef const Text* text = <const Text*>self.names.data
        cdef size_t i
        cdef list names = [b""]
        for i in range(self.names.count):
            names.append(PyBytes_FromStringAndSize(<const char*>text[i].data, text[i].size))
        return names

    def sums(self, bytes entry_groups not None, bytes function_groups not None, bint by_part):
        """Sums by groups of entries and functions; see `ledger.pyi`."""
        cdef const int32_t* entries = <const int32_t*>PyBytes_AS_STRING(entry_groups)
        cdef const int32_t* functions = <const int32_t*>PyBytes_AS_STRING(function_groups)
        cdef uint64_t n_entries = <uint64_t>PyBytes_GET_SIZE(entry_groups) // 4
        cdef uint64_t n_functions = <uint64_t>PyBytes_GET_SIZE(function_groups) // 4
        cdef const LedgerRow* rows = <const LedgerRow*>self.rows.data
        cdef Vec cells
        cdef SumCell* cell
        cdef uint64_t mask = 1023, count = 0, i, key
        cdef bint good = True
        cdef list found = []
        vec_init(&cells, sizeof(SumCell))
        try:
            with nogil:
                good = fresh_cells(&cells, mask)
                for i in range(self.rows.count):
                    if not good:
                        break
                    if rows[i].entry >= n_entries or rows[i].function >= n_functions:
                        continue
                    if entries[rows[i].entry] < 0 or functions[rows[i].function] < 0:
                        continue
                    # 26 bits for entries, 30 for functions, 8 for parts: none is 0 in all.
                    key = (<uint64_t>entries[rows[i].entry] << 38
                           | <uint64_t>functions[rows[i].function] << 8
                           | (rows[i].part + 1 if by_part else 1))
                    if 2 * count > mask:
                        good = widen_cells(&cells, &mask)
                        if not good:
                            break
                    cell = cell_of(&cells, mask, key)
                    if cell.key == 0:
                        cell.key = key
                        count += 1
                    cell.rows += 1
                    cell.unpacked += rows[i].unpacked
                    cell.installed += rows[i].installed
                    cell.download += rows[i].download
            check_memory(good)
            for i in range(mask + 1):
                cell = &(<SumCell*>cells.data)[i]
                if cell.key:
                    found.append((
                        <int64_t>(cell.key >> 38), <int64_t>(cell.key >> 8 & 0x3fffffff),
                        <int64_t>(cell.key & 0xff) - 1 if by_part else -1,
                        cell.rows, cell.unpacked, cell.installed, cell.download))
            return found
        finally:
            vec_free(&cells)


cdef bint fresh_cells(Vec* cells, uint64_t mask) noexcept nogil:
    cdef uint64_t _i
    cdef SumCell* row
    for _i in range(mask + 1):
        row = <SumCell*>vec_push(cells)
        if row == NULL:
            return False
        row.key = row.rows = row.unpacked = row.installed = row.download = 0
    return True


cdef SumCell* cell_of(Vec* cells, uint64_t mask, uint64_t key) noexcept nogil:
    cdef uint64_t at = key * <uint64_t>0x9e3779b97f4a7c15
    cdef SumCell* cell
    at = (at ^ at >> 32) & mask
    cell = &(<SumCell*>cells.data)[at]
    while cell.key and cell.key != key:
        at = (at + 1) & mask
        cell = &(<SumCell*>cells.data)[at]
    return cell


cdef bint widen_cells(Vec* cells, uint64_t* mask) noexcept nogil:
    cdef Vec wider
    cdef uint64_t i, wide = 2 * mask[0] + 1
    cdef SumCell* cell
    vec_init(&wider, sizeof(SumCell))
    if not fresh_cells(&wider, wide):
        vec_free(&wider)
        return False
    for i in range(mask[0] + 1):
        cell = &(<SumCell*>cells.data)[i]
        if cell.key:
            cell_of(&wider, wide, cell.key)[0] = cell[0]
    vec_free(cells)
    cells[0], mask[0] = wider, wide
    return True
