# cython: auto_pickle=False
"""Payloads of inputs (such as cubins), copied or decompressed into one arena by several threads."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport round_up
from base.extents cimport move_extents
from base.hugepages cimport prefer_large_pages
from base.memory cimport check_memory
from base.texts cimport has_prefix, has_text
from base.threads cimport run_each
from inputs.codecs cimport decompress, open_codec
from inputs.filereading cimport ALIGN, padded_size
from inputs.picks cimport PickRow
from picknumbers cimport CODEC_STORED, ORIGIN_FILE, PICK_GOOD
from pylink._native.recycling cimport RecycledPages

cdef enum:
    # Work of making one decompressed byte, for `run_each`: bytes copied in the same time.
    UNPACKING_COST = 4
    PLACE_ALIGN = 8             # alignment in bytes of a cubin that is not copied, for its tables

# A payload before and after it is copied or decompressed.
ctypedef struct Packed:
    int codec                   # a CODEC_ number
    bint is_elf                 # it is in a fat binary, so it must begin like an ELF file
    bint unpacked               # all of it is at `target`
    const uint8_t* start        # NULL: the function `produce` of `gather` returns the bytes
    uint64_t size               # bytes from `start` on
    uint8_t* target             # its place in the new arena
    uint64_t full_size          # bytes that it has there


def open_library(int codec, bytes path not None):
    """Use the C library at `path` to decompress a codec; False if it cannot be used."""
    return open_codec(codec, PyBytes_AS_STRING(path))


# `picks` are PickRows. `produce(i)` is called for the bytes of pick i if it is in none of the
# `arenas`, is not PICK_GOOD, or cannot be unpacked. A large arena lies in `pages`.
def gather(bytes picks not None, list arenas not None, produce, RecycledPages pages=None):
    """Copy or unpack the picked payloads to a new arena: (arena, extents), as of `read_files`."""
    cdef Py_ssize_t pick_count = PyBytes_GET_SIZE(picks) // sizeof(PickRow), i
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(picks)
    cdef uint64_t size, total = 0, work = 0
    cdef bytes chunk
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, pick_count * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    for i in range(pick_count):
        extent[2 * i] = total
        extent[2 * i + 1] = size = pick[i].full_size
        check_memory(size <= (<uint64_t>1 << 62) - total)
        total += padded_size(size)
    cdef uint64_t start = 0
    cdef bytes arena
    if pages is None:
        arena = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
        prefer_large_pages(PyBytes_AS_STRING(arena), total)
    else:
        arena = pages.new_arena(total, &start)
    move_extents(extent, pick_count, start)
    cdef uint8_t* base = <uint8_t*>PyBytes_AS_STRING(arena)
    cdef bytes packed_rows = PyBytes_FromStringAndSize(NULL, pick_count * sizeof(Packed))
    cdef Packed* payload = <Packed*>PyBytes_AS_STRING(packed_rows)
    for i in range(pick_count):
        payload[i].start = NULL
        payload[i].unpacked = False
        if pick[i].arena < 0 or pick[i].state != PICK_GOOD:
            continue
        fill_packed(&payload[i], &pick[i], i, arenas)
        payload[i].target = base + extent[2 * i]
        work += payload[i].full_size * (1 if pick[i].codec == CODEC_STORED else UNPACKING_COST)
    with nogil:
        run_each(unpack_payload, payload, pick_count, work)
    for i in range(pick_count):
        if payload[i].unpacked:
            continue
        chunk = produce(i)
        size = extent[2 * i + 1]
        if <uint64_t>PyBytes_GET_SIZE(chunk) != size:
            extent[2 * i + 1] = 0
            continue
        memcpy(base + extent[2 * i], PyBytes_AS_STRING(chunk), size)
        memset(base + extent[2 * i] + size, 0, padded_size(size) - size)
    return arena, extents


@cython.no_gc
cdef class Tail:
    """The last `size` bytes of an arena, which are still unused."""
    cdef bytes arena
    cdef uint64_t start         # offset of the unused bytes

    def __init__(self, bytes arena not None, uint64_t size):
        if size > <uint64_t>PyBytes_GET_SIZE(arena):
            raise ValueError("the tail is longer than its arena")
        self.arena = arena
        self.start = round_up(<uint64_t>PyBytes_GET_SIZE(arena) - size, ALIGN)


# The result is None if the tail is too short, if `gather` would call `produce`, if an uncompressed
# payload in this arena is not at a multiple of 8, or if offsets would not increase.
def gather_in_place(bytes picks not None, list arenas not None, Tail tail not None):
    """Return what `gather` returns; uncompressed payloads in the arena of `tail` are not copied."""
    cdef Py_ssize_t pick_count = PyBytes_GET_SIZE(picks) // sizeof(PickRow), i, packed_count = 0
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(picks)
    cdef uint8_t* base = <uint8_t*>PyBytes_AS_STRING(tail.arena)
    cdef uint64_t arena_size = <uint64_t>PyBytes_GET_SIZE(tail.arena), end = 0
    cdef uint64_t offset = tail.start, work = 0
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, pick_count * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    cdef bytes packed_rows = PyBytes_FromStringAndSize(NULL, pick_count * sizeof(Packed))
    cdef Packed* payload = <Packed*>PyBytes_AS_STRING(packed_rows)
    cdef Packed* packed
    for i in range(pick_count):
        if pick[i].arena < 0 or pick[i].state != PICK_GOOD:
            return None
        packed = &payload[packed_count]
        fill_packed(packed, &pick[i], i, arenas)
        if pick[i].codec == CODEC_STORED and packed.size == packed.full_size \
                and arenas[pick[i].arena] is tail.arena:
            # Offsets must increase, as those of every other arena do: readers may rely on it.
            if pick[i].offset % PLACE_ALIGN or pick[i].offset < end or not has_elf(packed):
                return None
            extent[2 * i] = pick[i].offset
            end = pick[i].offset + pick[i].size
        else:
            if (packed.full_size > arena_size
                    or padded_size(packed.full_size) > arena_size - min(offset, arena_size)):
                return None
            extent[2 * i] = offset
            packed.target = base + offset
            packed_count += 1
            offset += padded_size(packed.full_size)
            end = offset
            work += packed.full_size * (1 if pick[i].codec == CODEC_STORED else UNPACKING_COST)
        extent[2 * i + 1] = pick[i].full_size
    tail.start = offset
    with nogil:
        run_each(unpack_payload, payload, packed_count, work)
    for i in range(packed_count):
        if not payload[i].unpacked:
            return None
    return tail.arena, extents


cdef int fill_packed(Packed* packed, const PickRow* pick, Py_ssize_t number,
                     list arenas) except -1:
    """Set what `unpack_payload` needs for the pick with that number, except for `target`."""
    cdef bytes chunk
    cdef uint64_t size
    if pick.arena >= len(arenas):
        raise IndexError(f"pick {number} is in no arena")
    chunk = arenas[pick.arena]
    size = <uint64_t>PyBytes_GET_SIZE(chunk)
    if pick.offset > size or pick.size > size - pick.offset:
        raise ValueError(f"pick {number} is outside of its arena")
    packed.codec = pick.codec
    packed.is_elf = pick.embedded != ORIGIN_FILE
    packed.unpacked = False
    packed.start = <const uint8_t*>PyBytes_AS_STRING(chunk) + pick.offset
    packed.size = pick.size
    packed.full_size = pick.full_size
    return 0


cdef inline bint has_elf(const Packed* packed) noexcept nogil:
    """Return whether uncompressed bytes begin like an ELF file, or need not."""
    return not packed.is_elf or has_prefix(packed.start, packed.size, b"\x7fELF")


cdef void unpack_payload(void* context, size_t item) noexcept nogil:
    """Copy or decompress one payload, and set `unpacked` if that succeeds; a task of `run_each`."""
    cdef Packed* packed = <Packed*>context + item
    if packed.start == NULL:
        return
    if packed.codec == CODEC_STORED:
        if packed.size != packed.full_size:
            return
        memcpy(packed.target, packed.start, packed.size)
    elif not decompress(packed.codec, packed.start, packed.size, packed.target, packed.full_size):
        return
    if packed.is_elf and (packed.full_size < 4 or not has_text(packed.target, b"\x7fELF")):
        return
    packed.unpacked = True
    memset(packed.target + packed.full_size, 0, padded_size(packed.full_size) - packed.full_size)
