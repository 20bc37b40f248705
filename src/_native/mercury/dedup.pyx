"""Mercury vectors in native form, and the comparison of two objects or of one with many.

The Mercury sections of a candidate can be omitted if those of a reference can replace them;
pylink.mercury has the rule, and why it is safe. An object is three vectors: primary data, section
headers and relocation targets. A reference and a candidate, as an example:

    vector    reference                       candidate
    primary   bytes of 400 and 80             equal bytes of 400 and 80
    headers   .debug_line, .debug_frame       .debug_line, .debug_frame
    targets   .rela.debug_line, of 48 bytes   .rela.debug_line, of 48 bytes that differ

Stage 1 compares primary data, and accepts, as does stage 2, which compares headers. Stage 3 finds
no target of the reference with equal name and bytes, and rejects.

1. `Vectors` copies the names of headers and targets, and borrows all other bytes. `attach_symbols`
   adds the symbols that the targets refer to.
2. `compare` calls `decide_data`, `decide_headers` and `decide_targets` (mercury/stages.pxd); the
   first stage that fails gives the result. `decide_targets` also compares symbols
   (mercury/symbols.pxd).
3. The twin of an entry is the first equal entry of the reference. It is found by a linear search
   or, with the option `hashed`, in hash tables, which an object makes when they are first needed.
   Targets with equal keys also need digests, i.e. hashes of their bytes. If these are missing,
   `compare` returns NEEDS_DIGESTS; the caller fills them and calls `compare_targets`.
4. `find_first_accepting` compares with one reference after the other, until one accepts.
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
    Header, Object, Symbol, Target, Use, Verdict, WorkCounts, build_digests, build_index,
    header_key, strip, target_key, target_row,
)
from mercury.stages cimport (
    decide_data, decide_headers, decide_targets, needs_digests, start_outcome,
)
from mercury.symbols cimport collect_uses, compare_identity, read_object_symbols
from outcomes cimport ACCEPTED

cdef enum:
    MAX_ROWS = 0x7fffffff       # most entries of a vector or table: row numbers are below 2**31
    MAX_EXTRA = 3               # buffers that attach_symbols may borrow: symbols, names, attributes


cdef class Vectors:
    """The vectors of one object: primary data, section headers and relocation targets.

    Only symbols, digests and lookup tables are added later.
    """
    cdef Object object
    cdef Scratch scratch        # the memory of rows, names and symbols in `object`
    cdef list owners            # keep alive every bytes object that a row points into
    cdef Py_buffer* views       # buffers that a row points into and that are not bytes objects
    cdef Py_ssize_t view_count  # number of `views` in use
    cdef bint symbols_tried     # `attach_symbols` has been called, perhaps in vain

    # `primary` has buffers, `headers` rows (name, sh_size, sh_link and sh_info in one u64,
    # sh_addralign), `targets` rows (name, bytes). Keys of rows are cut to the bits of `key_mask`.
    def __cinit__(self, tuple primary not None, tuple headers not None, tuple targets not None,
                  uint64_t key_mask):
        cdef Py_ssize_t primary_count = len(primary), header_count = len(headers)
        cdef Py_ssize_t target_count = len(targets), i
        cdef tuple row
        cdef Span name, payload
        cdef size_t names_size = 0
        cdef uint8_t* name_place    # where the next name is copied to
        cdef Header* header
        cdef Target* target
        if max(primary_count, header_count, target_count) > MAX_ROWS:
            raise ValueError("a vector holds fewer than 2**31 entries")
        self.owners = [primary, targets]
        for row in headers:
            names_size += strip_name(row[0]).size
        for row in targets:
            names_size += strip_name(row[0]).size
        self.views = <Py_buffer*>scratch_zeros(
            &self.scratch, primary_count + target_count + MAX_EXTRA, sizeof(Py_buffer))
        self.object.primary = <Span*>scratch_zeros(&self.scratch, primary_count, sizeof(Span))
        self.object.headers = <Header*>scratch_zeros(&self.scratch, header_count, sizeof(Header))
        self.object.targets = <Target*>scratch_zeros(&self.scratch, target_count, sizeof(Target))
        # Names are copied side by side: a search meets them in order, not all over the heap.
        name_place = <uint8_t*>scratch_room(&self.scratch, names_size, 1)
        check_memory(not self.scratch.failed)
        for i in range(primary_count):
            self.object.primary[i] = self.borrow(primary[i])
        self.object.primary_count = primary_count
        for i in range(header_count):
            row = headers[i]
            header = &self.object.headers[i]
            name = strip_name(row[0])
            memcpy(name_place, name.data, name.size)
            header.name = name_place
            header.name_size = <uint32_t>name.size
            header.size = row[1]
            header.link_info = row[2]
            # Only the low 32 bits of sh_addralign are compared.
            header.addralign = <uint32_t><uint64_t>row[3]
            header.key = header_key(header) & key_mask
            name_place += name.size
        self.object.header_count = header_count
        for i in range(target_count):
            row = targets[i]
            target = &self.object.targets[i]
            name = strip_name(row[0])
            memcpy(name_place, name.data, name.size)
            target.name = name_place
            target.name_size = <uint32_t>name.size
            name_place += name.size
            payload = self.borrow(row[1])
            target.data = payload.data
            target.size = payload.size
            target.key = target_key(target) & key_mask
        self.object.target_count = target_count

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.view_count):
            PyBuffer_Release(&self.views[i])
        scratch_free(&self.scratch)
        table_free(&self.object.by_header)
        table_free(&self.object.by_target)
        table_free(&self.object.by_digest)

    cdef Span borrow(self, data) except *:
        """Return address and size of a buffer's bytes; a bytes object must be in `owners`."""
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

    # `sections` has, by section index, the name if its header is compared, else None; `places`, by
    # target, the name of the section that it relocates. `attributes` (records of the file) and
    # `kinds` (other fields of headers) must be equal in two files for a fold.
    def attach_symbols(self, symtab, strtab, tuple sections not None, tuple places not None,
                       attributes, bytes kinds not None):
        """Read the symbol table that the targets' Elf64_Rela entries index."""
        cdef Span table, strings
        cdef Py_ssize_t symbol_count, i, section_count = len(sections)
        cdef Py_ssize_t entry_count = 0     # relocation entries of all targets
        cdef Span* names
        cdef uint8_t* seen
        cdef Scratch scratch
        cdef int64_t bad
        if self.symbols_tried:
            raise ValueError("symbols are attached already")
        if <size_t>len(places) != self.object.target_count:
            raise ValueError("one place is needed for each target")
        self.symbols_tried = True   # `views` has room for one call
        self.owners.extend((symtab, strtab, sections, places, attributes, kinds))
        table = self.borrow(symtab)
        strings = self.borrow(strtab)
        self.object.attributes = self.borrow(attributes)
        self.object.kinds = self.borrow(kinds)
        symbol_count = <Py_ssize_t>(table.size // sizeof(Sym))
        for i in range(<Py_ssize_t>self.object.target_count):
            self.object.targets[i].place = strip_name(places[i])
            entry_count += <Py_ssize_t>(self.object.targets[i].size // sizeof(Rela))
        if max(symbol_count, entry_count, section_count) > MAX_ROWS:
            raise ValueError("a symbol table holds fewer than 2**31 entries")
        self.object.symbols = <Symbol*>scratch_zeros(&self.scratch, symbol_count, sizeof(Symbol))
        # There is one use of each symbol at most, so the smaller of both counts is room enough.
        self.object.uses = <Use*>scratch_zeros(&self.scratch, min(symbol_count, entry_count),
                                               sizeof(Use))
        scratch_init(&scratch)
        try:
            names = <Span*>scratch_zeros(&scratch, section_count, sizeof(Span))
            seen = <uint8_t*>scratch_zeros(&scratch, symbol_count, 1)
            check_memory(not (self.scratch.failed or scratch.failed))
            for i in range(section_count):
                if sections[i] is not None:
                    names[i] = strip_name(sections[i])
            with nogil:
                bad = read_object_symbols(&self.object, <const Sym*>table.data, symbol_count,
                                          strings, names, section_count)
                if bad < 0:
                    bad = collect_uses(&self.object, symbol_count, seen)
        finally:
            scratch_free(&scratch)
        if bad >= 0:
            raise IndexError("symbol or relocation runs past its table")
        self.object.symbol_count = symbol_count
        self.object.has_symbols = True

    @property
    def size(self):
        """Return the number of bytes of primary data and relocation targets."""
        cdef size_t i, total = 0
        for i in range(self.object.primary_count):
            total += self.object.primary[i].size
        for i in range(self.object.target_count):
            total += self.object.targets[i].size
        return total

    @property
    def has_symbols(self):
        return bool(self.object.has_symbols)

    @property
    def is_self_contained(self):
        """Return whether a copy of this file could fold into it."""
        cdef Verdict out
        if not self.object.has_symbols:
            return True
        start_outcome(&out)
        return compare_identity(&self.object, &self.object, &out) == ACCEPTED

    def symbol(self, Py_ssize_t row):
        """Return name, kind (SymbolKind), type and binding of the symbol with index `row`."""
        cdef Symbol* entry
        if not 0 <= row < <Py_ssize_t>self.object.symbol_count:
            raise IndexError("no such symbol")
        entry = &self.object.symbols[row]
        return (PyBytes_FromStringAndSize(<const char*>entry.name.data, entry.name.size),
                entry.kind, entry.type, entry.bind)

    def shape(self):
        """Return the sizes of the primary entries as packed uint64."""
        cdef bytes sizes = PyBytes_FromStringAndSize(
            NULL, sizeof(uint64_t) * <Py_ssize_t>self.object.primary_count)
        cdef uint64_t* size = <uint64_t*>PyBytes_AS_STRING(sizes)
        cdef size_t i
        for i in range(self.object.primary_count):
            size[i] = self.object.primary[i].size
        return sizes

    def signature(self):
        """Return the numbers by which references for a candidate are found: see `Signature`."""
        cdef size_t i
        cdef uint64_t headers = 0, targets = 0
        check_memory(build_index(&self.object))
        for i in range(self.object.header_count):
            headers += mix(0, self.object.headers[i].key)
        for i in range(self.object.target_count):
            targets += mix(0, self.object.targets[i].key)
        return (self.object.header_count, self.object.target_count, headers, targets,
                bool(self.object.distinct))

    def target_key(self, Py_ssize_t row):
        """Return the key of one target, a hash of its name without `.nv.merc` and of its size."""
        if not 0 <= row < <Py_ssize_t>self.object.target_count:
            raise IndexError("no such target")
        return self.object.targets[row].key

    def find_target(self, uint64_t key):
        """Return the row of the first target with `key`, or -1."""
        check_memory(build_index(&self.object))
        return <int64_t>target_row(&self.object, key) - 1

    def list_missing_digests(self, Vectors reference not None):
        """List the rows of targets without digest whose key several targets of `reference` have."""
        cdef size_t i
        cdef uint32_t head
        cdef list rows = []
        check_memory(build_index(&reference.object))
        for i in range(self.object.target_count):
            if not self.object.targets[i].hashed:
                head = table_slot(&reference.object.by_target, self.object.targets[i].key).head
                if head and reference.object.targets[head - 1].tied:
                    rows.append(i)
        return rows

    def set_digests(self, list rows not None, list digests not None):
        """Fill the digests (uint64) of some targets. ValueError for one that is filled."""
        cdef Py_ssize_t k, row
        if len(digests) != len(rows):
            raise ValueError("a digest is needed for each row")
        for k in range(len(rows)):
            row = rows[k]
            if not 0 <= row < <Py_ssize_t>self.object.target_count:
                raise IndexError("no such target")
            if self.object.targets[row].hashed:
                raise ValueError("a digest is filled once")
            self.object.targets[row].digest = digests[k]
            self.object.targets[row].hashed = True

    def digest(self, Py_ssize_t row):
        """Return the digest of one target, or None while it is not filled."""
        if not 0 <= row < <Py_ssize_t>self.object.target_count:
            raise IndexError("no such target")
        return self.object.targets[row].digest if self.object.targets[row].hashed else None


cdef Span strip_name(bytes name) except *:
    """Return a section's name without the prefix `.nv.merc`; raises TypeError for None."""
    if name is None:
        raise TypeError("a name is bytes")
    return strip(<const uint8_t*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))


cdef class Result:
    """Why a candidate folds or does not, and the work that this took."""
    cdef readonly int why               # a FoldOutcome number; this and the next five as in Verdict
    cdef readonly int64_t index         # failing entry of the candidate's vector, or -1
    cdef readonly int64_t twin          # entry of the reference that it was compared with, or -1
    cdef readonly int64_t offset        # first differing byte, or failing relocation entry, or -1
    cdef readonly int64_t symbol        # symbol index that differs, or -1
    cdef readonly int64_t moved_header  # first header whose twin is at another position, or -1
    cdef readonly tuple counts          # the fields of WorkCounts (objects.pxd), in order


cdef Result make_result(const Verdict* out, const WorkCounts* work):
    """Return a verdict and the work as a Result."""
    cdef Result result = Result.__new__(Result)
    result.why, result.index, result.twin = out.why, out.index, out.twin
    result.offset, result.symbol = out.offset, out.symbol
    result.moved_header = out.moved_header
    result.counts = (work.memcmp_calls, work.bytes_compared, work.bytes_offered, work.twin_probes,
                     work.prefilter_hits, work.false_positives, work.ns[0], work.ns[1], work.ns[2])
    return result


cdef int set_counts(WorkCounts* work, Result result) except -1:
    """Set `work` to the counts of an earlier result. Returns 0."""
    (work.memcmp_calls, work.bytes_compared, work.bytes_offered, work.twin_probes,
     work.prefilter_hits, work.false_positives, work.ns[0], work.ns[1],
     work.ns[2]) = result.counts
    return 0


# `hashed` finds twins in hash tables. `symbols` also compares symbols, if both objects have some.
def compare(Vectors reference not None, Vectors candidate not None, *, bint hashed, bint symbols):
    """Decide whether `candidate` folds into `reference`."""
    cdef Object* ref = &reference.object
    cdef Object* cand = &candidate.object
    cdef Verdict out
    cdef WorkCounts work
    memset(&work, 0, sizeof(work))
    start_outcome(&out)
    with nogil:
        decide_data(ref, cand, &out, &work)
    if out.why != ACCEPTED:
        return make_result(&out, &work)
    # Tables are built with the GIL held: another thread may compare with the same reference.
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
    """Compare the targets after `compare`, which returned `first`; counts have the work of both."""
    cdef Object* ref = &reference.object
    cdef Object* cand = &candidate.object
    cdef Verdict out
    cdef WorkCounts work
    if not ref.indexed or needs_digests(ref, cand):
        raise ValueError("digests are missing")
    start_outcome(&out)
    out.moved_header = first.moved_header
    set_counts(&work, first)
    check_memory(build_digests(ref))
    with nogil:
        decide_targets(ref, cand, True, symbols, &out, &work)
    return make_result(&out, &work)


# Returns the row of the reference that accepts or -1, the result of the last comparison, and the
# same result with the work of all comparisons.
def find_first_accepting(list references not None, Vectors candidate not None, *, bint symbols):
    """Compare with each reference in order, linearly, until one accepts."""
    cdef Py_ssize_t ref_count = len(references), i
    cdef Object** refs
    cdef Scratch scratch
    cdef Object* cand = &candidate.object
    cdef Vectors reference
    cdef Verdict out
    cdef WorkCounts total, last     # of all comparisons, and of the last one
    memset(&total, 0, sizeof(total))
    memset(&last, 0, sizeof(last))
    start_outcome(&out)
    scratch_init(&scratch)
    try:
        refs = <Object**>scratch_room(&scratch, ref_count, sizeof(Object*))
        check_memory(not scratch.failed)
        for i in range(ref_count):
            reference = references[i]
            if reference is None:
                raise TypeError("a reference is None")
            refs[i] = &reference.object
        i = 0
        with nogil:
            while i < ref_count:
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
    return i if i < ref_count else -1, make_result(&out, &last), make_result(&out, &total)


cdef void add_counts(WorkCounts* total, const WorkCounts* part) noexcept nogil:
    """Add the work of a linear comparison to `total`; its counts of hash tables are 0."""
    cdef int i
    total.memcmp_calls += part.memcmp_calls
    total.bytes_compared += part.bytes_compared
    total.bytes_offered += part.bytes_offered
    total.twin_probes += part.twin_probes
    for i in range(3):
        total.ns[i] += part.ns[i]


# A shape has the sizes of an object's primary entries. Sizes are compared by position.
def find_covering_shapes(list shapes not None, bytes candidate not None):
    """List the rows of `shapes` that differ from `candidate` and have no smaller size than it."""
    cdef Py_ssize_t count = PyBytes_GET_SIZE(candidate) // sizeof(uint64_t), row, i
    cdef const uint64_t* candidate_sizes = <const uint64_t*>PyBytes_AS_STRING(candidate)
    cdef const uint64_t* shape_sizes
    cdef bytes shape
    cdef list rows = []
    for row in range(len(shapes)):
        shape = shapes[row]
        if shape is None:
            raise TypeError("a shape is bytes")
        if PyBytes_GET_SIZE(shape) < PyBytes_GET_SIZE(candidate):
            continue
        shape_sizes = <const uint64_t*>PyBytes_AS_STRING(shape)
        i = 0
        while i < count and shape_sizes[i] >= candidate_sizes[i]:
            i += 1
        if i == count and shape != candidate:
            rows.append(row)
    return rows
