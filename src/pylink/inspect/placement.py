"""Compares the layout of two files: section offsets, segments, header tables, padding."""

from __future__ import annotations

from pylink.inspect.difference import Difference, number_difference
from pylink.inspect.image import SECTION_HEADER, SEGMENT_HEADER, Image, Segment
from pylink.inspect.layout import TOOL_NOTE, actual_layout, expected_layout


def placement_differences(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Differences in placement between two cubins whose sections have the same names and sizes.

    With `tool_note` the tool notes may differ in size: the first layout must be equal to the second
    one's with a note of the first size.
    """
    note = first.section(TOOL_NOTE)
    layout, other_layout = actual_layout(first), actual_layout(second)
    if tool_note:
        other_layout = expected_layout(second, note.size if note else 0)
    names = [section.name for section in first.sections]
    differences = [
        number_difference("layout", name, " sh_offset", a, b)
        for name, a, b in zip(names, layout.offsets, other_layout.offsets, strict=True)
        if a != b
    ]
    differences += _segments(layout.segments, other_layout.segments)
    for field in ("shoff", "phoff", "size"):
        a, b = getattr(layout, field), getattr(other_layout, field)
        if a != b:
            differences.append(number_difference("layout", "file", f" {field}", a, b))
    return differences + _padding(first, second, tool_note=tool_note)


def _segments(first: tuple[Segment, ...], second: tuple[Segment, ...]) -> list[Difference]:
    segments = []
    for i in range(max(len(first), len(second))):
        value = str(first[i]) if i < len(first) else None
        other = str(second[i]) if i < len(second) else None
        if value != other:
            segments.append(Difference("segment", "segments", f"[{i}]", value, other))
    return segments


def _gaps(image: Image) -> bytes:
    """The file with all bytes of sections and headers set to zero."""
    gaps = bytearray(image.data)
    spans = [(0, 64), (image.header["shoff"], SECTION_HEADER * len(image.sections))]
    spans.append((image.header["phoff"], SEGMENT_HEADER * len(image.segments)))
    spans += [(s.offset, s.file_size) for s in image.sections[1:]]
    for start, size in spans:
        gaps[start : start + size] = bytes(min(size, max(len(gaps) - start, 0)))
    return bytes(gaps)


def _padding(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Compare bytes outside of sections and headers; only zeros may move with the note."""
    gaps, other_gaps = _gaps(first), _gaps(second)
    if gaps == other_gaps or (tool_note and not any(gaps) and not any(other_gaps)):
        return []
    shared = min(len(gaps), len(other_gaps))
    index = next((i for i in range(shared) if gaps[i] != other_gaps[i]), shared)
    texts = gaps[index : index + 8].hex(" "), other_gaps[index : index + 8].hex(" ")
    return [Difference("layout", "padding", f" {index:#x}", *texts)]
