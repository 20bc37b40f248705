# Zstandard frames, made by the library that decompresses (`inputs/codecs.pxd`), once that is open.

from libc.stddef cimport size_t

cdef extern from "inputs/codecs.h" nogil:
    # Most bytes of the frame that `size` bytes become; 0 if no open library can compress.
    size_t frame_room "pylink_frame_room"(size_t size) noexcept
    # Compress `size` bytes to a frame of at most `room` bytes. Returns its size, 0 on failure.
    size_t make_frame "pylink_make_frame"(
        const void* from_, size_t size, void* to, size_t room, int level
    ) noexcept
