# Mercury vectors as rows of C structures, and the walks over them that decide a comparison.
#
# Stage 1 compares primary data by position, stage 2 looks for a twin of every section header, stage
# 3 for a twin of every relocation target. Twins come from a linear search or from a table of keys;
# either way the twin is the lowest row whose fields and bytes are all equal, so both give one
# verdict. N candidates against N reference rows cost up to N*N probes when linear, N by table.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from spans cimport *

cdef enum Why:
    # Index into pylink.dedup.reasons.REASONS, which has the code, the stage and the sentence.
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
    NEEDS_DIGESTS = 15

cdef enum SymbolKind:
    S_NULL = 0          # index 0
    S_NAMED = 1         # global or weak: the name says which symbol of the whole link it is
    S_SECTION = 2       # start of a section that folds with its twin
    S_PRIVATE = 3       # anything else of this file: the same as nothing outside it

cdef enum:
    STB_WEAK = 2

cdef struct Header:
    uint64_t q0
    uint64_t q8
    uint64_t key
    const uint8_t* name     # stripped
    uint32_t name_size
    uint32_t addralign

cdef struct Target:
    const uint8_t* data
    size_t size
    uint64_t key            # of stripped name and size
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

cdef struct Object:
    Span* primary
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
    bint has_symbols
    bint indexed            # the two tables over the keys are filled
    bint digested           # so is the table over the digests of tied targets
    bint ties               # some targets share stripped name and size
    bint distinct           # no two headers and no two targets share a key
    Table by_header
    Table by_target
    Table by_digest

cdef struct Work:
    uint64_t memcmp_calls
    uint64_t bytes_compared
    uint64_t bytes_offered
    uint64_t twin_probes
    uint64_t prefilter_hits
    uint64_t false_positives
    uint64_t ns[3]

cdef struct Outcome:
    int why
    int64_t index           # failing entry of the candidate
    int64_t twin            # entry of the reference it was held against
    int64_t offset          # first differing byte, or failing entry of a relocation section
    int64_t symbol
    int64_t moved_header    # first candidate header whose twin stands at another place
    int64_t moved_target


cdef inline Span strip(const uint8_t* name, size_t size) noexcept nogil:
    """The test is for the nine characters `.nv.merc.`, the strip takes eight: the dot stays."""
    cdef Span out
    out.data = name
    out.size = size
    if size >= 9 and memcmp(name, b".nv.merc.", 9) == 0:
        out.data += 8
        out.size -= 8
    return out


cdef inline bint same_span(const uint8_t* a, size_t m, const uint8_t* b, size_t n) noexcept nogil:
    return m == n and (m == 0 or memcmp(a, b, m) == 0)


cdef inline bint same_header(const Header* a, const Header* b) noexcept nogil:
    return (a.q0 == b.q0 and a.q8 == b.q8 and a.addralign == b.addralign
            and same_span(a.name, a.name_size, b.name, b.name_size))


cdef inline bint same_target(const Target* a, const Target* b, Work* work) noexcept nogil:
    cdef size_t at
    if a.size != b.size or not same_span(a.name, a.name_size, b.name, b.name_size):
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


cdef inline bint build_index(Object* o) noexcept nogil:
    """Fill the tables over the keys once; False when memory is exhausted."""
    cdef size_t i
    cdef Header* header
    cdef Target* target
    cdef Slot* slot
    if o.indexed:
        return True
    if not (table_init(&o.by_header, o.header_count) and table_init(&o.by_target, o.target_count)):
        table_free(&o.by_header)
        table_free(&o.by_target)
        return False
    o.distinct = True
    for i in range(o.header_count):
        if i + AHEAD < o.header_count:
            prefetch(&o.by_header.slots[table_home(&o.by_header, o.headers[i + AHEAD].key)])
        header = &o.headers[i]
        slot = table_slot(&o.by_header, header.key)
        o.distinct = o.distinct and slot.head == 0
        table_put(&o.by_header, slot, header.key, <uint32_t>i)
    for i in range(o.target_count):
        if i + AHEAD < o.target_count:
            prefetch(&o.by_target.slots[table_home(&o.by_target, o.targets[i + AHEAD].key)])
        target = &o.targets[i]
        slot = table_slot(&o.by_target, target.key)
        if slot.head:
            o.ties = True
            o.distinct = False
            o.targets[slot.head - 1].tied = True
            target.tied = True
        table_put(&o.by_target, slot, target.key, <uint32_t>i)
    o.indexed = True
    return True


cdef inline bint build_digests(Object* o) noexcept nogil:
    """Fill the table over the digests of tied targets, all of which are hashed by now."""
    cdef size_t i
    if o.digested:
        return True
    if not table_init(&o.by_digest, o.target_count):
        table_free(&o.by_digest)
        return False
    for i in range(o.target_count):
        if o.targets[i].tied:
            table_add(&o.by_digest, mix(o.targets[i].key, o.targets[i].digest), <uint32_t>i)
    o.digested = True
    return True


