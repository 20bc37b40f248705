# MemoryError, which kernels raise by this function alone.


cdef inline int check_memory(bint is_available) except -1:
    """Raise MemoryError unless a request for memory has succeeded."""
    if not is_available:
        raise MemoryError
    return 0
