"""What docs/start.md tells a newcomer to type works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.clients import needs_cmake

from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^## (.*?)$|^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(section: str, language: str) -> list[str]:
    """The texts of a language in a section of the page."""
    found: list[str] = []
    heading = ""
    for title, kind, text in BLOCK.findall(TEXT):
        heading = title or heading
        if not title and heading == section and kind == language:
            found.append(text)
    assert found, (section, language)
    return found


def run(script: str, folder: Path) -> None:
    """Commands of the page, with the compiler and this pylink in PATH, and the toolkit's place."""
    tools = f"{oracle.toolchain().bin}:{Path(sys.executable).parent}"
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    script = script.replace("/usr/local/cuda", str(oracle.toolchain().bin.parent))
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the first link was made."""
    folder = tmp_path_factory.mktemp("start")
    for text in blocks("First link", "cuda"):
        name = text.partition("\n")[0].removeprefix("// ")
        (folder / name).write_text(text)
    for script in blocks("First link", "sh"):
        run(script, folder)
    return folder


def test_first_link(program: Path) -> None:
    names = Image((program / "program.cubin").read_bytes()).symbols
    assert {"_Z7squaresPi", "_Z6squarei"} <= set(names)
    assert "_Z6squarei" in (program / "program.map").read_text()


def test_the_message_of_a_missing_file(program: Path) -> None:
    command = [sys.executable, "-m", "pylink", "-arch=sm_90", "main.cubin", "-o", "none.cubin"]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, check=False)
    assert [done.stderr] == blocks("First link", "")


def test_with_nvcc(program: Path) -> None:
    (program / "host.cu").write_text("int main() { return 0; }\n")
    (script,) = blocks("With nvcc", "sh")
    run(script, program)
    assert (program / "program").is_file()


@needs_cmake
def test_with_cmake(program: Path) -> None:
    if not (program / "toolkit").exists():
        run(blocks("With nvcc", "sh")[0].partition("\n")[0], program)
    if not (program / "examples").exists():
        (program / "examples").symlink_to(ROOT / "examples")
    (script,) = blocks("With CMake", "sh")
    run(script, program)


def test_from_python(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program / "program.cubin").unlink()
    monkeypatch.chdir(program)
    (text,) = blocks("From Python", "python")
    exec(compile(text, "start.md", "exec"), {})
    assert (program / "program.cubin").is_file()
