"""What pages show of a shell with nvcc: every command prints what stands below it.

The sources are those of docs/start.md, which has a test of its own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.sessions import blocks, commands, needs_compiler, prints, sessions

from pylink.command.overlay import make_overlay

pytestmark = oracle.needs_oracle

ROOT = Path(__file__).parents[2]
START = "docs/start.md"
OWN_TEST = {START, "docs/reading-diagnostics.md"}
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}
# Where installers put a toolkit and its libraries.
TOOLKIT = "/usr/local/cuda"


SHOWN = [page for page in TEXTS.keys() - OWN_TEST if needs_compiler(TEXTS[page])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The sources of docs/start.md, and an overlay."""
    for language, name, text in blocks(TEXTS[START]):
        if language == "cuda":
            (tmp_path / name).write_text(text)
    make_overlay(str(tmp_path / "toolkit"), str(oracle.toolchain().bin.parent))
    return tmp_path


def test_there_are_sessions_and_sources(folder: Path) -> None:
    assert "docs/device-link.md" in SHOWN
    assert {path.name for path in folder.glob("*.cu")} == {"main.cu", "square.cu", "host.cu"}


@pytest.mark.parametrize("page", sorted(SHOWN))
def test_commands_print_what_pages_show(page: str, folder: Path) -> None:
    toolkit = str(oracle.toolchain().bin.parent)
    path = f"{Path(sys.executable).parent}:{oracle.toolchain().bin}:{os.environ['PATH']}"
    for session in sessions(TEXTS[page]):
        for command, shown in commands(session):
            script = command.replace(f"{TOOLKIT}/lib64", shlex.quote(f"{toolkit}/lib"))
            done = subprocess.run(
                ["bash", "-c", script.replace(TOOLKIT, toolkit)],
                cwd=folder,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed = done.stdout.replace(toolkit, TOOLKIT).replace(str(folder), "/home/you")
            assert prints(shown, printed), f"{page}: {command}\n{printed}"
