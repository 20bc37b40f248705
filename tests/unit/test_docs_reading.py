"""docs/reading-diagnostics.md shows what its commands print. PYLINK_WRITE_DOCS=1 writes it anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers import oracle
from helpers.sessions import FENCED

import pylink

PAGE = Path(__file__).parents[2] / "docs" / "reading-diagnostics.md"
HOME = "/home/you/app"  # where the page says it is
NEEDED = ("elftools", "sarif")


def run(command: str, folder: Path) -> str:
    """What a command prints, with the folder's name as the page has it."""
    bin = oracle.toolchain().bin
    python = shlex.quote(sys.executable)
    functions = (
        f'pylink() {{ {python} -m pylink "$@"; }}; python3() {{ {python} "$@"; }};'
        f'sarif() {{ {python} -m sarif "$@"; }};'
    )
    environment = {
        **os.environ,
        "PATH": f"{bin}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(pylink.__file__).parents[1]),
    }
    done = subprocess.run(
        ["bash", "-c", f"{functions} {command}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout.replace(str(folder), HOME)


@oracle.needs_oracle
def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    for name in NEEDED:
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path.resolve()
    page = PAGE.read_text(encoding="utf-8")

    def anew(block: re.Match[str]) -> str:
        kind, title, text = block.groups()
        if title:
            (folder / title).write_text(text)
            return block[0]
        commands = [line for line in text.splitlines() if line.startswith("$ ")]
        shown = "".join(f"{command}\n{run(command[2:], folder)}" for command in commands)
        return f"```{kind}\n{shown.rstrip()}\n```"

    made = FENCED.sub(anew, page)
    if os.environ.get("PYLINK_WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == page


def test_the_readme_shows_the_beginning_of_the_message() -> None:
    page = PAGE.read_text(encoding="utf-8").replace(f"{HOME}/", "")
    readme = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^    app\.cu\(5\): error: (?:.*\n)+?(?=\n)", readme, re.MULTILINE)
    assert shown
    assert textwrap.dedent(shown[0]) in page
