# Payloads of entries, measured without the interpreter: read, decompressed, counted, compressed
# again. Each thread has rooms for that, which serve one payload after the other: new memory for
# each would cost as much as counting it.

from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.blocks cimport block_free, block_widen
from inputs.codecs cimport decompress
from inputs.compression cimport frame_room, make_frame
from picknumbers cimport CODEC_ZSTD_FRAME, ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX
from size.cubincut cimport cut_cubin
from size.cutting cimport PART_LTOIR, PART_OTHER, SHARED, Cutting, count_bytes
from size.digests cimport Fingerprint, absorb
from size.ptxcut cimport cut_ptx

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int file, void* place, size_t size, int64_t offset)

cdef enum:
    KEPT_ROOM = 1 << 20         # bytes up to which a room stays for the next payloads

# The outcome of measuring a payload.
cdef enum Outcome:
    NOT_MEASURED = 0
    MEASURED = 1
    DAMAGED = 2
    UNREAD = 3                  # `failure` says why

ctypedef struct Payload:
    const uint8_t* data         # packed; NULL: at `offset` of the file
    uint64_t offset
    uint64_t packed
    uint64_t full               # bytes that it becomes
    uint64_t installed
    uint64_t download
    uint32_t entry
    int codec
    int kind
    bint compressed             # to be compressed again
    # Results of the measurement:
    Outcome outcome
    int failure                 # an errno, or -1: the file ends before
    size_t content              # number of its Content
    int same                    # the entry that has the frame, since its contents are equal; or -1
    uint64_t frame_size         # 0: none was made
    uint8_t* frame              # its compressed bytes, or NULL

ctypedef struct Room:
    uint8_t* data
    uint64_t size

ctypedef struct Rooms:
    Room packed
    Room full
    Room frame
    Room again                  # what a frame becomes
    Rooms* next                 # that no thread uses


cdef inline void clear_room(Room* room) noexcept nogil:
    if room.data != NULL:
        block_free(room.data, room.size)
    room.data, room.size = NULL, 0


cdef inline void clear_rooms(Rooms* rooms, uint64_t most) noexcept nogil:
    """Free the rooms that have more than `most` bytes."""
    cdef Room** each = [&rooms.packed, &rooms.full, &rooms.frame, &rooms.again]
    cdef int i
    for i in range(4):
        if each[i].size > most:
            clear_room(each[i])


cdef inline uint8_t* room_for(Room* room, uint64_t size) noexcept nogil:
    """A place for `size` bytes, without what was there; NULL without memory."""
    size += 8                   # never none
    if room.size < size:
        clear_room(room)
        if size < KEPT_ROOM:
            size += size // 4
        room.data = <uint8_t*>block_widen(NULL, 0, size)
        room.size = size if room.data != NULL else 0
    return room.data


cdef inline int read_packed(const Payload* payload, int file, uint8_t* place) noexcept nogil:
    """0, an errno, or -1 where the file ends before."""
    cdef uint64_t done = 0
    cdef ssize_t got
    while done < payload.packed:
        got = pread(file, place + done, payload.packed - done, <int64_t>(payload.offset + done))
        if got == 0:
            return -1
        if got > 0:
            done += <uint64_t>got
        elif errno != EINTR:
            return errno
    return 0


cdef inline const uint8_t* packed_payload(Payload* payload, int file, Rooms* rooms) noexcept nogil:
    """The payload's bytes as stored in the file; NULL without memory, or with an outcome."""
    cdef uint8_t* room
    if payload.data != NULL:
        return payload.data
    room = room_for(&rooms.packed, payload.packed)
    if room == NULL:
        return NULL
    payload.failure = read_packed(payload, file, room)
    if payload.failure != 0:
        payload.outcome = UNREAD
        return NULL
    return room


cdef inline const uint8_t* full_payload(Payload* payload, const uint8_t* packed,
                                        Rooms* rooms) noexcept nogil:
    """The payload's `full_size(payload)` bytes; NULL without memory, or with an outcome."""
    cdef uint8_t* room
    if payload.codec == 0:
        return packed
    room = room_for(&rooms.full, payload.full)
    if room == NULL:
        return NULL
    if not decompress(payload.codec, packed, payload.packed, room, payload.full):
        payload.outcome = DAMAGED
        return NULL
    return room


cdef inline uint64_t full_size(const Payload* p) noexcept nogil:
    return p.full if p.codec else p.packed


cdef inline bint count_payload(Payload* payload, Cutting* cutting, const uint8_t* data,
                               uint64_t size) noexcept nogil:
    """Count its bytes by part and function; False without memory."""
    if payload.kind == ENTRY_ELF:
        if not cut_cubin(cutting, data, size):
            return False
    elif payload.kind == ENTRY_PTX:
        if not cut_ptx(cutting, data, size):
            return False
    else:
        count_bytes(cutting, SHARED, PART_LTOIR if payload.kind == ENTRY_LTOIR else PART_OTHER,
                    size)
    payload.outcome = DAMAGED if cutting.bad else MEASURED
    return True


cdef inline bint compress_payload(Payload* payload, Rooms* rooms, const uint8_t* data,
                                  uint64_t size, int level) noexcept nogil:
    """Make a frame of it that becomes the same bytes again, if that can be; False without memory.

    The frame is in the room of frames.
    """
    cdef uint64_t most = frame_room(size), frame_size
    cdef uint8_t* again
    cdef uint8_t* frame
    if most == 0:
        return True             # there is no library
    frame, again = room_for(&rooms.frame, most), room_for(&rooms.again, size)
    if frame == NULL or again == NULL:
        return False
    frame_size = make_frame(data, size, frame, most, level)
    if (frame_size != 0 and decompress(CODEC_ZSTD_FRAME, frame, frame_size, again, size)
            and memcmp(data, again, size) == 0):
        payload.frame_size = frame_size
    return True


# The key that tells payloads apart: their bytes in the file, and how those are used.
cdef packed struct ContentKey:
    Fingerprint contents
    uint64_t packed
    uint64_t full
    int32_t codec
    int32_t kind
    int32_t kept

# The results for a payload, kept for the next one with the same bytes.
ctypedef struct Content:
    bint counted
    int compressed              # the entry whose frame is made, or -1
    size_t first_row            # in the ledger
    size_t rows
    size_t first_digest
    size_t digests
    uint32_t type
    const uint8_t* unit
    uint32_t unit_size
    Fingerprint exact
    Fingerprint like


cdef inline void fill_key(ContentKey* key, const Payload* payload, const uint8_t* packed, bint kept,
                          Fingerprint seed) noexcept nogil:
    """Fill the key, seeded so that files cannot be made to collide."""
    key.contents = seed
    absorb(&key.contents, packed, payload.packed)
    key.packed, key.full = payload.packed, payload.full
    key.codec, key.kind, key.kept = payload.codec, payload.kind, kept
