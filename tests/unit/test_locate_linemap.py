"""Lines of cubins whose debug sections are made in code: every DWARF version and form."""

from __future__ import annotations

import random
import struct

import pytest
from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section
from helpers.line_program import Lines, Row

pytest.importorskip("elftools", reason="pyelftools is not installed")

from pylink.locate.inlining import calls_of_rows
from pylink.locate.linemap import Frame, LineMap

ROWS = [Row(0, 3), Row(16, 4, column=7), Row(64, 400), Row(96, 2, file=2)]
FILES = [("k.cu", 1), ("k.h", 0)]


def with_lines(lines: Lines, *, implicit: bool = False) -> Cubin:
    """A kernel `k` and a function `f` with the same rows but for the first line."""
    cubin = Cubin()
    for name, first in (("k", 3), ("f", 30)):
        symbol = cubin.function(name, kernel=name == "k")
        lines.function(symbol, [Row(0, first), *ROWS[1:]])
    lines.add_to(cubin, implicit=implicit)
    return cubin


def places(cubin: Cubin, name: str, *offsets: int) -> list[tuple[str, int, int] | None]:
    lines = LineMap(cubin.build())
    found = []
    for offset in offsets:
        frames = lines.frames(cubin.find(f".text.{name}"), offset)
        found.append((frames[0].file, frames[0].line, frames[0].column) if frames else None)
    return found


@pytest.mark.parametrize("implicit", [False, True], ids=["rela", "rel"])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_offsets_have_the_line_of_the_row_before(version: int, implicit: bool) -> None:
    cubin = with_lines(Lines(version=version, files=FILES), implicit=implicit)
    assert places(cubin, "k", 0, 15, 16, 63, 64, 95, 96, 127, 128) == [
        ("/src/k.cu", 3, 0),
        ("/src/k.cu", 3, 0),
        ("/src/k.cu", 4, 7),
        ("/src/k.cu", 4, 7),
        ("/src/k.cu", 400, 0),
        ("/src/k.cu", 400, 0),
        ("k.h", 2, 0),
        ("k.h", 2, 0),
        None,
    ]
    assert places(cubin, "f", 0, 16) == [("/src/k.cu", 30, 0), ("/src/k.cu", 4, 7)]


@pytest.mark.parametrize("line", [-5, 1 << 31, 1 << 40])
def test_lines_and_columns_that_no_file_has_are_unknown(line: int) -> None:
    cubin = Cubin()
    lines = Lines()
    lines.function(cubin.function("k"), [Row(0, line, column=max(line, 0))])
    lines.add_to(cubin)
    assert places(cubin, "k", 0) == [("/src/k.cu", 0, 0)]


def test_version_5_counts_files_and_directories_from_0() -> None:
    lines = Lines(
        version=5,
        files=[("k.cu", 0), ("k.cu", 0), ("sub.h", 1)],
        directories=["/build", "include"],
    )
    assert places(with_lines(lines), "k", 0, 96) == [
        ("/build/k.cu", 3, 0),
        ("/build/include/sub.h", 2, 0),
    ]


def test_an_absolute_name_needs_no_directory() -> None:
    lines = Lines(files=[("/abs/k.cu", 1), ("up.h", 2)], directories=["/src", "../include"])
    found = places(with_lines(lines), "k", 0, 96)
    assert found == [("/abs/k.cu", 3, 0), ("../include/up.h", 2, 0)]


def test_a_section_of_another_name_has_no_lines() -> None:
    cubin = with_lines(Lines())
    cubin.function("silent")
    assert places(cubin, "silent", 0) == [None]
    assert LineMap(cubin.build()).frames(999, 0) == []


def test_code_that_begins_behind_its_symbol() -> None:
    cubin = Cubin()
    lines = Lines()
    lines.function(cubin.function("k"), [Row(0, 5), Row(16, 6)], 32)
    data, ((place, kind, symbol, _),), _ = lines.build()
    index = cubin.section(Section(".debug_line", SHT_PROGBITS, data, align=1))
    cubin.relocate(index, [(place, kind, symbol, 64)])
    assert places(cubin, "k", 0, 63, 64, 80, 96) == [
        *(None, None, ("/src/k.cu", 5, 0), ("/src/k.cu", 6, 0), None)
    ]


