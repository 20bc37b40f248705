"""Payloads that several links take from shared inputs; the first link decompresses them for all.

A payload is identified by its place: the number of the shared arena that it is in and its offset
there, as one number. `stored` maps this place to that of the decompressed copy, which has the same
form: the number of a store (an arena of such copies), and an offset. One link calls at a time.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.extents cimport count_files
from base.hugepages cimport prefer_large_pages
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.threads cimport run_each
from base.vector cimport Vec, vec_push, vec_to_bytes
from inputs.filereading cimport padded_size
from inputs.picks cimport PickRow
from picknumbers cimport CODEC_STORED, PICK_GOOD

cdef enum:
    PLACE_BITS = 48             # bits of a place's offset; those above number the arena or store


cdef inline object payload_place(uint64_t number, uint64_t offset):
    """Return the place of an offset in an arena or store: `number` and `offset` as one number."""
    return number << PLACE_BITS | offset


cdef inline bint is_packed(const PickRow* pick, const int32_t* arena_number,
                           Py_ssize_t arena_count) noexcept:
    """Return whether a payload is compressed and in a shared arena.

    `arena_number` has each arena's number among the shared ones, or -1.
    """
    return (pick.codec != CODEC_STORED and pick.state == PICK_GOOD
            and 0 <= pick.arena < arena_count and arena_number[pick.arena] >= 0)


def list_packed(bytes picks not None, bytes arena_numbers not None):
    """Return the place (arena number << 48 | offset) of compressed payloads in shared arenas."""
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(picks)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef Py_ssize_t arena_count = PyBytes_GET_SIZE(arena_numbers) // 4, i
    return [payload_place(arena_number[pick[i].arena], pick[i].offset)
            for i in range(PyBytes_GET_SIZE(picks) // <Py_ssize_t>sizeof(PickRow))
            if is_packed(&pick[i], arena_number, arena_count)]


def replace_packed(bytes picks not None, bytes arena_numbers not None, int32_t first,
                   dict stored not None, places):
    """Replace packed payloads by copies that were decompressed before: (picks, missing)."""
    # `stored` maps the place of a payload (arena number << 48 | offset) to that of its copy in a
    # store: in the new picks, store n is arena `first` + n. `missing` are the picks of packed
    # payloads without a copy: all, if `places` is None, else those whose place is in `places`.
    cdef Py_ssize_t arena_count = PyBytes_GET_SIZE(arena_numbers) // 4, i
    cdef Py_ssize_t pick_count = PyBytes_GET_SIZE(picks) // <Py_ssize_t>sizeof(PickRow)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef bytes rows = PyBytes_FromStringAndSize(PyBytes_AS_STRING(picks), PyBytes_GET_SIZE(picks))
    cdef PickRow* pick = <PickRow*>PyBytes_AS_STRING(rows)
    cdef PickRow* missing_row
    cdef uint64_t offset
    cdef Vec missing
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &missing, sizeof(PickRow))
        for i in range(pick_count):
            if not is_packed(&pick[i], arena_number, arena_count):
                continue
            place = payload_place(arena_number[pick[i].arena], pick[i].offset)
            store_place = stored.get(place)
            if store_place is not None:
                offset = store_place
                pick[i].arena = first + <int32_t>(offset >> PLACE_BITS)
                pick[i].offset = offset & ((<uint64_t>1 << PLACE_BITS) - 1)
                pick[i].size = pick[i].full_size
                pick[i].codec = CODEC_STORED
            elif places is None or place in places:
                missing_row = <PickRow*>vec_push(&missing)
                check_memory(missing_row != NULL)
                missing_row[0] = pick[i]
        return rows, vec_to_bytes(&missing)
    finally:
        scratch_free(&scratch)


# `extents` has the offset and size of each payload in the store.
def record_unpacked(bytes missing not None, bytes arena_numbers not None, bytes extents not None,
                    uint64_t store, dict stored not None):
    """Add to `stored` where store number `store` has the payloads of `missing`, decompressed."""
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(missing)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t arena_count = PyBytes_GET_SIZE(arena_numbers) // 4, i
    cdef Py_ssize_t pick_count = PyBytes_GET_SIZE(missing) // <Py_ssize_t>sizeof(PickRow)
    if PyBytes_GET_SIZE(extents) != 16 * pick_count:
        raise ValueError("one extent per payload")
    for i in range(pick_count):
        if (is_packed(&pick[i], arena_number, arena_count)
                and extent[2 * i + 1] == pick[i].full_size):
            place = payload_place(arena_number[pick[i].arena], pick[i].offset)
            stored[place] = payload_place(store, extent[2 * i])


# Files that are copied to another arena.
ctypedef struct Moving:
    const uint8_t* source           # arena that has them
    uint8_t* target                 # arena that gets them
    const uint64_t* old_extents     # offset and size of each file in `source`, alternating
    const uint64_t* new_extents     # offset and size of each file in `target`, alternating


cdef void copy_file(void* context, size_t item) noexcept nogil:
    """Copy one file, and append zeros up to the next multiple of ALIGN; a task of `run_each`."""
    cdef Moving* moving = <Moving*>context
    cdef uint64_t size = moving.new_extents[2 * item + 1]
    cdef uint8_t* to = moving.target + moving.new_extents[2 * item]
    memcpy(to, moving.source + moving.old_extents[2 * item], size)
    memset(to + size, 0, padded_size(size) - size)


# The result is the arguments if the files take more than half of the arena.
def compact(bytes arena not None, bytes extents not None):
    """Copy files to an arena of their own: (arena, extents), like those of `read_files`."""
    cdef Py_ssize_t file_count = count_files(arena, extents), i
    cdef Moving moving
    cdef uint64_t total = 0
    cdef bytes places, compacted
    cdef uint64_t* new_extents
    moving.source = <const uint8_t*>PyBytes_AS_STRING(arena)
    moving.old_extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    places = PyBytes_FromStringAndSize(NULL, 16 * file_count)
    new_extents = <uint64_t*>PyBytes_AS_STRING(places)
    for i in range(file_count):
        new_extents[2 * i] = total
        new_extents[2 * i + 1] = moving.old_extents[2 * i + 1]
        total += padded_size(moving.old_extents[2 * i + 1])
    if total > <uint64_t>PyBytes_GET_SIZE(arena) // 2:
        return arena, extents
    compacted = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    moving.target = <uint8_t*>PyBytes_AS_STRING(compacted)
    moving.new_extents = new_extents
    prefer_large_pages(moving.target, total)
    with nogil:
        run_each(copy_file, &moving, file_count, total)
    return compacted, places
