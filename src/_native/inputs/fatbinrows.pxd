# Fat binaries as they lie in a file (docs/inputs.md), and the rows of what is found in them.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

# The header of a container as it lies in a file.
cdef packed struct FatbinContainer:
    uint32_t magic
    uint16_t version
    uint16_t header_size
    uint64_t size               # bytes after the header

# The header of an entry in a container, as it lies in a file; its payload follows.
cdef packed struct FatbinEntry:
    uint16_t kind               # an EntryKind: PTX, cubin, LTO-IR
    uint16_t version
    uint32_t header_size
    uint64_t size               # bytes of the payload with its padding
    uint32_t compressed_size    # bytes of a compressed payload without padding, or 0
    uint32_t options            # offset in the header of further data, as options for ptxas; or 0
    uint16_t minor              # version of the code, with `major`
    uint16_t major
    uint32_t sm                 # SM number
    uint32_t name               # offset of a name
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
    uint64_t packed_size        # bytes without padding if a compressed entry says, otherwise `size`
    uint64_t full_size          # bytes when it is decompressed; 0 when it is not compressed

# A range of the arena.
cdef packed struct ByteRange:
    uint64_t offset
    uint64_t size

# One source, without its entries. A section whose offset is 0 does not exist.
cdef packed struct SourceRow:
    uint64_t containers         # number of them
    ByteRange module            # __nv_module_id
    ByteRange kernels[2]        # names of external kernels: .nvHRKE; of internal ones: .nvHRKI
    # Names of device variables: .nvHRDE, .nvHRDI; of constants: .nvHRCE, .nvHRCI.
    ByteRange variables[4]
    uint64_t machine            # e_machine of a host file with containers

# Damage in a source. Nothing is picked from a damaged source.
cdef packed struct FaultRow:
    uint32_t source             # number of the source
    int32_t index               # number of the entry in the source, or -1
    uint64_t reason             # a FatbinFault
    uint64_t value              # the number that is wrong, or the index of the wrong section
    uint64_t limit              # what `value` should be, the most or the least (inputs/damage.py)
