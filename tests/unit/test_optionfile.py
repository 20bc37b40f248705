"""Words of options files and items of list arguments."""

from __future__ import annotations

import pytest

from pylink import LinkError
from pylink.diagnostics import Sink
from pylink.options.file import split_arguments, split_items


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" a\tb\r\nc\n", ["a", "b", "c"]),
        ('"x y"', ["x y"]),
        ("'x y'", ["'x", "y'"]),
        ('a"b c"d', ["ab cd"]),
        ('"a""b" ""', ["ab", ""]),
        ("# c", ["#", "c"]),
        (r"x\ y", ["x y"]),
        (r"x\y x\\y", ["xy", r"x\y"]),
        ("x\\\ny", ["x\ny"]),
        (r'"x\"y"', ["xy"]),  # an escaped quote is still a quote
        (r'x\\"y z"', [r"x\"y z"]),  # one behind a backslash stays
        ("x\vy\fz", ["x\vy\fz"]),
        ("x\0y", ["x"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split_arguments(text, Sink()) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"x y', "Stray '\"' character"),
        ('x"y z', "Stray '\"' character"),
        (r'"x\\"y" z', "Stray '\"' character"),
        ("x\\", "Stray '' character"),
    ],
)
def test_words_that_do_not_end(text: str, message: str) -> None:
    with pytest.raises(LinkError) as caught:
        split_arguments(text, Sink())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        (",,", []),
        ("a", ["a"]),
        (",a,,b,", ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        ('x,"y z",q', ["x", "y z", "q"]),
        (r"a\,b", ["a\\", "b"]),
        (r'"x\"y"z"', [r"x\"yz"]),
        ("f(a,b)", ["f(a", "b)"]),
        (' a ,\tb\t, ," c "', ["a", "b", "c"]),
        ("a\n", ["a\n"]),
        ('a"b, c"d', ["ab, cd"]),
    ],
)
def test_items(text: str, items: list[str]) -> None:
    assert split_items(text, Sink()) == items


def test_items_with_an_open_quote() -> None:
    with pytest.raises(LinkError, match="Stray '\"' character"):
        split_items('"xy', Sink())
