# Contents of the output's sections, in the order of the file: pieces of the inputs, contents that
# the link made, entries of relocation sections. Each becomes an extent (CopyExtent), neighboring
# extents become a window (windows.pxd), and a thread that makes a window also patches its fields.
#
#     sections    .text.K        .nv.constant0.K   .rela.text.K
#     extents     input 1's      input 1's         entries, which are written one by one
#     window      one from the first byte of .text.K to the last of .rela.text.K

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove, memset

from base.elf64 cimport Rela
from base.prefetch cimport AHEAD, prefetch
from base.scratch cimport Scratch, scratch_room, scratch_zeros
from base.threads cimport run_each
from base.vector cimport Vec, vec_append, vec_push, vec_reserve
from image.capsules cimport ConstantReference, patch_capsule, references_of
from image.patches cimport patch_field
from image.windows cimport WINDOW, Window, sort_windows
from rownumbers cimport FROM_INPUTS, FROM_SPAN
from sectionkinds cimport HEAD_TARGET, IS_CAPSULE, KIND
from tables.kinds cimport is_a, is_nobits
from tables.rows cimport (
    EmittedNumber, EmittedRow, EntityCounter, OutNumber, OutRow, PatchRef, PatchRow, PlaceRow,
    SectionCounter, SectionNumber, SectionRow,
)
from tables.views cimport MergedView, ObjectsView, PlacedView

cdef extern from "image/contents.h":
    void note_lowest "pylink_note_lowest"(OutNumber* lowest, OutNumber out) noexcept nogil

cdef enum:
    LONGEST_GAP = 4096          # bytes between two extents of a window; a longer gap ends it
    # `kind` of windows of contents, and of windows of string tables, which are only copied. Other
    # windows have HEADERS or a K_ number.
    CONTENTS = 0
    RUN_SECTIONS = 2048         # sections that a thread handles at a time: a run
    SECTION_BYTES = 64          # cost of looking at a section: bytes copied in the same time


# Contiguous bytes of the output with one source.
ctypedef struct CopyExtent:
    uint64_t offset             # in the output
    uint64_t size               # bytes, never 0
    const uint8_t* source       # bytes to copy; NULL: the entries of a relocation section
    OutNumber out               # OutRow of its section
    bint is_capsule             # its section is a capsule, so `finish_capsule` completes it


# The context of `make_contents`, and the lists from which its windows are made.
ctypedef struct Contents:
    ObjectsView objects
    MergedView merged
    PlacedView placed
    const PatchRow* patches
    size_t patch_count
    const uint8_t** span_bytes  # by OutRow: contents that the link made, or NULL
    Vec extents                 # CopyExtent, in the order of the file
    Vec windows                 # Window: of contents, and of tables if these are written, too
    PatchRef* patch_order       # row numbers of patches, window by window
    Vec references              # ConstantReference, by OutRow and offset
    OutNumber bad               # lowest OutRow of a capsule that breaks its format, or -1


cdef inline bint is_copied(const Contents* contents, SectionCounter section) noexcept nogil:
    """Return whether the bytes of an input section are copied to an output section."""
    cdef OutNumber out = contents.merged.out_of[section]
    if (out < 0 or is_nobits(&contents.placed.outs[out])
            or contents.placed.places[out].contents != FROM_INPUTS):
        return False
    # A section with a stand-in was folded: an equal section of another input has its bytes.
    if contents.merged.stand_ins != NULL and contents.merged.stand_ins[section] >= 0:
        return False
    # A section that does not fit is not copied: the layout has made its output section smaller, and
    # given it other contents.
    return (contents.merged.base[section] + contents.objects.sections[section].size
            <= contents.placed.places[out].size)


# The tables with which threads list the extents, in runs of RUN_SECTIONS sections. Several threads
# do it, since the rows that describe an extent lie far apart; reading them takes the longest time.
ctypedef struct Listing:
    Contents* contents
    uint8_t* copied                 # by input section: 1 if `is_copied`
    const uint32_t* first           # by OutRow: number in `pieces` of its first piece
    const SectionNumber* pieces     # copied input sections, sorted by the OutRow that has them
    CopyExtent* extents             # of all runs; there may be unused rows between two runs
    size_t* place                   # by run of output sections: number of its first extent
    size_t* count                   # by run of output sections: number of its extents


