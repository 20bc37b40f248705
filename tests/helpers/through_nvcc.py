"""Links by the nvcc of an overlay, whose output is a pipe, and by the toolkit's own nvcc."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle

from pylink.command.overlay import make_overlay

NOTE = "pylink note    : "


def overlay_nvcc(folder: Path) -> Path:
    """Make an overlay of NVIDIA's toolkit, and return its nvcc."""
    make_overlay(str(folder), str(Path(oracle.toolchain().tool("nvcc")).parents[1]))
    return folder / "bin" / "nvcc"


@dataclass(frozen=True)
class Printed:
    """The output of a program to pipes, and its status."""

    code: int
    lines: list[str]
    notes: list[str]


def build(folder: Path, *options: str, arch: str = "sm_90", **sources: str) -> None:
    """Compile CUDA sources, given by name, to objects."""
    for name, text in sources.items():
        (folder / f"{name}.cu").write_text(text)
    words = [oracle.toolchain().tool("nvcc"), f"-arch={arch}", "-dc", *options]
    oracle.run([*words, *(f"{name}.cu" for name in sources)], folder)


def output_of(folder: Path, words: Sequence[str]) -> Printed:
    """Run a program and return its output."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    notes = [line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)]
    return Printed(done.returncode, [line for line in lines if not line.startswith(NOTE)], notes)


def both(folder: Path, overlay: Path, *words: str, arch: str = "sm_90") -> Printed:
    """Assert that NVIDIA's nvcc and the overlay's print the same except for notes.

    Returns the output of the overlay's.
    """
    arguments = [f"-arch={arch}", *words, "-o", "made"]
    real_output = output_of(folder, [oracle.toolchain().tool("nvcc"), *arguments])
    overlay_output = output_of(folder, [str(overlay), *arguments])
    assert (overlay_output.code, overlay_output.lines) == (real_output.code, real_output.lines)
    assert real_output.notes == []
    return overlay_output
