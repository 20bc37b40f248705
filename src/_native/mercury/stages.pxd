# The three stages of a comparison of a candidate (`cand`) with a reference (`ref`).
#
# Stage 1 compares primary data by position, stage 2 looks for a twin of every section header, stage
# 3 for a twin of every relocation target. The twin of a row is the first row of the reference with
# equal fields and bytes. It is found by a linear search or, with `hashed`, in a hash table of keys;
# the result is the same. With N rows on each side, linear searches compare up to N*N pairs, the
# table as a rule N.
#
#     candidate's headers    .debug_line, .debug_frame    both have twins: accepted
#     reference's headers    .debug_frame, .debug_line    at other positions (moved_header is 0)
#
# Targets of one object that have equal keys, and so as a rule equal names and sizes, are tied. By
# key alone, a search would compare each tied target of the candidate with each of the reference. So
# they are found by key and digest, a hash of their bytes, which Python computes only when it is
# needed (NEEDS_DIGESTS).

from libc.stdint cimport int64_t, uint32_t, uint64_t

from base.clocks cimport CLOCK_MONOTONIC, nanoseconds
from base.prefetch cimport prefetch
from base.spans cimport KEYS_AHEAD, KeyTable, mix, table_home, table_slot
from mercury.objects cimport (
    Header, Object, Target, Verdict, WorkCounts, compare_bytes, is_equal_header, is_equal_target,
)
from mercury.symbols cimport compare_identity
from outcomes cimport (
    ACCEPTED, BYTES_DIFFER, CANDIDATE_LONGER, HEADER_COUNT, HEADER_TWIN, NEEDS_DIGESTS,
    REFERENCE_SHORTER, TARGET_COUNT, TARGET_TWIN,
)


