"""The last column of docs/nvlink-differences.md says what tests execute, and tests what it says."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "nvlink-differences.md"
HEADING = "executed"
NOTHING = "-"  # code, tables and addresses are nvlink's
REASON = "no: "
CHIPS = re.compile(r"\d+a?(, \d+a?)*")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def page() -> tuple[dict[str, str], dict[str, str]]:
    """First and last cells of tables with the column; and of all others first cells and rows."""
    executed, others = {}, {}
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        row = cells(line)
        if row[-1] == HEADING:
            inside = True
        elif set(line) <= set("|- "):
            continue
        elif inside:
            executed[row[0]] = row[-1]
        else:
            others[row[0]] = line
    return executed, others


def chips(name: str) -> str:
    """The architecture as the page writes it, in order."""
    return name.rstrip("a").zfill(4)


def rows_of_tests() -> dict[str, set[str]]:
    """Words of a row, and the architectures of the tests that execute it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted((Path(__file__).parents[1] / "emulator").glob("test_*.py")):
        module = importlib.import_module(f"emulator.{path.stem}")
        for test in vars(module).values():
            for words in getattr(test, "executes", ()):
                marks = [mark for mark in test.pytestmark if mark.name == "parametrize"]
                [archs] = [mark.args[1] for mark in marks if mark.args[0] == "arch"]
                found[words] |= set(archs)
    return found


def test_the_page_says_what_tests_execute() -> None:
    executed, _ = page()
    found: dict[str, set[str]] = defaultdict(set)
    for words, archs in rows_of_tests().items():
        [row] = [first for first in executed if words in first]
        found[row] |= archs
    assert {row: ", ".join(sorted(archs, key=chips)) for row, archs in found.items()} == {
        row: cell for row, cell in executed.items() if CHIPS.fullmatch(cell)
    }


def test_a_row_that_is_not_executed_says_why() -> None:
    executed, others = page()
    assert len(executed) > 30
    text = PAGE.read_text(encoding="utf-8")
    for row, cell in executed.items():
        assert CHIPS.fullmatch(cell) or cell.startswith(REASON) or cell == NOTHING, row
        line = next(line for line in text.splitlines() if line.startswith(f"| {row} |"))
        if "should run" in line or "should link" in line:
            assert cell != NOTHING, row
    for row, line in others.items():
        assert "should run" not in line, row
        assert "should link" not in line, row
