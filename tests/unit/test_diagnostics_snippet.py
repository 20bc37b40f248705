"""Source lines and carets under tabs, multibyte text, and sources that cannot be had."""

from __future__ import annotations

import pytest

from pylink.diagnostics.record import Source
from pylink.diagnostics.snippet import snippet


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
def test_caret_and_tildes(*, line: str, column: int, end: int, shown: str, carets: str) -> None:
    assert snippet(line.rstrip("\r"), Source("s.cu", 2, column, end)) == f"  {shown}\n  {carets}\n"


def test_the_tab_width_is_that_of_the_record() -> None:
    assert snippet("\tf();", Source("s.cu", 1, 2, tab_width=4)) == "      f();\n      ^\n"


def test_without_a_column_there_is_no_caret() -> None:
    assert snippet("f();", Source("s.cu", 1)) == "  f();\n"
