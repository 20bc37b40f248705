"""Strict comparison of two linked images: what differs, in words.

`compare(actual, expected)` returns an empty list when the images are equal in every byte but
* the tool's own note, the first of `.note.nv.tkinfo`, and the file offsets its size moves,
* from sm_100 on, bits 110 to 121 of each instruction in `.text.*` (scoreboards and wait mask),
  which any linker may allocate anew.
Everything else is compared: headers, section order, string tables byte by byte, padding.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from difflib import SequenceMatcher

from helpers.compare_image import Image, Section
from helpers.compare_layout import TOOL_NOTE, actual_layout, expected_layout
from helpers.compare_names import SECTION_TYPES
from helpers.compare_rows import rows_reader

FIRST_MERCURY_SM = 100
SHOWN = 4  # differences listed for one table
CONTROL_MASK = (((1 << 12) - 1) << 110).to_bytes(16, "little")
KEEP_MASK = bytes(0xFF ^ b for b in CONTROL_MASK)


def compare(actual: bytes, expected: bytes) -> list[str]:
    """Differences of `actual` against `expected`, the likeliest causes first."""
    if actual == expected:
        return []
    try:
        ours = Image(actual)
    except (ValueError, struct.error) as problem:
        return [f"not a readable image: {problem}"]
    theirs = Image(expected)
    found = _rows("sections", [s.name for s in ours.sections], [s.name for s in theirs.sections])
    moved = bool(found)
    pairs = _pairs(ours, theirs)
    tables = [pair for pair in pairs if pair[0].name in (".shstrtab", ".strtab", ".symtab")]
    for mine, other in tables:
        found += _compare_content(ours, mine, theirs, other)
    found += _compare_headers(ours, theirs)
    for mine, other in pairs:
        found += _compare_section_header(ours, mine, theirs, other, moved=moved)
    for mine, other in pairs:
        if (mine, other) not in tables:
            found += _compare_content(ours, mine, theirs, other)
    found += _compare_layout(ours, theirs)
    return found


def _pairs(ours: Image, theirs: Image) -> list[tuple[Section, Section]]:
    by_key = {section.key: section for section in theirs.sections}
    return [(s, by_key[s.key]) for s in ours.sections if s.key in by_key]


def _rows(title: str, ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Differences of two lists of lines."""
    if ours == theirs:
        return []
    found = []
    if len(ours) == len(theirs):
        differing = [
            i for i, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]
        ]
        if sorted(ours) == sorted(theirs):
            title += " (same entries in another order)"
        for i in differing[:SHOWN]:
            found.append(f"{title}[{i}]: got {ours[i]}; expected {theirs[i]}")
        if len(differing) > SHOWN:
            found[-1] += f"; {len(differing)} of {len(ours)} entries differ"
        return found
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    for _, a, b, c, d in changes[:SHOWN]:
        got, wanted = ", ".join(ours[a:b][:SHOWN]), ", ".join(theirs[c:d][:SHOWN])
        got = f"{b - a} extra: {got}" if b > a else "nothing"
        wanted = f"{d - c} missing: {wanted}" if d > c else "nothing"
        found.append(f"{title}[{c}]: {got}; {wanted}")
    if len(changes) > SHOWN:
        found[-1] += f"; {len(changes)} places differ"
    return [f"{found[0]} ({len(ours)} entries, expected {len(theirs)})", *found[1:]]


def _compare_headers(ours: Image, theirs: Image) -> list[str]:
    return [
        f"ELF header {field}: got {value:#x}, expected {theirs.header[field]:#x}"
        for field, value in ours.header.items()
        if field not in ("shoff", "phoff") and value != theirs.header[field]
    ]


def _compare_section_header(
    ours: Image, a: Section, theirs: Image, b: Section, *, moved: bool
) -> list[str]:
    fields = ["name_at", "type", "flags", "addr", "link", "info", "align", "entsize"]
    if not a.file_size and not b.file_size:
        fields.append("size")  # otherwise the contents tell more
    found = []
    for field in fields:
        got, wanted = getattr(a, field), getattr(b, field)
        if got == wanted:
            continue
        note = ""
        if field == "type":
            note = f" ({SECTION_TYPES.get(got, '?')}, {SECTION_TYPES.get(wanted, '?')})"
        if field in ("link", "info") and not a.name.endswith("symtab"):
            named = _refers(ours, a, field, got), _refers(theirs, b, field, wanted)
            if moved and named[0] == named[1]:
                continue  # the sections before it are the cause
            note = f" ({named[0]}, {named[1]})"
        if moved and field == "name_at":
            continue
        label = "sh_name" if field == "name_at" else f"sh_{field}"
        found.append(f"{a.name}: {label} got {got:#x}, expected {wanted:#x}{note}")
    return found


