# Input files mapped into an arena instead of copied: a large link mostly waits for new memory
# (`base/hugepages.pxd`), and the page cache already holds these bytes.
#
# A file that changes would change under the link, and one that becomes shorter would end the
# process. So a file is mapped only under a read lease (fcntl(2), "Leases"): whoever opens it to
# write waits until the lease ends, or for 45 s at most. The mapping keeps the lease, since it keeps
# the open file. The kernel refuses a lease on a file that is open for writing, and not every file
# system has leases; such files are read.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from base.elf64 cimport Ehdr, round_up
from base.hugepages cimport PAGE
from base.posix cimport c_pread
from base.threads cimport run_each
from elfnumbers cimport ET_REL
from inputkinds cimport IN_CUBIN, IN_HOST
from read.filekinds cimport input_kind

cdef extern from "inputs/filemapping.h":
    const int MOST_MAPPED "PYLINK_MOST_MAPPED"  # most files that a process has mapped at a time
    ctypedef struct MappedRow "pylink_mapped":
        uint64_t offset         # in the arena, in bytes
        uint64_t size           # bytes; 0: the file is not mapped
    bint map_file "pylink_map_file"(int file, void* place, uint64_t size, uint64_t* seen_keys,
                                    MappedRow* row) noexcept nogil
    void begin_mapping "pylink_begin_mapping"() noexcept nogil
    void allow_forks "pylink_allow_forks"() noexcept nogil
    void share_pages "pylink_share_pages"(void* place, uint64_t size, bint shared) noexcept nogil
    bint fetch_pages "pylink_fetch_pages"(void* place, uint64_t size) noexcept nogil
    void drop_pages "pylink_drop_pages"(void* place, uint64_t size) noexcept nogil
    bint was_written "pylink_was_written"(const char* path, const MappedRow* row) noexcept nogil
    bint unmap_files "pylink_unmap_files"(void* place, uint64_t size) noexcept nogil
    int64_t count_mapped "pylink_count_mapped"(int64_t more) noexcept nogil
    bint copy_mapped "pylink_copy_mapped"(void* place, uint64_t size) noexcept nogil

cdef enum:
    # Shortest time in ns that a lease lasts when another process wants to write to the file
    # (fs.lease-break-time is in whole seconds).
    LEASE_LASTS = 1000000000
    # Bytes of the smallest file that is mapped: a smaller one is copied as fast.
    WORTH_MAPPING = 32 << 10
    # Files are mapped only if all inputs together have so many bytes: a smaller link gains nothing.
    ALL_WORTH_MAPPING = 4 << 20
    # Bytes that are copied at a time when mappings end; each copy stays a mapping of its own.
    COPIED = 32 << 20
    DROPPED = 4 << 20           # bytes whose pages are given up at a time
    # Number of keys of files that `map_file` remembers: one for each value of a key's highest 12
    # bits. So it maps a file once, even if several inputs are links to it, unless keys collide.
    SEEN_KEYS = 1 << 12


cdef inline bint is_mappable(const Ehdr* head, bint hosts) noexcept nogil:
    """Return whether `head` begins a cubin or, if `hosts` is set, an object of the host."""
    cdef uint8_t kind = input_kind(<const uint8_t*>head, sizeof(Ehdr))
    return kind == IN_CUBIN or (hosts and kind == IN_HOST and head.e_type == ET_REL)


cdef inline bint map_input_file(int file, bint hosts, uint8_t* place, uint64_t size,
                                uint64_t* seen_keys, MappedRow* row) noexcept nogil:
    """Map an open file to `place` if it is a cubin or, with `hosts`, an object of the host.

    Returns whether it is mapped. Files of other kinds are read instead, since unpacking one may
    take longer than a lease lasts.
    """
    cdef Ehdr head
    return (c_pread(file, &head, sizeof(Ehdr), 0) == sizeof(Ehdr) and is_mappable(&head, hosts)
            and map_file(file, place, size, seen_keys, row))


cdef inline void unmap_unreadable(uint8_t* base, MappedRow* row, size_t count) noexcept nogil:
    """Unmap each file some of whose pages the kernel cannot provide, so that it is read instead."""
    cdef uint8_t* place
    cdef uint64_t size
    cdef size_t i
    for i in range(count):
        place = base + row[i].offset
        size = round_up(row[i].size, PAGE)
        if size and not fetch_pages(place, size) and unmap_files(place, size):
            count_mapped(-1)
            row[i].size = 0


cdef inline uint8_t* mapped_part(uint8_t* base, const MappedRow* row, size_t count,
                                 uint64_t* size) noexcept nogil:
    """Return the start of the first mapped file; NULL when none is mapped.

    `size` becomes the bytes from there to the end of the last mapped file's pages.
    """
    cdef uint8_t* first = NULL
    cdef size_t i
    for i in range(count):
        if row[i].size:
            if first == NULL:
                first = base + row[i].offset
            size[0] = base + row[i].offset + round_up(row[i].size, PAGE) - first
    return first


# The part of an arena, from the first mapped file to the last, whose pages are given up.
ctypedef struct Dropping:
    uint8_t* start
    uint64_t size


cdef inline void drop_part(void* context, size_t item) noexcept nogil:
    """Give up the pages of piece number `item`, of DROPPED bytes; a task of `run_each`."""
    cdef Dropping* dropping = <Dropping*>context
    drop_pages(dropping.start + item * DROPPED,
               min(<uint64_t>DROPPED, dropping.size - item * DROPPED))


cdef inline bint end_files(uint8_t* base, const MappedRow* row, size_t count,
                           bint keeps) noexcept nogil:
    """End all mappings: copies take the places of the files or, without `keeps`, zeros do.

    Returns False if some files stay mapped.
    """
    cdef uint64_t size = 0, offset = 0
    cdef uint8_t* first = mapped_part(base, row, count, &size)
    cdef Dropping dropping
    cdef size_t i
    cdef bint ended = True
    for i in range(count):
        if row[i].size:
            count_mapped(-1)
    if not keeps:
        if first == NULL:
            return True
        dropping.start, dropping.size = first, size
        run_each(drop_part, &dropping, (size + DROPPED - 1) // DROPPED, size)
        return unmap_files(first, size)
    while offset < size:
        ended = copy_mapped(first + offset, min(size - offset, <uint64_t>COPIED)) and ended
        offset += COPIED
    return ended
