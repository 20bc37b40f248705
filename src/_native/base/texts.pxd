# Comparison of names and first bytes with texts that stand in the source.
#
# `strlen` of a text that is written in the call is a constant for the C compiler, so the source
# need not have the number of its bytes. Texts contain no NUL.

from libc.string cimport memcmp, memcpy, strlen, strncmp


cdef enum:
    MERC_PREFIX = 8         # bytes of ".nv.merc", before the plain name of a section's mercury form


cdef inline bint is_named(const void* name, size_t size, const char* text) noexcept nogil:
    """Return whether a name of `size` bytes is this text."""
    return size == strlen(text) and memcmp(name, text, strlen(text)) == 0


cdef inline bint has_prefix(const void* name, size_t size, const char* text) noexcept nogil:
    """Return whether a name of `size` bytes begins with this text."""
    return size >= strlen(text) and memcmp(name, text, strlen(text)) == 0


cdef inline bint has_start(const char* name, const char* text) noexcept nogil:
    """Return whether a name that ends with NUL begins with this text."""
    return strncmp(name, text, strlen(text)) == 0


cdef inline bint has_text(const void* data, const char* text) noexcept nogil:
    """Return whether data, which has at least as many bytes as this text, begins with it."""
    return memcmp(data, text, strlen(text)) == 0


cdef inline void put_text(void* place, const char* text) noexcept nogil:
    """Copy a text to `place`, without its NUL."""
    memcpy(place, text, strlen(text))
