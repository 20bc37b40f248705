"""Comments and docstrings follow the rules of plain English that a program can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from helpers.english import WORDS, c_comments, comments, long_sentences, paragraphs

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PATTERNS = ("**/*.py", "**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.h", "**/*.c")
FILES = [path for pattern in PATTERNS for path in SOURCES.glob(pattern)]
HELPERS_IN_C = sorted(ROOT.glob("tests/**/*.c"))
ROOMS = sorted({str(path.parent.relative_to(SOURCES)) for path in FILES})


def prose(path: Path) -> list[str]:
    """What a file says, without code."""
    texts = [re.sub(r"``?[^`]*``?", "CODE", text) for text in comments(path)]
    return [paragraph for text in texts for paragraph in paragraphs(text)]


def test_comments_of_all_sorts_are_found() -> None:
    assert len(ROOMS) > 50
    assert "_native/merge" in ROOMS
    said = " ".join(prose(Path(__file__)))
    assert "Comments and docstrings follow" in said  # and this, at the end of a line
    assert "and this, at the end of a line" in said
    assert "is not a comment" not in said


def test_comments_of_c_are_found() -> None:
    text = 'a; // first\n// second,\n// third\n/* fourth\n * fifth */ "// none" \'"\' /* sixth */\n'
    found = [" ".join(comment.split()) for comment in c_comments(text)]
    assert found == ["first", "second, third", "fourth fifth", "sixth"]


@pytest.mark.parametrize("room", [*ROOMS, "C of tests"])
def test_words_and_sentences(room: str) -> None:
    files = [path for path in FILES if path.parent == SOURCES / room] or HELPERS_IN_C
    for path in files:
        said = prose(path)
        assert long_sentences(said) == [], path.name
        for text in said:
            assert not re.search(r"(?:^|[.:?!] )Of [a-z]", text), f"{path.name}: {text}: of what?"
            for pattern, better in WORDS.items():
                found = re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
                assert not found, f"{path.name}: {text}: {better}"


def test_one_is_the_name_of_nothing() -> None:
    """A variable says what it is."""
    places = [ROOT / name for name in ("src", "tests", "benchmarks", "scripts", "demo")]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (path for place in places for path in place.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id == "one")
        or (isinstance(node, ast.arg) and node.arg == "one")
        or (isinstance(node, ast.FunctionDef) and node.name == "one")
    ]
    assert found == []


def test_an_exemption_from_a_rule_says_why() -> None:
    places = [ROOT / name for name in ("src", "tests", "benchmarks", "scripts", "demo")]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (path for place in places for path in place.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"[#] noqa(?!: [A-Z0-9]+(, [A-Z0-9]+)* --? ?\S)", line)
    ]
    assert found == []
