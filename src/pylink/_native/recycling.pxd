# Arenas on recycled pages, memory of freed blocks that the process keeps; see `recycling.pyi`.

from libc.stdint cimport uint64_t


cdef class RecycledPages:
    # Tuples: an arena, the address of the recycled pages in it, and their number of bytes.
    cdef list ranges
    cdef int process            # id of the process that made the last of these arenas
    # Return whether an arena of `size` bytes gets recycled pages.
    cdef bint can_fill(self, uint64_t size)
    # Make an arena with `size` usable bytes, on recycled pages if `can_fill` allows; set `start` to
    # the offset of these bytes in the arena.
    cdef bytes new_arena(self, uint64_t size, uint64_t* start)
