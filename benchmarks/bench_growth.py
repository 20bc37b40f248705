"""Growth of the time and memory of a link up to 100,000 inputs, and inputs of more than 4 GiB."""

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
# Rounds by number of inputs; at least 8, since the first two links of a process also wait for new
# memory, and the next ones may give it large pages (docs/link-cost.md).
ROUNDS = {100: 15, 1000: 9, 10000: 8, 100000: 8}
BARE = 2  # inputs of a link that needs hardly more memory than the interpreter

# A program that copies and links `count` inputs several times in turn, and prints the least
# processor seconds of both.
PROGRAM = """
import resource, sys
import pylink
from pylink.bench import resident
arch, output, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = [f"g{number // 10:05}_m{number % 10}.cubin" for number in range(count)]
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
copies, links = [], []
for _ in range(rounds):
    for copied in (True, False):
        before = spent()
        if copied:
            resident.copy(names, output)
        else:
            pylink.link(names, arch=arch, output=output)
        (copies if copied else links).append(spent() - before)
print(min(links), min(copies))
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
    """Links of tiny modules: work for each input, section and symbol, and little copying."""
    counts = COUNTS if pytestconfig.getoption("--bench-large") else COUNTS[:-1]
    folder, _ = inputs.cubins(arch, "TINY", counts[-1])
    output = folder.parent / "linked" / f"{folder.name}.cubin"
    output.parent.mkdir(exist_ok=True)

    def measure(count: int, rounds: int) -> tuple[float, float, int]:
        """Return the least processor seconds of a link and of a copy of inputs, and peak bytes."""
        argv = ["-c", PROGRAM, f"sm_{arch}", str(output), str(count), str(rounds)]
        run = launcher.run([sys.executable, *argv], folder)
        linked, copied = map(float, run.output.split())
        return linked, copied, run.rss

    def sweep() -> dict[int, tuple[float, float, int]]:
        """Measure each number of inputs; the result is by number."""
        return {count: measure(count, ROUNDS[count]) for count in counts}

    *_, bare = measure(BARE, 1)
    measured = benchmark.pedantic(sweep, rounds=1)
    report.growth[arch] = {
        count: (linked, copied, rss - bare) for count, (linked, copied, rss) in measured.items()
    }


# Number of modules, and bytes of a hole after the header of each: it needs memory but no disk.
WIDE, HOLE = 80, 60 << 20


@oracle.needs_oracle
@pytest.mark.bench_large
def test_inputs_beyond_4_gib(
    benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of the inputs have 64 bits: inputs with large holes link to the same bytes."""
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
    """Write the cubin with a hole after its header, and correct the offsets of what follows."""
    data = bytearray(cubin)
    (table,) = struct.unpack_from("<Q", data, 40)  # e_shoff
    (count,) = struct.unpack_from("<H", data, 60)  # e_shnum
    struct.pack_into("<Q", data, 40, table + HOLE)
    for field in range(table + 24, table + 24 + 64 * count, 64):  # sh_offset of each header
        (offset,) = struct.unpack_from("<Q", data, field)
        struct.pack_into("<Q", data, field, offset + HOLE if offset else 0)
    with open(path, "wb") as stream:
        stream.write(data[:64])
        stream.seek(64 + HOLE)
        stream.write(data[64:])
