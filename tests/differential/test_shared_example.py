"""The build in examples/shared: CMake, two shared libraries, and a program with their code."""

from __future__ import annotations

from pathlib import Path

from helpers import oracle
from helpers.clients import needs_cmake
from helpers.containers import split
from helpers.host_build import HostBuild, Log
from helpers.hostlink import contents
from helpers.linked import functions

from pylink.bench.contenders import this_program
from pylink.devicelink.command_cmakedir import CMAKE_DIRECTORY

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
        build.run(
            *("cmake", "-G", "Ninja", "-S", EXAMPLES / "shared", "-B", folder),
            *(f"-Dpylink_DIR={CMAKE_DIRECTORY}", f"-DPYLINK_EXECUTABLE={this_program()}"),
            *(f"-DCMAKE_CUDA_COMPILER={build.nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=90"),
            f"-DBUILD_SHARED_LIBS={kind}",
        )
        build.run("cmake", "--build", folder)
        step = contents(folder, "CMakeFiles/terrain.dir/cmake_device_link.o", ".nv_fatbin")
        images[kind] = functions(split(step)[0][1])
        log = Log(build.run(folder / "terrain"))
        assert not log.lost_names
        assert len(log.used) == 3
        assert log.images == 1
    assert images["ON"] == images["OFF"]
    assert (tmp_path / "ON" / "libhills.so").exists()
    assert (tmp_path / "OFF" / "libhills.a").exists()
