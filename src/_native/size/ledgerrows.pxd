# Rows of a ledger: bytes of an entry by part and function, and digests of functions.

from libc.stdint cimport uint32_t, uint64_t

from size.digests cimport Fingerprint
from size.payloads cimport LedgerEntryRef, Payload, full_size

# The number of a function in the ledger, from 1; 0 for none. Its number in a cubin is an OwnerRef.
ctypedef uint32_t LedgerFunctionRef

# One entry's bytes of one part and function. Sizes of an entry have 32 bits.
cdef packed struct LedgerRow:
    LedgerEntryRef entry
    LedgerFunctionRef function      # 0: bytes that no function owns
    uint32_t part                   # a Part
    uint32_t unpacked               # bytes of the decompressed payload
    uint32_t installed              # their share of the entry's bytes in the file
    uint32_t download               # their share of the entry's bytes in the wheel or other archive

# The fingerprint of the contents of a function, or of initialized data, of one linked cubin.
cdef packed struct DigestRow:
    LedgerEntryRef entry
    LedgerFunctionRef function      # 0: data
    uint64_t size                   # bytes of the code or data
    Fingerprint contents

# Bytes of an entry in the file and in the archive. The rows of the entry share them in proportion
# to their decompressed bytes.
ctypedef struct Shares:
    uint64_t size               # bytes of the decompressed payload
    uint64_t installed          # bytes of the entry in the file, without the entry's header
    uint64_t download           # the same in the wheel or other archive that has the file
    # Sums of the rows so far:
    uint64_t unpacked
    uint64_t installed_before
    uint64_t download_before


cdef inline void begin_shares(Shares* shares, const Payload* payload) noexcept nogil:
    """Set the bytes that the rows of a payload share, and start their sums at 0."""
    shares.size, shares.installed = full_size(payload), payload.installed
    shares.download = payload.download
    shares.unpacked = shares.installed_before = shares.download_before = 0


cdef inline void assign_shares(LedgerRow* row, Shares* shares) noexcept nogil:
    """Set the shares of the next row, as differences of rounded sums, so that no byte is lost."""
    cdef uint64_t installed, download
    shares.unpacked += row.unpacked
    installed = shares.unpacked * shares.installed // shares.size      # both below 2 ** 32
    download = shares.unpacked * shares.download // shares.size
    row.installed = <uint32_t>(installed - shares.installed_before)
    row.download = <uint32_t>(download - shares.download_before)
    shares.installed_before, shares.download_before = installed, download
