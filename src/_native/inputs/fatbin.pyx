"""Fat binaries, alone and in host objects: where their entries are, with nothing decompressed.

A fat binary is a sequence of containers. A container is a header of 16 bytes or more, then entries
back to back; an entry is a header of 64 bytes or more and a payload. A host object has in
`__nv_relfatbin` one container for each source file that it was made of. docs/inputs.md has the
fields. A link takes one entry of each container: `pick_entries` makes rows of these, for
`payloads.gather` to decompress. A "source" is an input of the link, or a member of an archive.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.threads cimport MOST_THREADS, claim, release_threads, run_parts
from base.vector cimport Vec, vec_push, vec_to_bytes
from containernumbers cimport FLAGS_OF_CODECS, FLAG_LZ4, FLAG_ZSTD
from inputkinds cimport IN_CUBIN, IN_FATBIN, IN_HOST, IN_LTOIR, IN_PTX, IN_SHARED
from inputs.fatbinrows cimport ByteRange, EntryRow, FaultRow, SourceRow
from inputs.fatbinscan cimport Scanner, scan_source
from inputs.picks cimport PickRow
from picknumbers cimport (
    CODEC_LZ4_BLOCK, CODEC_ZSTD_FRAME, ENTRY_ELF, ENTRY_PTX, ORIGIN_FATBIN, ORIGIN_HOST,
    PICK_BOTH_CODECS, PICK_GOOD, PICK_TOO_LARGE,
)


cdef enum:
    # Work of scanning a source, for `claim`: as many bytes as are copied in the same time. Each
    # source is read at a dozen places that no cache has.
    SCAN_COST = 16 << 10

# The results of one thread, which scans a run of sources: inputs, or members of archives.
ctypedef struct ScanPart:
    Scanner scanner
    bint failed                 # memory is exhausted

# The sources of a scan, and its parts, one for each thread.
ctypedef struct Scan:
    const uint8_t** arena       # by source: start of the arena that it is in
    const uint64_t* extent      # offset and size of each source, alternating
    const uint8_t* kind         # by source: an InputKind
    size_t source_count
    ScanPart[MOST_THREADS] parts
    size_t part_count


cdef void scan_part(void* context, size_t item) noexcept nogil:
    """Scan the sources of part number `item`; sets its `failed` without memory."""
    cdef Scan* scan = <Scan*>context
    cdef ScanPart* part = &scan.parts[item]
    cdef size_t i
    for i in range(scan.source_count * item // scan.part_count,
                   scan.source_count * (item + 1) // scan.part_count):
        part.scanner.arena = scan.arena[i]
        if not scan_source(&part.scanner, <uint32_t>i, scan.kind[i], scan.extent[2 * i],
                           scan.extent[2 * i + 1]):
            part.failed = True
            return


# Sources are inputs and members of archives; `extents` has their offsets and sizes in arenas with
# the numbers `arena_numbers` (int32; empty: all are in the first), `kinds` their InputKinds. Shared
# libraries of the host count as host objects.
def find_entries(list arenas not None, bytes arena_numbers not None, bytes extents not None,
                 bytes kinds not None):
    """Find the entries of all fat binaries and host objects: (entries, sources, faults)."""
    cdef Scan scan
    cdef ScanPart* part
    cdef size_t i, helpers
    cdef Scratch scratch
    cdef list entries = [], sources = [], faults = []
    scan.source_count = <size_t>PyBytes_GET_SIZE(kinds)
    cdef bytes arena_pointers = find_arenas(arenas, arena_numbers, extents,
                                            <Py_ssize_t>scan.source_count)
    scan.arena = <const uint8_t**>PyBytes_AS_STRING(arena_pointers)
    scan.extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    scan.kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
    helpers = claim(scan.source_count * SCAN_COST, scan.source_count, MOST_THREADS - 1)
    scan.part_count = helpers + 1
    scratch_init(&scratch)
    try:
        for i in range(scan.part_count):
            part = &scan.parts[i]
            part.failed = False
            scratch_vector(&scratch, &part.scanner.entries, sizeof(EntryRow))
            scratch_vector(&scratch, &part.scanner.sources, sizeof(SourceRow))
            scratch_vector(&scratch, &part.scanner.faults, sizeof(FaultRow))
        if not scratch.failed:
            with nogil:
                run_parts(scan_part, &scan, scan.part_count)
        for i in range(scan.part_count):
            part = &scan.parts[i]
            check_memory(not (scratch.failed or part.failed))
            entries.append(vec_to_bytes(&part.scanner.entries))
            sources.append(vec_to_bytes(&part.scanner.sources))
            faults.append(vec_to_bytes(&part.scanner.faults))
        return b"".join(entries), b"".join(sources), b"".join(faults)
    finally:
        release_threads(helpers)
        scratch_free(&scratch)


cdef bytes find_arenas(list arenas, bytes arena_numbers, bytes extents, Py_ssize_t source_count):
    """Return, as bytes, a pointer to the arena of each source.

    IndexError for an extent outside its arena, and for an arena that does not exist.
    """
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef bytes arena_pointers = PyBytes_FromStringAndSize(NULL, source_count * sizeof(char*))
    cdef const uint8_t** arena_pointer = <const uint8_t**>PyBytes_AS_STRING(arena_pointers)
    cdef bytes arena
    cdef Py_ssize_t i
    cdef int32_t last = -1, number
    cdef uint64_t limit = 0
    if PyBytes_GET_SIZE(extents) != 16 * source_count:
        raise ValueError("one kind per source")
    if PyBytes_GET_SIZE(arena_numbers) not in (0, 4 * source_count):
        raise ValueError("one arena per source")
    for i in range(source_count):
        number = arena_number[i] if PyBytes_GET_SIZE(arena_numbers) else 0
        if number != last:
            if number < 0 or number >= len(arenas):
                raise IndexError(f"no arena {number}")
            arena = arenas[number]
            limit = <uint64_t>PyBytes_GET_SIZE(arena)
            last = number
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"source {i} runs past its arena")
        arena_pointer[i] = <const uint8_t*>PyBytes_AS_STRING(arena)
    return arena_pointers


cdef enum:
    RANKS = 64                  # slots of the cache of ranks: a link has few kinds of entries

# A slot of the cache of what the caller's `rank` returned for a kind, SM number and flags.
cdef struct Rank:
    bint is_set
    uint32_t kind
    uint32_t sm
    uint64_t flags
    int64_t rank                # negative: the entry cannot be used

# The picks of one link, i.e. what it takes, and which rows of its scan (`find_entries`) are next.
ctypedef struct Picking:
    Vec picks                   # PickRow
    uint64_t bytes_left         # bytes that all further payloads may have when decompressed
    uint32_t codecs             # a bit, 1 << codec, for each codec of a pick
    const EntryRow* entry       # next entry that is not read
    const EntryRow* entry_end
    const FaultRow* fault       # next fault that is not read
    const FaultRow* fault_end
    Rank[RANKS] ranks

# A source of a kind that has containers: a fat binary, a host object or a shared library.
ctypedef struct PickedSource:
    uint32_t number
    int32_t arena_number
    bint hosted                 # its containers are in a host object or shared library
    bint damaged                # it has faults, so nothing is picked


# The result's `sources` are the sources of picks, `special` are picks that are not cubins or cannot
# be linked. `linked` has, by source, the containers that count; in other sources all count. `rank`
# ranks an entry, unusable if negative. `unmatched` are sources with a container that counts and has
# no usable entry, `bare` those in which no container counts. Damaged sources are not unmatched.
# Decompressed payloads have at most `limit` bytes in all. `codecs` has a bit, 1 << codec, for each
# codec of a pick.
def pick_entries(tuple scan not None, tuple sources not None, rank, uint64_t limit,
                 dict linked not None):
    """Pick the code that a link takes: (picks, sources, special, unmatched, bare, codecs)."""
    cdef bytes entries, rows, faults, arena_numbers, extents, kinds
    entries, rows, faults = scan
    arena_numbers, extents, kinds = sources
    cdef Picking picking
    cdef PickedSource source
    cdef const SourceRow* row = <const SourceRow*>PyBytes_AS_STRING(rows)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
    cdef Py_ssize_t source_count = PyBytes_GET_SIZE(kinds), i, pick_number
    cdef int64_t containers
    cdef list numbers = [], special = [], unmatched = [], bare = []
    cdef set chosen
    cdef Scratch scratch
    if (PyBytes_GET_SIZE(extents) != 16 * source_count
            or PyBytes_GET_SIZE(arena_numbers) != 4 * source_count
            or PyBytes_GET_SIZE(rows) != source_count * <Py_ssize_t>sizeof(SourceRow)):
        raise ValueError("columns differ in length")
    start_picking(&picking, entries, faults, limit)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &picking.picks, sizeof(PickRow))
        for i in range(source_count):
            pick_number = <Py_ssize_t>picking.picks.count
            source.number, source.arena_number = <uint32_t>i, arena_number[i]
            source.damaged = take_faults(&picking, source.number)
            if kind[i] not in (IN_HOST, IN_FATBIN, IN_SHARED):
                pick_source(&picking, source.number, source.arena_number, kind[i], extent[2 * i],
                            extent[2 * i + 1])
            else:
                source.hosted = kind[i] != IN_FATBIN
                chosen = linked.get(i)
                containers = row[i].containers if chosen is None else len(chosen)
                if (pick_best_entries(&picking, &source, chosen, rank) != containers
                        and not source.damaged):
                    unmatched.append(i)
                if containers == 0:
                    bare.append(i)
            while pick_number < <Py_ssize_t>picking.picks.count:
                if is_special(<PickRow*>picking.picks.data + pick_number):
                    special.append(pick_number)
                numbers.append(i)
                pick_number += 1
        return vec_to_bytes(&picking.picks), numbers, special, unmatched, bare, picking.codecs
    finally:
        scratch_free(&scratch)


cdef void start_picking(Picking* picking, bytes entries, bytes faults, uint64_t limit) noexcept:
    """Set all fields except `picks`, to begin at the first `entries` and `faults` of the scan."""
    memset(picking.ranks, 0, sizeof(picking.ranks))
    picking.bytes_left = limit
    picking.codecs = 0
    picking.entry = <const EntryRow*>PyBytes_AS_STRING(entries)
    picking.entry_end = picking.entry + PyBytes_GET_SIZE(entries) // sizeof(EntryRow)
    picking.fault = <const FaultRow*>PyBytes_AS_STRING(faults)
    picking.fault_end = picking.fault + PyBytes_GET_SIZE(faults) // sizeof(FaultRow)


cdef bint take_faults(Picking* picking, uint32_t source) noexcept:
    """Skip the faults of a source, which are next. Returns whether it has any."""
    cdef const FaultRow* first = picking.fault
    while picking.fault != picking.fault_end and picking.fault.source == source:
        picking.fault += 1
    return picking.fault != first


cdef int64_t pick_best_entries(Picking* picking, const PickedSource* source, set chosen,
                               rank) except -1:
    """Pick the best entry of each container; return how many were picked.

    `chosen` has the numbers of the containers that count, None for all.
    """
    cdef const EntryRow* best
    cdef uint32_t container
    cdef int64_t count = 0
    while picking.entry != picking.entry_end and picking.entry.source == source.number:
        container = picking.entry.container
        best = take_best_entry(picking, rank)
        if best != NULL and not source.damaged and (chosen is None or container in chosen):
            pick_entry(picking, best, source.arena_number, source.hosted)
            count += 1
    return count


cdef const EntryRow* take_best_entry(Picking* picking, rank) except? NULL:
    """Read the entries of the next container. Returns the first one of the highest rank.

    NULL if the ranks of all are negative.
    """
    cdef const EntryRow* entry = picking.entry
    cdef const EntryRow* best = NULL
    cdef uint32_t source = entry.source, container = entry.container
    cdef int64_t best_rank = -1, entry_rank
    while (entry != picking.entry_end and entry.source == source
            and entry.container == container):
        entry_rank = find_rank(picking.ranks, entry, rank)
        if entry_rank > best_rank:
            best, best_rank = entry, entry_rank
        entry += 1
    picking.entry = entry
    return best


cdef inline bint is_special(const PickRow* pick) noexcept nogil:
    """Return whether Python must look at a pick: it is not a cubin, or cannot be linked."""
    return pick.kind != IN_CUBIN or pick.state != PICK_GOOD


cdef int64_t find_rank(Rank* ranks, const EntryRow* entry, rank) except? -2:
    """Return what `rank` returns for an entry, from the cache `ranks` if it was asked before."""
    cdef uint64_t key = (entry.flags * 31 + entry.sm) * 31 + entry.kind
    cdef Rank* cached = &ranks[(key ^ key >> 12) % RANKS]
    if not (cached.is_set and cached.kind == entry.kind and cached.sm == entry.sm
            and cached.flags == entry.flags):
        cached.rank = rank(entry.kind, entry.sm, entry.flags)
        cached.kind, cached.sm, cached.flags = entry.kind, entry.sm, entry.flags
        cached.is_set = True
    return cached.rank


cdef PickRow* add_pick(Picking* picking, uint32_t source, int32_t arena_number) except NULL:
    """Add a row of zeros, except for the numbers of its source and arena; return the row."""
    cdef PickRow* pick = <PickRow*>vec_push(&picking.picks)
    check_memory(pick != NULL)
    memset(pick, 0, sizeof(PickRow))
    pick.source = source
    pick.arena = arena_number
    return pick


cdef int pick_source(Picking* picking, uint32_t source, int32_t arena_number, uint8_t kind,
                     uint64_t offset, uint64_t size) except -1:
    """Add the pick of a whole source, of `size` bytes at `offset` of its arena."""
    cdef PickRow* pick = add_pick(picking, source, arena_number)
    pick.kind = kind
    pick.header = pick.offset = offset
    pick.size = pick.full_size = size
    return 0


cdef int pick_entry(Picking* picking, const EntryRow* entry, int32_t arena_number,
                    bint hosted) except -1:
    """Add the pick of an entry: its payload, codec and sizes, or why it cannot be linked."""
    cdef PickRow* pick = add_pick(picking, entry.source, arena_number)
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
    pick.full_size = entry.full_size if entry.flags & FLAGS_OF_CODECS else entry.size
    if entry.flags & FLAGS_OF_CODECS and pick.kind != IN_LTOIR:
        if entry.flags & FLAG_LZ4 and entry.flags & FLAG_ZSTD:
            pick.state = PICK_BOTH_CODECS
            return 0
        if entry.full_size > picking.bytes_left:
            pick.state = PICK_TOO_LARGE
            return 0
        picking.bytes_left -= entry.full_size
        pick.codec = CODEC_ZSTD_FRAME if entry.flags & FLAG_ZSTD else CODEC_LZ4_BLOCK
        picking.codecs |= 1 << pick.codec
    return 0


# `numbers` are those of the sources. The names are keys of three dicts: kernels with global names,
# other kernels, variables. None if a source has no device code, or no list of kernels with global
# names.
def collect_names(list arenas not None, bytes arena_numbers not None, bytes rows not None,
                  list numbers not None):
    """Return names that host code of these sources uses: (external, internal, variables)."""
    cdef const SourceRow* row = <const SourceRow*>PyBytes_AS_STRING(rows)
    cdef const int32_t* arena_number = <const int32_t*>PyBytes_AS_STRING(arena_numbers)
    cdef Py_ssize_t source_count = PyBytes_GET_SIZE(rows) // sizeof(SourceRow), i
    cdef dict external = {}, internal = {}, variables = {}
    cdef bytes arena
    cdef int k
    if PyBytes_GET_SIZE(arena_numbers) != 4 * source_count:
        raise ValueError("one arena per source")
    for number in numbers:
        i = number
        if i < 0 or i >= source_count:
            raise IndexError(f"no source {i}")
        if arena_number[i] < 0 or arena_number[i] >= len(arenas):
            raise IndexError(f"no arena {arena_number[i]}")
        if row[i].containers == 0 or row[i].kernels[0].offset == 0:
            return None
        arena = arenas[arena_number[i]]
        add_names(external, arena, &row[i].kernels[0])
        add_names(internal, arena, &row[i].kernels[1])
        for k in range(4):
            add_names(variables, arena, &row[i].variables[k])
    return external, internal, variables


cdef int add_names(dict names, bytes arena, const ByteRange* section) except -1:
    """Add the names in a section, which zero bytes separate, as keys of `names`."""
    cdef const char* name = PyBytes_AS_STRING(arena) + section.offset
    cdef const char* end = name + section.size
    cdef const char* zero
    if section.offset == 0:
        return 0
    if (section.offset > <uint64_t>PyBytes_GET_SIZE(arena)
            or section.size > <uint64_t>PyBytes_GET_SIZE(arena) - section.offset):
        raise IndexError("names outside the arena")
    while name != end:
        zero = <const char*>memchr(name, 0, end - name)
        if zero == NULL:
            zero = end
        if zero != name:
            names[PyBytes_FromStringAndSize(name, zero - name)] = None
        name = zero if zero == end else zero + 1
    return 0
