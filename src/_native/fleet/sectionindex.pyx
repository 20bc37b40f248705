"""The sections of many cubins of an arena as columns: names, sizes and digests, for an index."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t

from base.extents cimport count_files
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init
from fleet.sectioncolumns cimport Columns, Hasher, columns_to_tuple, list_object, start_columns

cdef extern from "<dlfcn.h>" nogil:
    void* dlopen(const char* path, int flags)
    void* dlsym(void* library, const char* name)
    int RTLD_LAZY


# `extents` has a row for each cubin: its offset in the arena (u64) and its size (u64). `first` is
# the number that the first cubin gets in the index. `hasher` is the address of a function like
# `XXH3_128bits`, or 0 for digests of zeros.
def list_sections(bytes arena not None, bytes extents not None, int64_t first, uintptr_t hasher):
    """Return the objects and sections of every cubin in the arena."""
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t file_count = count_files(arena, extents), i
    cdef Columns columns
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        start_columns(&columns, &scratch, <Hasher>hasher, first)
        with nogil:
            for i in range(file_count):
                if scratch.failed:
                    break
                scratch.failed = not list_object(&columns, base + extent[2 * i],
                                                 extent[2 * i + 1])
        check_memory(not scratch.failed)
        return columns_to_tuple(&columns)
    finally:
        scratch_free(&scratch)


# The address is 0 if the library or the function is not found.
def find_function(bytes library not None, bytes name not None):
    """Return the address of a function in the library at this path, which stays open."""
    cdef void* opened = dlopen(PyBytes_AS_STRING(library), RTLD_LAZY)
    return 0 if opened == NULL else <uintptr_t>dlsym(opened, PyBytes_AS_STRING(name))
