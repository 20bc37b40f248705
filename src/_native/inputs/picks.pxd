# Picks: what a link takes from its sources. A row for each cubin, PTX text or LTO-IR module, in the
# order of sources. `fatbin` makes them, `payloads.gather` puts the cubins into an arena.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

# Offsets and sizes are bytes of the arena with the number `arena`; if that is -1, the caller has
# the bytes. Numbers of codecs and so on are in pylink/facts/picknumbers.py.
cdef packed struct PickRow:
    uint32_t source             # number of the source
    int32_t arena
    uint32_t container          # number in the source
    uint32_t index              # number of the entry in the source
    uint32_t sm                 # SM number of the entry
    uint8_t kind                # an InputKind
    uint8_t codec               # a CODEC_ number
    uint8_t state               # PICK_GOOD, or why it cannot be linked
    uint8_t embedded            # an ORIGIN_ number: the container that it is in
    uint64_t flags              # flags of the entry
    uint64_t header             # offset of the entry
    uint64_t offset             # offset of the payload
    uint64_t room               # bytes of the payload with its padding
    uint64_t size               # bytes of the payload without padding
    uint64_t full_size          # bytes of the payload when it is decompressed
