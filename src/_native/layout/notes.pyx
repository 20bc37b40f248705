"""Notes and compatibility attributes: one section of the output from all those of the inputs."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_append, vec_to_bytes
from info.compat cimport FASTPATH_CODE, Compat, CompatRow, compat_finish, compat_init, compat_read
from info.fastpath cimport has_code_off_fastpath
from pylink._native.tables cimport MergedTables, ObjectTables
from sectionkinds cimport IS_CODE, K_COMPAT, K_INFO, K_TKINFO
from tables.attributes cimport find_record, record_size
from tables.kinds cimport is_a
from tables.rows cimport UNKNOWN_SM, FileRow, SectionRow
from tables.views cimport ObjectsView
from traits cimport TRAIT_FP64_SCOREBOARDS


cdef enum:
    COMPAT_SPECIFIC = 9         # attribute: the code is for one architecture alone
    COMPAT_FASTPATH = 0x0b      # attribute: CAN_FASTPATH_FINALIZE


def join_notes(ObjectTables objects not None):
    cdef ObjectsView v
    cdef size_t file
    cdef uint32_t i
    cdef const SectionRow* s
    cdef Vec joined
    cdef Scratch scratch
    objects.view(&v)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &joined, 1)
        with nogil:
            for file in range(v.file_count):
                for i in range(v.files[file].first_note, v.files[file].note_end):
                    s = &v.sections[i]
                    if s.kind == K_TKINFO and not vec_append(&joined, v.arena + s.offset, s.size):
                        scratch.failed = True
        if scratch.failed:
            raise MemoryError
        return vec_to_bytes(&joined)
    finally:
        scratch_free(&scratch)


def virtual_archs(ObjectTables objects not None):
    cdef size_t n = objects.files.count, i
    cdef const FileRow* f = objects.files.rows
    cdef uint32_t sm, lowest = 0, highest = 0, low_files = 0
    cdef int64_t low = -1, high = -1
    with nogil:
        for i in range(n):
            sm = f[i].ptx_sm
            if sm == UNKNOWN_SM:
                continue
            if low < 0 or sm < lowest:
                lowest = sm
                low = <int64_t>i
                low_files = 0
            if sm == lowest:
                low_files += 1
            if high < 0 or sm > highest:
                highest = sm
                high = <int64_t>i
    return lowest, low, low_files, highest, high


def has_attribute(ObjectTables objects not None, int attribute):
    cdef ObjectsView v
    cdef size_t file
    cdef uint32_t i
    cdef const SectionRow* s
    objects.view(&v)
    for file in range(v.file_count):
        for i in range(v.files[file].first_note, v.files[file].note_end):
            s = &v.sections[i]
            if s.kind == K_INFO and find_record(v.arena + s.offset, s.size,
                                                <uint8_t>attribute) != NULL:
                return True
    return False


def fastpath_bits(MergedTables merged not None):
    cdef ObjectsView v
    cdef const SectionRow* s
    cdef const int32_t* out = merged.out_of.rows
    cdef size_t file
    cdef uint32_t i
    cdef bint is_promised, leaves = False
    merged.objects.view(&v)
    cdef bint follows_scoreboards = v.traits & TRAIT_FP64_SCOREBOARDS != 0
    if merged.out_of.count != v.section_count:
        raise ValueError("one output section per section")
    with nogil:
        for file in range(v.file_count):
            is_promised = False
            for i in range(v.files[file].first_note, v.files[file].note_end):
                s = &v.sections[i]
                if s.kind == K_COMPAT:
                    is_promised = is_promised or has_promised_fastpath(v.arena + s.offset, s.size)
            if is_promised or leaves:
                continue
            for i in range(v.files[file].first_code, v.files[file].code_end):
                s = &v.sections[i]
                if is_a(s.kind, IS_CODE) and out[i] >= 0 and not leaves:
                    leaves = has_code_off_fastpath(v.arena + s.offset, s.size, follows_scoreboards)
    return 0 if leaves else FASTPATH_CODE


cdef inline bint has_promised_fastpath(const uint8_t* data, uint64_t size) noexcept nogil:
    """Whether attributes of a file say that all its code is on the fast path."""
    cdef const uint8_t* record = find_record(data, size, COMPAT_FASTPATH)
    return record != NULL and record_size(record) > 4 and record[4] & FASTPATH_CODE != 0


def merge_compat(ObjectTables objects not None, bytes rows not None, *, bint arch_specific,
                 uint64_t features, uint8_t fastpath):
    cdef ObjectsView v
    cdef const SectionRow* s
    cdef size_t file
    cdef uint32_t i
    cdef Compat compat
    cdef Vec out
    cdef Scratch scratch
    if PyBytes_GET_SIZE(rows) % sizeof(CompatRow):
        raise ValueError("one row per attribute")
    objects.view(&v)
    scratch_init(&scratch)
    try:
        compat_init(&compat, <const CompatRow*>PyBytes_AS_STRING(rows),
                    PyBytes_GET_SIZE(rows) // sizeof(CompatRow), &scratch)
        scratch_vector(&scratch, &out, 1)
        with nogil:
            for file in range(v.file_count):
                for i in range(v.files[file].first_note, v.files[file].note_end):
                    s = &v.sections[i]
                    if s.kind == K_COMPAT and not scratch.failed:
                        scratch.failed = not compat_read(&compat, v.arena + s.offset, s.size,
                                                         v.files[file].code_end != 0)
            if not scratch.failed:
                scratch.failed = not compat_finish(&compat, arch_specific, features, fastpath, &out)
        if scratch.failed:
            raise MemoryError
        return vec_to_bytes(&out)
    finally:
        scratch_free(&scratch)
