# cython: auto_pickle=False
"""Recycled pages under arenas, which are `bytes`: links give them back when nobody reads them."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_REFCNT
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

from base.blocks cimport can_recycle, fill_room, recycle_pages
from base.hugepages cimport LARGE_BUFFER, LARGE_PAGE, prefer_large_pages, whole_pages

cdef extern from "<unistd.h>" nogil:
    int getpid()

cdef enum:
    # Large pages of the largest arena that gets recycled ones: half of those that are kept.
    MOST_PAGES = 384
    # References to an arena that nobody else has: the range, and the variable that looks at it.
    OWN_REFERENCES = 2


@cython.no_gc
cdef class RecycledPages:
    """The recycled pages of some arenas; empty at first."""

    def __cinit__(self):
        self.ranges = []

    cdef bint can_fill(self, uint64_t size):
        return LARGE_BUFFER <= size < MOST_PAGES * LARGE_PAGE and can_recycle()

    cdef void fill(self, bytes arena):
        cdef char* start = PyBytes_AS_STRING(arena)
        cdef size_t size = <size_t>PyBytes_GET_SIZE(arena)
        cdef char* first = <char*>whole_pages(<size_t>start)
        cdef size_t inner = 0
        if self.can_fill(size):
            inner = (size - (first - start)) & ~(LARGE_PAGE - 1)
        if inner == 0:
            prefer_large_pages(start, size)
            return
        self.ranges.append((arena, <uint64_t>first, inner))
        self.process = getpid()
        with nogil:
            fill_room(first, inner)

    def give_back(self):
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
