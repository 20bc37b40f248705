"""docs/fleet.md shows what its commands print. PYLINK_WRITE_DOCS=1 writes it anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import pylink
from pylink.fleet.columns import FILES, OBJECTS
from pylink.fleet.questions import COMPARISONS, QUESTIONS

for name in ("pyarrow", "duckdb", "matplotlib"):
    pytest.importorskip(name, reason=f"{name} is not installed")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "fleet.md"
REFERENCE = ROOT / "docs" / "fleet-index.md"
SESSION = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def run(command: str, folder: Path) -> str:
    """What a command prints; a program of its own for each."""
    shell = f'pylink() {{ {shlex.quote(sys.executable)} -m pylink "$@"; }}; {command}'
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(ROOT / "demo")
    page = PAGE.read_text(encoding="utf-8")
    sessions = 0

    def anew(block: re.Match[str]) -> str:
        nonlocal sessions
        sessions += 1
        shown = ""
        # A command goes on while its lines end in a backslash.
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block[1], re.MULTILINE):
            printed = run(command, tmp_path)
            shown += f"$ {command}\n" + (f"{printed}\n" if printed else "")
        return f"```console\n{shown}```\n"

    made = SESSION.sub(anew, page)
    if os.environ.get("PYLINK_WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == page
    assert sessions >= 4
    assert (tmp_path / "templates.svg").stat().st_size > 1000


def test_the_pages_name_all_questions_and_columns() -> None:
    page = PAGE.read_text(encoding="utf-8") + REFERENCE.read_text(encoding="utf-8")
    tables = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = {word for line in tables for word in re.findall(r"`(\w+)`", line)}
    assert set(QUESTIONS) <= named
    for what in COMPARISONS:
        assert f"`{what}`" in page
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for columns, table in ((FILES, "files"), (OBJECTS, "objects")):
        hidden = {"mtime", "ctime", "inode", "name", "target"}
        missing = [
            column
            for column in columns
            if column not in hidden and f"`{column}`" not in rows[table]
        ]
        assert missing == []