cdef inline void find_copied(void* context, size_t run) noexcept nogil:
    """Fill `copied` for run number `run` of the input sections; `context` is a Listing."""
    cdef const Listing* listing = <const Listing*>context
    cdef SectionCounter i, first = <SectionCounter>(run * RUN_SECTIONS)
    for i in range(first, min(first + RUN_SECTIONS, listing.contents.objects.section_count)):
        listing.copied[i] = is_copied(listing.contents, i)


cdef inline int compare_extents(const void* a, const void* b) noexcept nogil:
    """Order CopyExtents by their offset in the output, for qsort."""
    cdef uint64_t x = (<const CopyExtent*>a).offset, y = (<const CopyExtent*>b).offset
    return -1 if x < y else x > y


cdef inline bint list_extents(Contents* contents, Scratch* scratch) noexcept nogil:
    """List every extent in the order of the file; False without memory."""
    cdef uint32_t* first = <uint32_t*>scratch_zeros(scratch, contents.placed.out_count + 2, 4)
    cdef SectionNumber* pieces = <SectionNumber*>scratch_room(
        scratch, contents.objects.section_count, 4)
    cdef size_t runs = contents.placed.section_order_count // RUN_SECTIONS + 1
    cdef Listing listing
    listing.contents = contents
    listing.first = first
    listing.pieces = pieces
    listing.copied = <uint8_t*>scratch_room(scratch, contents.objects.section_count, 1)
    listing.place = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    listing.count = <size_t*>scratch_room(scratch, runs, sizeof(size_t))
    if scratch.failed:
        return False
    run_each(find_copied, &listing, contents.objects.section_count // RUN_SECTIONS + 1,
             contents.objects.section_count * SECTION_BYTES)
    sort_pieces(contents, first, pieces, listing.copied)
    return list_section_extents(contents, &listing, runs)


cdef inline void sort_pieces(const Contents* contents, uint32_t* first, SectionNumber* pieces,
                             const uint8_t* copied) noexcept nogil:
    """Sort copied input sections by the output section (OutRow) that has them: a counting sort.

    Those of OutRow `out` are pieces[first[out]] to pieces[first[out + 1] - 1]. `first` comes
    with zeros, and has two more elements than there are OutRows.
    """
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
            pieces[position] = <SectionNumber>i


cdef inline CopyExtent* put_extent(CopyExtent* extent, uint64_t offset, uint64_t size,
                                   const uint8_t* source, OutNumber out,
                                   bint is_capsule) noexcept nogil:
    """Fill in `extent` if `size` is not 0. Returns a pointer to the next free extent."""
    if size == 0:
        return extent
    extent.offset = offset
    extent.size = size
    extent.source = source
    extent.out = out
    extent.is_capsule = is_capsule
    return extent + 1


cdef inline void prefetch_section(const Listing* listing, size_t i) noexcept nogil:
    """Fetch the rows of sections that follow number `i` in the output, in three steps.

    First the rows by output section, then the list of its pieces, then the first piece's row.
    """
    cdef const OutNumber* order = listing.contents.placed.section_order
    cdef OutNumber out
    cdef SectionNumber piece
    if i + 3 * AHEAD >= listing.contents.placed.section_order_count:
        return
    out = order[i + 3 * AHEAD]
    prefetch(&listing.contents.placed.outs[out])
    prefetch(&listing.contents.placed.outs[out].count)
    prefetch(&listing.contents.placed.places[out])
    prefetch(&listing.first[out])
    prefetch(&listing.pieces[listing.first[order[i + 2 * AHEAD]]])
    out = order[i + AHEAD]
    if listing.first[out] < listing.first[out + 1]:
        piece = listing.pieces[listing.first[out]]
        prefetch(&listing.contents.objects.sections[piece])
        prefetch(&listing.contents.objects.sections[piece].size)
        prefetch(&listing.contents.merged.base[piece])


