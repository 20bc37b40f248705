"""Word wrap: the measured shapes, and the properties both ways of wrapping share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylink.diagnostics.color import ERROR, LOCUS, RESET, to_terminal
from pylink.diagnostics.wrap import cells, wrap


def test_a_line_breaks_at_the_last_space_that_fits() -> None:
    place = "w.cu(4): error: "
    text = f'{place}argument of type "const char *" is incompatible with parameter of type "int"'
    assert wrap(text, 0, 10, 79) == (
        'w.cu(4): error: argument of type "const char *" is incompatible with parameter\n'
        '          of type "int"'
    )


def test_a_word_longer_than_a_line_is_cut_at_the_limit() -> None:
    name = "nosuch_" + "o" * 79
    lines = wrap(f'tab.cu(2): error: identifier "{name}" is undefined', 0, 10, 79).split("\n")
    assert lines[0] == "tab.cu(2): error: identifier"
    assert len(lines[1]) == 79
    assert lines[1].startswith('          "nosuch_oo')
    assert lines[2].endswith('o" is undefined')


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("aaa bbb", 7, ["aaa bbb"]),
        ("aaa bbb", 6, ["aaa", " bbb"]),
        ("aaa bbb", 3, ["aaa", " bb", " b"]),
        ("aaa  bbb", 5, ["aaa ", " bbb"]),
        ("aaabbb", 4, ["aaab", " bb"]),
        ("", 4, [""]),
        ("aaa", 0, ["aaa"]),
    ],
)
def test_breaks(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, 0, 1, width).split("\n") == lines


def test_a_wide_character_takes_two_columns() -> None:
    assert wrap("漢字漢字", 0, 0, 5) == "漢字\n漢字"
    assert [cells(c) for c in "aé漢\u0301"] == [1, 1, 2, 0]


def test_margins_of_the_first_and_the_other_lines() -> None:
    assert wrap("aa bb cc", 2, 4, 6) == "  aa\n    bb\n    cc"


def test_a_color_goes_off_before_the_indent_and_on_after_it() -> None:
    text = f'the "{LOCUS}abcdefgh{RESET}"'
    assert to_terminal(wrap(text, 0, 2, 8)) == (
        'the\n  "\x1b[01mabcde\n\x1b[0m  \x1b[01mfgh\x1b[0m"'
    )


words = st.text(alphabet="ab \u0301漢é", max_size=40)
colored = st.lists(st.one_of(words, st.sampled_from([RESET, ERROR, LOCUS])), max_size=12)
columns = st.integers(0, 6)


@given(colored, columns, columns, st.integers(0, 30))
def test_colors_do_not_move_breaks(pieces: list[str], margin: int, indent: int, width: int) -> None:
    text = "".join(pieces)
    plain = "".join(piece for piece in pieces if not piece.startswith("\x1b"))
    uncolored = re.sub("\x1b[\x01-\x05]", "", wrap(text, margin, indent, width))
    assert uncolored == wrap(plain, margin, indent, width)


@given(words, columns, columns, st.integers(8, 30))
def test_lines_fit_and_lose_only_spaces(text: str, margin: int, indent: int, width: int) -> None:
    lines = wrap(text, margin, indent, width).split("\n")
    assert all(sum(map(cells, line)) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
