# cython: auto_pickle=False
"""Notes and compatibility attributes: one section of the output from all those of the inputs."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from attributetypes cimport EICOMPAT_CAN_FASTPATH_FINALIZE, FASTPATH_CODE
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.vector cimport Vec, vec_append, vec_to_bytes
from info.compat cimport Compat, CompatRow, compat_finish, compat_init, compat_read
from info.fastpath cimport has_code_off_fastpath
from pylink._native.results cimport MergedTables, ObjectTables
from pylink._native.tables cimport Blob, detach_rows
from sectionkinds cimport IS_CODE, K_COMPAT, K_INFO, K_TKINFO
from tables.attributes cimport find_record, record_size
from tables.kinds cimport is_a
from tables.rows cimport UNKNOWN_SM, FileRow, OutNumber, SectionRef, SectionRow
from tables.views cimport ObjectsView
from traits cimport TRAIT_FP64_SCOREBOARDS


def join_notes(ObjectTables objects not None, bytes first not None):
    """Return `first`, followed by the bytes of the .note.nv.tkinfo of all inputs."""
    cdef ObjectsView view
    cdef size_t file
    cdef SectionRef i
    cdef const SectionRow* section
    cdef Vec joined
    cdef Scratch scratch
    objects.view(&view)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &joined, 1)
        scratch.failed |= not vec_append(&joined, <const uint8_t*>PyBytes_AS_STRING(first),
                                         PyBytes_GET_SIZE(first))
        with nogil:
            for file in range(view.file_count):
                for i in range(view.files[file].first_note, view.files[file].note_end):
                    section = &view.sections[i]
                    if (section.kind == K_TKINFO
                            and not vec_append(&joined, view.arena + section.offset,
                                               section.size)):
                        scratch.failed = True
        check_memory(not scratch.failed)
        return Blob(detach_rows(&joined))
    finally:
        scratch_free(&scratch)


cdef class VirtualArchs:
    """The lowest and highest SM number of the PTX that inputs were compiled from."""
    cdef readonly uint32_t lowest
    cdef readonly int64_t lowest_file       # first file with the lowest number, or -1
    cdef readonly uint32_t lowest_count     # number of files with the lowest number
    cdef readonly uint32_t highest
    cdef readonly int64_t highest_file      # first file with the highest number, or -1


def find_virtual_archs(ObjectTables objects not None):
    """Find the lowest and highest SM number of the PTX that inputs were compiled from."""
    cdef const FileRow* files = objects.files.rows
    cdef VirtualArchs archs = VirtualArchs.__new__(VirtualArchs)
    cdef uint32_t sm
    cdef size_t i
    archs.lowest_file = archs.highest_file = -1
    for i in range(objects.files.count):
        sm = files[i].ptx_sm
        if sm == UNKNOWN_SM:
            continue
        if archs.lowest_file < 0 or sm < archs.lowest:
            archs.lowest = sm
            archs.lowest_file = <int64_t>i
            archs.lowest_count = 0
        if sm == archs.lowest:
            archs.lowest_count += 1
        if archs.highest_file < 0 or sm > archs.highest:
            archs.highest = sm
            archs.highest_file = <int64_t>i
    return archs


def has_attribute(ObjectTables objects not None, int attribute):
    """Return whether the .nv.info of any input has an EIATTR record with that attribute."""
    cdef ObjectsView view
    cdef size_t file
    cdef SectionRef i
    cdef const SectionRow* section
    objects.view(&view)
    for file in range(view.file_count):
        for i in range(view.files[file].first_note, view.files[file].note_end):
            section = &view.sections[i]
            if section.kind == K_INFO and find_record(view.arena + section.offset, section.size,
                                                      <uint8_t>attribute) != NULL:
                return True
    return False


def fastpath_bits(MergedTables merged not None):
    """Return the bits of CAN_FASTPATH_FINALIZE that the output has because of its code: 8 or 0."""
    cdef ObjectsView view
    cdef const SectionRow* section
    cdef const OutNumber* out_of = <const OutNumber*>merged.out_of.rows
    cdef size_t file
    cdef SectionRef i
    cdef bint is_promised           # the file's attributes say that its code is on the fast path
    cdef bint is_off = False        # linked code of a file without that promise is off that path
    merged.objects.view(&view)
    cdef bint follows_scoreboards = view.traits & TRAIT_FP64_SCOREBOARDS != 0
    if merged.out_of.count != view.section_count:
        raise ValueError("out_of has not one row for each section")
    with nogil:
        for file in range(view.file_count):
            is_promised = False
            for i in range(view.files[file].first_note, view.files[file].note_end):
                section = &view.sections[i]
                if section.kind == K_COMPAT:
                    is_promised = is_promised or has_promised_fastpath(
                        view.arena + section.offset, section.size)
            if is_promised or is_off:
                continue
            for i in range(view.files[file].first_code, view.files[file].code_end):
                section = &view.sections[i]
                if is_a(section.kind, IS_CODE) and out_of[i] >= 0 and not is_off:
                    is_off = has_code_off_fastpath(view.arena + section.offset, section.size,
                                                   follows_scoreboards)
    return 0 if is_off else FASTPATH_CODE


cdef inline bint has_promised_fastpath(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return whether a file's .nv.compat says that all its code is on the fast path.

    The value of the attribute is a list of bytes after the first 4 of its record.
    """
    cdef const uint8_t* record = find_record(data, size, EICOMPAT_CAN_FASTPATH_FINALIZE)
    return record != NULL and record_size(record) > 4 and record[4] & FASTPATH_CODE != 0


# `arch_specific` says that the target's name ends in `a`. `features` has the bits of the target. An
# attribute with COMPAT_COMMON gets the bits of `fastpath`, and keeps only those of `features`.
def merge_compat(ObjectTables objects not None, bytes rows not None, *, bint arch_specific,
                 uint64_t features, uint8_t fastpath):
    """Return the records of .nv.compat, joined over all inputs by rows of `pylink.facts.compat`."""
    cdef ObjectsView view
    cdef const SectionRow* section
    cdef size_t file
    cdef SectionRef i
    cdef Compat compat
    cdef Vec out
    cdef Scratch scratch
    if PyBytes_GET_SIZE(rows) % sizeof(CompatRow):
        raise ValueError("a table is not made of whole rows")
    objects.view(&view)
    scratch_init(&scratch)
    try:
        compat_init(&compat, <const CompatRow*>PyBytes_AS_STRING(rows),
                    PyBytes_GET_SIZE(rows) // sizeof(CompatRow), &scratch)
        scratch_vector(&scratch, &out, 1)
        with nogil:
            for file in range(view.file_count):
                for i in range(view.files[file].first_note, view.files[file].note_end):
                    section = &view.sections[i]
                    if section.kind == K_COMPAT and not scratch.failed:
                        scratch.failed = not compat_read(
                            &compat, view.arena + section.offset, section.size,
                            view.files[file].code_end != 0)
            if not scratch.failed:
                scratch.failed = not compat_finish(&compat, arch_specific, features, fastpath, &out)
        check_memory(not scratch.failed)
        return vec_to_bytes(&out)
    finally:
        scratch_free(&scratch)
