# cython: auto_pickle=False
"""Arenas (`bytes`) on recycled pages: memory of freed blocks that the process keeps for later ones.

Links call `give_back`, which recycles the pages of arenas that nobody uses any more.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_REFCNT
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

from base.blocks cimport can_recycle, fill_room, recycle_pages
from base.hugepages cimport LARGE_BUFFER, LARGE_PAGE, prefer_large_pages, whole_pages
from base.posix cimport getpid

cdef enum:
    # Most large pages of an arena that gets recycled ones: half of MOST_RECYCLED (blocks.pxd).
    MOST_PAGES = 640
    # References to an arena that only this class uses: from its row in `ranges`, and from a
    # variable of `give_back`.
    OWN_REFERENCES = 2


@cython.no_gc
cdef class RecycledPages:
    """The arenas (buffers of input files) on recycled pages, and where in each these pages are."""

    def __cinit__(self):
        self.ranges = []

    cdef bint can_fill(self, uint64_t size):
        """Return whether an arena of `size` bytes gets recycled pages, as far as there are some."""
        return LARGE_BUFFER <= size < MOST_PAGES * LARGE_PAGE and can_recycle()

    cdef bytes new_arena(self, uint64_t size, uint64_t* start):
        """Make an arena with `size` usable bytes, on recycled pages if `can_fill` allows it.

        Sets `start` to the offset of these bytes in the arena.
        """
        cdef bytes arena
        cdef char* first
        cdef bint fills = self.can_fill(size)
        start[0] = 0
        if fills:
            size = whole_pages(size)
        arena = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(size + fills * LARGE_PAGE))
        if not fills:
            prefer_large_pages(PyBytes_AS_STRING(arena), size)
            return arena
        first = <char*>whole_pages(<size_t>PyBytes_AS_STRING(arena))
        start[0] = first - PyBytes_AS_STRING(arena)
        self.ranges.append((arena, <uint64_t>first, size))
        self.process = getpid()
        with nogil:
            fill_room(first, size)
        return arena

    def give_back(self):
        """Recycle the pages of arenas to which nobody else refers, and free these arenas."""
        cdef list others = []
        cdef tuple row
        cdef bytes arena
        cdef uint64_t first
        cdef size_t size
        for row in self.ranges:
            arena, first, size = row
            if Py_REFCNT(arena) > OWN_REFERENCES:
                others.append(row)
            elif self.process == getpid():      # a child process has other pages, or none
                with nogil:
                    recycle_pages(<char*>first, size)
        self.ranges = others
