"""Source lines and carets under tabs, multibyte text, and sources that cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pylink.diagnostics.record import Source
from pylink.diagnostics.snippet import snippet, source_line


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "carets"),
    [
        ("int f(x);", 5, 0, "int f(x);", "    ^"),
        ("int f(x);", 5, 5, "int f(x);", "    ^"),
        ("int f(x);", 5, 8, "int f(x);", "    ^~~~"),
        ("int f(x);", 5, 3, "int f(x);", "    ^"),
        ("int f(x);", 5, 99, "int f(x);", "    ^~~~~"),
        ("int f(x);", 4000000000, 0, "int f(x);", "         ^"),
        ("\tf();", 2, 3, "        f();", "        ^~"),
        ("ab\tf();", 4, 4, "ab      f();", "        ^"),
        ("a\tb", 2, 2, "a       b", " ^"),
        ('s = "é"; f();', 10, 0, 's = "é"; f();', "         ^"),
        ("漢字 f();", 4, 4, "漢字 f();", "     ^"),
        ("漢字 f();", 1, 2, "漢字 f();", "^~~~"),
        ("e\u0301 f();", 4, 4, "e\u0301 f();", "  ^"),
        ("f();\r", 1, 0, "f();", "^"),
    ],
)
def test_caret_and_tildes(
    tmp_path: Path, *, line: str, column: int, end: int, shown: str, carets: str
) -> None:
    path = tmp_path / "s.cu"
    path.write_bytes(f"first\n{line}\nlast\n".encode())
    assert snippet(Source(str(path), 2, column, end)) == f"  {shown}\n  {carets}\n"


def test_the_tab_width_is_that_of_the_record(tmp_path: Path) -> None:
    path = tmp_path / "s.cu"
    path.write_text("\tf();\n")
    assert snippet(Source(str(path), 1, 2, tab_width=4)) == "      f();\n      ^\n"


def test_without_a_column_there_is_no_caret(tmp_path: Path) -> None:
    path = tmp_path / "s.cu"
    path.write_text("f();")
    assert snippet(Source(str(path), 1)) == "  f();\n"


def test_bytes_that_are_no_utf8_count_one_each(tmp_path: Path) -> None:
    path = tmp_path / "s.cu"
    path.write_bytes(b"\xff\xfe f();\n")
    assert snippet(Source(str(path), 1, 4)) == "  \ufffd\ufffd f();\n     ^\n"


@pytest.mark.parametrize("line", [0, -1, 4, 1 << 40])
def test_no_such_line(tmp_path: Path, line: int) -> None:
    path = tmp_path / "s.cu"
    path.write_text("a\nb\nc\n")
    assert snippet(Source(str(path), line, 1)) == ""


def test_no_such_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing.cu", "fifo", ".", "nul\0.cu"):
        assert source_line(str(tmp_path / name), 1) is None
