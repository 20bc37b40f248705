# Lists of files that a census, which compares a build tree with an index, returns as columns.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy

from base.memory cimport check_memory
from base.vector cimport Vec, vec_push
from fleet.indexedfiles cimport Base, Indexed
from fleet.stamps cimport Stamp

# A file of a list, which is a Vec of these rows.
ctypedef struct ListedFile:
    const uint8_t* path         # path below the root
    const Stamp* stamp          # the file's version: its size, times and inode
    uint32_t size               # bytes of the path
    uint32_t root               # number of the root
    uint32_t rank               # position of the root's name in the sorted names (`sort_columns`)


cdef inline int list_file(Vec* listed, uint32_t root, const uint8_t* path, size_t size,
                          const Stamp* stamp) except -1:
    """Append a file to a list."""
    cdef ListedFile* row = <ListedFile*>vec_push(listed)
    check_memory(row != NULL)
    row.path, row.size, row.root, row.stamp = path, <uint32_t>size, root, stamp
    return 0


cdef inline int list_indexed(Vec* listed, const Indexed* indexed) except -1:
    """Append the file of an Indexed to a list."""
    return list_file(listed, indexed.root, indexed.path, indexed.size, &indexed.stamp)


cdef inline int list_row(Vec* listed, const Base* base, size_t row) except -1:
    """Append the file of row number `row` of the base to a list."""
    return list_file(listed, <uint32_t>base.root[row], base.text + base.end[row],
                     base.end[row + 1] - base.end[row], &base.stamp[row])


cdef inline tuple file_columns(const Vec* listed, list roots):
    """Return the roots, and columns of files: numbers of roots, ends of paths, paths, stamps."""
    cdef const ListedFile* row = <const ListedFile*>listed.data
    cdef size_t i, size = 0
    cdef bytes numbers = PyBytes_FromStringAndSize(NULL, 4 * listed.count)
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, 8 * (listed.count + 1))
    cdef bytes stamps = PyBytes_FromStringAndSize(NULL, listed.count * sizeof(Stamp)), text
    cdef int32_t* number = <int32_t*>PyBytes_AS_STRING(numbers)
    cdef int64_t* end = <int64_t*>PyBytes_AS_STRING(ends)
    cdef Stamp* stamp = <Stamp*>PyBytes_AS_STRING(stamps)
    cdef char* place
    for i in range(listed.count):
        number[i], end[i], stamp[i] = <int32_t>row[i].root, size, row[i].stamp[0]
        size += row[i].size
    end[listed.count] = size
    text = PyBytes_FromStringAndSize(NULL, size)
    place = PyBytes_AS_STRING(text)
    for i in range(listed.count):
        memcpy(place + end[i], row[i].path, row[i].size)
    return list(roots), numbers, ends, text, stamps


cdef inline tuple sort_columns(Vec* listed, list roots):
    """Return what `file_columns` does, sorted by root name and path."""
    cdef ListedFile* row = <ListedFile*>listed.data
    cdef list order = sorted(range(len(roots)), key=roots.__getitem__)
    cdef dict rank = {number: place for place, number in enumerate(order)}
    cdef size_t i
    for i in range(listed.count):
        row[i].rank = rank[row[i].root]
    if listed.count:
        with nogil:
            qsort(listed.data, listed.count, sizeof(ListedFile), compare_listed)
    return file_columns(listed, roots)


cdef inline int compare_listed(const void* left, const void* right) noexcept nogil:
    """Order files by the name of their root, then by path."""
    cdef const ListedFile* a = <const ListedFile*>left
    cdef const ListedFile* b = <const ListedFile*>right
    cdef int order
    if a.rank != b.rank:
        return -1 if a.rank < b.rank else 1
    order = memcmp(a.path, b.path, min(a.size, b.size))
    if order == 0:
        order = (a.size > b.size) - (a.size < b.size)
    return order
