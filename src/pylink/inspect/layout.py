"""Recomputes the file layout of a linked image for another size of the tool note.

`.note.nv.tkinfo` names the tool and its options, so its size differs between linkers and moves
everything after it. `expected_layout` gives the offset of each part of an image if the note had
another size. Each section is placed at the next multiple of its alignment. NOBITS sections advance
the offset without bytes; mercury sections that share a plain section's bytes move with it. The
section headers come after the last section, 8-aligned in images without Mercury sections, and the
program headers after them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pylink.facts.elf import PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, round_up
from pylink.facts.headers import SegmentHeader
from pylink.inspect.image import (
    FILE_HEADER_SIZE,
    SECTION_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    Image,
    Section,
)

TOOL_NOTE = ".note.nv.tkinfo"


@dataclass(frozen=True)
class Layout:
    """File offsets of sections, by index, and of both header tables; `size` is that of the file."""

    offsets: tuple[int, ...]
    shoff: int
    phoff: int
    segments: tuple[SegmentHeader, ...]
    size: int


def _is_mercury(image: Image) -> bool:
    """Return whether the image's target has Mercury sections (sm_100 and later)."""
    return image.header.flags & 0xFF == 2  # the low byte of other targets differs


def actual_layout(image: Image) -> Layout:
    """Return the layout in the headers of the image."""
    offsets = tuple(section.offset for section in image.sections)
    header = image.header
    return Layout(offsets, header.shoff, header.phoff, tuple(image.segments), len(image.data))


def expected_layout(image: Image, note_size: int) -> Layout:
    """Return the layout the image would have if its tool note were `note_size` bytes long."""
    note = image.section(TOOL_NOTE)
    first = note.index if note else len(image.sections)
    offsets = [section.offset for section in image.sections]
    old_end = end = offsets[first] + note.size if note else 0
    if note:
        end = offsets[first] + note_size
        new_offset: dict[int, int] = {}  # by old offset
        for section in image.sections[first + 1 :]:
            if section.mercury and section.offset < old_end:  # it shares a plain section's bytes
                offsets[section.index] = new_offset.get(section.offset, section.offset)
                continue
            old_offset = section.offset
            offset = offsets[section.index] = round_up(end, section.align)
            new_offset.setdefault(old_offset, offset)
            end, old_end = offset + section.file_size, old_offset + section.file_size
    else:
        end = max((s.offset + s.file_size for s in image.sections), default=FILE_HEADER_SIZE)
    shoff = end if _is_mercury(image) else round_up(end, 8)
    headers_end = shoff + SECTION_HEADER_SIZE * len(image.sections)
    count = len(image.segments)
    segments = _expected_segments(image, offsets, headers_end)
    phoff = headers_end if count else 0
    size = headers_end + SEGMENT_HEADER_SIZE * count
    return Layout(tuple(offsets), shoff, phoff, segments, size)


def _runs(image: Image) -> list[list[Section]]:
    """Return the sections of each loaded segment: adjacent sections with equal permissions."""
    permission_bits = SHF_WRITE | SHF_EXECINSTR if _is_mercury(image) else SHF_WRITE
    runs: list[list[Section]] = []
    previous = None
    for section in image.sections:
        if not section.flags & SHF_ALLOC or section.mercury:
            previous = None
            continue
        permission = section.flags & permission_bits
        if permission != previous:
            runs.append([])
            previous = permission
        runs[-1].append(section)
    return runs


def _expected_segments(image: Image, offsets: list[int], phoff: int) -> tuple[SegmentHeader, ...]:
    """Return the program headers for sections at `offsets` and program headers at `phoff`."""
    runs = iter(_runs(image))
    result = []
    for segment in image.segments:
        if segment.type == PT_PHDR or segment.offset == image.header.phoff:
            result.append(segment._replace(offset=phoff))
            continue
        run = next(runs, [])
        if not run:
            result.append(segment)
            continue
        start = offsets[run[0].index]
        end = start
        for section in run:
            offset = offsets[section.index]
            end = offset + section.file_size
        memory_end = end  # an offset, as if sections that take only memory had bytes in the file
        for section in run:
            if not section.file_size:
                memory_end = round_up(memory_end, section.align) + section.size
        result.append(segment._replace(offset=start, filesz=end - start, memsz=memory_end - start))
    return tuple(result)