cdef inline void list_run(void* context, size_t run) noexcept nogil:
    """List the extents of run number `run` of the output's sections, in the order of headers.

    The pieces of one section are in input order. `context` is a Listing.
    """
    cdef const Listing* listing = <const Listing*>context
    cdef const Contents* contents = listing.contents
    cdef const OutRow* row
    cdef const PlaceRow* place
    cdef const SectionRow* section
    cdef CopyExtent* begin = listing.extents + listing.place[run]
    cdef CopyExtent* extent = begin
    cdef size_t i, first = run * RUN_SECTIONS
    cdef uint32_t k
    cdef OutNumber out
    cdef SectionNumber piece
    cdef bint is_capsule
    for i in range(first, min(first + RUN_SECTIONS, contents.placed.section_order_count)):
        prefetch_section(listing, i)
        out = contents.placed.section_order[i]
        row = &contents.placed.outs[out]
        place = &contents.placed.places[out]
        is_capsule = is_a(row.kind, IS_CAPSULE)
        if place.contents == FROM_SPAN:
            extent = put_extent(extent, place.offset, place.size, contents.span_bytes[out], out,
                                is_capsule)
        elif KIND[row.kind].info == HEAD_TARGET and row.head >= 0:
            extent = put_extent(extent, place.offset, <uint64_t>row.count * row.entsize, NULL, out,
                                is_capsule)
        else:
            for k in range(listing.first[out], listing.first[out + 1]):
                piece = listing.pieces[k]
                section = &contents.objects.sections[piece]
                extent = put_extent(extent, place.offset + contents.merged.base[piece],
                                    section.size, contents.objects.arena + section.offset, out,
                                    is_capsule)
    listing.count[run] = <size_t>(extent - begin)


