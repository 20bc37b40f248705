# LZ4 blocks and Zstandard frames, decompressed by the C libraries in the Python packages `lz4` and
# `zstandard`: importing these packages takes longer than most links, and their functions keep the
# GIL. Each library is opened once in a process and stays open.
#
# Zstandard needs 160 KB while it decompresses a frame. Allocating them takes as long as
# decompressing a small frame, so each thread keeps its 160 KB: with that, 2,000 frames of 11 kB
# took 24 ms instead of 41 ms.

from libc.stddef cimport size_t

from picknumbers cimport CODEC_LZ4_BLOCK, CODEC_ZSTD_FRAME

cdef extern from "inputs/codecs.h" nogil:
    bint open_lz4 "pylink_open_lz4"(const char* path) noexcept
    bint open_zstd "pylink_open_zstd"(const char* path) noexcept
    bint unpack_lz4 "pylink_unpack_lz4"(const void* source, size_t size, void* target,
                                        size_t room) noexcept
    bint unpack_zstd "pylink_unpack_zstd"(const void* source, size_t size, void* target,
                                          size_t room) noexcept


cdef inline bint open_codec(int codec, const char* path) noexcept nogil:
    """Open the library at `path` for a codec; `decompress` uses it from then on.

    Returns whether it has what the codec needs. The first library of
    Zstandard that can decompress stays in use, and the result for later ones is True.
    """
    return open_lz4(path) if codec == CODEC_LZ4_BLOCK else open_zstd(path)


cdef inline bint decompress(int codec, const void* source, size_t size, void* target,
                            size_t room) noexcept nogil:
    """Decompress `size` bytes; return whether they become exactly `room` bytes at `target`.

    Otherwise some of these may be written. Nothing outside the two ranges is touched.
    """
    if codec == CODEC_LZ4_BLOCK:
        return unpack_lz4(source, size, target, room)
    return codec == CODEC_ZSTD_FRAME and unpack_zstd(source, size, target, room)
