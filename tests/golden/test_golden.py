"""pylink links the recorded cubins to what nvlink recorded; needs no CUDA tool.

`scripts/make_golden.py` made the cases; each link.json holds the nvlink command lines.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from differential import cases, check
from differential.cases import Case, Expected
from differential.variants import TEXT
from helpers import oracle

FOLDER = Path(__file__).parent
CASES = [cases.load(path.parent) for path in sorted(FOLDER.glob("*/*/link.json"))]
LINKS = [
    pytest.param(case, expected, id=f"{case.name}-{expected.variant}")
    for case in CASES
    for expected in case.links
    if expected.variant not in TEXT
]
PRINTED = [
    pytest.param(case, expected, id=f"{case.name}-{expected.variant}")
    for case in CASES
    for expected in case.links
    if expected.variant in TEXT or expected.code or expected.stderr
]


def test_the_recorded_cases_are_there() -> None:
    assert len(LINKS) > 40
    assert {case.arch for case in CASES} >= {"75", "90a", "100", "120"}
    for release in ("13.1", "13.2", "13.3", "13.4", "13.5"):
        archs = {case.arch for case in CASES if case.nvlink == f"V{oracle.VERSIONS[release]}"}
        assert archs == {"80", "90a", "100"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Where a case is linked, so that nothing is written into the tree."""
    return tmp_path / "case"


@pytest.mark.parametrize(("case", "expected"), LINKS)
def test_link_equals_nvlink(case: Case, expected: Expected, copy: Path) -> None:
    shutil.copytree(case.folder, copy)
    assert check.check_api(replace(case, folder=copy), expected) == []


@pytest.mark.parametrize(("case", "expected"), PRINTED)
def test_command_line_prints_and_exits_as_nvlink(
    case: Case, expected: Expected, copy: Path
) -> None:
    shutil.copytree(case.folder, copy)
    assert check.check_cli(replace(case, folder=copy), expected) == []
