"""Links of one large archive of host objects, whose device code is compressed with Zstandard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import oracle
from helpers.archive_builder import gnu
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from benchmarks.contenders import Contest
from benchmarks.report import Report, ratio
from pylink.bench.contenders import API, CLI, NVLINK
from pylink.bench.launcher import Launcher

MEMBERS = 2000
ROUNDS = 3
# Targets that every object has code for, as a library that is shipped does; only one is linked.
TARGETS = {"75": 75, "90a": 90, "100": 100}


def archive(size: str) -> tuple[Path, str]:
    """A folder and the archive in it, made when it is not there."""
    made = {arch: inputs.cubins(arch, size, MEMBERS) for arch in TARGETS}
    folder = made["75"][0].parent / "archives"
    folder.mkdir(exist_ok=True)
    path = folder / f"lib{size}-{MEMBERS}.a"
    if not path.is_file():
        members = []
        for number in range(MEMBERS):
            entries = [
                entry((cubins / names[number]).read_bytes(), TARGETS[arch], mode="zstd")
                for arch, (cubins, names) in made.items()
            ]
            sections = [
                ("__nv_relfatbin", container(*entries)),
                ("__nv_module_id", b"_%08x_object_cu\0" % number),
                SEGMENT,
            ]
            members.append((f"object_{number:04}.cu.o", host_object(sections)))
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(gnu(members))
        os.replace(partial, path)
    return folder, path.name


@oracle.needs_oracle
@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize("size", ["15KB"])
def test_bench_archive(
    benchmark: BenchmarkFixture,
    launcher: Launcher,
    report: Report,
    monkeypatch: pytest.MonkeyPatch,
    arch: str,
    size: str,
) -> None:
    folder, name = archive(size)
    contest = Contest(launcher, arch, folder, [name])
    times: dict[str, list[float]] = {CLI: [], NVLINK: []}

    def others() -> None:
        for contender, taken in times.items():
            taken.append(contest.seconds(contender))
        contest.clear()

    monkeypatch.chdir(folder)
    contest.link()
    benchmark.group = f"sm_{arch}, an archive of {MEMBERS} host objects with {size} of device code"
    benchmark.pedantic(contest.link, setup=others, rounds=ROUNDS)
    if benchmark.stats is not None:  # None when benchmarks are disabled
        times[API] = list(benchmark.stats.stats.data)
        for ours in (API, CLI):
            report.archives[f"sm_{arch}, {size}, {ours}"] = ratio(times[NVLINK], times[ours])
