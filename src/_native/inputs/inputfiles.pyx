# cython: auto_pickle=False
"""Input files, measured, read or mapped into one arena, and sorted by the kind of input."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset, strlen

from base.blocks cimport has_recycled, renew_recycled
from base.clocks cimport CLOCK_MONOTONIC, nanoseconds, time_rows
from base.elf64 cimport round_up
from base.extents cimport count_files, move_extents
from base.filestatus cimport S_ISREG, Stat, c_stat
from base.heap cimport keep_heap, widen_heap
from base.hugepages cimport PAGE, has_small_pages, prefer_large_pages
from base.memory cimport check_memory
from base.posix cimport getpid
from base.threads cimport run_each
from inputkinds cimport IN_CUBIN
from inputs.filemapping cimport (
    ALL_WORTH_MAPPING, LEASE_LASTS, MOST_MAPPED, SEEN_KEYS, WORTH_MAPPING, MappedRow, end_files,
    was_written,
)
from inputs.filereading cimport (
    Reading, is_shared, map_inputs, padded_size, read_input, read_shared,
)
from pylink._native.recycling cimport RecycledPages
from read.filekinds cimport input_kind


@cython.no_gc
cdef class MappedFiles:
    """The files that `read_files` mapped into an arena; empty at first."""
    cdef bytes arena            # of `read_files`; None: nothing is mapped
    cdef list paths             # of all inputs of the arena: bytes, or None
    cdef bytearray rows         # a MappedRow for each input
    cdef uint64_t since         # when mapping began: ns of CLOCK_MONOTONIC
    cdef int process            # id of the process that mapped the files

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_mapping(self, True)

    def __dealloc__(self):
        end_mapping(self, True)

    def end(self, *, bint keeps):
        """Unmap the files; the arena then has copies of them or, without `keeps`, zeros."""
        return end_mapping(self, keeps)


cdef Py_ssize_t end_mapping(MappedFiles mapped, bint keeps) except -2:
    """Unmap the files; `keeps` leaves their bytes in the arena.

    Returns the number of the first file that was written to while it was mapped, or -1.
    """
    global has_mapped
    cdef uint8_t* base
    cdef MappedRow* row
    cdef Py_ssize_t file_count, written_file
    cdef bint ended
    if mapped.arena is None:
        return -1
    # A child process inherits no mapped pages (`share_pages`), so the arena has gaps: it is leaked.
    if mapped.process != getpid():
        Py_INCREF(mapped.arena)
        mapped.arena = None
        return -1
    base = <uint8_t*>PyBytes_AS_STRING(mapped.arena)
    row = <MappedRow*>PyByteArray_AS_STRING(mapped.rows)
    file_count = len(mapped.paths)
    written_file = -1
    # Before a lease can run out, no file can have been written to.
    if nanoseconds(CLOCK_MONOTONIC) - mapped.since > LEASE_LASTS:
        written_file = find_written(mapped.paths, row)
    has_mapped = True
    with nogil:
        ended = end_files(base, row, file_count, keeps)
    # Memory that is still mapped to a file must not be reused, so it is leaked.
    if not ended:
        Py_INCREF(mapped.arena)
    mapped.arena = None
    return written_file


cdef Py_ssize_t find_written(list paths, const MappedRow* row) except -2:
    """Return the number of the first mapped file that was written to, or -1."""
    cdef bytes path
    cdef Py_ssize_t i
    for i in range(len(paths)):
        if row[i].size:
            path = paths[i]
            if was_written(PyBytes_AS_STRING(path), &row[i]):
                return i
    return -1


cdef uint64_t place_files(list paths, list sizes, uint64_t* extent, MappedRow* mapped) except? 0:
    """Set the `extent` of each file, its offset and size. Returns the bytes that all take, padded.

    A file that is to be mapped gets whole pages, and its size in `mapped`, a row for each file.
    No file is to be mapped if `mapped` is NULL.
    """
    cdef uint64_t total = 0, size
    cdef Py_ssize_t i, n_mapped = 0
    cdef bint to_map
    for i in range(len(sizes)):
        size = sizes[i]
        to_map = (mapped != NULL and size >= WORTH_MAPPING and n_mapped < MOST_MAPPED
                  and paths[i] is not None)
        if to_map:
            n_mapped += 1
            mapped[i].size = size
            total = round_up(total, PAGE)
        extent[2 * i] = total
        extent[2 * i + 1] = size
        total += round_up(size, PAGE) if to_map else padded_size(size)
    return total


# Whether this process has mapped files and ended the mappings: later links read into recycled
# pages, the memory of blocks that were freed.
cdef bint has_mapped = False


# Number of links of ALL_WORTH_MAPPING bytes or more that began while some recycled memory (of freed
# blocks) was on small pages.
cdef int links_with_small_pages = 0


cdef inline bint is_worth_renewing() noexcept:
    """Return whether this link should first move recycled memory to large pages.

    Moving takes time (`renew_recycled`), which a process with one or two links would not get back.
    So the links that find recycled memory on small pages are counted, and the first gets False.
    """
    global links_with_small_pages
    if not has_small_pages():
        return False
    links_with_small_pages += 1
    return links_with_small_pages > 1


# Input i is file paths[i] or, if that is None, bytes data[i]; `extents` has its offset and size.
# `failed` is the first input that could not be read, or -1, `error` its errno. `times` gets a
# TimeRow for each input, `mapped` the files that are mapped. `tail` unused bytes end the arena.
def read_files(list paths not None, list sizes not None, list data not None, bytearray times=None,
               MappedFiles mapped=None, uint64_t tail=0, *, RecycledPages pages=None,
               bint maps_hosts=False):
    """Read every input into one arena: (arena, extents, failed, error)."""
    cdef Py_ssize_t file_count = len(paths), i
    if len(sizes) != file_count or len(data) != file_count:
        raise ValueError("one size and one place for data per path")
    cdef Reading reading
    cdef bytearray rows = None, seen_keys = None
    reading.mapped = NULL
    reading.maps_hosts = maps_hosts
    cdef uint64_t size = sum(sizes)
    if size < ALL_WORTH_MAPPING:
        mapped = None
    # A process that has linked before reads to its recycled pages, which it has from freed blocks:
    # that is faster than mapping.
    cdef bint recycles = (pages is not None and (has_mapped or has_recycled())
                          and pages.can_fill(size))
    if size >= ALL_WORTH_MAPPING and is_worth_renewing():
        renew_recycled(size)
    if mapped is not None and not recycles:
        rows = bytearray(file_count * sizeof(MappedRow))
        reading.mapped = <MappedRow*>PyByteArray_AS_STRING(rows)
        seen_keys = bytearray(SEEN_KEYS * sizeof(uint64_t))
        reading.seen_keys = <uint64_t*>PyByteArray_AS_STRING(seen_keys)
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, file_count * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    cdef uint64_t total = place_files(paths, sizes, extent, reading.mapped)
    if rows is not None:
        total += PAGE
    check_memory(tail <= (<uint64_t>1 << 62) - total)
    cdef uint64_t start = 0
    cdef bytes arena
    if recycles:
        arena = pages.new_arena(total + tail, &start)
    else:
        arena = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(total + tail))
    reading.base, reading.extent = <uint8_t*>PyBytes_AS_STRING(arena), extent
    if rows is not None:
        start = round_up(<uint64_t>reading.base, PAGE) - <uint64_t>reading.base
        mapped.since = nanoseconds(CLOCK_MONOTONIC)
        mapped.process = getpid()
    move_extents(extent, file_count, start)
    cdef bytes outcome_buffer = PyBytes_FromStringAndSize(NULL, file_count * sizeof(int))
    reading.outcome = <int*>PyBytes_AS_STRING(outcome_buffer)
    cdef bytes path_pointers = PyBytes_FromStringAndSize(NULL, file_count * sizeof(char*))
    reading.path = <const char**>PyBytes_AS_STRING(path_pointers)
    cdef bytes data_pointers = PyBytes_FromStringAndSize(NULL, file_count * sizeof(char*))
    reading.data = <const char**>PyBytes_AS_STRING(data_pointers)
    reading.times = time_rows(times, file_count)
    memset(reading.spent, 0, sizeof(reading.spent))
    fill_sources(&reading, paths, data)
    with nogil:
        read_inputs(&reading, file_count, total, recycles)
    if rows is not None:
        mapped.arena, mapped.paths, mapped.rows = arena, paths, rows
    for i in range(file_count):
        if reading.outcome[i] != 0:
            return arena, extents, i, max(reading.outcome[i], 0)
    return arena, extents, -1, 0


cdef int fill_sources(Reading* reading, list paths, list data) except -1:
    """Set the path of each input, or its bytes if it has no path."""
    cdef bytes path, chunk
    cdef Py_ssize_t i
    for i in range(len(paths)):
        if paths[i] is None:
            chunk = data[i]
            if PyBytes_GET_SIZE(chunk) != <Py_ssize_t>reading.extent[2 * i + 1]:
                raise ValueError(f"input {i} changed its size")
            reading.path[i] = NULL
            reading.data[i] = PyBytes_AS_STRING(chunk)
        else:
            path = paths[i]
            reading.path[i] = PyBytes_AS_STRING(path)
    return 0


cdef void read_inputs(Reading* reading, size_t count, uint64_t size, bint recycles) noexcept nogil:
    """Map or read all inputs into an arena of `size` bytes; `recycles`: it is on recycled pages."""
    cdef size_t i
    if not map_inputs(reading, count, size) and not recycles:
        prefer_large_pages(reading.base, size)
    run_each(read_input, reading, count, size)
    for i in range(count):
        if is_shared(reading, i):
            read_shared(reading, i)


# Python examines a file whose path is None or contains a zero byte, and one that is missing, not
# regular, empty, larger than `largest` bytes, or in `outputs`. These are the (device, inode) of
# each file that the link will replace.
def measure(list paths not None, uint64_t largest, list outputs not None):
    """Return the size of each file in bytes, -1 for a file that Python must examine."""
    cdef Py_ssize_t file_count = len(paths), i
    cdef bytes path
    cdef Measuring measuring
    cdef bytes sizes = PyBytes_FromStringAndSize(NULL, file_count * sizeof(int64_t))
    cdef bytes path_pointers = PyBytes_FromStringAndSize(NULL, file_count * sizeof(char*))
    measuring.size = <int64_t*>PyBytes_AS_STRING(sizes)
    measuring.path = <const char**>PyBytes_AS_STRING(path_pointers)
    measuring.largest = largest
    measuring.n_outputs = len(outputs)
    cdef bytes pairs = PyBytes_FromStringAndSize(NULL, measuring.n_outputs * 2 * sizeof(uint64_t))
    measuring.output = <uint64_t*>PyBytes_AS_STRING(pairs)
    for i in range(<Py_ssize_t>measuring.n_outputs):
        measuring.output[2 * i], measuring.output[2 * i + 1] = outputs[i]
    for i in range(file_count):
        measuring.path[i] = NULL
        if paths[i] is not None:
            path = paths[i]
            if strlen(PyBytes_AS_STRING(path)) == <size_t>PyBytes_GET_SIZE(path):
                measuring.path[i] = PyBytes_AS_STRING(path)
    with nogil:
        run_each(measure_input, &measuring, file_count, file_count * STAT_COST)
    return [measuring.size[i] for i in range(file_count)]


cdef enum:
    STAT_COST = 4096            # work of one `stat`, for `run_each`: bytes copied in the same time


# Inputs whose sizes are measured.
ctypedef struct Measuring:
    const char** path           # by input; NULL: not measured
    int64_t* size               # by input: bytes, or -1
    uint64_t largest            # bytes of the largest file that may be an input
    uint64_t* output            # device and inode of each file to be written, alternating
    size_t n_outputs            # number of these files


cdef void measure_input(void* context, size_t item) noexcept nogil:
    """Set the size of one file, or -1 if Python must examine it; a task of `run_each`."""
    cdef Measuring* measuring = <Measuring*>context
    cdef Stat status
    cdef size_t i
    measuring.size[item] = -1
    if (measuring.path[item] == NULL or c_stat(measuring.path[item], &status) != 0
            or not S_ISREG(status.st_mode)):
        return
    if status.st_size <= 0 or <uint64_t>status.st_size > measuring.largest:
        return
    for i in range(measuring.n_outputs):
        if (status.st_dev == measuring.output[2 * i]
                and status.st_ino == measuring.output[2 * i + 1]):
            return
    measuring.size[item] = status.st_size


def keep_memory():
    """Make the heap of this process one region of large pages that is never returned."""
    with nogil:
        widen_heap()


# `owns_process` says that the process ends after its device-link step.
def keep_blocks(*, bint owns_process):
    """Keep freed blocks of up to 32 MB in this process, for later blocks of any of its threads."""
    keep_heap(owns_process)


def classify(bytes arena not None, bytes extents not None):
    """Return a byte of `pylink.facts.inputkinds` for each file, or no bytes if all are cubins."""
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t file_count = count_files(arena, extents), i
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, file_count)
    cdef uint8_t* kind = <uint8_t*>PyBytes_AS_STRING(kinds)
    cdef uint8_t any_other = IN_CUBIN
    with nogil:
        for i in range(file_count):
            kind[i] = input_kind(base + extent[2 * i], extent[2 * i + 1])
            any_other |= kind[i]    # IN_CUBIN is 0
    return kinds if any_other else b""
