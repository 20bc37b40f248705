# The buffer or file that native functions write the output to; see `image.pyi`.

from libc.stdint cimport uint8_t


cdef class Canvas:
    cdef uint8_t* data              # the bytes of the output; NULL for a file and after `close`
    cdef int file                   # descriptor of the file; -1 for memory
    cdef readonly size_t size       # bytes of the output
    cdef bytes memory               # owns the bytes at `data`; None without them
