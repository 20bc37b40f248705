# Contents of the output's sections, in the order of the file: pieces of the inputs, contents that
# the link made, entries of relocation sections. Each becomes an extent, extents become windows, and
# a window is patched while it is made.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from base.elf64 cimport Rela
from base.scratch cimport Scratch, scratch_room, scratch_zeros
from base.threads cimport run_each
from base.vector cimport Vec, vec_append, vec_push, vec_reserve
from image.capsules cimport ConstantReference, patch_capsule, references_of
from image.patches cimport patch_field
from image.windows cimport WINDOW, Window, sort_windows
from rownumbers cimport FROM_INPUTS, FROM_SPAN
from sectionkinds cimport HEAD_TARGET, IS_CAPSULE, KIND
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport EmittedRow, OutRow, PatchRow, PlaceRow, SectionRow
from tables.views cimport MergedView, ObjectsView, PlacedView

cdef extern from "image/contents.h":
    void note_bad "pylink_note_bad"(int32_t* bad, int32_t out) noexcept nogil

cdef enum:
    NEAR = 4096                 # a gap of more bytes ends a window
    CONTENTS = 0                # what windows of contents are; those of tables are of a kind
    SOME_SECTIONS = 2048        # that a thread looks at in a row
    SECTION_AS_BYTES = 64       # moved in the time of such a look


ctypedef struct CopyExtent:
    uint64_t offset             # in the output
    uint64_t size
    const uint8_t* source       # NULL: the entries of a relocation section
    int32_t out
    bint capsule


ctypedef struct Contents:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    const PatchRow* patches
    size_t patch_count
    const uint8_t** span_bytes  # by OutRow: contents that the link made, or NULL
    Vec extents                 # CopyExtent, in the order of the file
    Vec windows                 # Window: of contents, and of tables if drawn
    uint32_t* patch_order       # patches of the first window, of the second, ...
    Vec references              # ConstantReference
    int32_t bad                 # OutRow of a capsule that breaks its format, or -1


cdef inline bint is_copied(const Contents* contents, size_t section) noexcept nogil:
    """Whether input section `section` is a part of an output section that keeps the input's bytes.
    """
    cdef int32_t o = contents.merged.out_of[section]
    if (o < 0 or is_nobits(&contents.placed.outs[o])
            or contents.placed.places[o].contents != FROM_INPUTS):
        return False
    if contents.merged.stand_ins != NULL and contents.merged.stand_ins[section] >= 0:
        return False
    # A layout that shrank the section replaced its contents.
    return (contents.merged.base[section] + contents.objects.sections[section].size
            <= contents.placed.places[o].size)


# The tables with which threads list the units. Rows of a unit lie apart, so looking at them costs
# more than the sorting.
ctypedef struct Listing:
    Contents* contents
    uint8_t* copied             # by input section: it is a part of an output section
    const uint32_t* first       # by OutRow: where its parts begin in `pieces`
    const int32_t* pieces       # input sections
    CopyExtent* extents
    size_t* place               # by run of the order of the file: where its units go
    size_t* count               # and how many they are


cdef inline void find_copied(void* context, size_t run) noexcept nogil:
    cdef const Listing* listing = <const Listing*>context
    cdef size_t i, first = run * SOME_SECTIONS
    for i in range(first, min(first + SOME_SECTIONS, listing.contents.objects.section_count)):
        listing.copied[i] = is_copied(listing.contents, i)


cdef inline int compare_extents(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const CopyExtent*>a).offset, y = (<const CopyExtent*>b).offset
    return -1 if x < y else x > y


cdef inline bint list_extents(Contents* contents, Scratch* scratch) noexcept nogil:
    """List every extent in the order of the file; False without memory."""
    cdef uint32_t* first = <uint32_t*>scratch_zeros(scratch, contents.placed.out_count + 2, 4)
    cdef int32_t* piece = <int32_t*>scratch_room(scratch, contents.objects.section_count, 4)
    cdef size_t runs = contents.placed.section_order_count // SOME_SECTIONS + 1
    cdef Listing listing
    listing.contents = contents
    listing.first = first
    listing.pieces = piece
    listing.copied = <uint8_t*>scratch_room(scratch, contents.objects.section_count, 1)
    listing.place = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    listing.count = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    if scratch.failed:
        return False
    run_each(find_copied, &listing, contents.objects.section_count // SOME_SECTIONS + 1,
             contents.objects.section_count * SECTION_AS_BYTES)
    sort_pieces(contents, first, piece, listing.copied)
    return list_section_extents(contents, &listing, runs)


