# Fetching rows into the cache before a loop reads them.
#
# A loop over rows in the order of a list reads them from all over memory. So it fetches the row
# that it will read AHEAD rows later, and does not wait for it then.

cdef extern from "base/prefetch.h":
    void prefetch "pylink_prefetch"(const void* address) nogil

cdef enum:
    AHEAD = 8                   # rows or names between the fetch of one and its use
