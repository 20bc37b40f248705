"""The demo's link through cuda.core: with nvJitLink, and with pylink in its place.

Each runs in a process of its own, since a process can load only one libnvJitLink.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers import demo, oracle
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.report import Report

ROUNDS = 20
THREADS = 8

# A program that prints the milliseconds of the fastest link, and those of many links by several
# threads at once, divided by the number of links.
PROGRAM = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
standin, arch, rounds, threads, *paths = sys.argv[1:]
if standin == "yes":
    import pylink.jitlink
    pylink.jitlink.install()
from cuda.core import Linker, LinkerOptions, ObjectCode
codes = [ObjectCode.from_cubin(open(path, "rb").read()) for path in paths]
def link(_=0):
    start = time.perf_counter()
    Linker(*codes, options=LinkerOptions(arch=arch)).link("cubin")
    return time.perf_counter() - start
one = min(link() for _ in range(int(rounds)))
with ThreadPoolExecutor(int(threads)) as pool:
    start = time.perf_counter()
    list(pool.map(link, range(int(rounds) * int(threads))))
    several = (time.perf_counter() - start) / int(rounds) / int(threads)
print(1000 * one, 1000 * several)
"""


def measure(arch: str, *, standin: bool) -> tuple[float, float]:
    """Return the two times of PROGRAM, with pylink (`standin`) or with nvJitLink."""
    words = ["yes" if standin else "no", arch, str(ROUNDS), str(THREADS)]
    command = [sys.executable, "-c", PROGRAM, *words, *map(str, demo.cubins(arch))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    single, several = map(float, done.stdout.split())
    return single, several


@oracle.needs_oracle
@pytest.mark.parametrize("arch", demo.ARCHES)
def test_bench_jitlink(benchmark: BenchmarkFixture, report: Report, arch: str) -> None:
    nvjitlink_ms = measure(arch, standin=False)
    standin_ms: list[tuple[float, float]] = []
    benchmark.group = "13 cubins through cuda.core"
    benchmark.pedantic(lambda: standin_ms.append(measure(arch, standin=True)), rounds=3)
    if benchmark.stats is not None:
        single, several = (min(column) for column in zip(*standin_ms, strict=True))
        report.jitlink[arch] = (single, several, *nvjitlink_ms)
