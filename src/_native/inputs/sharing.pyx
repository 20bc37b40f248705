"""Payloads that several links take of inputs which they share: each is decompressed by the first.

A payload goes by its place, the number of the shared arena that it is in and its offset there, as
one number. `known` maps that to where it is decompressed: the number of a store and an offset, in
the same form. Links ask one after the other.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.extents cimport count_files
from base.hugepages cimport prefer_large_pages
from base.threads cimport for_each
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_push, vec_take
from inputs.filereading cimport padded
from inputs.picks cimport P_GOOD, STORED, PickRow

cdef enum:
    PLACE_BITS = 48             # of an offset; no arena is as large


cdef inline object place_of(uint64_t number, uint64_t offset):
    return number << PLACE_BITS | offset


cdef inline bint is_packed(const PickRow* pick, const int32_t* home, Py_ssize_t n) noexcept:
    """Whether a shared arena has the payload, compressed."""
    return (pick.codec != STORED and pick.state == P_GOOD
            and 0 <= pick.arena < n and home[pick.arena] >= 0)


def list_packed(bytes picks, bytes homes):
    """The places of all compressed payloads among PickRows.

    `homes` has for each arena of the rows its number among the shared ones, int32, or -1.
    """
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(picks)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(homes) // 4, i
    return [place_of(home[pick[i].arena], pick[i].offset)
            for i in range(PyBytes_GET_SIZE(picks) // <Py_ssize_t>sizeof(PickRow))
            if is_packed(&pick[i], home, n)]


def recall(bytes picks, bytes homes, int32_t first, dict known, wanted):
    """PickRows of what is `known` as it is in the stores, whose numbers begin at `first`.

    Returns `(picks, missing)`: all rows, and those of compressed payloads that are not known and in
    `wanted`, or any where that is None.
    """
    cdef Py_ssize_t n = PyBytes_GET_SIZE(homes) // 4, i
    cdef Py_ssize_t count = PyBytes_GET_SIZE(picks) // <Py_ssize_t>sizeof(PickRow)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef bytes rows = PyBytes_FromStringAndSize(PyBytes_AS_STRING(picks), PyBytes_GET_SIZE(picks))
    cdef PickRow* pick = <PickRow*>PyBytes_AS_STRING(rows)
    cdef PickRow* fresh
    cdef uint64_t at
    cdef Vec missing
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &missing, sizeof(PickRow))
        for i in range(count):
            if not is_packed(&pick[i], home, n):
                continue
            place = place_of(home[pick[i].arena], pick[i].offset)
            found = known.get(place)
            if found is not None:
                at = found
                pick[i].arena = first + <int32_t>(at >> PLACE_BITS)
                pick[i].offset = at & ((<uint64_t>1 << PLACE_BITS) - 1)
                pick[i].size = pick[i].full_size
                pick[i].codec = STORED
            elif wanted is None or place in wanted:
                fresh = <PickRow*>vec_push(&missing)
                if fresh == NULL:
                    raise MemoryError
                fresh[0] = pick[i]
        return rows, vec_take(&missing)
    finally:
        scratch_free(&scratch)


def learn(bytes missing, bytes homes, bytes extents, uint64_t store, dict known):
    """Note where the payloads of `recall` are in a store; those that could not be had are left."""
    cdef const PickRow* pick = <const PickRow*>PyBytes_AS_STRING(missing)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(homes) // 4, i
    cdef Py_ssize_t count = PyBytes_GET_SIZE(missing) // <Py_ssize_t>sizeof(PickRow)
    if PyBytes_GET_SIZE(extents) != 16 * count:
        raise ValueError("one extent per payload")
    for i in range(count):
        if is_packed(&pick[i], home, n) and extent[2 * i + 1] == pick[i].full_size:
            known[place_of(home[pick[i].arena], pick[i].offset)] = place_of(store, extent[2 * i])


ctypedef struct Moving:
    const uint8_t* source
    uint8_t* target
    const uint64_t* old
    const uint64_t* new


cdef void move_file(void* context, size_t item) noexcept nogil:
    cdef Moving* m = <Moving*>context
    cdef uint64_t size = m.new[2 * item + 1]
    cdef uint8_t* to = m.target + m.new[2 * item]
    memcpy(to, m.source + m.old[2 * item], size)
    memset(to + size, 0, padded(size) - size)


def compact(bytes arena, bytes extents):
    """An arena of these files alone, with its extents; the given ones if most of it is theirs."""
    cdef Py_ssize_t n = count_files(arena, extents), i
    cdef Moving m
    cdef uint64_t total = 0
    cdef bytes places, made
    cdef uint64_t* place
    m.source = <const uint8_t*>PyBytes_AS_STRING(arena)
    m.old = <const uint64_t*>PyBytes_AS_STRING(extents)
    places = PyBytes_FromStringAndSize(NULL, 16 * n)
    place = <uint64_t*>PyBytes_AS_STRING(places)
    for i in range(n):
        place[2 * i] = total
        place[2 * i + 1] = m.old[2 * i + 1]
        total += padded(m.old[2 * i + 1])
    if total > <uint64_t>PyBytes_GET_SIZE(arena) // 2:
        return arena, extents
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    m.target = <uint8_t*>PyBytes_AS_STRING(made)
    m.new = place
    prefer_large_pages(m.target, total)
    with nogil:
        for_each(move_file, &m, n, total)
    return made, places
