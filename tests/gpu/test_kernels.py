"""Kernels of images that pylink linked compute what those of nvlink's images compute.

Everything needed is in the tree: cubins for several architectures and nvlink's images of them. Only
those for the GPU at hand run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from differential.cases import load
from gpu.device import FLOAT, INT, POINTER, Gpu, needs_gpu
from helpers.linked import forces, runnable

import pylink
from pylink.command.cli import main

pytestmark = needs_gpu

TESTS = Path(__file__).parents[1]
DEMO = TESTS.parent / "demo"
GOLDEN = sorted(path.parent for path in (TESTS / "golden").glob("*/*/link.json"))

# Small numbers, so that indices and recursion depths taken from them are small too.
BUFFER = b"".join((number % 7).to_bytes(4, "little") for number in range(1024))


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu()


def results(gpu: Gpu, image: bytes, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """What each kernel leaves in a buffer, run one after another in one module."""
    module = gpu.load(image)
    for name in names:
        memory = gpu.allocate(BUFFER)
        gpu.launch(module, name, ((memory, POINTER),), shared=4096)
        yield name, gpu.read(memory, len(BUFFER))
        gpu.free(memory)
    gpu.unload(module)


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_golden_kernels(folder: Path, gpu: Gpu, tmp_path: Path) -> None:
    case = load(folder)
    if not gpu.runs(case.arch):
        pytest.skip(f"this GPU is not sm_{case.arch}")
    for expected in case.links:
        theirs = expected.image_bytes(folder)
        if expected.code or theirs is None or "-r" in expected.link.options:
            continue
        output = tmp_path / expected.variant
        inputs = [str(folder / name) for name in expected.link.inputs]
        words = [f"-arch=sm_{expected.link.arch}", *expected.link.options, *inputs]
        assert main([*words, "-o", str(output)]) == 0
        names = runnable(theirs)
        ours = dict(results(gpu, output.read_bytes(), names))
        assert ours == dict(results(gpu, theirs, names)), expected.variant


def simulate(gpu: Gpu, image: bytes) -> bytes:
    """Particles and fields as every force of the demo in turn leaves them."""
    count, blocks, threads = 256, 2, 128
    size = (count, INT)
    fields = forces(image)
    module = gpu.load(image)
    now, following = gpu.allocate(bytes(16 * count)), gpu.allocate(bytes(16 * count))
    energy = gpu.allocate(bytes(4 * blocks))
    calls: list[tuple[str, tuple[tuple[Any, Any], ...]]] = [
        ("_Z5startP8Particleij", ((now, POINTER), size, (7, INT)))
    ]
    for kind, field in enumerate(fields):
        moved = ((now, POINTER), (following, POINTER), size, (kind, INT), (1e-3, FLOAT))
        calls.append(("_Z4stepPK8ParticlePS_iif", moved))
        calls.append((field, ((following, POINTER), (energy, POINTER), size)))
        now, following = following, now
    found = b""
    for kernel, arguments in calls:
        gpu.launch(module, kernel, arguments, blocks=blocks, threads=threads)
        found += gpu.read(now, 16 * count) + gpu.read(following, 16 * count)
        found += gpu.read(energy, 4 * blocks)
    for memory in (now, following, energy):
        gpu.free(memory)
    gpu.unload(module)
    return found


@pytest.mark.parametrize("arch", ["90a", "100"])
def test_demo(arch: str, gpu: Gpu) -> None:
    if not gpu.runs(arch):
        pytest.skip(f"this GPU is not sm_{arch}")
    cubins = sorted((DEMO / "cubins" / f"sm_{arch}").glob("*.cubin"))
    ours = simulate(gpu, pylink.link(cubins, arch=f"sm_{arch}").image)
    theirs = simulate(gpu, (DEMO / "linked" / f"sm_{arch}.cubin").read_bytes())
    assert any(ours)
    assert ours == theirs
