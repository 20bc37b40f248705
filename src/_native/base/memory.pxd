# Want of memory as an exception, for kernels that call Python between their requests.


cdef inline int check_memory(bint had) except -1:
    """MemoryError unless memory was there."""
    if not had:
        raise MemoryError
    return 0
