# The symbols that relocations name by index, and the comparison of symbols with equal indices in
# two files. `pylink/mercury/__init__.py` argues why that is enough for a fold.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memchr

from base.elf64 cimport Rela, Sym
from base.spans cimport Span
from elfnumbers cimport SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_SECTION
from mercury.objects cimport (
    S_NAMED, S_NULL, S_PRIVATE, S_SECTION, Object, Symbol, Use, Verdict, is_equal_span,
)
from outcomes cimport (
    ACCEPTED, ATTRIBUTES_DIFFER, FUNCTION_DIFFERS, FUNCTION_WEAKER, HEADER_MOVED, SECTION_KIND,
    SYMBOL_DIFFERS, TARGET_MOVED, TARGET_PLACE,
)


cdef inline int64_t read_object_symbols(Object* object, const Sym* table, Py_ssize_t symbol_count,
                                        Span strings, const Span* sections,
                                        Py_ssize_t section_count) noexcept nogil:
    """Fill `symbols` of `object` from the .nv.merc.symtab of its file and the string table.

    `sections` has, by section index, the name without `.nv.merc` of a section whose header is
    compared; for others its `data` is NULL. Returns the index of the first symbol whose name runs
    past `strings`, or -1.
    """
    cdef Py_ssize_t i
    cdef uint32_t name          # offset in `strings`
    cdef uint16_t section
    cdef const uint8_t* end
    cdef Symbol* symbol
    cdef bint is_compared       # the header of the symbol's section is compared
    for i in range(symbol_count):
        symbol = &object.symbols[i]
        name = table[i].st_name
        section = table[i].st_shndx
        if name >= strings.size:
            return i
        end = <const uint8_t*>memchr(strings.data + name, 0, strings.size - name)
        if end == NULL:
            return i
        symbol.type = table[i].st_info & 15
        symbol.bind = table[i].st_info >> 4
        is_compared = section < section_count and sections[section].data != NULL
        symbol.described = symbol.type == STT_FUNC and section != SHN_UNDEF
        symbol.kind = S_PRIVATE
        symbol.name.data = strings.data + name
        symbol.name.size = end - symbol.name.data
        if i == 0:
            symbol.kind = S_NULL
        elif symbol.bind == STB_GLOBAL or symbol.bind == STB_WEAK:
            if symbol.name.size:
                symbol.kind = S_NAMED
        elif symbol.type == STT_SECTION and is_compared:
            symbol.kind = S_SECTION
            symbol.name = sections[section]
    return -1


cdef inline int64_t collect_uses(Object* object, Py_ssize_t symbol_count,
                                 uint8_t* seen) noexcept nogil:
    """Fill `uses` of `object`: for each symbol that relocations name, the first entry that does.

    `seen` has a byte for each symbol, zero at first. Returns the index of a target (a relocation
    section) with an entry whose symbol does not exist, or -1.
    """
    cdef int64_t bad_target = -1
    cdef const Rela* rows
    cdef size_t i, k
    cdef uint32_t symbol
    for i in range(object.target_count):
        rows = <const Rela*>object.targets[i].data
        for k in range(object.targets[i].size // sizeof(Rela)):
            symbol = rows[k].r_sym
            if symbol >= symbol_count:
                bad_target = <int64_t>i
                break
            if not seen[symbol]:
                seen[symbol] = 1
                object.uses[object.use_count].symbol = symbol
                object.uses[object.use_count].entry = <uint32_t>k
                object.uses[object.use_count].target = <uint32_t>i
                object.use_count += 1
    return bad_target


cdef inline bint is_equal_symbol(const Object* ref, const Object* cand, size_t i) noexcept nogil:
    """Return whether symbol index `i` means the same symbol of a link in both files.

    For example, both are the global function `f`, or the start of a section `.debug_line`.
    """
    cdef const Symbol* a
    cdef const Symbol* b
    if i >= ref.symbol_count or i >= cand.symbol_count:
        return False
    a = &ref.symbols[i]
    b = &cand.symbols[i]
    return (a.kind == b.kind and a.kind != S_PRIVATE and a.type == b.type
            and is_equal_span(a.name.data, a.name.size, b.name.data, b.name.size))


cdef inline int compare_identity(const Object* ref, const Object* cand,
                                 Verdict* out) noexcept nogil:
    """Compare the symbols of two files whose stages 1 to 3 accept. Returns the `why` of a Verdict.

    These are functions that a file defines, and symbols that relocations of `cand` name. A function
    must not be weak in `ref` alone. Headers and targets (relocation sections) must be at equal
    positions, since indices name them. Attribute records, kinds of sections, and the sections that
    targets relocate must be equal, too.
    """
    cdef size_t i
    cdef const Use* use
    cdef bint is_in_candidate, is_in_reference
    out.index = out.twin = -1
    if out.moved_header >= 0:
        out.index = out.moved_header
        return HEADER_MOVED
    if out.moved_target >= 0:
        out.index = out.moved_target
        return TARGET_MOVED
    if not is_equal_span(ref.kinds.data, ref.kinds.size, cand.kinds.data, cand.kinds.size):
        return SECTION_KIND
    for i in range(cand.target_count):
        if not is_equal_span(ref.targets[i].place.data, ref.targets[i].place.size,
                             cand.targets[i].place.data, cand.targets[i].place.size):
            out.index = <int64_t>i
            return TARGET_PLACE
    for i in range(max(ref.symbol_count, cand.symbol_count)):
        is_in_candidate = i < cand.symbol_count and cand.symbols[i].described
        is_in_reference = i < ref.symbol_count and ref.symbols[i].described
        if is_in_candidate or is_in_reference:
            out.symbol = <int64_t>i
            if not (is_in_candidate and is_in_reference and is_equal_symbol(ref, cand, i)):
                return FUNCTION_DIFFERS
            if ref.symbols[i].bind == STB_WEAK and cand.symbols[i].bind != STB_WEAK:
                return FUNCTION_WEAKER
    for i in range(cand.use_count):
        use = &cand.uses[i]
        if not is_equal_symbol(ref, cand, use.symbol):
            out.index = use.target
            out.offset = use.entry
            out.symbol = use.symbol
            return SYMBOL_DIFFERS
    out.symbol = -1
    if not is_equal_span(ref.attributes.data, ref.attributes.size,
                         cand.attributes.data, cand.attributes.size):
        return ATTRIBUTES_DIFFER
    return ACCEPTED
