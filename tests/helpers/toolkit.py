"""A CUDA toolkit whose device linker does each link twice: with pylink and with nvlink."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.command.overlay import OverlayError, make_overlay

# A script in place of the overlay's linker. Each link writes two numbered files.
BOTH = """\
#!{python}
import os, shutil, subprocess, sys

words = sys.argv[1:]
at = words.index("-o") + 1
status = subprocess.call([{linker!r}, *words])
if status == 0:
    number = len(os.listdir({kept!r})) // 2
    shutil.copy(words[at], os.path.join({kept!r}, f"{{number}}.pylink.cubin"))
    words[at] = os.path.join({kept!r}, f"{{number}}.nvlink.cubin")
    subprocess.check_call([{nvlink!r}, *words])
sys.exit(status)
"""


def start_nvlink(root: Path) -> None:
    """Change an overlay so that its nvcc starts nvlink for all links, as a toolkit's nvcc does."""
    nvcc, real = root / "bin" / "nvcc", root / "bin" / "toolkit-nvcc"
    if real.is_symlink():
        nvcc.unlink()
        nvcc.symlink_to(real.readlink())


class Toolkit:
    """An overlay in `root`; `outputs` has the outputs of its links, and those of nvlink."""

    def __init__(self, place: Path) -> None:
        self.root = place / "toolkit"
        self.outputs = place / "kept"
        self.outputs.mkdir()
        real = oracle.toolchain()
        try:
            make_overlay(str(self.root), str(real.bin.parent))
        except OverlayError as error:
            if oracle.REQUIRED:
                raise
            pytest.skip(str(error))
        linker = self.root / "bin" / "nvlink"
        linker.rename(place / "nvlink")
        start_nvlink(self.root)
        linker.write_text(
            BOTH.format(
                python=sys.executable,
                linker=str(place / "nvlink"),
                kept=str(self.outputs),
                nvlink=real.tool("nvlink"),
            )
        )
        linker.chmod(0o755)

    def check(self) -> int:
        """Assert that all outputs equal nvlink's, and return the number of links."""
        outputs = sorted(self.outputs.glob("*.pylink.cubin"))
        for file in outputs:
            expected = file.with_name(file.name.replace("pylink", "nvlink"))
            assert compare(file.read_bytes(), expected.read_bytes()) == [], file.name
        return len(outputs)


def run(*command: str | Path, **variables: str) -> None:
    """Run a command of a build, which must succeed without a warning."""
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
