# Picks: what a link takes from its sources, which are inputs and members of archives. Each cubin,
# PTX text or LTO-IR module has a row, in the order of sources. `fatbin.pyx` makes the rows, and
# `gather` of `payloads.pyx` puts the cubins into an arena.

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
    uint64_t header             # offset of the entry, or of a whole source
    uint64_t offset             # offset of the payload
    uint64_t room               # bytes of the payload with its padding; 0 of a whole source
    uint64_t size               # bytes of the payload; without padding if the entry says it
    uint64_t full_size          # bytes of the payload after it is decompressed or copied
