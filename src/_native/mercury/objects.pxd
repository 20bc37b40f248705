# Mercury vectors as rows of C structures, and the hash tables that find rows by key.
#
# Names of sections are compared without `.nv.merc` (stripped). A key is a hash, which finds rows
# that may be equal; their fields and bytes are compared afterwards.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.prefetch cimport prefetch
from base.spans cimport (
    KEYS_AHEAD, KeySlot, KeyTable, Span, first_difference, mix, mix_bytes, table_add, table_free,
    table_home, table_init, table_put, table_slot,
)
from base.texts cimport MERC_PREFIX, has_prefix

cdef enum SymbolKind:
    S_NULL = 0          # index 0
    S_NAMED = 1         # global or weak: the name says which symbol of the whole link it is
    S_SECTION = 2       # start of a section whose header is compared
    S_PRIVATE = 3       # any other symbol of the file: equal to no symbol of another file

# The fields of a section header in which two objects must agree.
cdef struct Header:
    uint64_t size           # sh_size
    uint64_t link_info      # sh_link and sh_info as they lie in the header, in one number
    uint64_t key            # hash of the other fields
    const uint8_t* name     # stripped
    uint32_t name_size      # bytes of `name`
    uint32_t addralign      # the low 32 bits of sh_addralign

# A section of relocations (RELA).
cdef struct Target:
    const uint8_t* data     # its bytes
    size_t size             # bytes of `data`
    uint64_t key            # hash of `name` and `size`
    uint64_t digest         # hash of `data`, if `hashed`
    const uint8_t* name     # stripped
    Span place              # stripped name of the section that it relocates, if `has_symbols`
    uint32_t name_size      # bytes of `name`
    uint8_t hashed          # `digest` is filled
    uint8_t tied            # another target has the same slot in `by_target`: mostly, an equal key

# A symbol of an object, for the comparison with that of the same index in another object.
cdef struct Symbol:
    Span name               # its name, or for S_SECTION the stripped name of its section
    uint8_t kind            # SymbolKind
    uint8_t type            # STT_ number
    uint8_t bind            # STB_ number
    uint8_t described       # a function that the file defines

# A symbol that relocations name, with the first entry that names it.
cdef struct Use:
    uint32_t target         # row of the Target
    uint32_t entry          # number of the RELA entry in it
    uint32_t symbol         # symbol index

# One candidate or reference of the comparison: three vectors (mercury/dedup.pyx), and symbols.
cdef struct Object:
    Span* primary           # the bytes of its sections, by position
    Header* headers
    Target* targets
    Symbol* symbols         # by symbol index
    Use* uses               # a row for each symbol that relocations of targets name
    size_t primary_count
    size_t header_count
    size_t target_count
    size_t symbol_count
    size_t use_count
    Span attributes         # attribute records of the whole file
    Span kinds              # other header fields of all sections and targets, in one string
    bint has_symbols        # `symbols`, `uses`, `attributes`, `kinds` and places are filled
    bint indexed            # `by_header` and `by_target` are filled
    bint digested           # `by_digest` is filled
    bint ties               # if indexed: some targets are tied
    bint distinct           # if indexed: no two headers and no two targets have the same key
    KeyTable by_header      # headers by key
    KeyTable by_target      # targets by key
    KeyTable by_digest      # tied targets by key and digest

# The work of one comparison or of several.
cdef struct WorkCounts:
    uint64_t memcmp_calls       # comparisons of bytes
    uint64_t bytes_compared     # bytes up to the first difference, with that byte
    uint64_t bytes_offered      # bytes up to the end, i.e. the sizes of what was compared
    uint64_t twin_probes        # rows of a reference that were compared in search of a twin
    uint64_t prefilter_hits     # rows that a hash table found and that are twins
    uint64_t false_positives    # rows that a hash table found and that are not twins
    uint64_t ns[3]              # nanoseconds of each stage

# The result of a comparison. A number that does not apply is -1.
cdef struct Verdict:
    int why                 # a number of class FoldOutcome in pylink/facts/outcomes.py
    int64_t index           # failing entry of the candidate's vector
    int64_t twin            # entry of the reference that `index` was compared with
    int64_t offset          # first differing byte, or failing entry of a relocation section
    int64_t symbol          # symbol index that differs
    int64_t moved_header    # first candidate header whose twin is at another position
    int64_t moved_target    # first candidate target whose twin is at another position


cdef inline Span strip(const uint8_t* name, size_t size) noexcept nogil:
    """Return a section's name without `.nv.merc`: `.debug_line` for `.nv.merc.debug_line`."""
    cdef Span out
    out.data = name
    out.size = size
    if has_prefix(name, size, b".nv.merc."):
        out.data += MERC_PREFIX
        out.size -= MERC_PREFIX
    return out


