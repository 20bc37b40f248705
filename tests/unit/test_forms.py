"""Commands write bytes, shares and JSON in one form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pylink.terminal.numbers import bytes_text, share_text
from pylink.terminal.tables import json_text

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
