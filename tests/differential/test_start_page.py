"""docs/start.md, followed to the letter by somebody who has the wheel and a toolkit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator.launching import Run
from helpers import oracle, wheel
from helpers.sessions import blocks, commands, prints

pytestmark = oracle.needs_oracle

PAGE = (wheel.ROOT / "docs" / "start.md").read_text(encoding="utf-8")
# Where installers put a toolkit, and what the test has done before.
TOOLKIT, INSTALL = "/usr/local/cuda", "pip install pylink-cuda"
# The page says of these links that they fail.
STATUSES = {"pylink -arch=sm_90 main.cubin -o program.cubin --diagnostics_format=text": 255}
PROGRAMS = ("./program", "build/squares")


def test_every_command_works_where_there_is_no_checkout(programs: Path, tmp_path: Path) -> None:
    nvcc = Path(oracle.toolchain().tool("nvcc"))
    toolkit = str(nvcc.parents[1])
    variables = wheel.environment(programs, str(nvcc.parent))
    files, typed = [], []
    for language, title, text in blocks(PAGE):
        if language in ("cuda", "cmake"):
            files.append(title)
            (tmp_path / title).write_text(text)
        elif language == "python":
            (tmp_path / "program.cubin").unlink(missing_ok=True)
            assert run(["python", "-c", text], tmp_path, variables) == (0, "")
            assert (tmp_path / "program.cubin").stat().st_size
        else:
            assert language == "console"
            for command, shown in commands(text):
                typed.append(command)
                if command == INSTALL:
                    continue
                script = command.replace(TOOLKIT, toolkit)
                status, printed = run(["sh", "-c", script], tmp_path, variables)
                if command in PROGRAMS and status == 1:
                    assert printed.startswith("error: ")  # no driver, or another GPU
                    continue
                assert status == STATUSES.get(command, 0), printed
                assert prints(shown, printed.replace(toolkit, TOOLKIT)), printed
    assert files == ["square.cu", "main.cu", "host.cu", "CMakeLists.txt"]
    assert len(typed) == 14
    assert {*STATUSES, *PROGRAMS} <= set(typed)
    image = (tmp_path / "program.cubin").read_bytes()
    squares = Run(image, "90", "_Z7squaresPi", [0, 1, 2, 3], block=(4, 1, 1)).words
    assert PAGE.count(f"\n{' '.join(map(str, squares))}\n") == len(PROGRAMS)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.install(tmp_path_factory.mktemp("wheel"))


def run(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """The status of a command, and what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
