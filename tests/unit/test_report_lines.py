"""Source lines and PTX of addresses in the cubins of reports: every form of table, damaged ones."""

from __future__ import annotations

import importlib.util

import pytest
from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section
from helpers.line_program import Lines, Row
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.inspect.image import Image
from pylink.report.model import Source
from pylink.report.source.lines import SourceMap
from pylink.report.source.loaded import Loaded, load_with_addresses

if importlib.util.find_spec("elftools") is None:
    pytest.skip("pyelftools is not installed", allow_module_level=True)

FILES = [("k.cu", 1), ("/abs/k.h", 0)]
ROWS = [Row(0, 3), Row(16, 4), Row(64, 9, inlined=(2, 0)), Row(96, 2, file=2)]
PTX = b".version 8.0\0.target sm_80\0  mov.u32 %r1, 1;\0ret;\0"
PTX_LINES = [line.strip() for line in PTX.decode().split("\0")]


def cubin(version: int = 2, *, implicit: bool = False, file: str = "k.cu") -> bytes:
    """Two functions of 128 bytes with the same rows but for the first line, and PTX of one."""
    made = Cubin()
    lines = Lines(version, [(file, 1), *FILES[1:]])
    lines_of_ptx = Lines(2, [], [], ".nv_debug_line_sass")
    for name, first in (("k", 3), ("f", 30)):
        symbol = made.function(name, kernel=name == "k")
        lines.function(symbol, [Row(0, first), *ROWS[1:]], 128)
        if name == "k":
            lines_of_ptx.function(symbol, [Row(0, 3), Row(32, 4), Row(48, 99)], 128)
    lines.add_to(made, implicit=implicit)
    lines_of_ptx.add_to(made, implicit=implicit)
    made.section(Section(".nv_debug_ptx_txt", SHT_PROGBITS, PTX, align=1))
    return made.build()


def lines_at(code: Loaded, name: str, *offsets: int) -> list[tuple[str, int] | None]:
    found = SourceMap(code.source)
    return [found.line(code.addresses[name] + offset) for offset in offsets]


@pytest.mark.parametrize("implicit", [False, True], ids=["rela", "rel"])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_addresses_have_the_line_of_the_row_before(version: int, implicit: bool) -> None:
    code = load_with_addresses(cubin(version, implicit=implicit))
    assert lines_at(code, "k", 0, 15, 16, 64, 96, 127) == [
        ("/src/k.cu", 3),
        ("/src/k.cu", 3),
        ("/src/k.cu", 4),
        ("/src/k.cu", 9),
        ("/abs/k.h", 2),
        ("/abs/k.h", 2),
    ]
    assert lines_at(code, "f", 0, 16) == [("/src/k.cu", 30), ("/src/k.cu", 4)]


def test_tables_of_dwarf_5_are_read() -> None:
    made = Cubin()
    lines = Lines(5, [("k.cu", 0), ("k.h", 1)], ["/src", "include"])
    lines.function(made.function("k", kernel=True), [Row(0, 3), Row(16, 4, file=0)])
    lines.add_to(made)
    assert lines_at(load_with_addresses(made.build()), "k", 0, 16) == [
        ("/src/include/k.h", 3),
        ("/src/k.cu", 4),
    ]


def test_addresses_outside_of_code_have_no_line() -> None:
    code = load_with_addresses(cubin())
    assert lines_at(code, "k", -1, -16, 0x1000_0000) == [None, None, None]
    assert SourceMap(code.source).line(0) is None
    assert lines_at(code, "f", 128) == [None]


def test_tables_of_reports_may_count_from_the_functions() -> None:
    """Some tools leave the operands of relocations as the file has them."""
    plain = cubin()
    code = load_with_addresses(plain)
    binary = bytearray(code.source.binary or b"")
    image = Image(plain)
    for name in (".debug_line", ".nv_debug_line_sass"):
        table = image.section(name)
        assert table is not None
        end = table.offset + table.size
        assert binary[table.offset : end] != plain[table.offset : end]
        binary[table.offset : end] = plain[table.offset : end]
    found = SourceMap(Source(binary=bytes(binary)))
    assert found.line(code.addresses["f"] + 16) == ("/src/k.cu", 4)
    assert found.ptx(code.addresses["k"] + 32) == "ret;"


def test_paths_that_are_no_text_are_escaped() -> None:
    code = load_with_addresses(cubin(file="k\udcff.cu"))
    assert lines_at(code, "k", 0) == [("/src/k\\xff.cu", 3)]


def test_lines_of_ptx_need_no_file() -> None:
    code = load_with_addresses(cubin())
    start, found = code.addresses["k"], SourceMap(code.source)
    assert [found.ptx(start + at) for at in (0, 31, 32)] == ["mov.u32 %r1, 1;"] * 2 + ["ret;"]
    assert found.ptx(start + 48) == ""  # a line that the text does not have
    assert found.ptx(code.addresses["f"]) == ""


@settings(max_examples=150)
@given(st.data())
def test_damaged_tables_know_a_line_or_none(data: st.DataObject) -> None:
    plain = load_with_addresses(cubin())
    binary = bytearray(plain.source.binary or b"")
    image = Image(bytes(binary))
    for name in (".debug_line", ".nv_debug_line_sass"):
        table = image.section(name)
        assert table is not None
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(table.offset, table.offset + table.size - 1))
            binary[place] = data.draw(st.integers(0, 255))
    found = SourceMap(Source(binary=bytes(binary)))
    for offset in (0, 16, 127):
        line = found.line(plain.addresses["k"] + offset)
        assert line is None or isinstance(line[1], int)
        assert found.ptx(plain.addresses["k"] + offset) in ("", *PTX_LINES)


def test_a_line_before_the_first_is_none() -> None:
    made = Cubin()
    lines = Lines(2, [], [], ".nv_debug_line_sass")
    lines.function(made.function("k", kernel=True), [Row(0, -9)], 128)
    lines.add_to(made)
    made.section(Section(".nv_debug_ptx_txt", SHT_PROGBITS, PTX, align=1))
    code = load_with_addresses(made.build())
    assert SourceMap(code.source).ptx(code.addresses["k"]) == ""