cdef inline bint is_equal_span(const uint8_t* a, size_t a_size, const uint8_t* b,
                               size_t b_size) noexcept nogil:
    """Return whether the `a_size` bytes of `a` are the `b_size` bytes of `b`."""
    return a_size == b_size and (a_size == 0 or memcmp(a, b, a_size) == 0)


cdef inline bint is_equal_header(const Header* a, const Header* b) noexcept nogil:
    """Return whether two headers have equal fields and names."""
    return (a.size == b.size and a.link_info == b.link_info and a.addralign == b.addralign
            and is_equal_span(a.name, a.name_size, b.name, b.name_size))


cdef inline bint is_equal_target(const Target* a, const Target* b, WorkCounts* work) noexcept nogil:
    """Return whether two targets have equal names and bytes; adds to the counts of `work`."""
    cdef size_t difference
    if a.size != b.size or not is_equal_span(a.name, a.name_size, b.name, b.name_size):
        return False
    difference = compare_bytes(a.data, b.data, a.size, work)
    return difference == a.size


cdef inline size_t compare_bytes(const uint8_t* a, const uint8_t* b, size_t size,
                                 WorkCounts* work) noexcept nogil:
    """Return the offset of the first byte that differs, or `size`; counts this in `work`."""
    cdef size_t difference = first_difference(a, b, size)
    work.memcmp_calls += 1
    work.bytes_offered += size
    work.bytes_compared += difference + (difference != size)
    return difference


cdef inline uint64_t header_key(const Header* header) noexcept nogil:
    """Return the hash of all fields of a header except for `key`."""
    return mix_bytes(mix(mix(mix(0, header.size), header.link_info), header.addralign),
                     header.name, header.name_size)


cdef inline uint64_t target_key(const Target* target) noexcept nogil:
    """Return the hash of a target's name and size."""
    return mix_bytes(mix(1, target.size), target.name, target.name_size)


cdef inline uint32_t target_row(const Object* object, uint64_t key) noexcept nogil:
    """Return row + 1 of the first target with `key`, or 0. The object must be indexed."""
    cdef uint32_t row = table_slot(&object.by_target, key).head
    while row and object.targets[row - 1].key != key:
        row = object.by_target.next[row - 1]
    return row


cdef inline bint build_index(Object* object) noexcept nogil:
    """Fill `by_header` and `by_target`, unless filled; False when memory is exhausted.

    Also sets `ties`, `distinct`, and `tied` of the targets.
    """
    cdef size_t i
    cdef uint32_t row
    cdef Header* header
    cdef Target* target
    cdef KeySlot* slot
    if object.indexed:
        return True
    if not (table_init(&object.by_header, object.header_count)
            and table_init(&object.by_target, object.target_count)):
        table_free(&object.by_header)
        table_free(&object.by_target)
        return False
    object.distinct = True
    for i in range(object.header_count):
        if i + KEYS_AHEAD < object.header_count:
            prefetch(&object.by_header.slots[table_home(&object.by_header,
                                                        object.headers[i + KEYS_AHEAD].key)])
        header = &object.headers[i]
        slot = table_slot(&object.by_header, header.key)
        if slot.head and object.distinct:
            # Rows of other keys may be in the slot's chain, so each key is compared.
            row = slot.head
            while row and object.headers[row - 1].key != header.key:
                row = object.by_header.next[row - 1]
            object.distinct = row == 0
        table_put(&object.by_header, slot, header.key, <uint32_t>i)
    for i in range(object.target_count):
        if i + KEYS_AHEAD < object.target_count:
            prefetch(&object.by_target.slots[table_home(&object.by_target,
                                                        object.targets[i + KEYS_AHEAD].key)])
        target = &object.targets[i]
        slot = table_slot(&object.by_target, target.key)
        if slot.head:
            object.ties = True
            object.distinct = object.distinct and target_row(object, target.key) == 0
            object.targets[slot.head - 1].tied = True
            target.tied = True
        table_put(&object.by_target, slot, target.key, <uint32_t>i)
    object.indexed = True
    return True


cdef inline bint build_digests(Object* object) noexcept nogil:
    """Fill `by_digest`, unless it is filled; False when memory is exhausted.

    All tied targets must have digests.
    """
    cdef size_t i
    if object.digested:
        return True
    if not table_init(&object.by_digest, object.target_count):
        table_free(&object.by_digest)
        return False
    for i in range(object.target_count):
        if object.targets[i].tied:
            table_add(&object.by_digest, mix(object.targets[i].key, object.targets[i].digest),
                      <uint32_t>i)
    object.digested = True
    return True