cdef inline void sort_pieces(const Contents* contents, uint32_t* first, int32_t* piece,
                             const uint8_t* copied) noexcept nogil:
    """Input sections by the section that they are a part of: those of `o` begin at `first[o]`."""
    cdef size_t i
    cdef uint32_t position
    for i in range(contents.objects.section_count):
        if copied[i]:
            first[contents.merged.out_of[i] + 2] += 1
    for i in range(2, contents.placed.out_count + 2):
        first[i] += first[i - 1]
    for i in range(contents.objects.section_count):
        if copied[i]:
            position = first[contents.merged.out_of[i] + 1]
            first[contents.merged.out_of[i] + 1] += 1
            piece[position] = <int32_t>i


cdef inline CopyExtent* put_unit(CopyExtent* extent, uint64_t offset, uint64_t size,
                                 const uint8_t* source, int32_t out, bint capsule) noexcept nogil:
    """Write a unit, if it has bytes. Returns the place of the next one."""
    if size == 0:
        return extent
    extent.offset = offset
    extent.size = size
    extent.source = source
    extent.out = out
    extent.capsule = capsule
    return extent + 1


cdef inline void list_run(void* context, size_t run) noexcept nogil:
    """The units of a run of sections."""
    cdef const Listing* listing = <const Listing*>context
    cdef const Contents* c = listing.contents
    cdef const OutRow* row
    cdef const PlaceRow* place
    cdef const SectionRow* s
    cdef CopyExtent* begin = listing.extents + listing.place[run]
    cdef CopyExtent* extent = begin
    cdef size_t i, first = run * SOME_SECTIONS
    cdef uint32_t at
    cdef int32_t o, piece
    cdef bint capsule
    for i in range(first, min(first + SOME_SECTIONS, c.placed.section_order_count)):
        o = c.placed.section_order[i]
        row = &c.placed.outs[o]
        place = &c.placed.places[o]
        capsule = is_a(row.kind, IS_CAPSULE)
        if place.contents == FROM_SPAN:
            extent = put_unit(extent, place.offset, place.size, c.span_bytes[o], o, capsule)
        elif KIND[row.kind].info == HEAD_TARGET and row.head >= 0:
            extent = put_unit(extent, place.offset, <uint64_t>row.count * row.entsize, NULL, o,
                              capsule)
        else:
            for at in range(listing.first[o], listing.first[o + 1]):
                piece = listing.pieces[at]
                s = &c.objects.sections[piece]
                extent = put_unit(extent, place.offset + c.merged.base[piece], s.size,
                                  c.objects.arena + s.offset, o, capsule)
    listing.count[run] = <size_t>(extent - begin)


