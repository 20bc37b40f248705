# Recycled pages under arenas; see `recycling.pyi`.

from libc.stdint cimport uint64_t


cdef class RecycledPages:
    cdef list ranges            # each arena, and the address and bytes of recycled pages in it
    cdef int process            # id of the process that filled the last one
    # Return whether an arena of `size` bytes gets recycled pages.
    cdef bint can_fill(self, uint64_t size)
    # Give an arena that has not been written yet recycled pages, or large ones if it is large.
    cdef void fill(self, bytes arena)
