# The only function of native code that raises MemoryError itself; functions of Python's C API raise
# it, too.


cdef inline int check_memory(bint is_available) except -1:
    """Raise MemoryError unless a request for memory has succeeded."""
    if not is_available:
        raise MemoryError
    return 0
