# LZ4 blocks and Zstandard frames, decompressed by the C libraries in the Python packages `lz4` and
# `zstandard`: importing these packages takes longer than most links, and their functions keep the
# GIL. Each library is opened once in a process and stays open.
#
# Zstandard needs 160 KB while it decompresses a frame. Allocating them takes as long as
# decompressing a small frame, so each thread keeps its own: for 2,000 frames of 11 kB that took
# 24 ms instead of 41 ms.

from libc.stddef cimport size_t

cdef extern from "inputs/codecs.h":
    # Open the library at `path` for a codec. Returns whether it has what the codec needs;
    # `decompress` uses it from then on.
    bint open_codec "pylink_open_codec"(int codec, const char* path) nogil
    # Decompress the `size` bytes at `from_` to `to`. Returns whether they become exactly `room`
    # bytes; otherwise some of these may be written. Nothing outside the two ranges is touched.
    bint decompress "pylink_decompress"(
        int codec, const void* from_, size_t size, void* to, size_t room
    ) noexcept nogil
