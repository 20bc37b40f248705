"""Effects of accepted folds of Mercury sections on the tables of a link (docs/dedup.md).

A fold pairs a candidate file with an earlier file, its reference. Mercury debug sections at the
same place among those of their file correspond. Each one of the candidate that has bytes of its own
then has the reference's one as its stand-in.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memset

from elfnumbers cimport STT_FUNC
from mercury.ties cimport can_fold
from pylink._native.results cimport MergedTables, ObjectTables
from pylink._native.tables cimport Numbers
from sectionkinds cimport IS_DEBUG
from tables.kinds cimport is_merc
from tables.rows cimport (
    FileNumber, FileRow, SectionNumber, SectionRef, SectionRow, SymbolRef, SymbolRow, has_lost,
)


def find_winning_symbol(MergedTables merged not None, FileNumber reference, FileNumber candidate):
    """Return the SymbolRow of a function of `candidate` whose copy in `reference` lost, or -1."""
    cdef ObjectTables objects = merged.objects
    cdef const FileRow* files = objects.files.rows
    cdef const SymbolRow* symbols = objects.symbols.rows
    cdef const uint8_t* resolution = merged.symbol_resolution.rows
    cdef Py_ssize_t file_count = objects.files.count
    cdef uint32_t i
    cdef SymbolRef candidate_symbol, reference_symbol
    if not (0 <= reference < file_count and 0 <= candidate < file_count):
        raise IndexError(f"files {reference} and {candidate} of {file_count}")
    for i in range(min(files[reference].symbol_count, files[candidate].symbol_count)):
        reference_symbol = files[reference].first_symbol + i
        candidate_symbol = files[candidate].first_symbol + i
        if ((symbols[candidate_symbol].info & 15) == STT_FUNC
                and has_lost(resolution[reference_symbol])
                and not has_lost(resolution[candidate_symbol])):
            return candidate_symbol
    return -1


# `pairs` has the FileNumbers of a candidate file, whose Mercury debug sections are omitted, and of
# its reference, the earlier file whose sections replace them, alternately.
def pair_sections(ObjectTables objects not None, bytes pairs not None):
    """Return, by input section, the SectionRow that replaces it, or -1."""
    cdef const uint8_t* arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const FileRow* files = objects.files.rows
    cdef const SectionRow* sections = objects.sections.rows
    cdef const FileNumber* pair = <const FileNumber*>PyBytes_AS_STRING(pairs)
    cdef Py_ssize_t file_count = objects.files.count
    cdef Py_ssize_t section_count = objects.sections.count
    cdef bytes table = PyBytes_FromStringAndSize(NULL, 4 * section_count)
    cdef SectionNumber* stand_ins = <SectionNumber*>PyBytes_AS_STRING(table)
    cdef Py_ssize_t i
    cdef FileNumber candidate, reference
    memset(stand_ins, 0xff, 4 * section_count)
    for i in range(PyBytes_GET_SIZE(pairs) // 8):
        candidate = pair[2 * i]
        reference = pair[2 * i + 1]
        if not (0 <= candidate < file_count and 0 <= reference < file_count):
            raise IndexError(f"files {candidate} and {reference} of {file_count}")
        if not pair_files(arena, sections, &files[candidate], &files[reference], stand_ins):
            raise ValueError(f"the sections of files {candidate} and {reference} do not correspond")
    return Numbers(table)


cdef bint pair_files(const uint8_t* arena, const SectionRow* sections, const FileRow* candidate,
                     const FileRow* reference, SectionNumber* stand_ins) noexcept nogil:
    """Set the section of `reference` that replaces each Mercury debug section of `candidate`.

    It is entered in `stand_ins`, by input section; sections without bytes of their own (`can_fold`)
    have none. False if, for a Mercury debug section of `candidate`, the one at its place among
    those of `reference` is missing or has another size or name.
    """
    cdef SectionRef i, j = reference.first_section
    cdef SectionRef end = reference.first_section + reference.section_count
    for i in range(candidate.first_section, candidate.first_section + candidate.section_count):
        if not is_merc(sections[i].kind, IS_DEBUG):
            continue
        while j < end and not is_merc(sections[j].kind, IS_DEBUG):
            j += 1
        if (j == end or sections[i].size != sections[j].size
                or sections[i].name_size != sections[j].name_size
                or memcmp(arena + sections[i].name, arena + sections[j].name,
                          sections[i].name_size) != 0):
            return False
        if can_fold(arena, &sections[i]):
            stand_ins[i] = <SectionNumber>j
        j += 1
    return True
