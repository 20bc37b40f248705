# Payloads, i.e. contents of entries of fat binaries, measured without the GIL: read, decompressed,
# counted, compressed again. Each thread has buffers for that, which serve one payload after the
# other: allocating memory for each would take as long as counting it.

from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.blocks cimport block_free, block_widen
from base.posix cimport c_pread
from inputs.codecs cimport decompress
from inputs.compression cimport frame_room, make_frame
from picknumbers cimport CODEC_ZSTD_FRAME, ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX
from size.cubincut cimport cut_cubin
from size.cutting cimport SHARED, Cutting, count_bytes
from size.digests cimport Fingerprint, absorb
from size.ptxcut cimport cut_ptx
from sizenumbers cimport PART_LTOIR, PART_OTHER

cdef enum:
    KEPT_SIZE = 1 << 20         # bytes of the largest buffer that is kept for later payloads

# The outcome of measuring a payload.
cdef enum Outcome:
    NOT_MEASURED = 0
    MEASURED = 1
    DAMAGED = 2                 # it cannot be decompressed, or is not a cubin as its entry says
    UNREAD = 3                  # it cannot be read; `failure` says why

# Numbers, from 0: LedgerEntryRef of an entry whose payload a ledger counts, LedgerCounter of a
# LedgerRow, DigestRowCounter of a DigestRow, ContentCounter of a Content.
ctypedef uint32_t LedgerEntryRef
ctypedef size_t LedgerCounter
ctypedef size_t DigestRowCounter
ctypedef size_t ContentCounter

# The payload of an entry, as it lies in the file, and the results of measuring it.
ctypedef struct Payload:
    const uint8_t* data         # its bytes; NULL: they are at `offset` of the file
    uint64_t offset
    uint64_t packed             # bytes that it has in the file
    uint64_t full               # bytes after decompression; unused if it is not compressed
    uint64_t installed          # bytes of its entry in the file, without the entry's header
    uint64_t download           # the same, in the wheel or other archive that has the file
    LedgerEntryRef entry        # number of its entry in the ledger
    int codec                   # a CODEC_ number
    int kind                    # an ENTRY_ number
    bint is_recompressed        # it is to be compressed again
    # Results of the measurement:
    Outcome outcome
    int failure                 # an errno, or -1 if the file ends before the payload does
    ContentCounter content      # its Content
    int same_as                 # entry with equal contents, which is compressed instead; or -1
    uint64_t frame_size         # bytes of the payload compressed again, its frame; 0: none
    uint8_t* frame              # the bytes of that frame, if they are kept, or NULL

# Memory for one of the uses in Buffers. It grows as payloads need it.
ctypedef struct Buffer:
    uint8_t* data               # NULL: not allocated
    uint64_t size               # bytes

# Buffers of a thread, for one payload after the other. A frame is a payload compressed as zstd.
ctypedef struct Buffers:
    Buffer packed               # bytes as they are in the file
    Buffer full                 # the decompressed payload
    Buffer frame                # the payload compressed again
    Buffer unpacked             # the frame decompressed, to compare
    Buffers* next               # the next in a list of buffers that no thread uses


cdef inline void clear_buffer(Buffer* buffer) noexcept nogil:
    """Free the memory of a buffer."""
    if buffer.data != NULL:
        block_free(buffer.data, buffer.size)
    buffer.data, buffer.size = NULL, 0


cdef inline void clear_buffers(Buffers* buffers, uint64_t limit) noexcept nogil:
    """Free the buffers that have more than `limit` bytes."""
    cdef Buffer** buffer_of = [&buffers.packed, &buffers.full, &buffers.frame, &buffers.unpacked]
    cdef int i
    for i in range(4):
        if buffer_of[i].size > limit:
            clear_buffer(buffer_of[i])


cdef inline uint8_t* buffer_for(Buffer* buffer, uint64_t size) noexcept nogil:
    """Return room for `size` bytes in a buffer; NULL if memory is exhausted.

    If the buffer must grow, its contents are lost.
    """
    size += 8                   # 0 bytes are allocated, too, so that NULL is always a failure
    if buffer.size < size:
        clear_buffer(buffer)
        if size < KEPT_SIZE:
            size += size // 4
        buffer.data = <uint8_t*>block_widen(NULL, 0, size)
        buffer.size = size if buffer.data != NULL else 0
    return buffer.data


cdef inline int read_packed(const Payload* payload, int file, uint8_t* place) noexcept nogil:
    """Read the payload's bytes to `place`, from the descriptor `file`.

    Returns 0, or an errno, or -1 if the file ends too early.
    """
    cdef uint64_t done = 0
    cdef ssize_t count
    while done < payload.packed:
        count = c_pread(file, place + done, payload.packed - done, <int64_t>(payload.offset + done))
        if count == 0:
            return -1
        if count > 0:
            done += <uint64_t>count
        elif errno != EINTR:
            return errno
    return 0


