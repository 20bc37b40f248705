# The buffer or file that kernels write the output to; see `image.pyi`.

from libc.stdint cimport uint8_t


cdef class Canvas:
    cdef uint8_t* data              # the bytes of the output; NULL for a file
    cdef int file                   # its descriptor, or -1
    cdef readonly size_t size       # bytes of the output
    cdef bytes memory               # the object that `data` lies in; None for a file