def test_two_units_in_one_section() -> None:
    cubin = Cubin()
    data, entries = b"", []
    for name, path in (("a", "a.cu"), ("b", "b.cu")):
        lines = Lines(files=[(path, 1)])
        lines.function(cubin.function(name), [Row(0, 5)])
        unit, relocations, _ = lines.build()
        entries += [(len(data) + row[0], *row[1:]) for row in relocations]
        data += unit
    cubin.relocate(cubin.section(Section(".debug_line", SHT_PROGBITS, data)), entries)
    assert places(cubin, "a", 0) == [("/src/a.cu", 5, 0)]
    assert places(cubin, "b", 0) == [("/src/b.cu", 5, 0)]


def inlined() -> Cubin:
    """`k` calls `outer`, which calls `inner`; both are inlined."""
    cubin = Cubin()
    names = b"\0outer\0inner\0"
    lines = Lines()
    lines.function(
        cubin.function("k", kernel=True),
        [
            Row(0, 10),
            Row(16, 11),
            Row(16, 20, inlined=(2, 1)),
            Row(32, 30, inlined=(3, 7)),
            Row(48, 21, inlined=(2, 1)),
            Row(64, 12),
        ],
    )
    lines.add_to(cubin)
    cubin.section(Section(".debug_str", SHT_PROGBITS, names, align=1))
    return cubin


@pytest.mark.parametrize(
    ("offset", "frames"),
    [
        (0, [(10, None)]),
        (16, [(20, "outer"), (11, None)]),
        (32, [(30, "inner"), (20, "outer"), (11, None)]),
        (48, [(21, "outer"), (11, None)]),
        (64, [(12, None)]),
    ],
)
def test_inlined_code_has_a_frame_for_each_call(
    offset: int, frames: list[tuple[int, str | None]]
) -> None:
    cubin = inlined()
    found = LineMap(cubin.build()).frames(cubin.find(".text.k"), offset)
    assert [(frame.line, frame.function) for frame in found] == frames


def test_a_call_that_comes_after_its_code_ends_the_chain() -> None:
    lines = Lines()
    cubin = Cubin()
    lines.function(cubin.function("k"), [Row(0, 1, inlined=(9, 0)), Row(16, 2, inlined=(2, 0))])
    lines.add_to(cubin)
    for offset in (0, 16):
        assert len(LineMap(cubin.build()).frames(cubin.find(".text.k"), offset)) == 1


def test_an_opcode_of_unknown_kind_is_stepped_over() -> None:
    lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1]
    fixed = b"\x09\x10\x00"
    program = (
        b"\x0a" + b"\0\x03\x80\x01\x02" + fixed + b"\x01" + b"\0\x04\x90\x01\x80\x01" + b"\x0a"
    )
    calls = calls_of_rows(program + b"\0\x01\x01" + b"\x0a", 10, lengths)
    assert [call and (call.row, call.name_offset) for call in calls] == [
        None,
        None,
        (0, 128),
        (0, 128),
    ]


def ptx_cubin() -> Cubin:
    cubin = Cubin()
    name = ".nv_debug_ptx_txt.42"
    ptx = b".version 9.0\0.extern .global .b8 gone[16];\0.func f\0ret;\0"
    lines = Lines(section=".nv_debug_line_sass", files=[(name, 0)], directories=[])
    lines.function(cubin.function("k", kernel=True), [Row(0, 3), Row(16, 99)])
    lines.add_to(cubin)
    cubin.section(Section(name, SHT_PROGBITS, ptx, align=1))
    return cubin


def shown(frame: Frame | None) -> tuple[str, int, str | None] | None:
    return None if frame is None else (frame.file, frame.line, frame.text)


def test_ptx_without_source_lines_is_shown_itself() -> None:
    cubin = ptx_cubin()
    lines = LineMap(cubin.build())
    text = cubin.find(".text.k")
    assert [shown(frame) for frame in lines.frames(text, 0)] == [
        (".nv_debug_ptx_txt.42", 3, ".func f")
    ]
    assert [shown(frame) for frame in lines.frames(text, 16)] == [(".nv_debug_ptx_txt.42", 99, "")]


def test_ptx_tells_where_a_variable_is_declared() -> None:
    lines = LineMap(ptx_cubin().build())
    declaration = ".extern .global .b8 gone[16];"
    assert shown(lines.ptx_declaration("gone")) == (".nv_debug_ptx_txt.42", 2, declaration)
    assert lines.ptx_declaration("one") is None
    assert lines.ptx_declaration("f") == lines.ptx_declaration("nosuch") is None


def test_a_cubin_without_lines_has_none() -> None:
    cubin = Cubin()
    cubin.function("k", kernel=True)
    lines = LineMap(cubin.build())
    assert lines.frames(cubin.find(".text.k"), 0) == []
    assert lines.declaration("k") is None


