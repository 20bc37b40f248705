"""`pylink size` and `pylink audit` on public wheels.

Sizes are compared with figures that a prototype on other code made of them; an audit has nothing to
report but notes. `make test-wheels` fetches the wheels into build/wheels and runs this file; `make
test` does not.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.sessions import blocks, commands, prints, sessions

from pylink.audit.command import main
from pylink.size import LEVELS, Sizes, measure, rows
from pylink.size.model import DIRECTORY
from pylink.size.reductions import reductions

EXPECTED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("expected.json").read_text(encoding="utf-8")
)
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "wheels"
# Bytes of the download that an entry may be off by: its beginning is known to 512 bytes of input.
OFF = 600


@cache
def measured(name: str) -> Sizes:
    return measure([str(FOLDER / name)], recompress=True)


@pytest.fixture(params=EXPECTED)
def name(request: pytest.FixtureRequest) -> str:
    wheel: str = request.param
    digest = hashlib.sha256((FOLDER / wheel).read_bytes()).hexdigest()
    assert digest == EXPECTED[wheel]["sha256"]
    return wheel


def test_every_level_adds_up_to_the_wheel(name: str) -> None:
    sizes, wanted = measured(name), EXPECTED[name]
    assert not sizes.unreadable
    for level in LEVELS:
        found = rows(sizes, (level,))
        assert sum(row.download for row in found) == (FOLDER / name).stat().st_size
        assert sum(row.installed for row in found) == wanted["installed"]
        assert all(min(row.download, row.installed, row.unpacked) >= 0 for row in found)
    assert sum(bool(file.name) for file in sizes.files) == wanted["files"]


def test_kinds_are_as_large_as_expected(name: str) -> None:
    kinds = {row.keys[0]: row for row in rows(measured(name), ("kind",))}
    wanted = EXPECTED[name]
    assert kinds["host"].installed == wanted["host"]
    assert kinds["container header"].installed == wanted["container header"]
    assert kinds[DIRECTORY].download == wanted["archive"] - wanted["members"]
    for kind, figures in wanted["kinds"].items():
        row = kinds.pop(kind)
        assert (row.count, row.installed, row.unpacked) == (
            figures["entries"], figures["installed"], figures["unpacked"],
        )  # fmt: skip
        assert abs(row.download - figures["download"]) <= OFF * figures["entries"]
    assert set(kinds) == {"host", "container header", DIRECTORY}


def test_parts_and_codecs_are_as_large_as_expected(name: str) -> None:
    sizes, wanted = measured(name), EXPECTED[name]
    parts = {row.keys[0]: row.unpacked for row in rows(sizes, ("part",)) if row.unpacked}
    del parts["host"]
    assert parts == wanted["unpacked_by_part"]
    codecs: Counter[str] = Counter()
    for leaf in sizes.leaves:
        if leaf.target:
            codecs[leaf.codec] += leaf.installed
    assert codecs == wanted["by_codec"]


def test_what_could_go_is_found(name: str) -> None:
    found: Counter[str] = Counter()
    for line in reductions(measured(name)):
        found[line.rule] += line.entries
    assert EXPECTED[name]["could_go"].items() <= found.items()


def test_an_audit_is_quiet(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All libraries of the wheel as plugins of one process."""
    with zipfile.ZipFile(FOLDER / name) as wheel:
        members = [member for member in wheel.namelist() if ".so" in Path(member).name]
        wheel.extractall(tmp_path, members)
    words = [word for member in members for word in ("--plugin", str(tmp_path / member))]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["files"]
    assert {finding["level"] for finding in said["findings"]} <= {"note"}


def shown_on_the_guide() -> list[tuple[str, str]]:
    guide = (ROOT / "docs" / "size.md").read_text(encoding="utf-8")
    return [pair for session in sessions(guide) for pair in commands(session)]


@pytest.mark.parametrize(("command", "shown"), shown_on_the_guide())
def test_the_guide_shows_what_commands_print(command: str, shown: str, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "size.md").read_text(encoding="utf-8")
    (budget,) = (block for block in blocks(guide) if block.language == "toml")
    (tmp_path / budget.title).write_text(budget.text)
    for wheel in FOLDER.glob("*.whl"):
        (tmp_path / wheel.name).symlink_to(wheel)
    python = shlex.quote(sys.executable)
    done = subprocess.run(
        ["bash", "-c", f'pylink() {{ {python} -m pylink "$@"; }}; {command}'],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert prints(shown, done.stdout), f"{command}\n{done.stdout}"


def test_there_are_commands_on_the_guide() -> None:
    assert len(shown_on_the_guide()) > 6
