"""Causes of failures that nvlink does not name, through the nvcc of an overlay and in a pipe.

What is printed without the lines of `pylink note` is what nvcc with nvlink prints, to the byte.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import oracle

from pylink.command.overlay import make_overlay

pytestmark = oracle.needs_oracle

NOTE = "pylink note    : "


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nvcc of an overlay over the toolkit of the oracle."""
    folder = tmp_path_factory.mktemp("overlay") / "cuda"
    make_overlay(str(folder), str(Path(oracle.toolchain().tool("nvcc")).parents[1]))
    return folder / "bin" / "nvcc"


@dataclass(frozen=True)
class Printed:
    """What a program printed to pipes, and its status."""

    code: int
    lines: list[str]
    notes: list[str]


def build(folder: Path, *options: str, arch: str = "sm_90", **sources: str) -> None:
    """Objects of CUDA sources, by name."""
    for name, text in sources.items():
        (folder / f"{name}.cu").write_text(text)
    words = [oracle.toolchain().tool("nvcc"), f"-arch={arch}", "-dc", *options]
    oracle.run([*words, *(f"{name}.cu" for name in sources)], folder)


def printed(folder: Path, words: Sequence[str]) -> Printed:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    notes = [line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)]
    return Printed(done.returncode, [line for line in lines if not line.startswith(NOTE)], notes)


def both(folder: Path, overlay: Path, *words: str, arch: str = "sm_90") -> Printed:
    """What the nvcc of the overlay prints, which but for notes is what the real one does."""
    given = [f"-arch={arch}", *words, "-o", "made"]
    theirs = printed(folder, [oracle.toolchain().tool("nvcc"), *given])
    ours = printed(folder, [str(overlay), *given])
    assert (ours.code, ours.lines) == (theirs.code, theirs.lines)
    assert theirs.notes == []
    return ours


HOSTED = """
__global__ void used(int *p) { *p = 1; }
__global__ void lost(int *p) { *p = 2; }
template<typename T> __global__ void made(T *p) { *p = 3; }
template __global__ void made<int>(int *);
int main() { used<<<1, 1>>>(nullptr); }
"""


USER = "__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }"


def test_libraries_that_are_skipped_say_what_they_are(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a="__global__ void k() {}")
    (tmp_path / "x.txt").write_text("text\n")
    arm = bytearray((tmp_path / "a.o").read_bytes())
    arm[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "arm.o").write_bytes(arm)
    for name, members in (("arm", ["arm.o"]), ("text", ["x.txt", "a.o"]), ("rt", [])):
        oracle.run(["ar", "crD", f"lib{name}.a", *members], tmp_path)
    for library, note in (
        ("arm", "it contains objects for AArch64; the host of this link is x86-64 (-cpu-arch)"),
        ("text", "nvlink looks at no members from 'x.txt' on, which is not an object"),
        ("rt", "it is an archive without members"),
    ):
        said = both(tmp_path, overlay, "-dlink", "a.o", "-L.", f"-l{library}")
        assert said.code == 0
        assert said.lines == [
            f"nvlink warning : Skipping incompatible './lib{library}.a' when searching for "
            f"-l{library}"
        ]
        assert said.notes == [note]


def test_kernels_that_no_host_code_names(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=HOSTED)
    said = both(tmp_path, overlay, "-dlink", "-cubin", "a.o")
    assert (said.code, said.lines) == (0, [])
    assert said.notes[0] == (
        "Kernels removed because no host code names them: 2 (first: '_Z4madeIiEvPT_'); use "
        "--ignore-host-info to keep all kernels"
    )
    assert "a.o: .text._Z4lostPi+0x0: '_Z4lostPi' is defined here" in said.notes
    # What registers the output with the program launches kernels by their names.
    assert both(tmp_path, overlay, "-dlink", "a.o").notes == []
    kept = both(tmp_path, overlay, "-dlink", "-cubin", "a.o", "-Xnvlink", "--ignore-host-info")
    assert kept.notes == []
