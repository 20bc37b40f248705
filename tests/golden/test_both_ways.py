"""The recorded links once more, by each way that bytes take through a link: the same files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from differential import cases
from differential.cases import Case, Expected
from differential.variants import TEXT
from helpers.threads import THREADS, threads

from pylink.command.cli import main
from pylink.files import buffer

CASES = [cases.load(path.parent) for path in sorted(Path(__file__).parent.glob("*/*/link.json"))]
LINKS = [
    pytest.param(case, expected, id=f"{case.name}-{expected.variant}")
    for case in CASES
    for expected in case.links
    if expected.variant not in TEXT and not expected.code
]


@pytest.fixture
def argv(
    case: Case, expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The words of a link that writes `out`, in a folder with its inputs."""
    folder = tmp_path / "case"
    shutil.copytree(case.folder, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYLINK_OPTIONS", "")
    return expected.link.argv("out")


@pytest.mark.parametrize(("case", "expected"), LINKS)
def test_a_file_that_is_filled_and_one_that_is_written(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = []
    for largest in (1 << 30, 0):
        monkeypatch.setattr(buffer, "WRITTEN_SIZE", largest)
        assert main(argv, tool="pylink") == 0
        images.append(Path("out").read_bytes())
        os.remove("out")
    assert images[0] == images[1]


@pytest.mark.parametrize(("case", "expected"), LINKS)
def test_any_number_of_threads(argv: list[str]) -> None:
    images = set()
    for count in THREADS:
        with threads(count):
            assert main(argv, tool="pylink") == 0
        images.add(Path("out").read_bytes())
        os.remove("out")
    assert len(images) == 1
