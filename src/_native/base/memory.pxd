# MemoryError for native functions that call Python between their requests.


cdef inline int check_memory(bint is_available) except -1:
    """MemoryError unless memory was there."""
    if not is_available:
        raise MemoryError
    return 0
