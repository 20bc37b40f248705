"""Notes in an overlay: everything else is what nvlink prints, to the byte, in the same order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle

from pylink.command.overlay import launcher_text, make_overlay

pytestmark = oracle.needs_oracle

USER = "__device__ int f(int); __device__ int v = 1; __global__ void k(int *p) { *p = f(*p) + v; }"
TWIN = "__device__ int v = 2; __global__ void g(int *p) { *p = v; }"

CASES = {
    "undefined": (["user.cubin"], "'_Z1fi' is f(int)"),
    "undefined, -Werror, -w": (["-Werror", "-w", "user.cubin"], "'_Z1fi' is f(int)"),
    "two definitions": (["user.cubin", "twin.cubin"], "'v' is first defined here"),
    "another architecture": (["-arch=sm_80", "user.cubin"], ""),
    "no such file": (["absent.cubin"], ""),
    "unknown option": (["--verbos", "user.cubin"], "'--verbos': did you mean '--verbose'?"),
    "unknown value": (["-arch=sm90", "user.cubin"], "'sm90': did you mean 'sm_90'?"),
    "no target": (["twin.cubin"], ""),
    "nothing wrong": (["-arch=sm_90", "twin.cubin"], None),
    "-v": (["-arch=sm_90", "-v", "twin.cubin"], None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    for name, text in (("user", USER), ("twin", TWIN)):
        flags = ["-lineinfo"]
        (folder / f"{name}.cubin").write_bytes(oracle.compile(text, "90", flags, name=f"{name}.cu"))
    for name, notes in (("overlay", True), ("plain", False)):
        make_overlay(str(folder / name), None, notes=notes)
        linker = folder / name / "bin" / "nvlink"
        if not linker.is_symlink():
            linker.write_text(launcher_text(sys.executable))
    return folder


def run(folder: Path, program: str, *words: str, **variables: str) -> tuple[int, str, list[str]]:
    """Exit status, what is printed but notes, and the notes."""
    given = list(words)
    if not any(word.startswith("-arch") for word in given) and "twin.cubin" not in given[:1]:
        given.insert(0, "-arch=sm_90")
    done = subprocess.run(
        [program, *given, "-o", "out.cubin"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stdout + done.stderr).splitlines(keepends=True)
    notes = [line for line in lines if line.startswith("pylink note    : ")]
    return done.returncode, "".join(line for line in lines if line not in notes), notes


@pytest.mark.parametrize("case", CASES)
def test_notes_follow_the_lines_of_nvlink(folder: Path, case: str) -> None:
    words, expected = CASES[case]
    real = run(folder, oracle.toolchain().tool("nvlink"), *words)
    ours = run(folder, str(folder / "overlay/bin/nvlink"), *words)
    if case == "-v":  # of which the tool note's size is a part
        real = (real[0], "", real[2])
        ours = (ours[0], "", ours[2])
    assert ours[:2] == real[:2]
    if expected is None:
        assert ours[2] == []
    else:
        assert any(expected in note for note in ours[2]) or not expected
    for notes, program in (("no", "overlay"), ("", "plain")):
        options = f"--notes={notes}" if notes else ""
        plain = run(folder, str(folder / f"{program}/bin/nvlink"), *words, PYLINK_OPTIONS=options)
        assert (plain[0], plain[2]) == (real[0], [])
    asked = run(folder, str(folder / "plain/bin/nvlink"), *words, PYLINK_OPTIONS="--notes=yes")
    assert (asked[0], asked[2]) == (ours[0], ours[2])


def test_notes_say_source_lines_and_what_to_do(folder: Path) -> None:
    _, _, notes = run(folder, str(folder / "overlay/bin/nvlink"), "user.cubin")
    assert notes[0].startswith("pylink note    : at ")
    assert notes[0].endswith("user.cu:1\n")


def test_the_rule_of_a_build_names_the_program(tmp_path: Path) -> None:
    """nvcc links into a temporary file, which no rule of make may have as its target."""
    (tmp_path / "a.cu").write_text("__global__ void k() {}\nint main() {}\n")
    nvcc = Path(oracle.toolchain().tool("nvcc"))
    make_overlay(str(tmp_path / "overlay"), str(nvcc.parents[1]))
    linker = "--depfile=program.d,--depfile-target=program"
    command = [str(tmp_path / "overlay/bin/nvcc"), "-arch=sm_90", "-rdc=true", "-c", "a.cu"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    command = [str(tmp_path / "overlay/bin/nvcc"), "-arch=sm_90", "-dlink", "a.o", "-o", "dlink.o"]
    subprocess.run([*command, "-Xnvlink", linker], cwd=tmp_path, check=True, capture_output=True)
    rule = (tmp_path / "program.d").read_text()
    assert rule.startswith("program: ")
    assert "a.o" in rule.splitlines()[0]


def test_the_device_link_step_of_an_overlay_has_notes(tmp_path: Path) -> None:
    """Builds by CMake link with `nvcc -dlink`, which the nvcc of an overlay does itself."""
    for name, text in (("user", USER), ("twin", TWIN)):
        (tmp_path / f"{name}.cu").write_text(text)
    nvcc = Path(oracle.toolchain().tool("nvcc"))
    make_overlay(str(tmp_path / "overlay"), str(nvcc.parents[1]))
    make_overlay(str(tmp_path / "plain"), str(nvcc.parents[1]), notes=False)
    command = [str(nvcc), "-arch=sm_90", "-dc", "-lineinfo", "user.cu", "twin.cu"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    said = {}
    for name, program, options in (
        ("nvcc", nvcc, ""),
        ("overlay", tmp_path / "overlay/bin/nvcc", ""),
        ("plain", tmp_path / "plain/bin/nvcc", ""),
        ("no", tmp_path / "overlay/bin/nvcc", "--notes=no"),
        ("yes", tmp_path / "plain/bin/nvcc", "--notes=yes"),
    ):
        words = ("-dlink", "user.o", "twin.o")
        said[name] = run(tmp_path, str(program), *words, PYLINK_OPTIONS=options)
    assert len({(status, text) for status, text, _ in said.values()}) == 1
    assert said["nvcc"][2] == said["plain"][2] == said["no"][2] == []
    assert said["overlay"][2] == said["yes"][2]
    assert any("'v' is first defined here" in note for note in said["overlay"][2])
