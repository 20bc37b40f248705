"""The example with shared libraries computes on a GPU what it does with static ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from gpu.device import Gpu, needs_gpu
from helpers import oracle

from pylink.bench.contenders import this_program
from pylink.command.overlay import make_overlay
from pylink.devicelink.command_cmakedir import CMAKE_DIRECTORY

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared"

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(oracle.find() is None, reason="needs nvcc: pip install '.[oracle]'"),
    pytest.mark.skipif(
        not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja"
    ),
]


def test_results_are_those_of_the_static_build(tmp_path: Path) -> None:
    gpu = Gpu()
    toolkit = tmp_path / "toolkit"
    make_overlay(str(toolkit), str(oracle.toolchain().bin.parent))
    printed = {}
    for shared in ("ON", "OFF"):
        build = tmp_path / shared
        configure = [
            *("cmake", "-G", "Ninja", "-S", str(EXAMPLE), "-B", str(build)),
            f"-DCMAKE_CUDA_COMPILER={toolkit}/bin/nvcc",
            f"-DCMAKE_CUDA_ARCHITECTURES={gpu.major}{gpu.minor}",
            f"-DBUILD_SHARED_LIBS={shared}",
            *(f"-Dpylink_DIR={CMAKE_DIRECTORY}", f"-DPYLINK_EXECUTABLE={this_program()}"),
        ]
        for command in (configure, ["cmake", "--build", str(build)], [str(build / "terrain")]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        printed[shared] = done.stdout
    assert printed["ON"].startswith("no error: ")
    assert printed["ON"] == printed["OFF"]
