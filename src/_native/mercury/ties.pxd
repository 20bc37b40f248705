# Files whose Mercury sections agree in kinds, sizes and names (they tie): only these can fold.
#
# To fold is to omit a file's Mercury debug sections, since an earlier file has equal ones. That
# takes comparisons of bytes, which are slow, and most files repeat no other one. So keys are
# compared first. `tie_key` makes a key of the kinds and sizes of a file's Mercury sections, and
# `keep_tied` keeps the files whose key another file has. Only these get a second key, which also
# covers the names.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.nameindex cimport hash_name
from base.prefetch cimport AHEAD, prefetch
from base.texts cimport MERC_PREFIX, has_prefix
from sectionkinds cimport IS_CAPSULE, IS_DEBUG, IS_ENTRIES
from tables.kinds cimport is_a, is_merc
from tables.rows cimport FileNumber, FileRow, SectionRow


# One file in the list of candidates, which is sorted by key: files with equal keys may tie.
ctypedef struct Tie:
    uint64_t key        # from `tie_key`: first without, later with the names of sections
    FileNumber file     # number of the file


cdef inline uint64_t mix_key(uint64_t key, uint64_t value) noexcept nogil:
    """Return a hash of `value` and of all values that the hash `key` covers."""
    key = (key ^ value) * 0x9e3779b97f4a7c15U
    return key ^ key >> 32


cdef inline bint has_plain_bytes(const uint8_t* name, uint32_t size) noexcept nogil:
    """Return whether Mercury debug sections of this name have no bytes of their own.

    `name` is what follows `.nv.merc`. Their headers point to the bytes of the plain section, so
    folding would save nothing.
    """
    return (has_prefix(name, size, b".nv_debug_ptx_txt")
            or has_prefix(name, size, b".debug_abbrev")
            or has_prefix(name, size, b".debug_pubnames")
            or has_prefix(name, size, b".debug_pubtypes")
            or has_prefix(name, size, b".debug_str")
            or has_prefix(name, size, b".debug_loc"))


cdef inline bint can_fold(const uint8_t* arena, const SectionRow* s) noexcept nogil:
    """Return whether a section is Mercury debug data with bytes of its own."""
    return (is_merc(s.kind, IS_DEBUG) and s.name_size > MERC_PREFIX
            and not has_plain_bytes(arena + s.name + MERC_PREFIX,
                                    s.name_size - MERC_PREFIX))


cdef inline int compare_ties(const void* a, const void* b) noexcept nogil:
    """Order two Tie by key, then by file, for qsort."""
    cdef const Tie* x = <const Tie*>a
    cdef const Tie* y = <const Tie*>b
    if x.key != y.key:
        return -1 if x.key < y.key else 1
    return -1 if x.file < y.file else 1


cdef inline uint64_t tie_key(const uint8_t* arena, const SectionRow* sections, const FileRow* file,
                             bint names) noexcept nogil:
    """Return a hash of a file's Mercury sections with debug data, capsules and relocations.

    It covers kinds, sizes and lengths of names, and with `names` also the names. 0 if none of these
    sections has debug data.
    """
    cdef const SectionRow* section = sections + file.first_section
    cdef uint64_t key = 1
    cdef uint32_t i
    cdef bint has_debug = False
    for i in range(file.section_count):
        prefetch(&section[i + AHEAD].kind)
        if names and i + AHEAD < file.section_count:
            prefetch(arena + section[i + AHEAD].name)
        if not is_merc(section[i].kind, IS_DEBUG | IS_CAPSULE | IS_ENTRIES):
            continue
        key = mix_key(key, <uint64_t>section[i].name_size << 32 | section[i].kind)
        key = mix_key(key, section[i].size)
        if names:
            key = mix_key(key, hash_name(arena + section[i].name, section[i].name_size))
        has_debug = has_debug or is_a(section[i].kind, IS_DEBUG)
    return key | 1 if has_debug else 0


cdef inline size_t keep_tied(Tie* ties, size_t count) noexcept nogil:
    """Sort `ties` by key, and drop rows whose key no other row has. Returns how many stay."""
    cdef size_t i, kept_count = 0
    cdef uint64_t last_tied = 0     # the last key that was kept; no key in `ties` is 0
    qsort(ties, count, sizeof(Tie), compare_ties)
    for i in range(count):
        if ties[i].key == last_tied or (i + 1 < count and ties[i + 1].key == ties[i].key):
            last_tied = ties[i].key
            ties[kept_count] = ties[i]
            kept_count += 1
    return kept_count
