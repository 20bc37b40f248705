"""The sections of cubins of a build tree, file after file, as columns for an index.

Files are read one by one into the same buffer: no new memory is requested, and the bytes are still
in the processor's cache when they are hashed. Python code (`pylink.fleet.contents`) reads those
files that may contain others, are large, or have changed since the tree was read.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport strlen

from base.elf64 cimport Ehdr
from base.filestatus cimport S_ISREG, Stat, fstat
from base.memory cimport check_memory
from base.posix cimport O_CLOEXEC, O_NOCTTY, O_NONBLOCK, O_RDONLY, c_close, c_open, c_read
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.texts cimport has_prefix
from base.vector cimport Vec, vec_append
from elfnumbers cimport EM_CUDA
from fleet.sectioncolumns cimport Columns, Hasher, columns_to_tuple, list_object, start_columns
from fleet.stamps cimport Stamp, is_same, is_unknown, stamp_of
from inputkinds cimport IN_ARCHIVE, IN_CUBIN, IN_FATBIN, IN_HOST, IN_SHARED, IN_THIN_ARCHIVE
from outcomes cimport INDEXED_CUBIN, INDEXED_OTHER, INDEXED_UNDECIDED
from read.filekinds cimport input_kind


def read_cubins(files not None, int64_t largest, int64_t first, uintptr_t hasher):
    """Return an IndexedKind (a byte) for each file, and the objects and sections of cubins."""
    # `files` are columns of a census (`file_columns`). Files of more than `largest` bytes are not
    # read. `first` is the number of the first cubin in the index, `hasher` the address of the
    # function that hashes contents, or 0 for hashes of zeros.
    cdef list names
    cdef bytes roots, ends, text, stamps
    names, roots, ends, text, stamps = files
    cdef Py_ssize_t file_count = PyBytes_GET_SIZE(roots) // 4, i
    cdef const Stamp* stamp = <const Stamp*>PyBytes_AS_STRING(stamps)
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, file_count)
    cdef uint8_t* kind = <uint8_t*>PyBytes_AS_STRING(kinds)
    cdef Columns columns
    cdef Vec paths              # uint8_t: paths that end with NUL
    cdef const char* path
    cdef bytes buffer_bytes     # without large pages, since most files are smaller
    cdef uint8_t* buffer
    cdef Scratch scratch
    if PyBytes_GET_SIZE(stamps) != file_count * <Py_ssize_t>sizeof(Stamp) or largest < 0:
        raise ValueError("columns differ in length")
    buffer_bytes = PyBytes_FromStringAndSize(NULL, largest + 1)
    buffer = <uint8_t*>PyBytes_AS_STRING(buffer_bytes)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &paths, 1)
        start_columns(&columns, &scratch, <Hasher>hasher, first)
        join_paths(&paths, names, roots, ends, text)
        path = <const char*>paths.data
        with nogil:
            for i in range(file_count):
                if scratch.failed:
                    break
                kind[i] = INDEXED_UNDECIDED
                if 0 <= stamp[i].size <= largest:
                    scratch.failed = not read_file(&columns, path, &stamp[i], buffer, &kind[i])
                path += strlen(path) + 1
        check_memory(not scratch.failed)
        return kinds, columns_to_tuple(&columns)
    finally:
        scratch_free(&scratch)


cdef int join_paths(Vec* paths, list names, bytes roots, bytes ends, bytes text) except -1:
    """Append the path of each file: its root, `/`, its path below the root, and a NUL."""
    cdef const int32_t* root = <const int32_t*>PyBytes_AS_STRING(roots)
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const char* base = PyBytes_AS_STRING(text)
    cdef Py_ssize_t file_count = PyBytes_GET_SIZE(roots) // 4, i
    cdef bytes name
    if PyBytes_GET_SIZE(roots) != 4 * file_count or PyBytes_GET_SIZE(ends) != 8 * (file_count + 1):
        raise ValueError("columns differ in length")
    for i in range(file_count):
        if not 0 <= root[i] < len(names):
            raise IndexError(f"no root {root[i]}")
        if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
            raise IndexError(f"path {i} is outside the text")
        name = names[root[i]]
        check_memory(vec_append(paths, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
                     and vec_append(paths, b"/", 1)
                     and vec_append(paths, base + end[i], end[i + 1] - end[i])
                     and vec_append(paths, b"\0", 1))
    return 0


cdef bint read_file(Columns* columns, const char* path, const Stamp* stamp, uint8_t* buffer,
                    uint8_t* indexed_kind) noexcept nogil:
    """Read a file into `buffer`, set its kind and list it if it is a cubin; False without memory.

    The kind stays INDEXED_UNDECIDED if the file differs from `stamp` (its size, times and inode
    when the tree was read), cannot be read, or may contain other files, as an archive does. If
    the stamp is unknown, only the size is compared.
    """
    cdef Stat status
    cdef Stamp now
    cdef uint64_t size = 0, limit = <uint64_t>stamp.size + 1
    cdef ssize_t count = 1
    cdef uint8_t kind
    # O_NONBLOCK: opening a pipe that replaced the file does not wait; S_ISREG rejects it below.
    cdef int descriptor = c_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    if descriptor < 0:
        return True
    # One byte more than expected is requested: one call then shows whether the file has grown.
    while count > 0 and size < limit - 1:
        count = c_read(descriptor, buffer + size, limit - size)
        if count < 0 and errno == EINTR:
            count = 1
            continue
        size += max(count, 0)
    if fstat(descriptor, &status) != 0:
        status.st_mode = 0
    c_close(descriptor)
    now = stamp_of(&status)
    if (size != limit - 1 or not S_ISREG(status.st_mode) or now.size != stamp.size
            or not (is_unknown(stamp) or is_same(&now, stamp))):
        return True
    kind = input_kind(buffer, size)
    if kind in (IN_HOST, IN_FATBIN, IN_ARCHIVE, IN_THIN_ARCHIVE, IN_SHARED):
        return True
    if has_prefix(buffer, size, b"PK\x03\x04"):     # a zip file, which `input_kind` does not know
        return True
    indexed_kind[0] = INDEXED_OTHER
    # e_machine ends at byte 20.
    if kind == IN_CUBIN and size >= 20 and (<const Ehdr*>buffer).e_machine == EM_CUDA:
        indexed_kind[0] = INDEXED_CUBIN
        return list_object(columns, buffer, size)
    return True
