"""Where parts lie in the file, compared: section offsets, segments, header tables, padding."""

from __future__ import annotations

from pylink.inspect.difference import Difference, number_difference
from pylink.inspect.image import SECTION_HEADER, SEGMENT_HEADER, Image, Segment
from pylink.inspect.layout import TOOL_NOTE, actual_layout, expected_layout


def placement_differences(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Differences in placement between two cubins whose sections have the same names and sizes.

    With `tool_note` the first one's tool note may have another size, and its parts must lie where
    the second one's would with a note of that size.
    """
    note = first.section(TOOL_NOTE)
    mine, other = actual_layout(first), actual_layout(second)
    if tool_note:
        other = expected_layout(second, note.size if note else 0)
    names = [section.name for section in first.sections]
    differences = [
        number_difference("layout", name, " sh_offset", a, b)
        for name, a, b in zip(names, mine.offsets, other.offsets, strict=True)
        if a != b
    ]
    differences += _segments(mine.segments, other.segments)
    for what in ("shoff", "phoff", "size"):
        a, b = getattr(mine, what), getattr(other, what)
        if a != b:
            differences.append(number_difference("layout", "file", f" {what}", a, b))
    return differences + _padding(first, second, tool_note=tool_note)


def _segments(first: tuple[Segment, ...], second: tuple[Segment, ...]) -> list[Difference]:
    segments = []
    for i in range(max(len(first), len(second))):
        mine = str(first[i]) if i < len(first) else None
        other = str(second[i]) if i < len(second) else None
        if mine != other:
            segments.append(Difference("segment", "segments", f"[{i}]", mine, other))
    return segments


def _gaps(image: Image) -> bytes:
    """The file with every byte of a section or header set to zero."""
    gaps = bytearray(image.data)
    spans = [(0, 64), (image.header["shoff"], SECTION_HEADER * len(image.sections))]
    spans.append((image.header["phoff"], SEGMENT_HEADER * len(image.segments)))
    spans += [(s.offset, s.file_size) for s in image.sections[1:]]
    for start, size in spans:
        gaps[start : start + size] = bytes(min(size, max(len(gaps) - start, 0)))
    return bytes(gaps)


def _padding(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Bytes that belong to no section or header: equal, or zero where the note moves them."""
    mine, other = _gaps(first), _gaps(second)
    if mine == other or (tool_note and not any(mine) and not any(other)):
        return []
    shared = min(len(mine), len(other))
    at = next((i for i in range(shared) if mine[i] != other[i]), shared)
    shown = mine[at : at + 8].hex(" "), other[at : at + 8].hex(" ")
    return [Difference("layout", "padding", f" {at:#x}", *shown)]
