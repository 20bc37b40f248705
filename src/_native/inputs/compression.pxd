# Zstandard frames, made by the library that decompresses (`inputs/codecs.pxd`).

from libc.stddef cimport size_t

cdef extern from "inputs/compression.h":
    # Whether the library at `path` has what compressing needs; it compresses from then on.
    bint open_frames "pylink_open_frames"(const char* path) nogil
    # The most bytes that a frame of `size` bytes has; 0 without the library.
    size_t frame_room "pylink_frame_room"(size_t size) noexcept nogil
    # Bytes of the frame that `size` bytes become; 0 if none is made.
    size_t make_frame "pylink_make_frame"(
        const void* from_, size_t size, void* to, size_t room, int level
    ) noexcept nogil
