# What the sections of the output hold, in the order of the file: pieces of the inputs, contents
# that the link made, entries of relocation sections. Each becomes a unit, units become windows,
# and what is patched in a window is patched while it is made.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from libc.stddef cimport size_t
from base.scratch cimport Scratch, scratch_room, scratch_zeros
from sectionkinds cimport HEAD_TARGET, IS_CAPSULE, KIND
from base.elf64 cimport Rela
from image.capsules cimport Reference, patch_capsule, references_of
from image.patches cimport patch_field
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport FROM_INPUTS, FROM_SPAN, EmittedRow, OutRow, PatchRow, PlaceRow, SectionRow
from tables.views cimport MergedView, ObjectsView, PlacedView
from base.threads cimport for_each
from base.vector cimport Vec, vec_append, vec_push, vec_reserve
from image.windows cimport WINDOW, Window, sort_windows

cdef extern from "image/contents.h":
    void note_bad "pylink_note_bad"(int32_t* bad, int32_t out) noexcept nogil

cdef enum:
    NEAR = 4096                 # a gap of more bytes ends a window
    CONTENTS = 0                # what windows of contents are; those of tables are of a kind
    SOME_SECTIONS = 2048        # that a thread looks at in a row
    SECTION_AS_BYTES = 64       # moved in the time of such a look


ctypedef struct Unit:
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
    Vec units                   # Unit, in the order of the file
    Vec windows                 # Window: of contents and, if they are drawn as well, of tables
    uint32_t* patch_order       # patches of the first window, of the second, ...
    Vec references              # Reference
    int32_t bad                 # OutRow of a capsule that breaks its format, or -1


cdef inline bint is_copied(const Contents* c, size_t at) noexcept nogil:
    """Whether input section `at` is a part of an output section that keeps the input's bytes."""
    cdef int32_t o = c.merged.out_of[at]
    if o < 0 or is_nobits(&c.placed.outs[o]) or c.placed.places[o].contents != FROM_INPUTS:
        return False
    if c.merged.stand_ins != NULL and c.merged.stand_ins[at] >= 0:
        return False
    # A layout that shrank the section replaced its contents.
    return c.merged.base[at] + c.objects.sections[at].size <= c.placed.places[o].size


# What threads list the units with. Their rows lie apart, so a look costs more than the sorting.
ctypedef struct Listing:
    Contents* contents
    uint8_t* copied             # by input section: it is a part of an output section
    const uint32_t* first       # by OutRow: where its parts begin in `pieces`
    const int32_t* pieces       # input sections
    Unit* units
    size_t* place               # by run of the order of the file: where its units go
    size_t* count               # and how many they are


cdef inline void find_copied(void* context, size_t run) noexcept nogil:
    cdef const Listing* listing = <const Listing*>context
    cdef size_t i, first = run * SOME_SECTIONS
    for i in range(first, min(first + SOME_SECTIONS, listing.contents.objects.section_count)):
        listing.copied[i] = is_copied(listing.contents, i)


cdef inline int by_offset(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const Unit*>a).offset, y = (<const Unit*>b).offset
    return -1 if x < y else x > y


cdef inline bint list_units(Contents* c, Scratch* scratch) noexcept nogil:
    """Every unit, in the order of the file; False without memory."""
    cdef uint32_t* first = <uint32_t*>scratch_zeros(scratch, c.placed.out_count + 2, 4)
    cdef int32_t* piece = <int32_t*>scratch_room(scratch, c.objects.section_count, 4)
    cdef size_t runs = c.placed.section_order_count // SOME_SECTIONS + 1
    cdef Listing listing
    listing.contents = c
    listing.first = first
    listing.pieces = piece
    listing.copied = <uint8_t*>scratch_room(scratch, c.objects.section_count, 1)
    listing.place = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    listing.count = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    if scratch.failed:
        return False
    for_each(find_copied, &listing, c.objects.section_count // SOME_SECTIONS + 1,
             c.objects.section_count * SECTION_AS_BYTES)
    sort_pieces(c, first, piece, listing.copied)
    return list_sections(c, &listing, runs)


