"""Examples of docs/diagnostics.md print what they show, and the corrected commands link."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin

from pylink.command.cli import main
from pylink.diagnostics.examples import EXAMPLES
from pylink.diagnostics.kinds import KINDS


def run(command: str) -> int:
    return main(shlex.split(command), tool="pylink")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the page describes, in the working directory."""
    monkeypatch.chdir(tmp_path)
    program, library = Cubin(), Cubin()
    program.call(program.function("main", kernel=True), program.external("scale"))
    library.function("scale")
    Path("main.cubin").write_bytes(program.build())
    for name in ("scale.cubin", "other.cubin"):
        Path(name).write_bytes(library.build())
    Path("empty.cubin").touch()
    Path("notes.txt").write_text("Remember to link scale.cubin with each of the programs.\n")
    assert run("-arch=sm_80 main.cubin scale.cubin -o out.cubin") == 0


@pytest.mark.parametrize("kind", EXAMPLES)
def test_examples_print_what_they_show(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES[kind]
    assert run(example.command) != 0
    assert capfd.readouterr() == ("", f"{example.output}\n")
    message = re.sub(r"\\\{[a-z]+\\\}", ".*", re.escape(KINDS[kind][2]))
    assert re.search(f": {message}$", example.output, re.MULTILINE)
    if example.correct:
        assert run(example.correct) == 0
        assert capfd.readouterr().err == ""
