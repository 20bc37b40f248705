"""The build in examples/shared: CMake, two shared libraries, and a program with their code."""

from __future__ import annotations

import sys
from pathlib import Path

from helpers import oracle
from helpers.clients import needs_cmake
from helpers.host_build import HostBuild, Log
from helpers.linked import functions
from helpers.toolkit import start_nvlink

# An overlay's linker that keeps what it makes, in order.
KEEPING = """\
#!{python}
import os, shutil, sys
from pylink.command.cli import main

status = main(sys.argv[1:], tool="nvlink")
if status == 0:
    made = sys.argv[sys.argv.index("-o") + 1]
    shutil.copy(made, os.path.join({kept!r}, f"{{len(os.listdir({kept!r})):04}}"))
sys.exit(status)
"""

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = oracle.needs_oracle


@needs_cmake
def test_shared(tmp_path: Path) -> None:
    """The program with shared libraries has the code of that with static ones, and finds it.

    CMake names the libraries in another order, so the images are not equal byte for byte.
    """
    build = HostBuild(tmp_path)
    images = {}
    for kind in ("ON", "OFF"):
        folder = tmp_path / kind
        kept = keep_images(build, folder)
        build.run(
            *("cmake", "-G", "Ninja", "-S", EXAMPLES / "shared", "-B", folder),
            *(f"-DCMAKE_CUDA_COMPILER={build.nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=90"),
            f"-DBUILD_SHARED_LIBS={kind}",
        )
        build.run("cmake", "--build", folder)
        images[kind] = functions(max(kept.iterdir()).read_bytes())
        log = Log(build.run(folder / "terrain"))
        assert not log.lost
        assert len(log.used) == 3
        assert log.images == 1
    assert images["ON"] == images["OFF"]
    assert (tmp_path / "ON" / "libhills.so").exists()
    assert (tmp_path / "OFF" / "libhills.a").exists()


def keep_images(build: HostBuild, folder: Path) -> Path:
    """Have the overlay's linker keep a copy of all that it links; the folder of the copies."""
    kept = folder.with_suffix(".images")
    kept.mkdir()
    start_nvlink(build.root)
    linker = build.root / "bin" / "nvlink"
    linker.unlink()
    linker.write_text(KEEPING.format(python=sys.executable, kept=str(kept)))
    linker.chmod(0o755)
    return kept