cdef inline void sort_pieces(const Contents* c, uint32_t* first, int32_t* piece,
                             const uint8_t* copied) noexcept nogil:
    """Input sections by the section that they are a part of: those of `o` begin at `first[o]`."""
    cdef size_t i
    cdef uint32_t at
    for i in range(c.objects.section_count):
        if copied[i]:
            first[c.merged.out_of[i] + 2] += 1
    for i in range(2, c.placed.out_count + 2):
        first[i] += first[i - 1]
    for i in range(c.objects.section_count):
        if copied[i]:
            at = first[c.merged.out_of[i] + 1]
            first[c.merged.out_of[i] + 1] += 1
            piece[at] = <int32_t>i


cdef inline Unit* put_unit(Unit* unit, uint64_t offset, uint64_t size,
                           const uint8_t* source, int32_t out, bint capsule) noexcept nogil:
    """Write a unit, if it has bytes; where the next one goes."""
    if size == 0:
        return unit
    unit.offset = offset
    unit.size = size
    unit.source = source
    unit.out = out
    unit.capsule = capsule
    return unit + 1


cdef inline void list_run(void* context, size_t run) noexcept nogil:
    """The units of a run of sections."""
    cdef const Listing* listing = <const Listing*>context
    cdef const Contents* c = listing.contents
    cdef const OutRow* row
    cdef const PlaceRow* place
    cdef const SectionRow* s
    cdef Unit* begin = listing.units + listing.place[run]
    cdef Unit* unit = begin
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
            unit = put_unit(unit, place.offset, place.size, c.span_bytes[o], o, capsule)
        elif KIND[row.kind].info == HEAD_TARGET and row.head >= 0:
            unit = put_unit(unit, place.offset, <uint64_t>row.count * row.entsize, NULL, o, capsule)
        else:
            for at in range(listing.first[o], listing.first[o + 1]):
                piece = listing.pieces[at]
                s = &c.objects.sections[piece]
                unit = put_unit(unit, place.offset + c.merged.base[piece], s.size,
                                c.objects.arena + s.offset, o, capsule)
    listing.count[run] = <size_t>(unit - begin)


