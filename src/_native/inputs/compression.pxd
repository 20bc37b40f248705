# Zstandard frames, made by the library that decompresses (`inputs/codecs.pxd`).

from libc.stddef cimport size_t

cdef extern from "inputs/compression.h":
    # Open the library at `path`. Returns whether it can compress; it is used from then on.
    bint open_frames "pylink_open_frames"(const char* path) nogil
    # Most bytes of the frame that `size` bytes become; 0 without the library.
    size_t frame_room "pylink_frame_room"(size_t size) noexcept nogil
    # Compress `size` bytes to a frame of at most `room` bytes. Returns its bytes, 0 on failure.
    size_t make_frame "pylink_make_frame"(
        const void* from_, size_t size, void* to, size_t room, int level
    ) noexcept nogil
