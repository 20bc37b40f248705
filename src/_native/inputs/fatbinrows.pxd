# Fat binaries as they lie in a file (docs/inputs.md), and the rows of what is found in them.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

# The header of a container, and of an entry in it, as they lie in a file.
cdef packed struct FatbinContainer:
    uint32_t magic
    uint16_t version
    uint16_t header_size
    uint64_t size               # bytes after the header

cdef packed struct FatbinEntry:
    uint16_t kind
    uint16_t version
    uint32_t header_size
    uint64_t size               # bytes of the payload with its padding
    uint32_t compressed_size    # bytes of a compressed payload without padding, or 0
    uint32_t options
    uint16_t minor
    uint16_t major
    uint32_t sm
    uint32_t name
    uint32_t name_size
    uint64_t flags
    uint64_t hash
    uint64_t full_size          # bytes of the decompressed payload

# One entry. Offsets are in the arena, in bytes.
cdef packed struct EntryRow:
    uint32_t source             # number of the source
    uint32_t container          # number in the source
    uint32_t index              # number in the source, counted through all containers
    uint32_t kind
    uint32_t sm
    uint32_t header_size
    uint64_t flags
    uint64_t offset             # offset of the header
    uint64_t size               # bytes of the payload with its padding
    uint64_t packed_size        # bytes without padding if the entry says, otherwise `size`
    uint64_t full_size          # bytes when it is decompressed; 0 when it is not compressed

# A range of the arena.
cdef packed struct ByteRange:
    uint64_t offset
    uint64_t size

# One source, without its entries. A section whose offset is 0 does not exist.
cdef packed struct SourceRow:
    uint64_t containers         # number of them
    ByteRange module            # __nv_module_id
    ByteRange kernels[2]        # names of external ones, of internal ones: .nvHRKE, .nvHRKI
    ByteRange variables[4]      # of device variables: .nvHRDE, .nvHRDI; constants: .nvHRCE, .nvHRCI
    uint64_t machine            # e_machine of a host file with containers

# Damage in a source, of which nothing is picked then.
cdef packed struct FaultRow:
    uint32_t source             # number of the source
    int32_t index               # number of the entry in the source, or -1
    uint64_t reason             # a FatbinFault
    uint64_t value              # the number that is wrong
    uint64_t limit              # what `value` should be, or must not exceed