cdef inline bint list_sections(Contents* c, Listing* listing, size_t runs) noexcept nogil:
    """Units of all sections, each run in room that is large enough, and then without gaps."""
    cdef const Unit* units
    cdef uint64_t last = 0
    cdef size_t i, room = 0
    cdef int32_t o
    cdef bint sorted_ = True
    listing.place[runs - 1] = 0     # the last run may have no section
    for i in range(c.placed.section_order_count):
        if i % SOME_SECTIONS == 0:
            listing.place[i // SOME_SECTIONS] = room
        o = c.placed.section_order[i]
        room += max(listing.first[o + 1] - listing.first[o], <uint32_t>1)
    if not vec_reserve(&c.units, room):
        return False
    listing.units = <Unit*>c.units.data
    for_each(list_run, listing, runs, c.objects.section_count * SECTION_AS_BYTES)
    for i in range(runs):
        memmove(listing.units + c.units.count, listing.units + listing.place[i],
                listing.count[i] * sizeof(Unit))
        c.units.count += listing.count[i]
    units = <const Unit*>c.units.data
    for i in range(c.units.count):
        sorted_ = sorted_ and units[i].offset >= last
        last = units[i].offset
    if not sorted_:
        qsort(c.units.data, c.units.count, sizeof(Unit), by_offset)
    return True


cdef inline bint list_windows(Contents* c, Scratch* scratch, const Vec* tables) noexcept nogil:
    """Units that follow each other in windows; a long one that needs no work has its own.

    None reaches over one of `tables`, which are windows in the order of the file. These are among
    `windows` afterwards.
    """
    cdef const Unit* unit = <const Unit*>c.units.data
    cdef const Window* table = <const Window*>tables.data
    cdef Window* window = NULL
    cdef uint64_t end = 0
    cdef size_t i, passed = 0
    cdef bint apart
    for i in range(c.units.count):
        apart = False
        while passed < tables.count and table[passed].start < unit[i].offset:
            apart = True
            passed += 1
        if window == NULL or (unit[i].offset >= end and (
                apart or unit[i].offset > end + NEAR
                or unit[i].offset + unit[i].size - window.start > WINDOW)):
            window = <Window*>vec_push(&c.windows)
            if window == NULL:
                return False
            memset(window, 0, sizeof(Window))
            window.start = unit[i].offset
            window.first = i
            window.what = CONTENTS
            if unit[i].size > WINDOW and not unit[i].capsule:
                window.source = unit[i].source
            end = window.start
        else:
            window.source = NULL    # of pieces that overlap
        window.last = i + 1
        end = max(end, unit[i].offset + unit[i].size)
        window.size = end - window.start
    if not sort_patches(c, scratch) or not vec_append(&c.windows, tables.data, tables.count):
        return False
    sort_windows(&c.windows)
    return True


cdef inline bint sort_patches(Contents* c, Scratch* scratch) noexcept nogil:
    """Patches by window; those of one stay in their order. False without memory."""
    cdef Window* windows = <Window*>c.windows.data
    cdef uint32_t all_before = 0
    cdef size_t i, n = c.windows.count
    cdef int64_t at = -1
    c.patch_order = <uint32_t*>scratch_room(scratch, c.patch_count, 4)
    if c.patch_order == NULL:
        return False
    for i in range(c.patch_count):
        at = window_of(windows, n, c.patches[i].offset, at)
        if at >= 0:
            windows[at].last_patch += 1
            windows[at].source = NULL
    for i in range(n):
        windows[i].first_patch = all_before
        all_before += windows[i].last_patch
        windows[i].last_patch = windows[i].first_patch
    for i in range(c.patch_count):
        at = window_of(windows, n, c.patches[i].offset, at)
        if at >= 0:
            c.patch_order[windows[at].last_patch] = <uint32_t>i
            windows[at].last_patch += 1
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
    """The task of a window: its units, with zeros between them, and what is patched."""
    cdef Contents* c = <Contents*>context
    cdef const Unit* units = <const Unit*>c.units.data
    cdef const Unit* unit
    cdef uint64_t at = 0, start, skipped
    cdef size_t i
    for i in range(window.first, window.last):
        unit = &units[i]
        start = unit.offset - window.start
        if start > at:
            memset(to + at, 0, start - at)
        if unit.source == NULL:
            make_entries(c, &c.placed.outs[unit.out], to + start)
        else:
            skipped = at - start if at > start else 0   # bytes that two pieces have, once
            if skipped < unit.size:
                memcpy(to + start + skipped, unit.source + skipped, unit.size - skipped)
            if unit.capsule:
                finish_capsule(c, unit, to + start)
        at = max(at, start + unit.size)
    for i in range(window.first_patch, window.last_patch):
        start = c.patches[c.patch_order[i]].offset - window.start
        patch_field(to + start, window.size - start, &c.patches[c.patch_order[i]])


cdef inline void make_entries(const Contents* c, const OutRow* row, uint8_t* to) noexcept nogil:
    """The entries of a relocation section that stays, newest first."""
    cdef const EmittedRow* emitted = c.merged.emitted
    cdef int32_t at = row.head
    cdef uint32_t left = row.count
    cdef Rela entry
    while at >= 0 and left:
        entry.r_offset = emitted[at].offset
        entry.r_type = emitted[at].type
        if emitted[at].entity >= 0:
            entry.r_sym = c.placed.symbol_index[emitted[at].entity]
        elif emitted[at].section < -1:
            entry.r_sym = c.placed.instance_index[-2 - emitted[at].section]
        elif emitted[at].section < 0:
            entry.r_sym = 0
        else:
            entry.r_sym = c.placed.section_symbol_index[emitted[at].section]
        entry.r_addend = emitted[at].addend
        memcpy(to, &entry, row.entsize)
        to += row.entsize
        at = emitted[at].next
        left -= 1


cdef inline void finish_capsule(Contents* c, const Unit* unit, uint8_t* to) noexcept nogil:
    """Write the number of the function's section, and what its code reads of constant banks."""
    cdef const OutRow* row = &c.placed.outs[unit.out]
    cdef uint16_t number = <uint16_t>c.placed.section_index[row.twin]
    cdef size_t count
    cdef const Reference* references = references_of(&c.references, row.twin, &count)
    if count and not patch_capsule(to, unit.size, references, count):
        note_bad(&c.bad, unit.out)
    memcpy(to, &number, min(unit.size, <uint64_t>2))
