# Reading files into their places in an arena, or mapping them there, by several threads.

from libc.errno cimport EINTR, errno
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.clocks cimport TimeRow, end_item, start_item
from base.elf64 cimport round_up
from base.posix cimport O_CLOEXEC, O_NONBLOCK, O_RDONLY, c_close, c_open, c_pread
from base.threads cimport MOST_THREADS, run_each, thread_number
from inputs.filemapping cimport (
    MappedRow, allow_forks, begin_mapping, fetch_pages, map_input_file, mapped_part, share_pages,
    unmap_unreadable,
)

cdef enum:
    ALIGN = 16                  # files that are read begin at multiples of this in the arena


cdef inline uint64_t padded_size(uint64_t size) noexcept nogil:
    """Return the bytes that a file of `size` bytes takes in an arena."""
    return round_up(size, ALIGN)


# The inputs of a link, and the arena that they are read or mapped into.
ctypedef struct Reading:
    uint8_t* base                   # start of the arena
    const uint64_t* extent          # offset and size of each input in the arena, alternating
    const char** path               # by input; NULL: the bytes are in `data`
    const char** data               # by input without a path: its bytes
    int* outcome                    # by input: result of `read_whole_file`
    MappedRow* mapped               # by input: size 0 if not (to be) mapped; NULL: no input is
    bint maps_hosts                 # map objects of the host, too
    uint64_t* seen_keys             # SEEN_KEYS keys for `map_file`; not set if `mapped` is NULL
    TimeRow* times                  # by input; NULL: times are not recorded
    uint64_t[MOST_THREADS] spent    # by thread: processor time in ns at the end of its last item


cdef enum:
    SHARED = 8 << 20            # a file of so many bytes or more is read by all threads together
    PART = 1 << 20              # bytes of such a file that are read at a time


# A file that all threads read, each a part at a time.
ctypedef struct SharedFile:
    int fd
    uint8_t* place
    uint64_t size
    int failure                 # result of `read_bytes` for a part that failed, errno of open, or 0


# The part of an arena from its first mapped file to the end of its last one.
ctypedef struct MappedPart:
    uint8_t* start
    uint64_t size
    bint failed                 # the kernel could not provide some of its pages


cdef inline int open_input(const char* path) noexcept nogil:
    """Open a file to read it. Returns its descriptor, or -1 with errno."""
    # The path may name a pipe by now, and opening that would wait for a writer.
    return c_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)


cdef inline int read_bytes(int fd, uint8_t* place, uint64_t start, uint64_t end) noexcept nogil:
    """Read bytes from `start` to before `end` of a file to `place + start`.

    Returns 0, an errno, or -1 when the file ends before `end`.
    """
    cdef uint64_t offset = start
    cdef ssize_t count
    while offset < end:
        count = c_pread(fd, place + offset, end - offset, <int64_t>offset)
        if count < 0:
            if errno == EINTR:
                continue
            return errno
        if count == 0:
            return -1
        offset += <uint64_t>count
    return 0


cdef inline int read_whole_file(const char* path, uint8_t* place, uint64_t size) noexcept nogil:
    """Read `size` bytes of a file to `place`. Returns 0, an errno, or -1 if the file is shorter."""
    cdef int fd = open_input(path), failure
    if fd < 0:
        return errno
    failure = read_bytes(fd, place, 0, size)
    c_close(fd)
    return failure


cdef inline bint is_mapped(const Reading* reading, size_t item) noexcept nogil:
    """Return whether an input is mapped."""
    return reading.mapped != NULL and reading.mapped[item].size != 0


cdef inline void map_input(void* context, size_t item) noexcept nogil:
    """Map one input if it is to be mapped; the size in its row becomes 0 if that fails."""
    cdef Reading* reading = <Reading*>context
    cdef MappedRow* row = &reading.mapped[item]
    cdef uint64_t size = row.size
    cdef int fd = open_input(reading.path[item]) if size else -1
    row.size = 0
    if fd >= 0:
        row.offset = reading.extent[2 * item]
        map_input_file(fd, reading.maps_hosts, reading.base + row.offset, size,
                       reading.seen_keys, row)
        c_close(fd)


cdef inline void fetch_part(void* context, size_t item) noexcept nogil:
    """Let the kernel provide the pages of piece number `item`, PART bytes, of the mapped part."""
    cdef MappedPart* part = <MappedPart*>context
    if not fetch_pages(part.start + item * PART, min(<uint64_t>PART, part.size - item * PART)):
        part.failed = True


cdef inline bint map_inputs(Reading* reading, size_t count, uint64_t size) noexcept nogil:
    """Map the files that are to be mapped, of `count` inputs with `size` bytes in all.

    Returns whether any file could be mapped, even if `unmap_unreadable` then unmapped it.
    """
    cdef MappedPart part
    if reading.mapped == NULL:
        return False
    begin_mapping()
    run_each(map_input, reading, count, size)
    part.start = mapped_part(reading.base, reading.mapped, count, &part.size)
    if part.start != NULL:
        share_pages(part.start, part.size, False)
    allow_forks()
    if part.start == NULL:
        return False
    part.failed = False
    run_each(fetch_part, &part, (part.size + PART - 1) // PART, part.size)
    if part.failed:
        unmap_unreadable(reading.base, reading.mapped, count)
    return True


cdef inline bint is_shared(const Reading* reading, size_t item) noexcept nogil:
    """Return whether all threads read an input together: a large file that is not mapped."""
    return (reading.path[item] != NULL and reading.extent[2 * item + 1] >= SHARED
            and not is_mapped(reading, item))


cdef inline void read_input(void* context, size_t item) noexcept nogil:
    """Read one file, or copy the bytes of an input without a path.

    Mapped files are in their places; large ones are left to `read_shared`.
    """
    cdef Reading* reading = <Reading*>context
    cdef uint64_t size = reading.extent[2 * item + 1]
    cdef uint8_t* place = reading.base + reading.extent[2 * item]
    cdef TimeRow* row = NULL if reading.times == NULL else &reading.times[item]
    reading.outcome[item] = 0
    if is_mapped(reading, item) or is_shared(reading, item):
        return
    start_item(row, thread_number, reading.spent)
    memset(place + size, 0, padded_size(size) - size)
    if reading.path[item] == NULL:
        memcpy(place, reading.data[item], size)
    else:
        reading.outcome[item] = read_whole_file(reading.path[item], place, size)
    end_item(row, reading.spent)


cdef inline void read_part(void* context, size_t item) noexcept nogil:
    """Read piece number `item`, PART bytes, of a file that all threads read."""
    cdef SharedFile* file = <SharedFile*>context
    cdef int failure = read_bytes(file.fd, file.place, item * PART,
                                  min((item + 1) * PART, file.size))
    if failure != 0:
        file.failure = failure


cdef inline void read_shared(Reading* reading, size_t item) noexcept nogil:
    """Read a large file in parts, by all threads; its recorded time is that of thread 0."""
    cdef SharedFile file
    cdef TimeRow* row = NULL if reading.times == NULL else &reading.times[item]
    start_item(row, 0, reading.spent)
    file.size = reading.extent[2 * item + 1]
    file.place = reading.base + reading.extent[2 * item]
    file.failure = 0
    memset(file.place + file.size, 0, padded_size(file.size) - file.size)
    file.fd = open_input(reading.path[item])
    if file.fd < 0:
        file.failure = errno
    else:
        run_each(read_part, &file, (file.size + PART - 1) // PART, file.size)
        c_close(file.fd)
    reading.outcome[item] = file.failure
    end_item(row, reading.spent)
