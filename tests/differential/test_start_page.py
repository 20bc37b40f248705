"""docs/start.md, followed to the letter by somebody who has the wheel and a toolkit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers import oracle, wheel

pytestmark = oracle.needs_oracle

PAGE = (wheel.ROOT / "docs" / "start.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w.]+)`:\s*$")
# Where installers put a toolkit, and what the test has done before.
TOOLKIT, INSTALL = "/usr/local/cuda", "pip install pylink-cuda\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.install(tmp_path_factory.mktemp("wheel"))


def test_every_command_works_where_there_is_no_checkout(programs: Path, tmp_path: Path) -> None:
    nvcc = Path(oracle.toolchain().tool("nvcc"))
    toolkit = str(nvcc.parents[1])
    variables = wheel.environment(programs, str(nvcc.parent))
    printed, files, commands = "", [], 0
    for block in BLOCK.finditer(PAGE):
        language, text = block.groups()
        named = FILE.search(PAGE[: block.start()])
        if language in ("cuda", "cmake"):
            assert named is not None
            files.append(named[1])
            (tmp_path / named[1]).write_text(text)
        elif language == "sh":
            commands += text.count("\n")
            assert text.count(TOOLKIT) <= 1
            script = text.replace(INSTALL, "").replace(TOOLKIT, toolkit)
            printed += run(["sh", "-e", "-c", script], tmp_path, variables)
        elif language == "python":
            (tmp_path / "program.cubin").unlink()
            run(["python", "-c", text], tmp_path, variables)
            assert (tmp_path / "program.cubin").stat().st_size
        else:
            assert text.strip() in printed
    assert files == ["square.cu", "main.cu", "host.cu", "CMakeLists.txt"]
    assert commands == 13
    assert (tmp_path / "build" / "squares").exists()
    assert "no GPU" in printed or "0 1 4 9" in printed


def run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