cdef inline void prefetch_header(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Fetch into the cache what stage 2 will read for the rows of the candidate after row `i`.

    For row `i` + KEYS_AHEAD that is the slot of the hash table, for nearer rows the header that the
    slot names, and for still nearer ones the name of that header.
    """
    cdef uint32_t head
    if i + KEYS_AHEAD < cand.header_count:
        prefetch(&ref.by_header.slots[table_home(&ref.by_header, cand.headers[i + KEYS_AHEAD].key)])
    if i + KEYS_AHEAD // 2 < cand.header_count:
        head = table_slot(&ref.by_header, cand.headers[i + KEYS_AHEAD // 2].key).head
        if head:
            prefetch(&ref.headers[head - 1])
    if i + KEYS_AHEAD // 4 < cand.header_count:
        head = table_slot(&ref.by_header, cand.headers[i + KEYS_AHEAD // 4].key).head
        if head:
            prefetch(ref.headers[head - 1].name)


cdef inline uint32_t find_target_head(const Object* ref, const Target* target,
                                      const KeyTable** table) noexcept nogil:
    """Return row + 1 of the first row that may be the twin of the candidate's `target`, or 0.

    `table` is set to the hash table whose `next` has further rows with this key.
    """
    cdef uint32_t head
    table[0] = &ref.by_target
    head = table_slot(&ref.by_target, target.key).head
    if head and ref.targets[head - 1].tied:
        table[0] = &ref.by_digest
        head = table_slot(&ref.by_digest, mix(target.key, target.digest)).head
    return head


cdef inline void prefetch_target(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Fetch into the cache what stage 3 will read for the rows of the candidate after row `i`."""
    cdef uint32_t head
    cdef const Target* target
    cdef const KeyTable* table
    if i + KEYS_AHEAD < cand.target_count:
        target = &cand.targets[i + KEYS_AHEAD]
        prefetch(target.data)
        if ref.ties:
            prefetch(&ref.by_digest.slots[table_home(&ref.by_digest,
                                                     mix(target.key, target.digest))])
        prefetch(&ref.by_target.slots[table_home(&ref.by_target, target.key)])
    if i + KEYS_AHEAD // 2 < cand.target_count:
        head = find_target_head(ref, &cand.targets[i + KEYS_AHEAD // 2], &table)
        if head:
            prefetch(&ref.targets[head - 1])
    if i + KEYS_AHEAD // 4 < cand.target_count:
        head = find_target_head(ref, &cand.targets[i + KEYS_AHEAD // 4], &table)
        if head:
            prefetch(ref.targets[head - 1].name)
            prefetch(ref.targets[head - 1].data)


cdef inline int compare_payloads(const Object* ref, const Object* cand, Verdict* out,
                                 WorkCounts* work) noexcept nogil:
    """Compare primary data by position, as stage 1. Returns the `why` of a Verdict.

    The reference may have more entries, and longer ones: only the candidate's bytes count.
    """
    cdef size_t i, difference, size
    for i in range(cand.primary_count):
        out.index = <int64_t>i
        if i >= ref.primary_count:
            return CANDIDATE_LONGER
        out.twin = <int64_t>i
        size = cand.primary[i].size
        if ref.primary[i].size < size:
            out.offset = <int64_t>ref.primary[i].size
            return REFERENCE_SHORTER
        difference = compare_bytes(ref.primary[i].data, cand.primary[i].data, size, work)
        if difference != size:
            out.offset = <int64_t>difference
            return BYTES_DIFFER
    return ACCEPTED


cdef inline size_t find_header_twin(const Object* ref, const Header* header, bint hashed,
                                    WorkCounts* work) noexcept nogil:
    """Return the first row of `ref` that equals `header`; without one the number of rows.

    It is found in the table `by_header` if `hashed`, else by a linear search.
    """
    cdef size_t j = 0, count = ref.header_count
    cdef uint32_t row
    if not hashed:
        while j < count and not is_equal_header(&ref.headers[j], header):
            j += 1
        work.twin_probes += j + (j < count)
        return j
    row = table_slot(&ref.by_header, header.key).head
    while row:
        work.twin_probes += 1
        if is_equal_header(&ref.headers[row - 1], header):
            work.prefilter_hits += 1
            return row - 1
        work.false_positives += 1
        row = ref.by_header.next[row - 1]
    return count


cdef inline int compare_section_headers(const Object* ref, const Object* cand, bint hashed,
                                        Verdict* out, WorkCounts* work) noexcept nogil:
    """Do stage 2: compare the numbers of section headers, and find twins of the candidate's.

    Returns the `why` of a Verdict.
    """
    cdef size_t i, j, count = ref.header_count
    out.index = out.twin = -1
    if count != cand.header_count:
        return HEADER_COUNT
    for i in range(count):
        if hashed:
            prefetch_header(ref, cand, i)
        j = find_header_twin(ref, &cand.headers[i], hashed, work)
        if j == count:
            out.index = <int64_t>i
            return HEADER_TWIN
        if j != i and out.moved_header < 0:
            out.moved_header = <int64_t>i
    return ACCEPTED


cdef inline bint needs_digests(const Object* ref, const Object* cand) noexcept nogil:
    """Return whether stage 3 needs a digest that is not filled.

    Targets of the reference need one if they are tied, those of the candidate if they have the key
    of tied targets of the reference.
    """
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


cdef inline size_t find_target_twin(const Object* ref, const Target* target, bint hashed,
                                    WorkCounts* work) noexcept nogil:
    """Return the first row of `ref` that equals `target`; without one the number of rows.

    It is found in the hash tables of `ref` if `hashed`, else by a linear search.
    """
    cdef size_t j = 0, count = ref.target_count
    cdef uint32_t row
    cdef const KeyTable* table
    if not hashed:
        while j < count and not is_equal_target(&ref.targets[j], target, work):
            j += 1
        work.twin_probes += j + (j < count)
        return j
    row = find_target_head(ref, target, &table)
    while row:
        work.twin_probes += 1
        if is_equal_target(&ref.targets[row - 1], target, work):
            work.prefilter_hits += 1
            return row - 1
        work.false_positives += 1
        row = table.next[row - 1]
    return count


cdef inline int compare_relocation_targets(const Object* ref, const Object* cand, bint hashed,
                                           Verdict* out, WorkCounts* work) noexcept nogil:
    """Do stage 3: compare the numbers of relocation targets, and find twins of the candidate's.

    Returns the `why` of a Verdict.
    """
    cdef size_t i, j, count = ref.target_count
    out.index = out.twin = -1
    if count != cand.target_count:
        return TARGET_COUNT
    if hashed and needs_digests(ref, cand):
        return NEEDS_DIGESTS
    for i in range(count):
        if hashed:
            prefetch_target(ref, cand, i)
        j = find_target_twin(ref, &cand.targets[i], hashed, work)
        if j == count:
            out.index = <int64_t>i
            return TARGET_TWIN
        if j != i and out.moved_target < 0:
            out.moved_target = <int64_t>i
    return ACCEPTED


cdef inline void start_outcome(Verdict* out) noexcept nogil:
    """Set `out` to ACCEPTED, and each of its numbers to -1."""
    out.why = ACCEPTED
    out.index = out.twin = out.offset = out.symbol = -1
    out.moved_header = out.moved_target = -1


cdef inline void decide_data(const Object* ref, const Object* cand, Verdict* out,
                             WorkCounts* work) noexcept nogil:
    """Do stage 1, set `out`, and add the time to `work`."""
    cdef uint64_t start = nanoseconds(CLOCK_MONOTONIC)
    out.why = compare_payloads(ref, cand, out, work)
    work.ns[0] += nanoseconds(CLOCK_MONOTONIC) - start


cdef inline void decide_headers(const Object* ref, const Object* cand, bint hashed, Verdict* out,
                                WorkCounts* work) noexcept nogil:
    """Do stage 2, set `out`, and add the time to `work`."""
    cdef uint64_t start = nanoseconds(CLOCK_MONOTONIC)
    out.why = compare_section_headers(ref, cand, hashed, out, work)
    work.ns[1] += nanoseconds(CLOCK_MONOTONIC) - start


cdef inline void decide_targets(const Object* ref, const Object* cand, bint hashed, bint symbols,
                                Verdict* out, WorkCounts* work) noexcept nogil:
    """Do stage 3 and, with `symbols`, compare the symbols if both objects have some.

    Sets `out`, and adds the time to `work`.
    """
    cdef uint64_t start = nanoseconds(CLOCK_MONOTONIC)
    out.why = compare_relocation_targets(ref, cand, hashed, out, work)
    if out.why == ACCEPTED and symbols and ref.has_symbols and cand.has_symbols:
        out.why = compare_identity(ref, cand, out)
    work.ns[2] += nanoseconds(CLOCK_MONOTONIC) - start
