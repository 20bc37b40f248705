"""Counts the bytes of device code by part and function, without the GIL.

A payload is the contents of one entry of a fat binary, mostly a compressed cubin. A ledger has a
row for each part, such as code or debug data, of each function of an entry; function 0 stands for
bytes that no function owns. The rows of an entry share the bytes that it has in the file, and in
the archive, in proportion to their own (`assign_shares`). For example, an entry of 1,000 bytes that
takes 300 bytes in the file:

    function   part      unpacked   installed
    f          code           600         180
    0          debug          400         120

Many entries of a wheel have equal contents, which are counted once. `measure` goes through
payloads; `measure_row` does this for each:

1. `packed_payload` reads it, and `find_content` looks for equal contents. If these were counted,
   `repeat_rows` copies their rows for the entry.
2. Otherwise `full_payload` decompresses, `count_payload` cuts the bytes into parts and functions
   (size/cutting.pxd), and `add_counted` adds the rows.
3. Payloads with `is_recompressed` are compressed again (`compress_payload`), equal contents once.

`sums` then adds up the rows by group, and `repeats` lists what several entries of a group have in
common. Several threads may measure for one ledger: its lock is held while tables change, not while
bytes are read, cut or compressed.
"""

import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from base.heap cimport return_blocks
from base.memory cimport check_memory
from base.nameindex cimport (
    NameIndex, NameSlot, TextPool, index_find, pool_allocate, scratch_index, scratch_texts,
)
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_push
from inputs.codecs cimport open_codec
from size.cutting cimport PARTS, Cutting, Text, start_cutting
from size.digests cimport Digest, Fingerprint
from size.ledgerrows cimport (
    DigestRow, LedgerFunctionRef, LedgerRow, Shares, assign_shares, begin_shares,
)
from size.payloads cimport (
    DAMAGED, KEPT_SIZE, MEASURED, NOT_MEASURED, UNREAD, Buffers, Content, ContentCounter,
    ContentKey, DigestRowCounter, LedgerCounter, LedgerEntryRef, Payload, clear_buffers,
    compress_payload, count_payload, fill_key, full_payload, full_size, packed_payload,
)
from size.sums cimport (
    Grouping, SumCell, SumTable, add_rows, entry_group, function_group, part_of_key, start_table,
)

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t* lock, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* lock)
    int pthread_mutex_lock(pthread_mutex_t* lock)
    int pthread_mutex_unlock(pthread_mutex_t* lock)

cdef enum:
    RETURNED_SIZE = 1 << 20     # bytes of the smallest block that `return_memory` returns


cdef class Measured:
    """The results for a counted payload; `ledger.pyi` describes the fields."""
    cdef readonly uint32_t elf_type     # e_type of a cubin
    cdef readonly bytes unit            # part of a name that identifies the source file, or empty
    cdef readonly bytes exact           # fingerprint of a linked cubin, or empty
    cdef readonly bytes like            # the same without an attribute that only some chips need
    cdef readonly int same_as           # the entry that is compressed instead of this one, or -1
    cdef readonly uint64_t frame_size   # bytes of the payload compressed again, or 0
    cdef readonly bytes frame           # these bytes if they are kept, or None


cdef class Sum:
    """The bytes of a group of entries and a group of functions; `part` is -1 for all parts."""
    cdef readonly int64_t entry_group
    cdef readonly int64_t function_group
    cdef readonly int64_t part
    cdef readonly uint64_t rows         # number of added rows
    cdef readonly uint64_t unpacked     # bytes of decompressed payloads
    cdef readonly uint64_t installed    # their share of the entries' bytes in the file
    cdef readonly uint64_t download     # their share of the entries' bytes in the archive


cdef class Repeat:
    """A function, or data (function 0), of an entry: `size` bytes that an earlier entry has too."""
    cdef readonly int32_t entry_group
    cdef readonly LedgerFunctionRef function
    cdef readonly LedgerEntryRef entry
    cdef readonly uint64_t size


def open_library(int codec, bytes path not None):
    """Use the library at `path` for a codec from now on; False if it cannot decompress."""
    return bool(open_codec(codec, PyBytes_AS_STRING(path)))


def return_memory():
    """Return memory of large payloads to the system as soon as they are counted."""
    return_blocks(RETURNED_SIZE)


