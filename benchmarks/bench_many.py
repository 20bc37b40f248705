"""`pylink.link_many` beside a pool of processes, for programs that share most of their inputs.

The processes of the pool call `pylink.link`. Both get the same paths and one worker for each core,
in the same round; both make the same images, which the pool sends back. Each round starts a new
pool, as a build must. Objects contain code for several architectures, compressed as nvcc does it by
default.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import pytest
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from pytest_benchmark.fixture import BenchmarkFixture

import pylink
from benchmarks import inputs
from benchmarks.group import MODULES

ARCHS = ("80", "90", "100", "120")
TARGET = "sm_90"
SIZE = "15KB"
JOBS = 64
# Number of objects that all jobs share; the goal, the pool's time divided by that of `link_many`;
# number of rounds.
CASES = [(20, 1.5, 5), (100, 1.5, 3)]


def host_objects(count: int) -> list[Path]:
    """Return the paths of `count` host objects with compressed code; missing ones are made."""
    sets = [inputs.cubins(arch, SIZE, count) for arch in ARCHS]
    folder = sets[0][0].parent / f"compressed-{'-'.join(ARCHS)}"
    folder.mkdir(exist_ok=True)
    paths = []
    for number, name in enumerate(sets[0][1]):
        paths.append(folder / f"{name.removesuffix('.cubin')}.o")
        if paths[-1].is_file():
            continue
        entries = [
            entry((place / names[number]).read_bytes(), int(arch), mode="zstd")
            for arch, (place, names) in zip(ARCHS, sets, strict=True)
        ]
        ids = ("__nv_module_id", f"_{number:08x}_5_{paths[-1].stem}_cu\0".encode())
        partial = paths[-1].with_suffix(f".{os.getpid()}")
        partial.write_bytes(host_object([("__nv_relfatbin", container(*entries)), SEGMENT, ids]))
        os.replace(partial, paths[-1])
    return paths


def link_alone(files: list[Path]) -> bytes:
    """Link one program in a process of the pool."""
    return pylink.link(files, arch=TARGET).image


@pytest.mark.parametrize(("shared", "goal", "rounds"), CASES)
def test_bench_many(
    benchmark: BenchmarkFixture,
    capsys: pytest.CaptureFixture[str],
    shared: int,
    goal: float,
    rounds: int,
) -> None:
    groups = 16
    files = host_objects(shared + groups * MODULES)
    common, distinct = files[:shared], files[shared:]
    programs = [
        common + distinct[MODULES * (job % groups) : MODULES * (job % groups + 1)]
        for job in range(JOBS)
    ]
    workers = len(os.sched_getaffinity(0))
    seconds: list[tuple[float, float]] = []

    def turn() -> None:
        """Link all programs in one call and in a pool of processes, and compare the cubins."""
        start = time.perf_counter()
        many = pylink.link_many([pylink.LinkJob(program, arch=TARGET) for program in programs])
        between = time.perf_counter()
        with ProcessPoolExecutor(workers) as pool:
            alone = list(pool.map(link_alone, programs))
        seconds.append((between - start, time.perf_counter() - between))
        assert [result.image for result in many if isinstance(result, pylink.LinkResult)] == alone

    benchmark.group = f"{JOBS} links of {shared} objects and {MODULES} of their own"
    benchmark.pedantic(turn, rounds=rounds, warmup_rounds=1)
    measured = seconds[1:] or seconds
    ratio = median(pool / many for many, pool in measured)
    with capsys.disabled():
        print(f"\n{JOBS} links, {shared} shared objects: seconds of link_many and of the pool")
        print("".join(f"  {many:.3f} {pool:.3f}\n" for many, pool in measured), end="")
        print(f"  link_many: {ratio:.1f} times as fast as {workers} processes (goal: {goal:g})")
