# Mercury vectors as rows of C structures, and the tables that find rows by key.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted, and only
# then.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.spans cimport (
    AHEAD, KeySlot, KeyTable, Span, first_difference, mix, mix_bytes, prefetch, table_add,
    table_free, table_home, table_init, table_put, table_slot,
)
from base.texts cimport MERC_PREFIX, has_prefix

cdef enum Why:
    # Index into pylink.mercury.reasons.REASONS, which has the code, the stage and the sentence.
    ACCEPTED = 0
    BYTES_DIFFER = 1
    CANDIDATE_LONGER = 2
    REFERENCE_SHORTER = 3
    HEADER_COUNT = 4
    HEADER_TWIN = 5
    TARGET_COUNT = 6
    TARGET_TWIN = 7
    HEADER_MOVED = 8
    TARGET_MOVED = 9
    TARGET_PLACE = 10
    ATTRIBUTES_DIFFER = 11
    FUNCTION_DIFFERS = 12
    FUNCTION_WEAKER = 13
    SYMBOL_DIFFERS = 14
    SECTION_KIND = 15
    NEEDS_DIGESTS = 16

cdef enum SymbolKind:
    S_NULL = 0          # index 0
    S_NAMED = 1         # global or weak: the name says which symbol of the whole link it is
    S_SECTION = 2       # start of a section that folds with its twin
    S_PRIVATE = 3       # anything else of this file: the same as nothing outside it

# A section header, as far as two objects have to agree in it.
cdef struct Header:
    uint64_t q0             # sh_size
    uint64_t q8             # sh_link and sh_info
    uint64_t key            # hash of the other fields
    const uint8_t* name     # stripped
    uint32_t name_size
    uint32_t addralign

# A section of relocations: its bytes, its name, and the section that they change.
cdef struct Target:
    const uint8_t* data
    size_t size
    uint64_t key            # hash of stripped name and size
    uint64_t digest
    const uint8_t* name     # stripped
    Span place              # stripped name of the section it relocates; only with symbols
    uint32_t name_size
    uint8_t hashed          # `digest` is filled
    uint8_t tied            # another row of the object has the same key

cdef struct Symbol:
    Span name
    uint8_t kind
    uint8_t type
    uint8_t bind
    uint8_t described       # a function that the file defines

cdef struct Use:
    # The first relocation entry that names a symbol.
    uint32_t target
    uint32_t entry
    uint32_t symbol

# One candidate or reference of the comparison, with three kinds of entries (mercury/dedup.pyx).
cdef struct Object:
    Span* primary           # the bytes of its sections, by position
    Header* headers
    Target* targets
    Symbol* symbols
    Use* uses
    size_t primaries
    size_t header_count
    size_t target_count
    size_t symbol_count
    size_t use_count
    Span attributes
    Span kinds
    bint has_symbols
    bint indexed            # the two tables over the keys are filled
    bint digested           # the table over the digests of tied targets is filled
    bint ties               # some targets share stripped name and size
    bint distinct           # no two headers and no two targets share a key
    KeyTable by_header
    KeyTable by_target
    KeyTable by_digest

cdef struct Comparison:
    uint64_t memcmp_calls
    uint64_t bytes_compared
    uint64_t bytes_offered
    uint64_t twin_probes
    uint64_t prefilter_hits
    uint64_t false_positives
    uint64_t ns[3]

cdef struct Verdict:
    int why
    int64_t index           # failing entry of the candidate
    int64_t twin            # entry of the reference that it was compared with
    int64_t offset          # first differing byte, or failing entry of a relocation section
    int64_t symbol
    int64_t moved_header    # first candidate header whose twin stands at another place
    int64_t moved_target


cdef inline Span strip(const uint8_t* name, size_t size) noexcept nogil:
    """The test is for the nine characters `.nv.merc.`, the strip takes eight: the dot stays."""
    cdef Span out
    out.data = name
    out.size = size
    if has_prefix(name, size, b".nv.merc."):
        out.data += MERC_PREFIX
        out.size -= MERC_PREFIX
    return out


cdef inline bint is_equal_span(const uint8_t* a, size_t m, const uint8_t* b,
                               size_t n) noexcept nogil:
    return m == n and (m == 0 or memcmp(a, b, m) == 0)


cdef inline bint is_equal_header(const Header* a, const Header* b) noexcept nogil:
    return (a.q0 == b.q0 and a.q8 == b.q8 and a.addralign == b.addralign
            and is_equal_span(a.name, a.name_size, b.name, b.name_size))


cdef inline bint is_equal_target(const Target* a, const Target* b, Comparison* work) noexcept nogil:
    """Whether two targets have equal names and bytes; counts the work."""
    cdef size_t at
    if a.size != b.size or not is_equal_span(a.name, a.name_size, b.name, b.name_size):
        return False
    at = first_difference(a.data, b.data, a.size)
    work.memcmp_calls += 1
    work.bytes_offered += a.size
    work.bytes_compared += at + (at != a.size)
    return at == a.size


cdef inline uint64_t header_key(const Header* h) noexcept nogil:
    return mix_bytes(mix(mix(mix(0, h.q0), h.q8), h.addralign), h.name, h.name_size)


cdef inline uint64_t target_key(const Target* t) noexcept nogil:
    return mix_bytes(mix(1, t.size), t.name, t.name_size)


cdef inline uint32_t target_row(const Object* object, uint64_t key) noexcept nogil:
    """Row + 1 of the first target with `key`, or 0."""
    cdef uint32_t row = table_slot(&object.by_target, key).head
    while row and object.targets[row - 1].key != key:
        row = object.by_target.next[row - 1]
    return row


cdef inline bint build_index(Object* object) noexcept nogil:
    """Fill the tables over the keys once; False when memory is exhausted."""
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
        if i + AHEAD < object.header_count:
            prefetch(&object.by_header.slots[table_home(&object.by_header,
                                                        object.headers[i + AHEAD].key)])
        header = &object.headers[i]
        slot = table_slot(&object.by_header, header.key)
        if slot.head and object.distinct:
            # A slot holds part of the key; what repeats must not depend on the order of rows.
            row = slot.head
            while row and object.headers[row - 1].key != header.key:
                row = object.by_header.next[row - 1]
            object.distinct = row == 0
        table_put(&object.by_header, slot, header.key, <uint32_t>i)
    for i in range(object.target_count):
        if i + AHEAD < object.target_count:
            prefetch(&object.by_target.slots[table_home(&object.by_target,
                                                        object.targets[i + AHEAD].key)])
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
    """Fill the table over the digests of tied targets, all of which are hashed by now."""
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
