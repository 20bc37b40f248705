# The walks that decide a comparison.
#
# Stage 1 compares primary data by position, stage 2 looks for a twin of every section header, stage
# 3 for a twin of every relocation target. Twins come from a linear search or from a table of keys;
# either way the twin is the lowest row whose fields and bytes are all equal, so both give one
# verdict. N candidates against N reference rows cost up to N*N probes when linear, N by table.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from base.spans cimport (
    AHEAD, KeyTable, first_difference, mix, now_ns, prefetch, table_home, table_slot,
)
from mercury.objects cimport (
    ACCEPTED, BYTES_DIFFER, CANDIDATE_LONGER, HEADER_COUNT, HEADER_TWIN, NEEDS_DIGESTS,
    REFERENCE_SHORTER, TARGET_COUNT, TARGET_TWIN, Comparison, Header, Object, Target, Verdict,
    is_equal_header, is_equal_target,
)
from mercury.symbols cimport compare_identity


cdef inline void prefetch_header(const Object* ref, const Object* cand, size_t i) noexcept nogil:
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


cdef inline uint32_t find_target_head(const Object* ref, const Target* want,
                                      const KeyTable** table) noexcept nogil:
    """Row + 1 of the first target that could be the twin of `want`; its chain is in `table`."""
    cdef uint32_t head
    table[0] = &ref.by_target
    head = table_slot(&ref.by_target, want.key).head
    if head and ref.targets[head - 1].tied:
        table[0] = &ref.by_digest
        head = table_slot(&ref.by_digest, mix(want.key, want.digest)).head
    return head


cdef inline void prefetch_target(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Bring what stage 3 needs for the candidate's row `i` and a little later into the cache."""
    cdef uint32_t head
    cdef const Target* want
    cdef const KeyTable* table
    if i + AHEAD < cand.target_count:
        want = &cand.targets[i + AHEAD]
        prefetch(want.data)
        if ref.ties:
            prefetch(&ref.by_digest.slots[table_home(&ref.by_digest, mix(want.key, want.digest))])
        prefetch(&ref.by_target.slots[table_home(&ref.by_target, want.key)])
    if i + AHEAD // 2 < cand.target_count:
        head = find_target_head(ref, &cand.targets[i + AHEAD // 2], &table)
        if head:
            prefetch(&ref.targets[head - 1])
    if i + AHEAD // 4 < cand.target_count:
        head = find_target_head(ref, &cand.targets[i + AHEAD // 4], &table)
        if head:
            prefetch(ref.targets[head - 1].name)
            prefetch(ref.targets[head - 1].data)


cdef inline int compare_payloads(const Object* ref, const Object* cand, Verdict* out,
                                 Comparison* work) noexcept nogil:
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


cdef inline size_t find_header_twin(const Object* ref, const Header* want, bint hashed,
                                    Comparison* work) noexcept nogil:
    """The first row equal to `want`; the number of rows if no row is equal."""
    cdef size_t j = 0, n = ref.header_count
    cdef uint32_t row
    if not hashed:
        while j < n and not is_equal_header(&ref.headers[j], want):
            j += 1
        work.twin_probes += j + (j < n)
        return j
    row = table_slot(&ref.by_header, want.key).head
    while row:
        work.twin_probes += 1
        if is_equal_header(&ref.headers[row - 1], want):
            work.prefilter_hits += 1
            return row - 1
        work.false_positives += 1
        row = ref.by_header.next[row - 1]
    return n


cdef inline int compare_section_headers(const Object* ref, const Object* cand, bint hashed,
                                        Verdict* out, Comparison* work) noexcept nogil:
    """Section headers: equal number, and a twin for each of the candidate's."""
    cdef size_t i, j, n = ref.header_count
    out.index = out.twin = -1
    if n != cand.header_count:
        return HEADER_COUNT
    for i in range(n):
        if hashed:
            prefetch_header(ref, cand, i)
        j = find_header_twin(ref, &cand.headers[i], hashed, work)
        if j == n:
            out.index = <int64_t>i
            return HEADER_TWIN
        if j != i and out.moved_header < 0:
            out.moved_header = <int64_t>i
    return ACCEPTED


cdef inline bint needs_digests(const Object* ref, const Object* cand) noexcept nogil:
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


cdef inline size_t find_target_twin(const Object* ref, const Target* want, bint hashed,
                                    Comparison* work) noexcept nogil:
    """The first target equal to `want`; the number of targets if no target is equal."""
    cdef size_t j = 0, n = ref.target_count
    cdef uint32_t row
    cdef const KeyTable* table
    if not hashed:
        while j < n and not is_equal_target(&ref.targets[j], want, work):
            j += 1
        work.twin_probes += j + (j < n)
        return j
    row = find_target_head(ref, want, &table)
    while row:
        work.twin_probes += 1
        if is_equal_target(&ref.targets[row - 1], want, work):
            work.prefilter_hits += 1
            return row - 1
        work.false_positives += 1
        row = table.next[row - 1]
    return n


cdef inline int compare_relocation_targets(const Object* ref, const Object* cand, bint hashed,
                                           Verdict* out, Comparison* work) noexcept nogil:
    """Relocation targets: equal number, and a twin with equal bytes for each of the candidate's."""
    cdef size_t i, j, n = ref.target_count
    out.index = out.twin = -1
    if n != cand.target_count:
        return TARGET_COUNT
    if hashed and needs_digests(ref, cand):
        return NEEDS_DIGESTS
    for i in range(n):
        if hashed:
            prefetch_target(ref, cand, i)
        j = find_target_twin(ref, &cand.targets[i], hashed, work)
        if j == n:
            out.index = <int64_t>i
            return TARGET_TWIN
        if j != i and out.moved_target < 0:
            out.moved_target = <int64_t>i
    return ACCEPTED


cdef inline void start_outcome(Verdict* out) noexcept nogil:
    out.why = ACCEPTED
    out.index = out.twin = out.offset = out.symbol = -1
    out.moved_header = out.moved_target = -1


cdef inline void decide_data(const Object* ref, const Object* cand, Verdict* out,
                             Comparison* work) noexcept nogil:
    """Stage 1, timed."""
    cdef uint64_t start = now_ns()
    out.why = compare_payloads(ref, cand, out, work)
    work.ns[0] += now_ns() - start


cdef inline void decide_headers(const Object* ref, const Object* cand, bint hashed, Verdict* out,
                                Comparison* work) noexcept nogil:
    """Stage 2, timed."""
    cdef uint64_t start = now_ns()
    out.why = compare_section_headers(ref, cand, hashed, out, work)
    work.ns[1] += now_ns() - start


cdef inline void decide_targets(const Object* ref, const Object* cand, bint hashed, bint symbols,
                                Verdict* out, Comparison* work) noexcept nogil:
    """Stage 3 and, where both objects have symbols, their identity; timed."""
    cdef uint64_t start = now_ns()
    out.why = compare_relocation_targets(ref, cand, hashed, out, work)
    if out.why == ACCEPTED and symbols and ref.has_symbols and cand.has_symbols:
        out.why = compare_identity(ref, cand, out)
    work.ns[2] += now_ns() - start