cdef int read_payload(Payload* payload, row) except -1:
    """Set the fields of a payload from a `pylink.size.payload.Payload`; its bytes are not copied.
    """
    cdef bytes data = row.data
    payload.data = <const uint8_t*>PyBytes_AS_STRING(data) if data is not None else NULL
    payload.offset, payload.packed, payload.full = row.offset, row.packed, row.full
    payload.codec, payload.kind, payload.entry = row.codec, row.kind, <LedgerEntryRef>row.entry
    payload.installed, payload.download = row.installed, row.download
    payload.is_recompressed = row.is_recompressed
    if data is not None and payload.packed > <uint64_t>PyBytes_GET_SIZE(data):
        raise ValueError("a payload is longer than its bytes")
    if max(payload.packed, payload.full, payload.installed, payload.download) > 0xffffffff:
        raise ValueError("more than 4 GiB in an entry")
    return 0


# The options of a call that measures payloads, and what its thread uses.
ctypedef struct Measuring:
    int file                    # descriptor of the file that payloads are read from, or -1
    int level                   # Zstandard's level of compression
    bint keep_frames            # compressed payloads are part of the result
    Buffers* buffers            # used by this thread alone
    TextPool* texts             # has the kept frames


cdef class Ledger:
    """The measured bytes, a row for each part of each function of each entry."""
    cdef Vec rows               # LedgerRow
    cdef NameIndex index        # by name: number of a function, from 1
    cdef TextPool pool          # names of functions and units, keys of contents
    cdef Vec names              # Text: the name of function 1, 2 and so on
    cdef Vec digests            # DigestRow
    cdef Vec contents           # Content
    cdef NameIndex index_of_contents    # by ContentKey: number in `contents`
    cdef Fingerprint seed       # random, see `fill_key`
    cdef size_t frames_wanted   # number of different contents that were to be compressed again
    cdef Scratch scratch        # owns the memory of all fields above
    cdef Buffers* buffers       # a list: working memory that no thread uses now, or NULL
    cdef pthread_mutex_t lock   # held to change fields; `buffers` is changed with the GIL instead

    def __cinit__(self):
        cdef bytes seed = os.urandom(sizeof(Fingerprint))
        scratch_init(&self.scratch)
        scratch_vector(&self.scratch, &self.rows, sizeof(LedgerRow))
        scratch_vector(&self.scratch, &self.names, sizeof(Text))
        scratch_vector(&self.scratch, &self.digests, sizeof(DigestRow))
        scratch_vector(&self.scratch, &self.contents, sizeof(Content))
        scratch_texts(&self.scratch, &self.pool)
        scratch_index(&self.scratch, &self.index, 1024)
        scratch_index(&self.scratch, &self.index_of_contents, 1024)
        memcpy(&self.seed, PyBytes_AS_STRING(seed), sizeof(Fingerprint))
        self.buffers = NULL
        pthread_mutex_init(&self.lock, NULL)
        check_memory(not self.scratch.failed)

    def __dealloc__(self):
        cdef Buffers* buffers
        while self.buffers != NULL:
            buffers = self.buffers
            self.buffers = buffers.next
            clear_buffers(buffers, 0)
            free(buffers)
        pthread_mutex_destroy(&self.lock)
        scratch_free(&self.scratch)

    def measure(self, list payloads not None, int file=-1, int level=0, *, bint keep_frames=False):
        """Return a Measured for each payload, None for a damaged one.

        Those without bytes are read from descriptor `file`. All are counted, and those with
        `is_recompressed` are also compressed again, equal contents once.
        """
        cdef Scratch scratch
        cdef TextPool texts
        cdef Measuring measuring
        cdef size_t i, count = <size_t>len(payloads)
        cdef Payload* rows
        cdef bint good
        measuring.file, measuring.level, measuring.keep_frames = file, level, keep_frames
        measuring.buffers, measuring.texts = NULL, &texts
        scratch_init(&scratch)
        try:
            rows = <Payload*>scratch_zeros(&scratch, count, sizeof(Payload))
            scratch_texts(&scratch, &texts)
            check_memory(not scratch.failed)
            for i in range(count):
                read_payload(&rows[i], payloads[i])
            measuring.buffers = self.take_buffers()
            with nogil:
                good = self.measure_rows(rows, count, &measuring)
            for i in range(count):
                if rows[i].outcome == UNREAD:
                    if rows[i].failure < 0:
                        raise EOFError
                    raise OSError(rows[i].failure, "cannot be read")
            check_memory(good)
            return [self.make_result(&rows[i]) for i in range(count)]
        finally:
            self.recycle_buffers(measuring.buffers)
            scratch_free(&scratch)

    cdef Measured make_result(self, const Payload* payload):
        """Return the result for Python; None for a payload that is damaged."""
        cdef Content content
        cdef Measured measured
        if payload.outcome != MEASURED:
            return None
        pthread_mutex_lock(&self.lock)      # other threads may widen the table
        content = (<Content*>self.contents.data)[payload.content]
        pthread_mutex_unlock(&self.lock)
        measured = Measured.__new__(Measured)
        measured.elf_type, measured.same_as = content.type, payload.same_as
        measured.unit = measured.exact = measured.like = b""
        if content.exact.a or content.exact.b:
            measured.exact = (<const char*>&content.exact)[:sizeof(Fingerprint)]
            measured.like = (<const char*>&content.like)[:sizeof(Fingerprint)]
        if content.unit_size:
            measured.unit = (<const char*>content.unit)[:content.unit_size]
        measured.frame_size = payload.frame_size
        if payload.frame != NULL:
            measured.frame = PyBytes_FromStringAndSize(<const char*>payload.frame,
                                                       payload.frame_size)
        return measured

    cdef Buffers* take_buffers(self) except NULL:
        """Return buffers that no other thread uses. Called with the GIL, like `recycle_buffers`."""
        cdef Buffers* buffers = self.buffers
        if buffers != NULL:
            self.buffers = buffers.next
        else:
            buffers = <Buffers*>calloc(1, sizeof(Buffers))
            check_memory(buffers != NULL)
        return buffers

    cdef void recycle_buffers(self, Buffers* buffers) noexcept:
        """Keep buffers for a later call, except for large ones."""
        if buffers != NULL:
            clear_buffers(buffers, KEPT_SIZE)
            buffers.next = self.buffers
            self.buffers = buffers

    cdef bint measure_rows(self, Payload* rows, size_t count,
                           const Measuring* measuring) noexcept nogil:
        """Measure payloads, up to the first that cannot be read; False if memory is exhausted."""
        cdef size_t i
        cdef Cutting cutting
        cdef Scratch scratch
        cdef bint good = True
        for i in range(count):
            if not good or (i and rows[i - 1].outcome == UNREAD):
                break
            scratch_init(&scratch)
            start_cutting(&cutting, &scratch)
            good = not scratch.failed and self.measure_row(&rows[i], &cutting, measuring)
            scratch_free(&scratch)
        return good

    cdef bint measure_row(self, Payload* payload, Cutting* cutting,
                          const Measuring* measuring) noexcept nogil:
        """Measure one payload; False if memory is exhausted."""
        cdef const uint8_t* packed = packed_payload(payload, measuring.file, measuring.buffers)
        cdef const uint8_t* data = NULL
        cdef ContentKey key
        cdef bint good, needs_frame
        payload.same_as = -1
        if packed == NULL:
            return payload.outcome != NOT_MEASURED
        fill_key(&key, payload, packed, measuring.keep_frames, self.seed)
        pthread_mutex_lock(&self.lock)
        good = (self.find_content(&key, payload)
                and (payload.outcome == NOT_MEASURED or self.repeat_rows(payload)))
        pthread_mutex_unlock(&self.lock)
        needs_frame = payload.is_recompressed and payload.same_as < 0
        if not good or (payload.outcome == MEASURED and not needs_frame):
            return good
        data = full_payload(payload, packed, measuring.buffers)
        if data == NULL:
            return payload.outcome == DAMAGED
        if payload.outcome == NOT_MEASURED:
            if not count_payload(payload, cutting, data, full_size(payload)):
                return False
            if payload.outcome != MEASURED:
                return True
            pthread_mutex_lock(&self.lock)
            good = self.add_counted(payload, cutting)
            pthread_mutex_unlock(&self.lock)
        if not good or not needs_frame:
            return good
        if not compress_payload(payload, measuring.buffers, data, full_size(payload),
                                measuring.level):
            return False
        if measuring.keep_frames and payload.frame_size:
            payload.frame = pool_allocate(measuring.texts, payload.frame_size)
            if payload.frame == NULL:
                return False
            memcpy(payload.frame, measuring.buffers.frame.data, payload.frame_size)
        return True

    cdef bint find_content(self, const ContentKey* key, Payload* payload) noexcept nogil:
        """Find the Content (the results for equal payloads) with that key, or add one.

        Sets `outcome` to MEASURED if the contents were counted before. Contents that another thread
        is just counting are counted twice. False if memory is exhausted.
        """
        cdef uint8_t* place
        cdef Content* content
        cdef NameSlot* slot = index_find(&self.index_of_contents, <const uint8_t*>key,
                                         sizeof(ContentKey))
        if slot == NULL:
            return False
        if slot.value < 0:
            place = pool_allocate(&self.pool, sizeof(ContentKey))
            content = <Content*>vec_push(&self.contents) if place != NULL else NULL
            if content == NULL:
                return False
            memcpy(place, key, sizeof(ContentKey))
            slot.text = place
            slot.value = <int32_t>(self.contents.count - 1)
            self.index_of_contents.count += 1
            content.counted, content.framed_entry = False, -1
        payload.content = <ContentCounter>slot.value
        content = &(<Content*>self.contents.data)[payload.content]
        if content.counted:
            payload.outcome = MEASURED
        if payload.is_recompressed:
            payload.same_as = content.framed_entry
            if payload.same_as < 0:
                content.framed_entry = <int>payload.entry
                self.frames_wanted += 1
        return True

    def contents_compressed(self):
        """Return the number of different payloads that were to be compressed again."""
        return self.frames_wanted

    cdef bint repeat_rows(self, const Payload* payload) noexcept nogil:
        """Add, for an entry, the rows of an earlier one with equal contents.

        False if memory is exhausted.
        """
        cdef Content content = (<Content*>self.contents.data)[payload.content]
        cdef Shares shares
        cdef LedgerRow* row
        cdef DigestRow* digest
        cdef size_t i
        begin_shares(&shares, payload)
        for i in range(content.rows):
            row = <LedgerRow*>vec_push(&self.rows)
            if row == NULL:
                return False
            row[0] = (<LedgerRow*>self.rows.data)[content.first_row + i]
            row.entry = payload.entry
            assign_shares(row, &shares)
        for i in range(content.digests):
            digest = <DigestRow*>vec_push(&self.digests)
            if digest == NULL:
                return False
            digest[0] = (<DigestRow*>self.digests.data)[content.first_digest + i]
            digest.entry = payload.entry
        return True

    cdef bint add_counted(self, const Payload* payload, const Cutting* cutting) noexcept nogil:
        """Add the rows of an entry that was just counted, and record them for equal contents.

        False if memory is exhausted.
        """
        cdef Content* content = &(<Content*>self.contents.data)[payload.content]
        cdef LedgerCounter first_row = self.rows.count
        cdef DigestRowCounter first_digest = self.digests.count
        cdef uint8_t* unit = NULL
        if (not self.add_count_rows(payload, cutting)
                or not self.add_digest_rows(cutting, payload.entry)):
            return False
        if content.counted:         # by another thread, at the same time
            return True
        if cutting.unit.size:
            unit = pool_allocate(&self.pool, cutting.unit.size)
            if unit == NULL:
                return False
            memcpy(unit, cutting.unit.data, cutting.unit.size)
        content.unit, content.unit_size = unit, cutting.unit.size
        content.first_row, content.rows = first_row, self.rows.count - first_row
        content.first_digest = first_digest
        content.digests = self.digests.count - first_digest
        content.type, content.exact, content.like = cutting.type, cutting.exact, cutting.like
        content.counted = True
        return True

    cdef bint add_count_rows(self, const Payload* payload, const Cutting* cutting) noexcept nogil:
        """Add the payload's bytes by function and part; False if memory is exhausted."""
        cdef const uint64_t* counts = <const uint64_t*>cutting.counts.data
        cdef uint64_t owner, part
        cdef LedgerFunctionRef function
        cdef LedgerRow* row
        cdef Shares shares
        begin_shares(&shares, payload)
        for owner in range(cutting.counts.count):
            function = 0
            for part in range(PARTS):
                if counts[owner * PARTS + part] == 0:
                    continue
                if owner and function == 0:
                    function = self.number_function(
                        &(<const Text*>cutting.functions.data)[owner - 1])
                    if function == 0:
                        return False
                row = <LedgerRow*>vec_push(&self.rows)
                if row == NULL:
                    return False
                row.entry, row.function, row.part = payload.entry, function, <uint32_t>part
                row.unpacked = <uint32_t>counts[owner * PARTS + part]
                assign_shares(row, &shares)
        return True

    cdef bint add_digest_rows(self, const Cutting* cutting, LedgerEntryRef entry) noexcept nogil:
        """Add the digests of an entry's functions and data; False if memory is exhausted."""
        cdef const Digest* digests = <const Digest*>cutting.digests.data
        cdef const Text* functions = <const Text*>cutting.functions.data
        cdef DigestRow* row
        cdef uint64_t i
        for i in range(cutting.digests.count):
            row = <DigestRow*>vec_push(&self.digests)
            if row == NULL:
                return False
            row.entry, row.size, row.contents = entry, digests[i].size, digests[i].contents
            row.function = 0
            if digests[i].owner:
                row.function = self.number_function(&functions[digests[i].owner - 1])
                if row.function == 0:
                    return False
        return True

    def repeats(self, bytes entry_groups not None):
        """List functions and data of linked cubins that an earlier entry of their group also has.

        `entry_groups` has the group of each entry, an int32; negative ones do not count.
        """
        cdef const int32_t* entries = <const int32_t*>PyBytes_AS_STRING(entry_groups)
        cdef uint64_t entry_count = <uint64_t>PyBytes_GET_SIZE(entry_groups) // 4
        cdef const DigestRow* rows = <const DigestRow*>self.digests.data
        cdef uint64_t i
        cdef Repeat copy
        cdef dict first = {}        # by group, function, size and fingerprint: first entry
        cdef list copies = []
        for i in range(self.digests.count):
            if rows[i].entry >= entry_count or entries[rows[i].entry] < 0:
                continue
            key = (entries[rows[i].entry], rows[i].function, rows[i].size, rows[i].contents.a,
                   rows[i].contents.b)
            if first.setdefault(key, rows[i].entry) != rows[i].entry:
                copy = Repeat.__new__(Repeat)
                copy.entry_group, copy.function = entries[rows[i].entry], rows[i].function
                copy.entry, copy.size = rows[i].entry, rows[i].size
                copies.append(copy)
        return copies

    cdef LedgerFunctionRef number_function(self, const Text* name) noexcept nogil:
        """Return the number of a function in the ledger, which is added if it is new.

        0 if memory is exhausted.
        """
        cdef NameSlot* slot = index_find(&self.index, name.data, name.size)
        cdef Text* text
        cdef uint8_t* place
        if slot == NULL:
            return 0
        if slot.value < 0:
            place = pool_allocate(&self.pool, name.size)
            text = <Text*>vec_push(&self.names) if place != NULL else NULL
            if text == NULL:
                return 0
            memcpy(place, name.data, name.size)
            text.data, text.size = place, name.size
            slot.text = place
            slot.value = <int32_t>self.names.count
            self.index.count += 1
        return <LedgerFunctionRef>slot.value

    def functions(self):
        """Return the names of functions by number; that of 0, bytes of no function, is empty."""
        cdef const Text* text = <const Text*>self.names.data
        cdef size_t i
        cdef list names = [b""]
        for i in range(self.names.count):
            names.append(PyBytes_FromStringAndSize(<const char*>text[i].data, text[i].size))
        return names

    def sums(self, bytes entry_groups not None, bytes function_groups not None, *, bint by_part):
        """Return the sums of rows by group of entries and of functions, in any order."""
        cdef Grouping grouping
        cdef SumTable table
        cdef const SumCell* cell
        cdef Sum row
        cdef uint64_t i
        cdef list sums = []
        grouping.entries = <const int32_t*>PyBytes_AS_STRING(entry_groups)
        grouping.entry_count = <uint64_t>PyBytes_GET_SIZE(entry_groups) // 4
        grouping.functions = <const int32_t*>PyBytes_AS_STRING(function_groups)
        grouping.function_count = <uint64_t>PyBytes_GET_SIZE(function_groups) // 4
        grouping.by_part = by_part
        scratch_init(&table.scratch)
        try:
            with nogil:
                start_table(&table, 1023)
                add_rows(&table, &grouping, <const LedgerRow*>self.rows.data, self.rows.count)
            check_memory(not table.scratch.failed)
            for i in range(table.mask + 1):
                cell = &table.cells[i]
                if cell.key:
                    row = Sum.__new__(Sum)
                    row.entry_group, row.function_group = (entry_group(cell.key),
                                                           function_group(cell.key))
                    row.part, row.rows = part_of_key(cell.key, &grouping), cell.rows
                    row.unpacked, row.installed = cell.unpacked, cell.installed
                    row.download = cell.download
                    sums.append(row)
            return sums
        finally:
            scratch_free(&table.scratch)
