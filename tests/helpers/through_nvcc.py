"""Links through the nvcc of an overlay, into pipes, beside those through the toolkit's own nvcc."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle

from pylink.command.overlay import make_overlay

NOTE = "pylink note    : "


def overlay_nvcc(folder: Path) -> Path:
    """The nvcc of an overlay over the toolkit of the oracle."""
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
