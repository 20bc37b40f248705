"""Payloads as Zstandard frames, by the library of the package `zstandard`."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room
from inputs.codecs cimport decompress, open_codec
from inputs.compression cimport frame_room, make_frame
from picknumbers cimport CODEC_ZSTD_FRAME


def open_library(int codec, bytes path not None):
    """Use the library at `path` for a codec from now on; False if it cannot decompress."""
    return bool(open_codec(codec, PyBytes_AS_STRING(path)))


# The result is None if no library compresses, if compressing fails, or if decompressing does not
# give the payload.
def frame_of(bytes payload not None, int level, *, bint checked=True):
    """Compress the payload to one Zstandard frame; with `checked`, decompress and compare it."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(payload)
    cdef uint64_t size = <uint64_t>PyBytes_GET_SIZE(payload)
    cdef size_t room = frame_room(size), frame_size = 0
    cdef Scratch scratch
    cdef uint8_t* frame
    cdef uint8_t* unpacked
    cdef bint good = False
    if room == 0:
        return None
    scratch_init(&scratch)
    try:
        frame = <uint8_t*>scratch_room(&scratch, room, 1)
        unpacked = <uint8_t*>scratch_room(&scratch, size if checked else 0, 1)
        check_memory(not scratch.failed)
        with nogil:
            frame_size = make_frame(data, size, frame, room, level)
            good = frame_size != 0 and (
                not checked or (decompress(CODEC_ZSTD_FRAME, frame, frame_size, unpacked, size)
                                and memcmp(data, unpacked, size) == 0))
        return PyBytes_FromStringAndSize(<const char*>frame, frame_size) if good else None
    finally:
        scratch_free(&scratch)
