"""Effects of an accepted fold on the tables of a link."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from base.elf64 cimport STT_FUNC
from mercury.ties cimport can_fold
from pylink._native.tables cimport MergedTables, Numbers, ObjectTables
from sectionkinds cimport IS_DEBUG
from tables.kinds cimport is_merc
from tables.rows cimport FileRow, SectionRow, SymbolRow, has_lost


def find_stronger(MergedTables merged not None, int32_t reference, int32_t candidate):
    cdef ObjectTables objects = merged.objects
    cdef const FileRow* f = objects.files.rows
    cdef const SymbolRow* s = objects.symbols.rows
    cdef const uint8_t* resolution = merged.symbol_resolution.rows
    cdef Py_ssize_t n = objects.files.count
    cdef uint32_t i, candidate_symbol, reference_symbol
    if not (0 <= reference < n and 0 <= candidate < n):
        raise IndexError(f"files {reference} and {candidate} of {n}")
    for i in range(min(f[reference].symbol_count, f[candidate].symbol_count)):
        reference_symbol = f[reference].first_symbol + i
        candidate_symbol = f[candidate].first_symbol + i
        if ((s[candidate_symbol].info & 15) == STT_FUNC and has_lost(resolution[reference_symbol])
                and not has_lost(resolution[candidate_symbol])):
            return candidate_symbol
    return -1


def pair_sections(ObjectTables objects not None, bytes pairs not None):
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const FileRow* f = objects.files.rows
    cdef const SectionRow* s = objects.sections.rows
    cdef const int32_t* pair = <const int32_t*>PyBytes_AS_STRING(pairs)
    cdef Py_ssize_t n = objects.files.count
    cdef Py_ssize_t section_count = objects.sections.count
    cdef bytes table = PyBytes_FromStringAndSize(NULL, 4 * section_count)
    cdef int32_t* stands = <int32_t*>PyBytes_AS_STRING(table)
    cdef Py_ssize_t i
    cdef int32_t a, b
    memset(stands, 0xff, 4 * section_count)
    for i in range(PyBytes_GET_SIZE(pairs) // 8):
        a = pair[2 * i]
        b = pair[2 * i + 1]
        if not (0 <= a < n and 0 <= b < n):
            raise IndexError(f"files {a} and {b} of {n}")
        if not pair_files(base, s, &f[a], &f[b], stands):
            raise ValueError(f"the sections of files {a} and {b} do not correspond")
    return Numbers(table)


cdef bint pair_files(const uint8_t* arena, const SectionRow* s, const FileRow* candidate,
                     const FileRow* reference, int32_t* stands) noexcept nogil:
    """Set the stand-ins for one pair of files; False if their sections do not correspond."""
    cdef uint32_t i, j = reference.first_section
    cdef uint32_t end = reference.first_section + reference.section_count
    for i in range(candidate.first_section, candidate.first_section + candidate.section_count):
        if not is_merc(s[i].kind, IS_DEBUG):
            continue
        while j < end and not is_merc(s[j].kind, IS_DEBUG):
            j += 1
        if (j == end or s[i].size != s[j].size or s[i].name_size != s[j].name_size
                or memcmp(arena + s[i].name, arena + s[j].name, s[i].name_size) != 0):
            return False
        if can_fold(arena, &s[i]):
            stands[i] = <int32_t>j
        j += 1
    return True
