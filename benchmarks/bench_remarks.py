"""Writing remarks: a million remarks, each of six pieces of text, are made and written to a file.

For comparison the remarks are made and not written, and LLVM's tool reads such remarks as YAML and
writes the same bitstream. Times are processor times, which other programs disturb less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.report import Report
from pylink.diagnostics import Sink
from pylink.remarks import PASSED, Remark, Remarks
from pylink.remarks.files import open_writer

MILLION = 1_000_000
# Number of remarks written as YAML, which takes at least ten times as long as a bitstream.
FEWER = 100_000

# By title: format, version of the container, and number of remarks.
PATHS = {
    "bitstream, LLVM 22": ("bitstream", 1, MILLION),
    "bitstream, LLVM 19": ("bitstream", 0, MILLION),
    "YAML": ("yaml", 1, FEWER),
}


def emit_remarks(channel: Remarks, count: int) -> None:
    """Emit `count` remarks, ten on each function, as passes do for a large program."""
    for i in range(count):
        channel.emit(
            Remark(
                PASSED,
                "merc-dedup",
                "SectionFolded",
                f".nv.merc.text._Z6kernel{i % (count // 10)}PfS_i",
                file=f"module_{i % 1000}.cubin",
                hotness=16 * (i % 4099),
            )
            .text("folded into ")
            .arg("Reference", "first.cubin", file="first.cubin")
            .text(": ")
            .arg("BytesSaved", 16 * (i % 4099))
            .text(" bytes saved, cost ")
            .arg("Cost", 3)
        )


def child_cpu_seconds() -> float:
    """Return processor seconds of all processes that this one started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("path", ["bitstream, LLVM 22", "bitstream, LLVM 19", "YAML", "nowhere"])
def test_bench_write(
    benchmark: BenchmarkFixture, report: Report, tmp_path: Path, path: str
) -> None:
    """Make remarks and write them; `nowhere` makes them and drops them."""
    format, version, count = PATHS.get(path, ("", 1, MILLION))
    file = tmp_path / "remarks"

    def run() -> None:
        """Emit all remarks into a new file, or into none."""
        writer = open_writer(str(file), format, version) if format else None
        channel = Remarks(Sink(), writer, hotness=True)
        emit_remarks(channel, count)
        channel.close()

    benchmark.group = "writing remarks"
    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    if benchmark.stats:
        report.rates["remarks", path] = count / benchmark.stats.stats.min
    assert file.exists() == bool(format)


@pytest.mark.benchmark(timer=child_cpu_seconds)
def test_bench_llvm(benchmark: BenchmarkFixture, report: Report, tmp_path: Path) -> None:
    """LLVM's tool writes the same bitstream from YAML; most of its time is reading that."""
    tool = shutil.which("llvm-remarkutil-22")
    if tool is None:
        pytest.skip("no llvm-remarkutil-22 (apt install llvm-22)")
    channel = Remarks(Sink(), open_writer(str(tmp_path / "remarks.yaml")), hotness=True)
    emit_remarks(channel, FEWER)
    channel.close()
    command = [tool, "yaml2bitstream", "remarks.yaml", "-o", "remarks"]
    benchmark.group = "writing remarks"
    benchmark.pedantic(lambda: subprocess.run(command, cwd=tmp_path, check=True), rounds=3)
    if benchmark.stats:
        report.rates["remarks", "llvm-remarkutil from YAML"] = FEWER / benchmark.stats.stats.min
