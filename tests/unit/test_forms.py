"""Commands write bytes, shares and JSON in one form, and refuse numbers in one."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from pylink.command.cli import main
from pylink.terminal import arguments
from pylink.terminal.numbers import bytes_text, share_text
from pylink.terminal.tables import TextTable, json_text, print_rich

PACKAGE = Path(__file__).parents[2] / "src" / "pylink"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (0.25, "0.2 B"),
        (999.96, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (-1500, "-1.5 kB"),
        (2.5e12, "2.5 TB"),
    ],
)
def test_bytes(size: float, text: str) -> None:
    assert bytes_text(size) == text


def test_shares() -> None:
    assert [share_text(1, 3), share_text(1, 3, 2), share_text(1, 0)] == ["33%", "33.33%", ""]


def test_json_has_an_indent_of_one_and_ascii_alone() -> None:
    assert json_text({"name": ["ä", 1]}) == '{\n "name": [\n  "\\u00e4",\n  1\n ]\n}\n'


def test_rich_aligns_titles_and_texts_to_the_left_and_numbers_to_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=60)
    printed: list[Any] = []
    console_print = console.print

    def keep_and_print(table: object, **keywords: object) -> None:
        printed.append(table)
        console_print(table, **keywords)

    monkeypatch.setattr(console, "print", keep_and_print)
    rows = [("a", "x", "7"), ("longer", "longest", "1234567")]
    print_rich(console, [TextTable("Title", ("name", "other name", "n"), rows, 2)])
    title, *lines = console.file.getvalue().splitlines()
    cells = [re.split("[│┃]", line)[1:-1] for line in lines if line[0] in "│┃"]
    assert title.rstrip() == "Title"
    assert cells == [
        [" name   ", " other name ", "       n "],
        [" a      ", " x          ", "       7 "],
        [" longer ", " longest    ", " 1234567 "],
    ]
    # In place of a word that it does not know, rich mostly prints as for "left".
    (table,) = printed
    assert table.title_justify == "left"
    assert [column.justify for column in table.columns] == ["left", "left", "right"]


@pytest.mark.parametrize(
    ("command", "option", "text", "reason"),
    [
        ("bench", "--rounds", "0", "whole number from 1"),
        ("bench", "--rounds", "1.5", "whole number from 1"),
        ("bench", "--rest", "-1", "number of seconds from 0"),
        ("bench", "--patience", "nan", "number of seconds from 0"),
        ("serve", "--idle-timeout", "-1", "number of seconds from 0"),
        ("serve", "--idle-timeout", "inf", "number of seconds from 0"),
        ("serve", "--max-memory", "0", "whole number from 1"),
        ("serve", "--ready", "1000000001", "whole number from 1"),
        ("dedup", "--top", "-1", "whole number from 0"),
        ("size", "--top", "x", "whole number from 0"),
        ("inspect diff", "--limit", "-1", "whole number from 0"),
    ],
)
def test_numbers_of_options(
    command: str, option: str, text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), f"{option}={text}"]) == 2
    reason = f"error: argument {option}: '{text}' is not a {reason} to 1,000,000,000\n"
    assert capsys.readouterr().err.endswith(reason)


def test_the_least_and_the_largest_numbers() -> None:
    assert [arguments.natural_number("0"), arguments.positive_number("1")] == [0, 1]
    assert [arguments.seconds("0"), arguments.seconds("1e9"), arguments.seconds("0.5")] == [
        0,
        1e9,
        0.5,
    ]


def test_no_module_has_a_form_of_its_own() -> None:
    # The manifest of a reproducer is a file, not the output of a command.
    exempt = {"terminal/tables.py", "outputs/reproducer.py"}
    own_form = re.compile(r"indent=\d|\df\} ?%|\} %")
    texts = {
        str(p.relative_to(PACKAGE)): p.read_text(encoding="utf-8") for p in PACKAGE.rglob("*.py")
    }
    # Rules of reports also run in Nsight Compute, where pylink is not installed.
    checked = {name: text for name, text in texts.items() if not name.startswith("report/stock/")}
    assert {name for name, text in checked.items() if own_form.search(text)} - exempt == set()