cdef inline void expect_header(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Bring what stage 2 needs for the candidate's row `i` and a little later into the cache."""
    cdef uint32_t head
    if i + AHEAD < cand.header_count:
        prefetch(&ref.by_header.slots[table_home(&ref.by_header, cand.headers[i + AHEAD].key)])
    if i + AHEAD // 2 < cand.header_count:
        head = table_slot(&ref.by_header, cand.headers[i + AHEAD // 2].key).head
        if head:
            prefetch(&ref.headers[head - 1])
    if i + AHEAD // 4 < cand.header_count:
        head = table_slot(&ref.by_header, cand.headers[i + AHEAD // 4].key).head
        if head:
            prefetch(ref.headers[head - 1].name)


cdef inline uint32_t target_head(const Object* ref, const Target* want,
                                 const Table** table) noexcept nogil:
    """Row + 1 of the first target that could be the twin of `want`; its chain is in `table`."""
    cdef uint32_t head
    table[0] = &ref.by_target
    head = table_slot(&ref.by_target, want.key).head
    if head and ref.targets[head - 1].tied:
        table[0] = &ref.by_digest
        head = table_slot(&ref.by_digest, mix(want.key, want.digest)).head
    return head


cdef inline void expect_target(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """The same for stage 3, where the payloads are the farthest away."""
    cdef uint32_t head
    cdef const Target* want
    cdef const Table* table
    if i + AHEAD < cand.target_count:
        want = &cand.targets[i + AHEAD]
        prefetch(want.data)
        if ref.ties:
            prefetch(&ref.by_digest.slots[table_home(&ref.by_digest, mix(want.key, want.digest))])
        prefetch(&ref.by_target.slots[table_home(&ref.by_target, want.key)])
    if i + AHEAD // 2 < cand.target_count:
        head = target_head(ref, &cand.targets[i + AHEAD // 2], &table)
        if head:
            prefetch(&ref.targets[head - 1])
    if i + AHEAD // 4 < cand.target_count:
        head = target_head(ref, &cand.targets[i + AHEAD // 4], &table)
        if head:
            prefetch(ref.targets[head - 1].name)
            prefetch(ref.targets[head - 1].data)


cdef inline int stage1(const Object* ref, const Object* cand, Outcome* out,
                       Work* work) noexcept nogil:
    """Primary data, by position and in one direction: what the reference has more is not read."""
    cdef size_t i, at, size
    for i in range(cand.primaries):
        out.index = <int64_t>i
        if i >= ref.primaries:
            return CANDIDATE_LONGER
        out.twin = <int64_t>i
        size = cand.primary[i].size
        if ref.primary[i].size < size:
            out.offset = <int64_t>ref.primary[i].size
            return REFERENCE_SHORTER
        at = first_difference(ref.primary[i].data, cand.primary[i].data, size)
        work.memcmp_calls += 1
        work.bytes_offered += size
        work.bytes_compared += at + (at != size)
        if at != size:
            out.offset = <int64_t>at
            return BYTES_DIFFER
    return ACCEPTED


cdef inline int stage2(const Object* ref, const Object* cand, bint hashed, Outcome* out,
                       Work* work) noexcept nogil:
    """Section headers: equal number, and a twin for each of the candidate's."""
    cdef size_t i, j, n = ref.header_count
    cdef uint32_t row
    cdef const Header* want
    out.index = out.twin = -1
    if n != cand.header_count:
        return HEADER_COUNT
    for i in range(n):
        want = &cand.headers[i]
        if hashed:
            j = n
            expect_header(ref, cand, i)
            row = table_slot(&ref.by_header, want.key).head
            while row:
                work.twin_probes += 1
                if same_header(&ref.headers[row - 1], want):
                    work.prefilter_hits += 1
                    j = row - 1
                    break
                work.false_positives += 1
                row = ref.by_header.next[row - 1]
        else:
            j = 0
            while j < n and not same_header(&ref.headers[j], want):
                j += 1
            work.twin_probes += j + (j < n)
        if j == n:
            out.index = <int64_t>i
            return HEADER_TWIN
        if j != i and out.moved_header < 0:
            out.moved_header = <int64_t>i
    return ACCEPTED


cdef inline bint lacks_digests(const Object* ref, const Object* cand) noexcept nogil:
    """Whether stage 3 needs a digest that is not filled: only targets that tie need one."""
    cdef size_t i
    cdef uint32_t head
    if not ref.ties:
        return False
    for i in range(ref.target_count):
        if ref.targets[i].tied and not ref.targets[i].hashed:
            return True
    for i in range(cand.target_count):
        if not cand.targets[i].hashed:
            head = table_slot(&ref.by_target, cand.targets[i].key).head
            if head and ref.targets[head - 1].tied:
                return True
    return False


cdef inline int stage3(const Object* ref, const Object* cand, bint hashed, Outcome* out,
                       Work* work) noexcept nogil:
    """Relocation targets: equal number, and a twin with equal bytes for each of the candidate's."""
    cdef size_t i, j, n = ref.target_count
    cdef uint32_t row
    cdef const Target* want
    cdef const Table* table
    out.index = out.twin = -1
    if n != cand.target_count:
        return TARGET_COUNT
    if hashed and lacks_digests(ref, cand):
        return NEEDS_DIGESTS
    for i in range(n):
        want = &cand.targets[i]
        if hashed:
            j = n
            expect_target(ref, cand, i)
            row = target_head(ref, want, &table)
            while row:
                work.twin_probes += 1
                if same_target(&ref.targets[row - 1], want, work):
                    work.prefilter_hits += 1
                    j = row - 1
                    break
                work.false_positives += 1
                row = table.next[row - 1]
        else:
            j = 0
            while j < n and not same_target(&ref.targets[j], want, work):
                j += 1
            work.twin_probes += j + (j < n)
        if j == n:
            out.index = <int64_t>i
            return TARGET_TWIN
        if j != i and out.moved_target < 0:
            out.moved_target = <int64_t>i
    return ACCEPTED


cdef inline bint same_symbol(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Whether index `i` stands for one symbol in both, once names are resolved."""
    cdef const Symbol* a
    cdef const Symbol* b
    if i >= ref.symbol_count or i >= cand.symbol_count:
        return False
    a = &ref.symbols[i]
    b = &cand.symbols[i]
    return (a.kind == b.kind and a.kind != S_PRIVATE and a.type == b.type
            and same_span(a.name.data, a.name.size, b.name.data, b.name.size))


cdef inline int identity(const Object* ref, const Object* cand, Outcome* out) noexcept nogil:
    """What equal bytes leave open; the argument is in pylink.dedup."""
    cdef size_t i
    cdef const Use* use
    cdef bint ours, theirs
    out.index = out.twin = -1
    if out.moved_header >= 0:
        out.index = out.moved_header
        return HEADER_MOVED
    if out.moved_target >= 0:
        out.index = out.moved_target
        return TARGET_MOVED
    for i in range(cand.target_count):
        if not same_span(ref.targets[i].place.data, ref.targets[i].place.size,
                         cand.targets[i].place.data, cand.targets[i].place.size):
            out.index = <int64_t>i
            return TARGET_PLACE
    for i in range(max(ref.symbol_count, cand.symbol_count)):
        ours = i < cand.symbol_count and cand.symbols[i].described
        theirs = i < ref.symbol_count and ref.symbols[i].described
        if ours or theirs:
            out.symbol = <int64_t>i
            if not (ours and theirs and same_symbol(ref, cand, i)):
                return FUNCTION_DIFFERS
            if ref.symbols[i].bind == STB_WEAK and cand.symbols[i].bind != STB_WEAK:
                return FUNCTION_WEAKER
    for i in range(cand.use_count):
        use = &cand.uses[i]
        if not same_symbol(ref, cand, use.symbol):
            out.index = use.target
            out.offset = use.entry
            out.symbol = use.symbol
            return SYMBOL_DIFFERS
    out.symbol = -1
    if not same_span(ref.attributes.data, ref.attributes.size,
                     cand.attributes.data, cand.attributes.size):
        return ATTRIBUTES_DIFFER
    return ACCEPTED


cdef inline void start_outcome(Outcome* out) noexcept nogil:
    out.why = ACCEPTED
    out.index = out.twin = out.offset = out.symbol = -1
    out.moved_header = out.moved_target = -1


cdef inline void decide_data(const Object* ref, const Object* cand, Outcome* out,
                             Work* work) noexcept nogil:
    """Stage 1, timed."""
    cdef uint64_t start = now_ns()
    out.why = stage1(ref, cand, out, work)
    work.ns[0] += now_ns() - start


cdef inline void decide_headers(const Object* ref, const Object* cand, bint hashed, Outcome* out,
                                Work* work) noexcept nogil:
    """Stage 2, timed."""
    cdef uint64_t start = now_ns()
    out.why = stage2(ref, cand, hashed, out, work)
    work.ns[1] += now_ns() - start


cdef inline void decide_targets(const Object* ref, const Object* cand, bint hashed, bint symbols,
                                Outcome* out, Work* work) noexcept nogil:
    """Stage 3 and, where both objects have symbols, their identity; timed."""
    cdef uint64_t start = now_ns()
    out.why = stage3(ref, cand, hashed, out, work)
    if out.why == ACCEPTED and symbols and ref.has_symbols and cand.has_symbols:
        out.why = identity(ref, cand, out)
    work.ns[2] += now_ns() - start