cdef inline const uint8_t* packed_payload(Payload* payload, int file,
                                          Buffers* buffers) noexcept nogil:
    """Return the payload's bytes as stored in the file, whose descriptor is `file`.

    NULL if memory is exhausted, or if reading fails: then `outcome` is UNREAD.
    """
    cdef uint8_t* buffer
    if payload.data != NULL:
        return payload.data
    buffer = buffer_for(&buffers.packed, payload.packed)
    if buffer == NULL:
        return NULL
    payload.failure = read_packed(payload, file, buffer)
    if payload.failure != 0:
        payload.outcome = UNREAD
        return NULL
    return buffer


cdef inline const uint8_t* full_payload(Payload* payload, const uint8_t* packed,
                                        Buffers* buffers) noexcept nogil:
    """Return the `full_size(payload)` bytes of the decompressed payload.

    NULL if memory is exhausted, or if the payload cannot be decompressed: then `outcome` is
    DAMAGED.
    """
    cdef uint8_t* buffer
    if payload.codec == 0:
        return packed
    buffer = buffer_for(&buffers.full, payload.full)
    if buffer == NULL:
        return NULL
    if not decompress(payload.codec, packed, payload.packed, buffer, payload.full):
        payload.outcome = DAMAGED
        return NULL
    return buffer


cdef inline uint64_t full_size(const Payload* payload) noexcept nogil:
    """Return the size of the decompressed payload."""
    return payload.full if payload.codec else payload.packed


cdef inline bint count_payload(Payload* payload, Cutting* cutting, const uint8_t* data,
                               uint64_t size) noexcept nogil:
    """Count a payload's bytes and set its `outcome`; False if memory is exhausted."""
    if payload.kind == ENTRY_ELF:
        if not cut_cubin(cutting, data, size):
            return False
    elif payload.kind == ENTRY_PTX:
        if not cut_ptx(cutting, data, size):
            return False
    else:
        count_bytes(cutting, SHARED, PART_LTOIR if payload.kind == ENTRY_LTOIR else PART_OTHER,
                    size)
    payload.outcome = DAMAGED if cutting.is_damaged else MEASURED
    return True


cdef inline bint compress_payload(Payload* payload, Buffers* buffers, const uint8_t* data,
                                  uint64_t size, int level) noexcept nogil:
    """Compress a payload to a Zstandard frame in `buffers.frame`, and set `frame_size`.

    `frame_size` stays 0 if no library compresses, if compression fails, or if decompressing the
    frame does not return the same bytes. False if memory is exhausted.
    """
    cdef uint64_t limit = frame_room(size), frame_size
    cdef uint8_t* unpacked
    cdef uint8_t* frame
    if limit == 0:
        return True             # no library that compresses was found
    frame, unpacked = buffer_for(&buffers.frame, limit), buffer_for(&buffers.unpacked, size)
    if frame == NULL or unpacked == NULL:
        return False
    frame_size = make_frame(data, size, frame, limit, level)
    if (frame_size != 0 and decompress(CODEC_ZSTD_FRAME, frame, frame_size, unpacked, size)
            and memcmp(data, unpacked, size) == 0):
        payload.frame_size = frame_size
    return True


# The key by which payloads with equal results are found: their bytes in the file, how these are
# compressed, the kind of their entry, and whether the frame made of them is kept.
cdef packed struct ContentKey:
    Fingerprint contents        # fingerprint of the payload's bytes in the file
    uint64_t packed             # these fields are those of the Payload
    uint64_t full
    int32_t codec
    int32_t kind
    int32_t keeps_frame

# The results for a payload, which also hold for later ones with equal bytes.
ctypedef struct Content:
    bint counted                    # the fields from `first_row` on are set
    int framed_entry                # the entry for which a frame is made, or -1
    LedgerCounter first_row         # its LedgerRows: number of the first, and their count
    size_t rows
    DigestRowCounter first_digest   # its DigestRows: number of the first, and their count
    size_t digests
    # Fields of Cutting with these names have the same.
    uint32_t type
    const uint8_t* unit             # a copy of its bytes in the ledger, or NULL
    uint32_t unit_size
    Fingerprint exact
    Fingerprint like


cdef inline void fill_key(ContentKey* key, const Payload* payload, const uint8_t* packed,
                          bint keeps_frame, Fingerprint seed) noexcept nogil:
    """Fill the key; a random seed keeps anybody from making files that collide."""
    key.contents = seed
    absorb(&key.contents, packed, payload.packed)
    key.packed, key.full = payload.packed, payload.full
    key.codec, key.kind, key.keeps_frame = payload.codec, payload.kind, keeps_frame
