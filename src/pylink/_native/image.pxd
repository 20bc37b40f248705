# The buffer or file that kernels write the output to; see `image.pyi`.

from libc.stdint cimport uint8_t


cdef class Canvas:
    cdef uint8_t* data              # NULL for a file
    cdef int file
    cdef readonly size_t size
    cdef bytes memory               # what `data` lies in
