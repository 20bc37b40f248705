# Where the bytes of the output go while kernels make them; `image.pyi` says more.

from libc.stdint cimport uint8_t


cdef class Canvas:
    cdef uint8_t* data              # NULL for a file
    cdef int file
    cdef readonly size_t size
    cdef bytes memory               # what `data` lies in
