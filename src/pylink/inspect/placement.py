"""Compares the layout of two files: section offsets, segments, header tables, padding."""

from __future__ import annotations

from pylink.facts.headers import SegmentHeader
from pylink.inspect.difference import Difference, number_difference
from pylink.inspect.image import FILE_HEADER_SIZE, SECTION_HEADER_SIZE, SEGMENT_HEADER_SIZE, Image
from pylink.inspect.layout import TOOL_NOTE, actual_layout, expected_layout


def placement_differences(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Return differences in placement of two cubins whose sections have the same names and sizes.

    With `tool_note`, the sizes of the tool notes may differ: the first layout is compared with what
    the second would be if its note had the first one's size.
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
    differences += _compare_segments(layout.segments, other_layout.segments)
    for field in ("shoff", "phoff", "size"):
        a, b = getattr(layout, field), getattr(other_layout, field)
        if a != b:
            differences.append(number_difference("layout", "file", f" {field}", a, b))
    return differences + _compare_padding(first, second, tool_note=tool_note)


def _compare_segments(
    first: tuple[SegmentHeader, ...], second: tuple[SegmentHeader, ...]
) -> list[Difference]:
    """Return the program headers that differ, or that only one cubin has."""
    segments = []
    for i in range(max(len(first), len(second))):
        value = _segment_text(first[i]) if i < len(first) else None
        other = _segment_text(second[i]) if i < len(second) else None
        if value != other:
            segments.append(Difference("segment", "segments", f"[{i}]", value, other))
    return segments


def _segment_text(header: SegmentHeader) -> str:
    """Return the text for a program header: `Segment(type=1, ...)`."""
    fields = ", ".join(f"{name}={value}" for name, value in header._asdict().items())
    return f"Segment({fields})"


def _clear_contents(image: Image) -> bytes:
    """Return the file with zeros in all sections and headers, so that only padding remains."""
    gaps = bytearray(image.data)
    spans = [
        (0, FILE_HEADER_SIZE),
        (image.header.shoff, SECTION_HEADER_SIZE * len(image.sections)),
    ]
    spans.append((image.header.phoff, SEGMENT_HEADER_SIZE * len(image.segments)))
    spans += [(s.offset, s.file_size) for s in image.sections[1:]]
    for start, size in spans:
        gaps[start : start + size] = bytes(min(size, max(len(gaps) - start, 0)))
    return bytes(gaps)


def _compare_padding(first: Image, second: Image, *, tool_note: bool) -> list[Difference]:
    """Compare bytes outside of sections and headers; with `tool_note`, any zeros are equal."""
    gaps, other_gaps = _clear_contents(first), _clear_contents(second)
    if gaps == other_gaps or (tool_note and not any(gaps) and not any(other_gaps)):
        return []
    common_size = min(len(gaps), len(other_gaps))
    index = next((i for i in range(common_size) if gaps[i] != other_gaps[i]), common_size)
    texts = gaps[index : index + 8].hex(" "), other_gaps[index : index + 8].hex(" ")
    return [Difference("layout", "padding", f" {index:#x}", *texts)]
