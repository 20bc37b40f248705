"""The bytes of a link follow from its inputs and options, from nothing around it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import demo
from helpers.cubin_builder import Cubin

import pylink

LARGE = 1 << 20  # bytes of code in an input: eight are more than one thread copies


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Cubins whose code differs in every byte, so that a misplaced one shows."""
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(5)
    for number in range(8):
        cubin = Cubin()
        cubin.function(f"kernel{number}", kernel=True, code=rng.randbytes(LARGE))
        (folder / f"{number}.cubin").write_bytes(cubin.build())
    return sorted(folder.iterdir())


def link_in_process(
    inputs: list[Path], arch: str, folder: Path, environment: dict[str, str]
) -> bytes:
    """The output of the command line started in `folder` with little but `environment`."""
    environment = {"PYTHONPATH": str(Path(pylink.__file__).parents[1]), **environment}
    words = [f"-arch={arch}", *map(str, inputs), "-o", "out.cubin"]
    command = [sys.executable, "-m", "pylink", *words]
    folder.mkdir(parents=True)
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return (folder / "out.cubin").read_bytes()


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100"])
def test_environment_and_directory_do_not_show(arch: str, tmp_path: Path) -> None:
    surroundings = [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
        {"PYTHONHASHSEED": "4294967295", "LC_ALL": "C.UTF-8", "HOME": "/", "PWD": "/nowhere"},
        {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "0"},
    ]
    images = {
        link_in_process(
            demo.cubins(arch), arch, tmp_path / f"place {number}" / ("deep/" * number), around
        )
        for number, around in enumerate(surroundings)
    }
    assert images == {bytes(pylink.link(demo.cubins(arch), arch=arch).image)}


def test_links_of_different_archs_and_sizes_run_side_by_side(large: list[Path]) -> None:
    jobs = [("sm_90a", demo.cubins("sm_90a")), ("sm_80", large), ("sm_100", demo.cubins("sm_100"))]
    alone = [bytes(pylink.link(inputs, arch=arch).image) for arch, inputs in jobs]
    with ThreadPoolExecutor(6) as pool:
        images = list(pool.map(lambda job: pylink.link(job[1], arch=job[0]).image, jobs * 6))
    assert [bytes(image) for image in images] == alone * 6


def test_number_of_cores_does_not_show(large: list[Path]) -> None:
    cores = os.sched_getaffinity(0)
    image = bytes(pylink.link(large, arch="sm_80").image)
    os.sched_setaffinity(0, {min(cores)})
    try:
        pinned = bytes(pylink.link(large, arch="sm_80").image)
    finally:
        os.sched_setaffinity(0, cores)
    assert image == pinned
    assert all(path.read_bytes()[1 << 12 : LARGE] in image for path in large)
