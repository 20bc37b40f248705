# Recycled pages under arenas; see `recycling.pyi`.

from libc.stdint cimport uint64_t


cdef class RecycledPages:
    cdef list ranges            # each arena, and the address and bytes of recycled pages in it
    cdef int process            # id of the process that filled the last one
    # Return whether an arena of `size` bytes gets recycled pages.
    cdef bint can_fill(self, uint64_t size)
    # Make an arena that has `size` bytes from `start` on. They are on recycled pages if these pay.
    cdef bytes new_arena(self, uint64_t size, uint64_t* start)
