# LZ4 blocks and Zstandard frames, decompressed by the C libraries that the packages of these names
# contain: importing the packages themselves takes longer than most links, and their functions hold
# the interpreter. Each library is opened once in a process and stays open.
#
# Zstandard needs 160 KB while it is at a frame, and getting these takes as long as decompressing a
# small one: 2,000 of 11 kB took 41 ms with memory of their own each, 24 ms with that of a thread.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

cdef extern from "inputs/codecs.h":
    # Whether the library at `path` has what the codec needs; it decompresses from then on.
    bint open_codec "pylink_open_codec"(int codec, const char* path) nogil
    # Whether the `size` bytes at `from_` become exactly `room` bytes at `to`, which may be filled
    # in part otherwise. Never more is written or read.
    bint decompress "pylink_decompress"(
        int codec, const void* from_, size_t size, void* to, size_t room
    ) noexcept nogil