cdef inline bint list_section_extents(Contents* contents, Listing* listing,
                                      size_t runs) noexcept nogil:
    """List the extents of all sections in the order of the file; False without memory."""
    cdef const CopyExtent* extents
    cdef uint64_t last = 0
    cdef size_t i, room = 0
    cdef int32_t o
    cdef bint is_in_order = True
    listing.place[runs - 1] = 0     # the last run may have no section
    for i in range(contents.placed.section_order_count):
        if i % SOME_SECTIONS == 0:
            listing.place[i // SOME_SECTIONS] = room
        o = contents.placed.section_order[i]
        room += max(listing.first[o + 1] - listing.first[o], <uint32_t>1)
    if not vec_reserve(&contents.extents, room):
        return False
    listing.extents = <CopyExtent*>contents.extents.data
    run_each(list_run, listing, runs, contents.objects.section_count * SECTION_AS_BYTES)
    for i in range(runs):
        memmove(listing.extents + contents.extents.count, listing.extents + listing.place[i],
                listing.count[i] * sizeof(CopyExtent))
        contents.extents.count += listing.count[i]
    extents = <const CopyExtent*>contents.extents.data
    for i in range(contents.extents.count):
        is_in_order = is_in_order and extents[i].offset >= last
        last = extents[i].offset
    if not is_in_order:
        qsort(contents.extents.data, contents.extents.count, sizeof(CopyExtent), compare_extents)
    return True


cdef inline bint list_windows(Contents* contents, Scratch* scratch,
                              const Vec* tables) noexcept nogil:
    """List windows of extents that follow each other; a long one that needs no work has its own.

    None reaches over one of `tables`, which are windows in the order of the file. These are among
    `windows` afterwards.
    """
    cdef const CopyExtent* extent = <const CopyExtent*>contents.extents.data
    cdef const Window* table = <const Window*>tables.data
    cdef Window* window = NULL
    cdef uint64_t end = 0
    cdef size_t i, passed = 0
    cdef bint apart
    for i in range(contents.extents.count):
        apart = False
        while passed < tables.count and table[passed].start < extent[i].offset:
            apart = True
            passed += 1
        if window == NULL or (extent[i].offset >= end and (
                apart or extent[i].offset > end + NEAR
                or extent[i].offset + extent[i].size - window.start > WINDOW)):
            window = <Window*>vec_push(&contents.windows)
            if window == NULL:
                return False
            memset(window, 0, sizeof(Window))
            window.start = extent[i].offset
            window.first = i
            window.kind = CONTENTS
            if extent[i].size > WINDOW and not extent[i].capsule:
                window.source = extent[i].source
            end = window.start
        else:
            window.source = NULL    # pieces overlap
        window.last = i + 1
        end = max(end, extent[i].offset + extent[i].size)
        window.size = end - window.start
    if (not sort_patches(contents, scratch)
            or not vec_append(&contents.windows, tables.data, tables.count)):
        return False
    sort_windows(&contents.windows)
    return True


cdef inline bint sort_patches(Contents* contents, Scratch* scratch) noexcept nogil:
    """Patches by window; those of one stay in their order. False without memory."""
    cdef Window* windows = <Window*>contents.windows.data
    cdef uint32_t all_before = 0
    cdef size_t i, n = contents.windows.count
    cdef int64_t window = -1
    contents.patch_order = <uint32_t*>scratch_room(scratch, contents.patch_count, 4)
    if contents.patch_order == NULL:
        return False
    for i in range(contents.patch_count):
        window = window_of(windows, n, contents.patches[i].offset, window)
        if window >= 0:
            windows[window].last_patch += 1
            windows[window].source = NULL
    for i in range(n):
        windows[i].first_patch = all_before
        all_before += windows[i].last_patch
        windows[i].last_patch = windows[i].first_patch
    for i in range(contents.patch_count):
        window = window_of(windows, n, contents.patches[i].offset, window)
        if window >= 0:
            contents.patch_order[windows[window].last_patch] = <uint32_t>i
            windows[window].last_patch += 1
    return True


cdef inline int64_t window_of(const Window* windows, size_t count, uint64_t offset,
                              int64_t last) noexcept nogil:
    """The window with that byte of the output, or -1; `last` is where one was found before, or -1.
    """
    cdef size_t low = 0, high = count, middle
    if last >= 0 and offset - windows[last].start < windows[last].size:
        return last
    while low < high:
        middle = (low + high) // 2
        if windows[middle].start <= offset:
            low = middle + 1
        else:
            high = middle
    if low == 0 or offset - windows[low - 1].start >= windows[low - 1].size:
        return -1
    return <int64_t>low - 1


cdef inline void make_contents(void* context, const Window* window, uint8_t* to) noexcept nogil:
    """Write a window: its extents, with zeros between them, and its patches."""
    cdef Contents* c = <Contents*>context
    cdef const CopyExtent* extents = <const CopyExtent*>c.extents.data
    cdef const CopyExtent* extent
    cdef uint64_t offset = 0, start, skipped
    cdef size_t i
    for i in range(window.first, window.last):
        extent = &extents[i]
        start = extent.offset - window.start
        if start > offset:
            memset(to + offset, 0, start - offset)
        if extent.source == NULL:
            make_entries(c, &c.placed.outs[extent.out], to + start)
        else:
            skipped = offset - start if offset > start else 0    # bytes that two pieces have, once
            if skipped < extent.size:
                memcpy(to + start + skipped, extent.source + skipped, extent.size - skipped)
            if extent.capsule:
                finish_capsule(c, extent, to + start)
        offset = max(offset, start + extent.size)
    for i in range(window.first_patch, window.last_patch):
        start = c.patches[c.patch_order[i]].offset - window.start
        patch_field(to + start, window.size - start, &c.patches[c.patch_order[i]])


cdef inline void make_entries(const Contents* contents, const OutRow* row,
                              uint8_t* to) noexcept nogil:
    """The entries of a relocation section that stays, newest first."""
    cdef const EmittedRow* emitted = contents.merged.emitted
    cdef int32_t number = row.head
    cdef uint32_t remaining = row.count
    cdef Rela entry
    while number >= 0 and remaining:
        entry.r_offset = emitted[number].offset
        entry.r_type = emitted[number].type
        if emitted[number].entity >= 0:
            entry.r_sym = contents.placed.symbol_index[emitted[number].entity]
        elif emitted[number].section < -1:
            entry.r_sym = contents.placed.instance_index[-2 - emitted[number].section]
        elif emitted[number].section < 0:
            entry.r_sym = 0
        else:
            entry.r_sym = contents.placed.section_symbol_index[emitted[number].section]
        entry.r_addend = emitted[number].addend
        memcpy(to, &entry, row.entsize)
        to += row.entsize
        number = emitted[number].next
        remaining -= 1


cdef inline void finish_capsule(Contents* contents, const CopyExtent* extent,
                                uint8_t* to) noexcept nogil:
    """Write the number of the function's section, and what its code reads of constant banks."""
    cdef const OutRow* row = &contents.placed.outs[extent.out]
    cdef uint16_t number = <uint16_t>contents.placed.section_index[row.twin]
    cdef size_t count
    cdef const ConstantReference* references = references_of(&contents.references, row.twin, &count)
    if count and not patch_capsule(to, extent.size, references, count):
        note_bad(&contents.bad, extent.out)
    memcpy(to, &number, min(extent.size, <uint64_t>2))