def test_a_declaration_is_that_of_the_debug_information() -> None:
    """A compile unit with the variables `v` and `_Zw`; -G writes such a section."""
    cubin = with_lines(Lines(files=[("k.cu", 0), ("k.h", 1)], directories=["inc"]))
    abbreviations = (
        bytes([1, 0x11, 1, 0x10, 0x06, 0x1B, 0x08, 0, 0])
        + bytes([2, 0x34, 0, 0x03, 0x08, 0x3A, 0x0B, 0x3B, 0x05, 0, 0])
        + bytes([3, 0x34, 0, 0x03, 0x08, 0x87, 0x40, 0x08, 0x3A, 0x0B, 0x3B, 0x05, 0, 0])
        + b"\0"
    )
    entries = (
        b"\1" + struct.pack("<I", 0) + b"/build\0"
        + b"\2v\0" + struct.pack("<BH", 1, 7)
        + b"\3w\0_Zw\0" + struct.pack("<BH", 2, 300)
        + b"\0"
    )  # fmt: skip
    body = struct.pack("<HIB", 2, 0, 8) + entries
    cubin.section(Section(".debug_abbrev", SHT_PROGBITS, abbreviations, align=1))
    data = struct.pack("<I", len(body)) + body
    cubin.section(Section(".debug_info", SHT_PROGBITS, data, align=1))
    lines = LineMap(cubin.build())
    assert shown(lines.declaration("v")) == ("/build/k.cu", 7, None)
    assert shown(lines.declaration("_Zw")) == ("/build/inc/k.h", 300, None)
    assert lines.declaration("w") is None
    assert shown(lines.frames(cubin.find(".text.k"), 0)[0]) == ("/build/k.cu", 3, None)


def test_each_unit_has_the_directory_of_its_compilation() -> None:
    cubin = Cubin()
    data, entries, info = b"", [], b""
    abbreviations = bytes([1, 0x11, 0, 0x10, 0x06, 0x1B, 0x08, 0, 0, 0])
    for name in ("a", "b", "c"):
        lines = Lines(files=[("k.cu", 0)])
        lines.function(cubin.function(name), [Row(0, 5)])
        unit, relocations, _ = lines.build()
        entries += [(len(data) + row[0], *row[1:]) for row in relocations]
        entry = b"\1" + struct.pack("<I", len(data)) + b"/" + name.encode() + b"\0"
        body = struct.pack("<HIB", 2, 0, 8) + entry
        info += struct.pack("<I", len(body)) + body
        data += unit
    cubin.relocate(cubin.section(Section(".debug_line", SHT_PROGBITS, data, align=1)), entries)
    cubin.section(Section(".debug_abbrev", SHT_PROGBITS, abbreviations, align=1))
    cubin.section(Section(".debug_info", SHT_PROGBITS, info, align=1))
    for name in ("a", "b", "c"):
        assert places(cubin, name, 0) == [(f"/{name}/k.cu", 5, 0)]


def test_damaged_lines_raise_and_never_hang() -> None:
    cubin = inlined()
    whole = cubin.build()
    start = cubin.starts[cubin.find(".debug_line")]
    size = len(cubin.sections[cubin.find(".debug_line") - 1].data)
    chance = random.Random(11)
    outcomes = set()
    for _ in range(400):
        image = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            image[start + chance.randrange(size)] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        try:
            LineMap(bytes(image)).frames(cubin.find(".text.k"), 32)
            outcomes.add("read")
        except Exception:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("table", ["folders", "files"])
def test_entries_without_bytes_are_refused_whatever_their_number(table: str) -> None:
    """A reader that made each of them would not come back."""
    many = b"\0" + b"\xff\xff\xff\xff\x7f"
    tables = many + b"\0\0" if table == "folders" else b"\0\0" + many
    fixed = b"\1\1\1\xfb\x0e\x0a" + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
    head = struct.pack("<HBBI", 5, 8, 0, len(fixed) + len(tables)) + fixed + tables
    body = head + b"\0\x09\2" + bytes(8) + b"\1\0\1\1"
    cubin = Cubin()
    relocations = [(4 + len(head) + 3, 2, cubin.function("k"), 0)]
    data = struct.pack("<I", len(body)) + body
    cubin.relocate(cubin.section(Section(".debug_line", SHT_PROGBITS, data, align=1)), relocations)
    with pytest.raises(ValueError, match="34359738367 entries of a table of files have no bytes"):
        LineMap(cubin.build()).frames(cubin.find(".text.k"), 0)
