"""How time and memory of a link grow up to 100,000 inputs, and inputs beyond 4 GiB in all."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from helpers import oracle
from pytest_benchmark.fixture import BenchmarkFixture

import pylink
from benchmarks import inputs
from benchmarks.report import Report
from pylink.bench.processes import Launcher

COUNTS = (100, 1000, 10000, 100000)
ROUNDS = {100: 15, 1000: 9, 10000: 3, 100000: 2}
BARE = 2  # inputs of a link whose memory is that of the interpreter

# Links `count` inputs some times, and says what the fastest took.
PROGRAM = """
import resource, sys
import pylink
arch, output, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = [f"g{number // 10:05}_m{number % 10}.cubin" for number in range(count)]
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
least = []
for _ in range(rounds):
    before = spent()
    pylink.link(names, arch=arch, output=output)
    least.append(spent() - before)
print(min(least))
"""


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_growth(
    benchmark: BenchmarkFixture,
    launcher: Launcher,
    report: Report,
    pytestconfig: pytest.Config,
    arch: str,
) -> None:
    """Tiny modules: what a link does for each input, section and symbol, and little copying."""
    counts = COUNTS if pytestconfig.getoption("--bench-large") else COUNTS[:-1]
    folder, _ = inputs.cubins(arch, "TINY", counts[-1])
    output = folder.parent / "linked" / f"{folder.name}.cubin"
    output.parent.mkdir(exist_ok=True)

    def measure(count: int, rounds: int) -> tuple[float, int]:
        argv = ["-c", PROGRAM, f"sm_{arch}", str(output), str(count), str(rounds)]
        run = launcher.run([sys.executable, *argv], folder)
        return float(run.output), run.rss

    def sweep() -> dict[int, tuple[float, int]]:
        return {count: measure(count, ROUNDS[count]) for count in counts}

    bare = measure(BARE, 1)[1]
    found = benchmark.pedantic(sweep, rounds=1)
    report.growth[arch] = {count: (seconds, rss - bare) for count, (seconds, rss) in found.items()}


# Modules and bytes between the header of a file and the rest: no disk space, but memory.
WIDE, HOLE = 80, 60 << 20


@oracle.needs_oracle
@pytest.mark.bench_large
def test_inputs_beyond_4_gib(
    benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every offset into the inputs has 64 bits: moved far away, they link to the same bytes."""
    folder, names = inputs.cubins("90a", "TINY", WIDE)
    monkeypatch.chdir(folder)
    expected = pylink.link(names, arch="sm_90a").image
    for name in names:
        widen((folder / name).read_bytes(), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert sum((tmp_path / name).stat().st_size for name in names) > 1 << 32
    result = benchmark.pedantic(lambda: pylink.link(names, arch="sm_90a"), rounds=1)
    assert result.image == expected


def widen(cubin: bytes, path: Path) -> None:
    """Write the cubin with a hole behind its header."""
    data = bytearray(cubin)
    (table,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    struct.pack_into("<Q", data, 40, table + HOLE)
    for place in range(table + 24, table + 24 + 64 * count, 64):
        (offset,) = struct.unpack_from("<Q", data, place)
        struct.pack_into("<Q", data, place, offset + HOLE if offset else 0)
    with open(path, "wb") as stream:
        stream.write(data[:64])
        stream.seek(64 + HOLE)
        stream.write(data[64:])
