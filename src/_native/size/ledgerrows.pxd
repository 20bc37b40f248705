# Rows of a ledger: bytes of an entry by part and function, and digests of functions.

from libc.stdint cimport uint32_t, uint64_t

from size.digests cimport Fingerprint
from size.payloads cimport Payload, full_size

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

# Bytes of an entry in the file and in the archive, which its rows share in proportion to their own.
ctypedef struct Shares:
    uint64_t size
    uint64_t installed
    uint64_t download
    uint64_t unpacked           # of the rows before
    uint64_t installed_before
    uint64_t download_before


cdef inline void begin_shares(Shares* s, const Payload* p) noexcept nogil:
    s.size, s.installed, s.download = full_size(p), p.installed, p.download
    s.unpacked = s.installed_before = s.download_before = 0


cdef inline void assign_shares(LedgerRow* row, Shares* s) noexcept nogil:
    """By running sums: no byte is lost to rounding."""
    cdef uint64_t installed, download
    s.unpacked += row.unpacked
    installed = s.unpacked * s.installed // s.size      # both below 2 ** 32
    download = s.unpacked * s.download // s.size
    row.installed = <uint32_t>(installed - s.installed_before)
    row.download = <uint32_t>(download - s.download_before)
    s.installed_before, s.download_before = installed, download
