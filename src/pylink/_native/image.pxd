# The bytes of the output while kernels fill them; `image.pyi` says more.

from libc.stdint cimport uint8_t


cdef class Canvas:
    cdef uint8_t* data
    cdef readonly size_t size
    cdef bytes memory               # what `data` lies in, None where it is a mapped file
