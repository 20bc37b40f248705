"""Mercury vectors in native form, and the comparison of two objects or of one with many.

The Mercury sections of a candidate can be omitted if those of a reference can replace them;
pylink.mercury has the rule, and why it is safe. An object is three vectors: primary data, section
headers and relocation targets. A reference and a candidate, as an example:

    vector    reference                       candidate
    primary   bytes of 400 and 80             equal bytes of 400 and 80
    headers   .debug_line, .debug_frame       .debug_line, .debug_frame
    targets   .rela.debug_line, of 48 bytes   .rela.debug_line, of 48 bytes that differ

Stages 1 and 2 accept. Stage 3 finds no target with equal name and bytes, and rejects.

1. `Vectors` copies names, and borrows all other bytes. `attach_symbols` adds the symbols that the
   targets refer to.
2. `compare` calls `decide_data`, `decide_headers` and `decide_targets` (mercury/stages.pxd); the
   first stage that fails gives the result. `decide_targets` also compares symbols
   (mercury/symbols.pxd).
3. Twins come from a linear search or, if `hashed`, from tables of keys, which an object makes when
   they are first needed. Targets with equal keys also need digests: then `compare` returns
   NEEDS_DIGESTS, and `compare_targets` goes on when the caller has filled them.
4. `first_accepting` compares with one reference after the other, until one accepts.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from base.elf64 cimport Rela, Sym
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room, scratch_zeros
from base.spans cimport Span, mix, table_free, table_slot
from mercury.objects cimport (
    ACCEPTED, Comparison, Header, Object, Symbol, Target, Use, Verdict, build_digests, build_index,
    header_key, strip, target_key, target_row,
)
from mercury.stages cimport (
    decide_data, decide_headers, decide_targets, needs_digests, start_outcome,
)
from mercury.symbols cimport collect_uses, compare_identity, read_object_symbols

cdef enum:
    MAX_ROWS = 0x7fffffff       # a table's links are 32 bits wide
    MAX_EXTRA = 3               # buffers of attach_symbols


cdef class Vectors:
    cdef Object o
    cdef Scratch scratch        # what the object has, as long as it lives
    cdef list owners            # keep alive every bytes object that a row points into
    cdef Py_buffer* views
    cdef Py_ssize_t view_count

    def __cinit__(self, tuple primary, tuple headers, tuple targets, uint64_t key_mask):
        cdef Py_ssize_t n = len(primary), h = len(headers), t = len(targets), i
        cdef tuple row
        cdef Span name, payload
        cdef size_t names = 0
        cdef uint8_t* at
        cdef Header* header
        cdef Target* target
        if max(n, h, t) > MAX_ROWS:
            raise ValueError("a vector holds fewer than 2**31 entries")
        self.owners = [primary, targets]
        for row in headers:
            names += strip_name(row[0]).size
        for row in targets:
            names += strip_name(row[0]).size
        self.views = <Py_buffer*>scratch_zeros(&self.scratch, n + t + MAX_EXTRA, sizeof(Py_buffer))
        self.o.primary = <Span*>scratch_zeros(&self.scratch, n, sizeof(Span))
        self.o.headers = <Header*>scratch_zeros(&self.scratch, h, sizeof(Header))
        self.o.targets = <Target*>scratch_zeros(&self.scratch, t, sizeof(Target))
        # Names are copied side by side: a search meets them in order, not all over the heap.
        at = <uint8_t*>scratch_room(&self.scratch, names, 1)
        check_memory(not self.scratch.failed)
        for i in range(n):
            self.o.primary[i] = self.borrow(primary[i])
        self.o.primaries = n
        for i in range(h):
            row = headers[i]
            header = &self.o.headers[i]
            name = strip_name(row[0])
            memcpy(at, name.data, name.size)
            header.name = at
            header.name_size = <uint32_t>name.size
            header.q0 = row[1]
            header.q8 = row[2]
            # The field at +24 is compared as a dword.
            header.addralign = <uint32_t><uint64_t>row[3]
            header.key = header_key(header) & key_mask
            at += name.size
        self.o.header_count = h
        for i in range(t):
            row = targets[i]
            target = &self.o.targets[i]
            name = strip_name(row[0])
            memcpy(at, name.data, name.size)
            target.name = at
            target.name_size = <uint32_t>name.size
            at += name.size
            payload = self.borrow(row[1])
            target.data = payload.data
            target.size = payload.size
            target.key = target_key(target) & key_mask
        self.o.target_count = t

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.view_count):
            PyBuffer_Release(&self.views[i])
        scratch_free(&self.scratch)
        table_free(&self.o.by_header)
        table_free(&self.o.by_target)
        table_free(&self.o.by_digest)

    cdef Span borrow(self, object data) except *:
        """The bytes of an object, which `owners` or `views` keep alive."""
        cdef Span span
        if PyBytes_CheckExact(data):
            span.data = <const uint8_t*>PyBytes_AS_STRING(data)
            span.size = PyBytes_GET_SIZE(data)
            return span
        PyObject_GetBuffer(data, &self.views[self.view_count], PyBUF_SIMPLE)
        span.data = <const uint8_t*>self.views[self.view_count].buf
        span.size = self.views[self.view_count].len
        self.view_count += 1
        return span

    def attach_symbols(self, symtab, strtab, tuple sections, tuple places, attributes,
                       bytes kinds not None):
        cdef Span table, strings
        cdef Py_ssize_t n, i, count = len(sections)
        cdef Py_ssize_t entry_count = 0
        cdef Span* names
        cdef uint8_t* seen
        cdef Scratch scratch
        cdef int64_t bad
        if self.o.has_symbols:
            raise ValueError("symbols are attached already")
        if <size_t>len(places) != self.o.target_count:
            raise ValueError("one place is needed for each target")
        self.owners.extend((symtab, strtab, sections, places, attributes, kinds))
        table = self.borrow(symtab)
        strings = self.borrow(strtab)
        self.o.attributes = self.borrow(attributes)
        self.o.kinds = self.borrow(kinds)
        n = <Py_ssize_t>(table.size // sizeof(Sym))
        for i in range(<Py_ssize_t>self.o.target_count):
            self.o.targets[i].place = strip_name(places[i])
            entry_count += <Py_ssize_t>(self.o.targets[i].size // sizeof(Rela))
        if max(n, entry_count, count) > MAX_ROWS:
            raise ValueError("a symbol table holds fewer than 2**31 entries")
        self.o.symbols = <Symbol*>scratch_zeros(&self.scratch, n, sizeof(Symbol))
        # No symbol is recorded twice, so the smaller of both counts is room enough.
        self.o.uses = <Use*>scratch_zeros(&self.scratch, min(n, entry_count), sizeof(Use))
        scratch_init(&scratch)
        try:
            names = <Span*>scratch_zeros(&scratch, count, sizeof(Span))
            seen = <uint8_t*>scratch_zeros(&scratch, n, 1)
            check_memory(not (self.scratch.failed or scratch.failed))
            for i in range(count):
                if sections[i] is not None:
                    names[i] = strip_name(sections[i])
            with nogil:
                bad = read_object_symbols(&self.o, <const Sym*>table.data, n, strings, names, count)
                if bad < 0:
                    bad = collect_uses(&self.o, n, seen)
        finally:
            scratch_free(&scratch)
        if bad >= 0:
            raise IndexError("symbol or relocation runs past its table")
        self.o.symbol_count = n
        self.o.has_symbols = True

    @property
    def size(self):
        cdef size_t i, total = 0
        for i in range(self.o.primaries):
            total += self.o.primary[i].size
        for i in range(self.o.target_count):
            total += self.o.targets[i].size
        return total

    @property
    def has_symbols(self):
        return bool(self.o.has_symbols)

    @property
    def self_contained(self):
        cdef Verdict out
        if not self.o.has_symbols:
            return True
        start_outcome(&out)
        return compare_identity(&self.o, &self.o, &out) == ACCEPTED

    def symbol(self, Py_ssize_t row):
        cdef Symbol* s
        if not 0 <= row < <Py_ssize_t>self.o.symbol_count:
            raise IndexError("no such symbol")
        s = &self.o.symbols[row]
        return (PyBytes_FromStringAndSize(<const char*>s.name.data, s.name.size),
                s.kind, s.type, s.bind)

    def shape(self):
        cdef bytes sizes = PyBytes_FromStringAndSize(NULL, 8 * <Py_ssize_t>self.o.primaries)
        cdef uint64_t* out = <uint64_t*>PyBytes_AS_STRING(sizes)
        cdef size_t i
        for i in range(self.o.primaries):
            out[i] = self.o.primary[i].size
        return sizes

    def signature(self):
        cdef size_t i
        cdef uint64_t headers = 0, targets = 0
        check_memory(build_index(&self.o))
        for i in range(self.o.header_count):
            headers += mix(0, self.o.headers[i].key)
        for i in range(self.o.target_count):
            targets += mix(0, self.o.targets[i].key)
        return (self.o.header_count, self.o.target_count, headers, targets, bool(self.o.distinct))

    def target_key(self, Py_ssize_t row):
        if not 0 <= row < <Py_ssize_t>self.o.target_count:
            raise IndexError("no such target")
        return self.o.targets[row].key

    def target_with_key(self, uint64_t key):
        check_memory(build_index(&self.o))
        return <int64_t>target_row(&self.o, key) - 1

    def missing_digests(self, Vectors reference):
        cdef size_t i
        cdef uint32_t head
        cdef list rows = []
        check_memory(build_index(&reference.o))
        for i in range(self.o.target_count):
            if not self.o.targets[i].hashed:
                head = table_slot(&reference.o.by_target, self.o.targets[i].key).head
                if head and reference.o.targets[head - 1].tied:
                    rows.append(i)
        return rows

    def set_digests(self, list rows not None, list digests not None):
        cdef Py_ssize_t k, row, n = len(rows)
        if len(digests) != n:
            raise ValueError("a digest is needed for each row")
        for k in range(n):
            row = rows[k]
            if not 0 <= row < <Py_ssize_t>self.o.target_count:
                raise IndexError("no such target")
            if self.o.targets[row].hashed:
                raise ValueError("a digest is filled once")
            self.o.targets[row].digest = digests[k]
            self.o.targets[row].hashed = True

    def digest(self, Py_ssize_t row):
        if not 0 <= row < <Py_ssize_t>self.o.target_count:
            raise IndexError("no such target")
        return self.o.targets[row].digest if self.o.targets[row].hashed else None


cdef Span strip_name(bytes name) except *:
    if name is None:
        raise TypeError("a name is bytes")
    return strip(<const uint8_t*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))


cdef class Result:
    cdef readonly int why
    cdef readonly int64_t index
    cdef readonly int64_t twin
    cdef readonly int64_t offset
    cdef readonly int64_t symbol
    cdef readonly int64_t moved_header
    cdef readonly tuple counts


cdef Result make_result(const Verdict* out, const Comparison* work):
    cdef Result result = Result.__new__(Result)
    result.why, result.index, result.twin = out.why, out.index, out.twin
    result.offset, result.symbol = out.offset, out.symbol
    result.moved_header = out.moved_header
    result.counts = (work.memcmp_calls, work.bytes_compared, work.bytes_offered, work.twin_probes,
                     work.prefilter_hits, work.false_positives, work.ns[0], work.ns[1], work.ns[2])
    return result


cdef int set_counts(Comparison* work, Result result) except -1:
    """Begin with the counts of an earlier result."""
    (work.memcmp_calls, work.bytes_compared, work.bytes_offered, work.twin_probes,
     work.prefilter_hits, work.false_positives, work.ns[0], work.ns[1],
     work.ns[2]) = result.counts
    return 0


def compare(Vectors reference not None, Vectors candidate not None, *, bint hashed, bint symbols):
    cdef Object* ref = &reference.o
    cdef Object* cand = &candidate.o
    cdef Verdict out
    cdef Comparison work
    memset(&work, 0, sizeof(work))
    start_outcome(&out)
    with nogil:
        decide_data(ref, cand, &out, &work)
    if out.why != ACCEPTED:
        return make_result(&out, &work)
    # Tables are built with the lock held: another thread may compare with the same reference.
    if hashed:
        check_memory(build_index(ref))
    with nogil:
        decide_headers(ref, cand, hashed, &out, &work)
    if out.why != ACCEPTED:
        return make_result(&out, &work)
    if hashed and ref.ties and not needs_digests(ref, cand):
        check_memory(build_digests(ref))
    with nogil:
        decide_targets(ref, cand, hashed, symbols, &out, &work)
    return make_result(&out, &work)


def compare_targets(Vectors reference not None, Vectors candidate not None, Result first not None,
                    *, bint symbols):
    cdef Object* ref = &reference.o
    cdef Object* cand = &candidate.o
    cdef Verdict out
    cdef Comparison work
    if not ref.indexed or needs_digests(ref, cand):
        raise ValueError("digests are missing")
    start_outcome(&out)
    out.moved_header = first.moved_header
    set_counts(&work, first)
    check_memory(build_digests(ref))
    with nogil:
        decide_targets(ref, cand, True, symbols, &out, &work)
    return make_result(&out, &work)


def first_accepting(list references not None, Vectors candidate not None, *, bint symbols):
    cdef Py_ssize_t n = len(references), i
    cdef Object** refs
    cdef Scratch scratch
    cdef Object* cand = &candidate.o
    cdef Vectors reference
    cdef Verdict out
    cdef Comparison total, last
    memset(&total, 0, sizeof(total))
    memset(&last, 0, sizeof(last))
    start_outcome(&out)
    scratch_init(&scratch)
    try:
        refs = <Object**>scratch_room(&scratch, n, sizeof(Object*))
        check_memory(not scratch.failed)
        for i in range(n):
            reference = references[i]
            if reference is None:
                raise TypeError("a reference is None")
            refs[i] = &reference.o
        i = 0
        with nogil:
            while i < n:
                memset(&last, 0, sizeof(last))
                start_outcome(&out)
                decide_data(refs[i], cand, &out, &last)
                if out.why == ACCEPTED:
                    decide_headers(refs[i], cand, False, &out, &last)
                if out.why == ACCEPTED:
                    decide_targets(refs[i], cand, False, symbols, &out, &last)
                add_counts(&total, &last)
                if out.why == ACCEPTED:
                    break
                i += 1
    finally:
        scratch_free(&scratch)
    return i if i < n else -1, make_result(&out, &last), make_result(&out, &total)


cdef void add_counts(Comparison* total, const Comparison* part) noexcept nogil:
    cdef int i
    total.memcmp_calls += part.memcmp_calls
    total.bytes_compared += part.bytes_compared
    total.bytes_offered += part.bytes_offered
    total.twin_probes += part.twin_probes
    for i in range(3):
        total.ns[i] += part.ns[i]


def covering(list shapes not None, bytes candidate not None):
    cdef Py_ssize_t n = PyBytes_GET_SIZE(candidate) // 8, row, i
    cdef const uint64_t* wanted_sizes = <const uint64_t*>PyBytes_AS_STRING(candidate)
    cdef const uint64_t* shape_sizes
    cdef bytes shape
    cdef list rows = []
    for row in range(len(shapes)):
        shape = shapes[row]
        if shape is None:
            raise TypeError("a shape is bytes")
        if PyBytes_GET_SIZE(shape) < 8 * n:
            continue
        shape_sizes = <const uint64_t*>PyBytes_AS_STRING(shape)
        i = 0
        while i < n and shape_sizes[i] >= wanted_sizes[i]:
            i += 1
        if i == n and shape != candidate:
            rows.append(row)
    return rows
