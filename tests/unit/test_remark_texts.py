"""Every stock text that a remark may carry is one that YAML and bitstreams carry alike.

LLVM's parser of YAML undoes no escape, and takes the double quotes of a text for a part of it. So
a text that has to be written with either would differ between the two formats.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pylink
from pylink.mercury.reasons import BLOCKERS, REASONS
from pylink.remarks.passes import catalogue
from pylink.remarks.scalars import scalar

PACKAGE = Path(pylink.__file__).parent
# What makes the values of arguments; `reference.py` makes a page.
PASSES = (PACKAGE / "remarks" / "passes").glob("*.py")
SOURCES = [*sorted(PASSES), PACKAGE / "phases" / "fold.py"]
SOURCES = [path for path in SOURCES if path.name != "reference.py"]


def literals(path: Path) -> list[str]:
    """Return the strings of a module with more than one word, except for its documentation."""
    tree = ast.parse(path.read_text())
    skipped = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            skipped.add(id(body[0].value))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
        and " " in node.value.strip()
    ]


def stock() -> list[str]:
    texts = [text for kind in vars(catalogue).values() for text in pieces(kind)]
    texts += [text for _, _, text in REASONS.values()]
    texts += filter(None, BLOCKERS.values())
    return texts + [text for path in SOURCES for text in literals(path)]


def pieces(kind: object) -> list[str]:
    if not isinstance(kind, catalogue.Kind):
        return []
    return [text for text, named in kind.pieces if not named]


@pytest.mark.parametrize("text", sorted(set(stock())))
def test_both_formats_carry_it_alike(text: str) -> None:
    written = scalar(text.strip("\n"), 6)
    assert not written.startswith(('"', "|"))
    assert "'" not in text


def test_there_are_texts() -> None:
    assert len(set(stock())) > 100
