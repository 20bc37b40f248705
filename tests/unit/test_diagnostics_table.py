"""The table of kinds against its page, its help, and every place that reports."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

import pylink
from pylink.diagnostics import KINDS
from pylink.diagnostics.help import HELP
from pylink.diagnostics.reference import reference
from pylink.diagnostics.severity import NAMES

PACKAGE = Path(pylink.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "diagnostics.md"

# What a record always offers to its template.
ALWAYS = {"at", "file", "section", "symbol", "where"}
NOT_FIELDS = {"children", "context", "explain", "hints", "notes", "source"}


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def reports() -> list[tuple[str, str, set[str] | None]]:
    """Place, kind and keywords of each call with a literal kind; None for a `**` argument."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            kind = node.args[0]
            if name not in ("report", "fatal", "note", "Diagnostic"):
                continue
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                names = {keyword.arg for keyword in node.keywords}
                known = None if None in names else {n for n in names if n}
                found.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", kind.value, known))
    return found


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text() == reference()


def test_numbers_and_names_are_unique_and_every_kind_has_help() -> None:
    numbers = [number for number, _, _ in KINDS.values()]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0
    assert set(HELP) == set(KINDS)
    assert {severity for _, severity, _ in KINDS.values()} <= set(NAMES)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (104, "undefined-value"),
        (120, "cannot-open-input"),
        (201, "arch-mismatch"),
        (220, "wrong-os-abi"),
        (313, "symbol-range"),
        (401, "undefined-reference"),
        (402, "multiple-definition"),
        (403, "size-mismatch"),
        (404, "merge-failed"),
        (405, "space-mismatch"),
        (406, "prototype-mismatch"),
        (407, "function-as-variable"),
        (420, "managed-mismatch"),
        (501, "stack-size"),
        (901, "internal-error"),
        (1508, "error-limit"),
        (3709, "suppression-hint"),
    ],
)
def test_a_number_stays_with_its_name(number: int, name: str) -> None:
    assert KINDS[name][0] == number


def test_every_kind_is_named_by_what_reports_it() -> None:
    """The page lists no message that nobody ever sees."""
    named = {
        node.value
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("kinds.py", "help.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
    }
    assert set(KINDS) - named == set()


def test_help_starts_with_a_sentence_for_a_summary() -> None:
    for name, text in HELP.items():
        assert text.endswith("."), name
        assert 10 < len(text.partition(". ")[0]) <= 160, name


def test_every_report_names_a_kind_and_gives_what_its_template_needs() -> None:
    calls = reports()
    assert len(calls) > 20
    for place, kind, keywords in calls:
        assert kind in KINDS, f"{place}: no kind {kind!r}"
        if keywords is not None:
            given = keywords - NOT_FIELDS - {"args"}
            needed = fields(KINDS[kind][2])
            missing = needed - given - (ALWAYS - {"file", "symbol"})
            assert "args" in keywords or not missing, f"{place}: {kind} lacks {sorted(missing)}"
            spare = given - needed - ALWAYS - {"index", "offset"}
            assert not spare, f"{place}: {kind} has no field for {sorted(spare)}"
            assert "where" not in needed or "file" in given, f"{place}: {kind} names no file"
