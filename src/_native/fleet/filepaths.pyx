"""Numbers the directories of many files."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from base.memory cimport check_memory
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init


# The path of file i is from ends[i] to ends[i + 1] (int64) in `text`, and its directory is
# directories[numbers[i]] (int32). A file whose name ends in one of `directory_suffixes`, such as an
# archive, counts as a directory; `are_containers` is True for it.
def directories_of(bytes ends not None, bytes text not None, list directory_suffixes not None):
    """Return the directories of files: (directories, are_containers, numbers)."""
    cdef Py_ssize_t file_count = PyBytes_GET_SIZE(ends) // 8 - 1, i
    cdef const int64_t* end = <const int64_t*>PyBytes_AS_STRING(ends)
    cdef const uint8_t* path
    cdef int64_t size
    cdef bytes suffix, numbers
    cdef int32_t* number
    cdef NameIndex index
    cdef Scratch scratch
    cdef NameSlot* slot
    cdef list directories = [], are_containers = []
    cdef bint is_container
    if file_count < 0 or PyBytes_GET_SIZE(ends) != 8 * (file_count + 1):
        raise ValueError("columns differ in length")
    numbers = PyBytes_FromStringAndSize(NULL, 4 * file_count)
    number = <int32_t*>PyBytes_AS_STRING(numbers)
    scratch_init(&scratch)
    try:
        scratch_index(&scratch, &index, 64)
        check_memory(not scratch.failed)
        for i in range(file_count):
            if not 0 <= end[i] <= end[i + 1] <= PyBytes_GET_SIZE(text):
                raise IndexError(f"path {i} is outside the text")
            path = <const uint8_t*>PyBytes_AS_STRING(text) + end[i]
            size = end[i + 1] - end[i]
            is_container = False
            for suffix in directory_suffixes:
                if size >= len(suffix) and memcmp(path + size - len(suffix),
                                                  PyBytes_AS_STRING(suffix), len(suffix)) == 0:
                    is_container = True
            while not is_container and size and path[size - 1] != c"/":
                size -= 1
            # A directory's key ends in a slash or is empty. That of a container (a file that counts
            # as a directory) ends in the file's name, so it differs.
            slot = index_find(&index, path, <uint32_t>size)
            check_memory(slot != NULL)
            if slot.value < 0:
                slot.value = <int32_t>len(directories)
                index.count += 1
                directories.append(path[:size if is_container or size == 0 else size - 1])
                are_containers.append(is_container)
            number[i] = slot.value
        return directories, are_containers, numbers
    finally:
        scratch_free(&scratch)
