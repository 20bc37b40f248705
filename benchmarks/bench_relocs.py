"""Simple relocations in data that stays in cache: the native kernel, numpy and plain Python.

The kernel also copies the data to the output, and patches it there.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from helpers.contents import Piece, place
from helpers.relocs_reference import PATCH, Patch, pack, patch_numpy, patch_reference
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.report import Report
from pylink._native import image as native_image
from pylink._native.image import Canvas
from pylink._native.tables import Patches

# The most frequent relocation types of code and initializers: whole pointers (R_CUDA_64), and the
# halves of one in two MOV instructions.
TYPES = (2, 56, 57)
STRIDE = 16  # bytes of an instruction


def random_patches(count: int) -> tuple[bytes, list[Patch]]:
    """Return random contents, and a patch for each instruction in them."""
    rng = random.Random(count)
    patches = [
        (STRIDE * number, rng.getrandbits(48), rng.choice(TYPES), 0, 0) for number in range(count)
    ]
    return rng.randbytes(STRIDE * count), patches


def kernel(image: bytes, table: Patches) -> tuple[bytes, Callable[[], object]]:
    """Return the buffer, and a function that patches it in native code."""
    placed, canvas = place([Piece(0, image)], len(image)), Canvas(len(image))
    return canvas.image, lambda: native_image.write_contents(canvas, placed, table)


def numpy(image: bytes, table: Patches) -> tuple[bytearray, Callable[[], object]]:
    """Return the buffer, and a function that patches it with numpy."""
    buffer = bytearray(image)
    return buffer, lambda: patch_numpy(buffer, table.data)


def python(image: bytes, table: Patches) -> tuple[bytearray, Callable[[], object]]:
    """Return the buffer, and a function that patches it in plain Python."""
    buffer = bytearray(image)
    rows: list[Patch] = list(PATCH.iter_unpack(table.data))
    return buffer, lambda: patch_reference(buffer, rows)


@pytest.mark.parametrize("implementation", [kernel, numpy, python])
@pytest.mark.parametrize("count", [1024, 4096, 16384])
def test_bench_patch(
    benchmark: BenchmarkFixture,
    report: Report,
    implementation: Callable[[bytes, Patches], tuple[bytes | bytearray, Callable[[], object]]],
    count: int,
) -> None:
    image, patches = random_patches(count)
    target, run = implementation(image, pack(patches))
    benchmark.group = f"{count} relocations"
    benchmark(run)
    expected = bytearray(image)
    patch_reference(expected, patches)
    assert target == expected
    if benchmark.stats is not None:  # None when benchmarks are disabled
        rate = count / benchmark.stats.stats.median
        report.rates[benchmark.group, implementation.__name__] = rate
