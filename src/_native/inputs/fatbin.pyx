"""Fat binaries, alone and in host objects: where their entries are, with nothing decompressed.

A fat binary is a row of containers: a header of 16 bytes, then entries back to back, each a header
of 64 bytes or more and a payload. A host object holds one, for each source file that it was made
of, in `__nv_relfatbin`. docs/inputs.md has the fields. A link takes one entry of each container:
`pick_entries` makes rows of these, for `payloads.gather` to decompress.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_push, vec_to_bytes
from inputkinds cimport IN_CUBIN, IN_FATBIN, IN_HOST, IN_LTOIR, IN_PTX, IN_SHARED
from inputs.fatbinrows cimport COMPRESSED, LZ4, ZSTD, ByteRange, EntryRow, FaultRow, SourceRow
from inputs.fatbinscan cimport Scanner, scan_source
from inputs.picks cimport PickRow
from picknumbers cimport (
    CODEC_LZ4_BLOCK, CODEC_ZSTD_FRAME, ENTRY_ELF, ENTRY_PTX, ORIGIN_FATBIN, ORIGIN_HOST,
    PICK_BOTH_CODECS, PICK_GOOD, PICK_TOO_LARGE,
)


def find_entries(list arenas, bytes homes, bytes extents, bytes kinds):
    cdef Scanner scanner
    cdef Py_ssize_t n = PyBytes_GET_SIZE(kinds), i
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
    cdef bytes places = place_sources(arenas, homes, extents, n)
    cdef const uint8_t** place = <const uint8_t**>PyBytes_AS_STRING(places)
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &scanner.entries, sizeof(EntryRow))
        scratch_vector(&scratch, &scanner.sources, sizeof(SourceRow))
        scratch_vector(&scratch, &scanner.faults, sizeof(FaultRow))
        with nogil:
            for i in range(0 if scratch.failed else n):
                scanner.arena = place[i]
                if not scan_source(&scanner, <uint32_t>i, kind[i], extent[2 * i],
                                   extent[2 * i + 1]):
                    scratch.failed = True
                    break
        if scratch.failed:
            raise MemoryError
        return vec_to_bytes(&scanner.entries), vec_to_bytes(&scanner.sources), vec_to_bytes(
            &scanner.faults)
    finally:
        scratch_free(&scratch)


cdef bytes place_sources(list arenas, bytes homes, bytes extents, Py_ssize_t n):
    """A pointer for each source, to its arena; its extent is known to lie there."""
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef bytes places = PyBytes_FromStringAndSize(NULL, n * sizeof(char*))
    cdef const uint8_t** place = <const uint8_t**>PyBytes_AS_STRING(places)
    cdef bytes arena
    cdef Py_ssize_t i
    cdef int32_t last = -1, number
    cdef uint64_t limit = 0
    if PyBytes_GET_SIZE(extents) != 16 * n:
        raise ValueError("one kind per source")
    if PyBytes_GET_SIZE(homes) not in (0, 4 * n):
        raise ValueError("one arena per source")
    for i in range(n):
        number = home[i] if PyBytes_GET_SIZE(homes) else 0
        if number != last:
            if number < 0 or number >= len(arenas):
                raise IndexError(f"no arena {number}")
            arena = arenas[number]
            limit = <uint64_t>PyBytes_GET_SIZE(arena)
            last = number
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"source {i} runs past its arena")
        place[i] = <const uint8_t*>PyBytes_AS_STRING(arena)
    return places


cdef enum:
    RANKS = 64                  # ranks that are kept: a link has few kinds of entries

cdef struct Rank:
    bint known
    uint32_t kind
    uint32_t sm
    uint64_t flags
    int64_t rank

# The picks of one link, and the part of its scan that is not read yet.
ctypedef struct Picking:
    Vec picks
    uint64_t left               # bytes that compressed payloads may still become
    uint32_t codecs             # bits of those that there is something for
    const EntryRow* entry
    const EntryRow* entry_end
    const FaultRow* fault
    const FaultRow* fault_end
    Rank[RANKS] ranks

# A source with containers.
ctypedef struct PickedSource:
    uint32_t number
    int32_t home
    bint hosted
    bint damaged


def pick_entries(tuple scan not None, tuple sources not None, rank, uint64_t limit,
                 dict linked not None):
    cdef bytes entries, rows, faults, homes, extents, kinds
    entries, rows, faults = scan
    homes, extents, kinds = sources
    cdef Picking picking
    cdef PickedSource source
    cdef const SourceRow* row = <const SourceRow*>PyBytes_AS_STRING(rows)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(kinds), i, before
    cdef int64_t containers
    cdef list numbers = [], odd = [], missing = [], bare = []
    cdef set chosen
    cdef Scratch scratch
    if (PyBytes_GET_SIZE(extents) != 16 * n or PyBytes_GET_SIZE(homes) != 4 * n
            or PyBytes_GET_SIZE(rows) != n * <Py_ssize_t>sizeof(SourceRow)):
        raise ValueError("columns differ in length")
    start_picking(&picking, entries, faults, limit)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &picking.picks, sizeof(PickRow))
        for i in range(n):
            before = <Py_ssize_t>picking.picks.count
            source.number, source.home = <uint32_t>i, home[i]
            source.damaged = take_faults(&picking, source.number)
            if kind[i] not in (IN_HOST, IN_FATBIN, IN_SHARED):
                pick_source(&picking, source.number, source.home, kind[i], extent[2 * i],
                            extent[2 * i + 1])
            else:
                source.hosted = kind[i] != IN_FATBIN
                chosen = linked.get(i)
                containers = row[i].containers if chosen is None else len(chosen)
                if (pick_best_entries(&picking, &source, chosen, rank) != containers
                        and not source.damaged):
                    missing.append(i)
                if containers == 0:
                    bare.append(i)
            while before < <Py_ssize_t>picking.picks.count:
                if is_odd(<PickRow*>picking.picks.data + before):
                    odd.append(before)
                numbers.append(i)
                before += 1
        return vec_to_bytes(&picking.picks), numbers, odd, missing, bare, picking.codecs
    finally:
        scratch_free(&scratch)


cdef void start_picking(Picking* picking, bytes entries, bytes faults, uint64_t limit) noexcept:
    """Begin at the first row of the scan, all but `picks`."""
    memset(picking.ranks, 0, sizeof(picking.ranks))
    picking.left = limit
    picking.codecs = 0
    picking.entry = <const EntryRow*>PyBytes_AS_STRING(entries)
    picking.entry_end = picking.entry + PyBytes_GET_SIZE(entries) // sizeof(EntryRow)
    picking.fault = <const FaultRow*>PyBytes_AS_STRING(faults)
    picking.fault_end = picking.fault + PyBytes_GET_SIZE(faults) // sizeof(FaultRow)


cdef bint take_faults(Picking* picking, uint32_t source) noexcept:
    """Whether the source has faults, which come next."""
    cdef const FaultRow* first = picking.fault
    while picking.fault != picking.fault_end and picking.fault.source == source:
        picking.fault += 1
    return picking.fault != first


cdef int64_t pick_best_entries(Picking* picking, const PickedSource* source, set chosen,
                             rank) except -1:
    """Add the best entry of each container, or of each in `chosen`. Returns how many it added."""
    cdef const EntryRow* best
    cdef uint32_t container
    cdef int64_t count = 0
    while picking.entry != picking.entry_end and picking.entry.source == source.number:
        container = picking.entry.container
        best = best_entry(picking, rank)
        if best != NULL and not source.damaged and (chosen is None or container in chosen):
            pick_entry(picking, best, source.home, source.hosted)
            count += 1
    return count


cdef const EntryRow* best_entry(Picking* picking, rank) except? NULL:
    """The first entry of the highest rank in the container that comes next, which is then read.

    NULL where the highest is negative.
    """
    cdef const EntryRow* entry = picking.entry
    cdef const EntryRow* best = NULL
    cdef uint32_t source = entry.source, container = entry.container
    cdef int64_t best_rank = -1, place
    while (entry != picking.entry_end and entry.source == source
            and entry.container == container):
        place = rank_of(picking.ranks, entry, rank)
        if place > best_rank:
            best, best_rank = entry, place
        entry += 1
    picking.entry = entry
    return best


cdef inline bint is_odd(const PickRow* pick) noexcept nogil:
    return pick.kind != IN_CUBIN or pick.state != PICK_GOOD


cdef int64_t rank_of(Rank* ranks, const EntryRow* entry, rank) except? -2:
    """The rank of an entry: few links have entries of many kinds, so it is seldom asked for."""
    cdef uint64_t key = (entry.flags * 31 + entry.sm) * 31 + entry.kind
    cdef Rank* cached = &ranks[(key ^ key >> 12) % RANKS]
    if not (cached.known and cached.kind == entry.kind and cached.sm == entry.sm
            and cached.flags == entry.flags):
        cached.rank = rank(entry.kind, entry.sm, entry.flags)
        cached.kind, cached.sm, cached.flags = entry.kind, entry.sm, entry.flags
        cached.known = True
    return cached.rank


cdef PickRow* new_pick(Picking* picking, uint32_t source, int32_t home) except NULL:
    cdef PickRow* pick = <PickRow*>vec_push(&picking.picks)
    if pick == NULL:
        raise MemoryError
    memset(pick, 0, sizeof(PickRow))
    pick.source = source
    pick.arena = home
    return pick


cdef int pick_source(Picking* picking, uint32_t source, int32_t home, uint8_t kind, uint64_t offset,
                     uint64_t size) except -1:
    """Add the pick of a whole source."""
    cdef PickRow* pick = new_pick(picking, source, home)
    pick.kind = kind
    pick.header = pick.offset = offset
    pick.size = pick.full_size = size
    return 0


cdef int pick_entry(Picking* picking, const EntryRow* entry, int32_t home, bint hosted) except -1:
    """Add the pick of an entry: its payload, codec and sizes."""
    cdef PickRow* pick = new_pick(picking, entry.source, home)
    pick.container = entry.container
    pick.index = entry.index
    pick.kind = (IN_CUBIN if entry.kind == ENTRY_ELF
                 else IN_PTX if entry.kind == ENTRY_PTX else IN_LTOIR)
    pick.sm = entry.sm
    pick.flags = entry.flags
    pick.header = entry.offset
    pick.offset = entry.offset + entry.header_size
    pick.room = entry.size
    pick.size = entry.packed_size
    pick.embedded = ORIGIN_HOST if hosted else ORIGIN_FATBIN
    pick.full_size = entry.full_size if entry.flags & COMPRESSED else entry.size
    if entry.flags & COMPRESSED and pick.kind != IN_LTOIR:
        if entry.flags & LZ4 and entry.flags & ZSTD:
            pick.state = PICK_BOTH_CODECS
            return 0
        if entry.full_size > picking.left:
            pick.state = PICK_TOO_LARGE
            return 0
        picking.left -= entry.full_size
        pick.codec = CODEC_ZSTD_FRAME if entry.flags & ZSTD else CODEC_LZ4_BLOCK
        picking.codecs |= 1 << pick.codec
    return 0


def collect_names(list arenas, bytes homes, bytes rows, list numbers):
    cdef const SourceRow* row = <const SourceRow*>PyBytes_AS_STRING(rows)
    cdef const int32_t* home = <const int32_t*>PyBytes_AS_STRING(homes)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(rows) // sizeof(SourceRow), i
    cdef dict external = {}, internal = {}, variables = {}
    cdef bytes arena
    cdef int k
    if PyBytes_GET_SIZE(homes) != 4 * n:
        raise ValueError("one arena per source")
    for number in numbers:
        i = number
        if i < 0 or i >= n:
            raise IndexError(f"no source {i}")
        if home[i] < 0 or home[i] >= len(arenas):
            raise IndexError(f"no arena {home[i]}")
        if row[i].containers == 0 or row[i].kernels[0].offset == 0:
            return None
        arena = arenas[home[i]]
        add_names(external, arena, &row[i].kernels[0])
        add_names(internal, arena, &row[i].kernels[1])
        for k in range(4):
            add_names(variables, arena, &row[i].variables[k])
    return external, internal, variables


cdef int add_names(dict names, bytes arena, const ByteRange* place) except -1:
    """The names between zero bytes in a section."""
    cdef const char* at = PyBytes_AS_STRING(arena) + place.offset
    cdef const char* end = at + place.size
    cdef const char* zero
    if place.offset == 0:
        return 0
    if (place.offset > <uint64_t>PyBytes_GET_SIZE(arena)
            or place.size > <uint64_t>PyBytes_GET_SIZE(arena) - place.offset):
        raise IndexError("names outside the arena")
    while at != end:
        zero = <const char*>memchr(at, 0, end - at)
        if zero == NULL:
            zero = end
        if zero != at:
            names[PyBytes_FromStringAndSize(at, zero - at)] = None
        at = zero if zero == end else zero + 1
    return 0