cdef inline bint list_section_extents(Contents* contents, Listing* listing,
                                      size_t runs) noexcept nogil:
    """List the extents of all sections, in `runs` runs, in file order; False without memory."""
    cdef const CopyExtent* extents
    cdef uint64_t previous_offset = 0
    cdef size_t i, room = 0
    cdef OutNumber out
    cdef bint is_in_order = True
    listing.place[runs - 1] = 0     # the last run may have no section
    for i in range(contents.placed.section_order_count):
        if i % RUN_SECTIONS == 0:
            listing.place[i // RUN_SECTIONS] = room
        out = contents.placed.section_order[i]
        # A section without input pieces can have one extent: what the link made, or relocations.
        room += max(listing.first[out + 1] - listing.first[out], <uint32_t>1)
    if not vec_reserve(&contents.extents, room):
        return False
    listing.extents = <CopyExtent*>contents.extents.data
    run_each(list_run, listing, runs, contents.objects.section_count * SECTION_BYTES)
    for i in range(runs):           # move extents over the rows that a run did not fill
        memmove(listing.extents + contents.extents.count, listing.extents + listing.place[i],
                listing.count[i] * sizeof(CopyExtent))
        contents.extents.count += listing.count[i]
    extents = <const CopyExtent*>contents.extents.data
    for i in range(contents.extents.count):
        is_in_order = is_in_order and extents[i].offset >= previous_offset
        previous_offset = extents[i].offset
    if not is_in_order:
        qsort(contents.extents.data, contents.extents.count, sizeof(CopyExtent), compare_extents)
    return True


cdef inline bint list_windows(Contents* contents, Scratch* scratch,
                              const Vec* tables) noexcept nogil:
    """List windows of neighboring extents, and add `tables` to them; False without memory.

    `tables` are windows of symbol tables, string tables and headers in the order of the file; no
    window of contents may contain one. An extent longer than WINDOW has a window of its own, unless
    others overlap it. Its bytes are then copied from their source without a call of
    `make_contents`, unless it is a capsule or relocations, or a patch is in it.
    """
    cdef const CopyExtent* extents = <const CopyExtent*>contents.extents.data
    cdef const Window* table_windows = <const Window*>tables.data
    cdef Window* window = NULL
    cdef uint64_t end = 0           # of the last window
    cdef size_t i, passed_tables = 0
    cdef bint is_after_table
    for i in range(contents.extents.count):
        is_after_table = False
        while (passed_tables < tables.count
               and table_windows[passed_tables].start < extents[i].offset):
            is_after_table = True
            passed_tables += 1
        if window == NULL or (extents[i].offset >= end and (
                is_after_table or extents[i].offset > end + LONGEST_GAP
                or extents[i].offset + extents[i].size - window.start > WINDOW)):
            window = <Window*>vec_push(&contents.windows)
            if window == NULL:
                return False
            memset(window, 0, sizeof(Window))
            window.start = extents[i].offset
            window.first = i
            window.kind = CONTENTS
            if extents[i].size > WINDOW and not extents[i].is_capsule:
                window.source = extents[i].source
            end = window.start
        else:
            window.source = NULL    # it may overlap a long extent: `make_contents` writes both
        window.last = i + 1
        end = max(end, extents[i].offset + extents[i].size)
        window.size = end - window.start
    if (not sort_patches(contents, scratch)
            or not vec_append(&contents.windows, tables.data, tables.count)):
        return False
    sort_windows(&contents.windows)
    return True


cdef inline bint sort_patches(Contents* contents, Scratch* scratch) noexcept nogil:
    """Fill `patch_order`: patches sorted by window, by a counting sort, which is stable.

    Patches outside of all windows are omitted. A window with a patch loses its `source`, so that
    `make_contents` writes it. False without memory.
    """
    cdef Window* windows = <Window*>contents.windows.data
    cdef uint32_t patches_before = 0
    cdef size_t i, window_count = contents.windows.count
    cdef int64_t window = -1
    contents.patch_order = <PatchRef*>scratch_room(scratch, contents.patch_count, 4)
    if contents.patch_order == NULL:
        return False
    for i in range(contents.patch_count):
        window = window_of(windows, window_count, contents.patches[i].offset, window)
        if window >= 0:
            windows[window].last_patch += 1     # their number, until the next loop
            windows[window].source = NULL
    for i in range(window_count):
        windows[i].first_patch = patches_before
        patches_before += windows[i].last_patch
        windows[i].last_patch = windows[i].first_patch
    for i in range(contents.patch_count):
        window = window_of(windows, window_count, contents.patches[i].offset, window)
        if window >= 0:
            contents.patch_order[windows[window].last_patch] = <PatchRef>i
            windows[window].last_patch += 1
    return True


cdef inline int64_t window_of(const Window* windows, size_t count, uint64_t offset,
                              int64_t guess) noexcept nogil:
    """Return the number of the window with the byte at `offset` of the output, or -1.

    `guess` is a number of a window, or -1. It is tried first, since patches of a window often
    follow each other.
    """
    cdef size_t low = 0, high = count, middle
    if guess >= 0 and offset - windows[guess].start < windows[guess].size:
        return guess
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
    """Write the bytes of a window of contents to `to`: extents, zeros between them, patched fields.
    """
    cdef Contents* contents = <Contents*>context
    cdef const CopyExtent* extents = <const CopyExtent*>contents.extents.data
    cdef const CopyExtent* extent
    cdef const PatchRow* patch
    cdef uint64_t offset = 0, start, skipped    # offsets in the window; `skipped`: bytes
    cdef size_t i
    for i in range(window.first, window.last):
        extent = &extents[i]
        start = extent.offset - window.start
        if start > offset:
            memset(to + offset, 0, start - offset)
        if extent.source == NULL:
            write_entries(contents, &contents.placed.outs[extent.out], to + start)
        else:
            skipped = offset - start if offset > start else 0    # an earlier extent has the bytes
            if skipped < extent.size:
                memcpy(to + start + skipped, extent.source + skipped, extent.size - skipped)
            if extent.is_capsule:
                finish_capsule(contents, extent, to + start)
        offset = max(offset, start + extent.size)
    for i in range(window.first_patch, window.last_patch):
        patch = &contents.patches[contents.patch_order[i]]
        start = patch.offset - window.start
        patch_field(to + start, window.size - start, patch)


cdef inline void write_entries(const Contents* contents, const OutRow* row,
                               uint8_t* to) noexcept nogil:
    """Write the emitted relocations of a relocation section as REL or RELA entries, newest first.
    """
    cdef const EmittedRow* emitted = contents.merged.emitted
    cdef EmittedNumber number = row.head
    cdef uint32_t remaining = row.count
    cdef Rela entry
    while number >= 0 and remaining:
        entry.r_offset = emitted[number].offset
        entry.r_type = emitted[number].type
        if emitted[number].entity >= 0:
            entry.r_sym = contents.placed.symbol_index[emitted[number].entity]
        elif emitted[number].section < -1:      # -2 - kernel: the symbol of its extern arrays
            entry.r_sym = contents.placed.instance_index[
                <EntityCounter>(-2 - emitted[number].section)]
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
    """Write into a capsule the section index of its .text, and the offsets in constant banks."""
    cdef const OutRow* row = &contents.placed.outs[extent.out]
    cdef uint16_t text_index = <uint16_t>contents.placed.section_index[row.twin]
    cdef size_t count
    cdef const ConstantReference* references = references_of(&contents.references, row.twin, &count)
    if count and not patch_capsule(to, extent.size, references, count):
        note_lowest(&contents.bad, extent.out)
    # The index has 16 bits. Bytes 2 and 3 of the capsule stay the input's, as in nvlink's output.
    memcpy(to, &text_index, min(extent.size, <uint64_t>sizeof(text_index)))