def _refers(image: Image, section: Section, field: str, value: int) -> str:
    if field == "info" and section.name.startswith((".text.", ".nv.capmerc.text.")):
        return image.symbol_name(value & 0xFFFFFF, section)
    return image.section_name(value)


def _compare_content(ours: Image, a: Section, theirs: Image, b: Section) -> list[str]:
    got, wanted = ours.content(a), theirs.content(b)
    if a.name == TOOL_NOTE:
        got, wanted = _without_first_note(got), _without_first_note(wanted)
    if a.name.startswith(".text.") and theirs.sm >= FIRST_MERCURY_SM:
        got, wanted = _without_control(got), _without_control(wanted)
    if got == wanted:
        return []
    reader = rows_reader(a.name)
    if reader:
        try:
            found = _rows(a.name, reader(ours, a), reader(theirs, b))
        except (struct.error, ValueError, IndexError) as problem:
            return [f"{a.name}: unreadable: {problem}"]
        if found:
            return found
    return [_bytes_differ(ours, a, got, wanted)]


def _bytes_differ(image: Image, section: Section, got: bytes, wanted: bytes) -> str:
    shared = min(len(got), len(wanted))
    at = next((i for i in range(shared) if got[i] != wanted[i]), shared)
    count = sum(x != y for x, y in zip(got, wanted, strict=False))
    step = 16 if section.name.startswith(".text.") else 8
    start = at - at % step
    place = f"{section.name}+{start:#x}"
    sizes = "" if len(got) == len(wanted) else f"; sizes {len(got):#x}, {len(wanted):#x}"
    return (
        f"{place}: got {got[start : start + 16].hex(' ')}; expected"
        f" {wanted[start : start + 16].hex(' ')}; first at {at:#x}, {count} bytes differ{sizes}"
    )


def _without_first_note(data: bytes) -> bytes:
    """The notes copied from the inputs, which follow the linker's own."""
    if len(data) < 12:
        return data
    name_size, size = struct.unpack_from("<II", data)
    return data[12 + -(-name_size // 4) * 4 + -(-size // 4) * 4 :]


def _without_control(text: bytes) -> bytes:
    mask = int.from_bytes(KEEP_MASK * (len(text) // 16) + b"\xff" * (len(text) % 16), "little")
    return (int.from_bytes(text, "little") & mask).to_bytes(len(text), "little")


def _compare_layout(ours: Image, theirs: Image) -> list[str]:
    """Offsets against where the expected image's parts would lie behind a note of our size."""
    if [s.key for s in ours.sections] != [s.key for s in theirs.sections]:
        return []
    sizes = [(a.size, b.size) for a, b in zip(ours.sections, theirs.sections, strict=True)]
    names = [section.name for section in ours.sections]
    if any(a != b for (a, b), name in zip(sizes, names, strict=True) if name != TOOL_NOTE):
        return []
    note = ours.section(TOOL_NOTE)
    got, wanted = actual_layout(ours), expected_layout(theirs, note.size if note else 0)
    found = [
        f"{name}: sh_offset got {a:#x}, expected {b:#x}"
        for name, a, b in zip(names, got.offsets, wanted.offsets, strict=True)
        if a != b
    ][:SHOWN]
    found += _rows("segments", list(map(str, got.segments)), list(map(str, wanted.segments)))
    for what in ("shoff", "phoff", "size"):
        a, b = getattr(got, what), getattr(wanted, what)
        if a != b:
            found.append(f"file {what}: got {a:#x}, expected {b:#x}")
    return found + _padding(ours)


def _padding(image: Image) -> list[str]:
    """Bytes that belong to no section or header must be zero."""
    gaps = bytearray(image.data)
    spans = [(0, 64), (image.header["shoff"], 64 * len(image.sections))]
    spans.append((image.header["phoff"], 56 * len(image.segments)))
    spans += [(s.offset, s.file_size) for s in image.sections[1:]]
    for start, size in spans:
        gaps[start : start + size] = bytes(min(size, max(len(gaps) - start, 0)))
    at = next((i for i, byte in enumerate(gaps) if byte), None)
    return [] if at is None else [f"padding at {at:#x} is not zero"]
