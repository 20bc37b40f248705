# What a link takes of its sources: a row for each cubin, PTX text or LTO-IR module, in order.
# `fatbin` makes them, `inputfiles.gather` puts the cubins into an arena.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

# How a payload is compressed, as in pylink/inputs/payload.py; `codecs.pxd` has the same numbers.
cdef enum Codec:
    STORED = 0
    LZ4_BLOCK = 1
    ZSTD_FRAME = 2

cdef enum PickState:
    P_GOOD = 0
    P_BOTH_CODECS = 1           # marked as both LZ4 and Zstandard
    P_TOO_LARGE = 2             # more than a link may decompress

# What a pick was an entry of.
cdef enum Embedded:
    E_FILE = 0                  # none: it is the source as it stands
    E_ALONE = 1                 # a fat binary that is a file
    E_HOSTED = 2                # one in host code

# Offsets are in the arena with the number `arena`; if that is -1, the caller has the bytes.
cdef packed struct PickRow:
    uint32_t source
    int32_t arena
    uint32_t container          # number in the source
    uint32_t index              # number of the entry in the source
    uint32_t sm                 # SM number of the entry
    uint8_t kind                # an InputKind
    uint8_t codec
    uint8_t state
    uint8_t embedded
    uint64_t flags              # flags of the entry
    uint64_t header             # offset of the entry
    uint64_t offset             # offset of the payload
    uint64_t room               # bytes of the payload with its padding
    uint64_t size               # without
    uint64_t full_size          # what it becomes
