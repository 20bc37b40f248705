"""Links of one large archive of host objects, whose device code is compressed with Zstandard.

Beside them, the work that no linker can avoid is measured: to read the archive, to decompress the
code for the target in two threads with the same library, and to write it to one file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import oracle
from helpers.archive_builder import gnu
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from benchmarks.contenders import Contenders
from benchmarks.report import Report, ratio
from pylink._native.fatbin import find_entries
from pylink._native.payloads import gather
from pylink.bench.contenders import API, CLI, NVLINK
from pylink.bench.processes import Launcher
from pylink.facts import inputkinds
from pylink.facts.picknumbers import Codec, PickOrigin, PickState
from pylink.inputs.archiveformat import read_archive
from pylink.inputs.payload import open_library
from pylink.rowformats import ENTRY, PICK
from pylink.tables import extent

MEMBERS = 2000
ROUNDS = 9
# Targets (as text and as number) for which every object has code; a link is for one of them.
TARGETS = {"75": 75, "90a": 90, "100": 100}
# By way to link with pylink: the least that nvlink's time, divided by pylink's, should be.
GOALS = {API: 10, CLI: 5}


def make_archive(size: str) -> tuple[Path, str]:
    """Return a folder, and the name of the archive in it, which is made if it is missing."""
    cubins_by_arch = {arch: inputs.cubins(arch, size, MEMBERS) for arch in TARGETS}
    folder = cubins_by_arch["75"][0].parent / "archives"
    folder.mkdir(exist_ok=True)
    path = folder / f"lib{size}-{MEMBERS}.a"
    if not path.is_file():
        members = []
        for number in range(MEMBERS):
            entries = [
                entry((cubins / names[number]).read_bytes(), TARGETS[arch], mode="zstd")
                for arch, (cubins, names) in cubins_by_arch.items()
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


def minimal_work(path: Path, sm: int, output: Path) -> Callable[[], float]:
    """Return a function that reads, decompresses and writes code for a target, and times it."""
    data = path.read_bytes()
    members = list(read_archive(data, 0, len(data)))
    extents = b"".join(extent(member.offset, member.size) for member in members)
    rows, _, _ = find_entries([data], b"", extents, bytes([inputkinds.HOST]) * len(members))
    chosen = [row for row in ENTRY.iter_unpack(rows) if row[4] == sm]
    assert len(chosen) == MEMBERS
    assert open_library(Codec.ZSTD_FRAME)
    picked = b"".join(
        PICK.pack(
            0,
            0,
            *row[1:3],
            sm,
            inputkinds.CUBIN,
            Codec.ZSTD_FRAME,
            PickState.GOOD,
            PickOrigin.HOST,
            row[6],
            row[7],
            row[7] + row[5],
            *row[8:],
        )
        for row in chosen
    )

    def run() -> float:
        """Read the archive, decompress the picked code, and write it; return the seconds."""
        output.unlink(missing_ok=True)
        start = time.perf_counter()
        arena, _ = gather(picked, [path.read_bytes()], lambda number: b"")
        output.write_bytes(arena)
        return time.perf_counter() - start

    return run


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
    folder, name = make_archive(size)
    contenders = Contenders(launcher, arch, folder, [name])
    times: dict[str, list[float]] = {CLI: [], NVLINK: []}
    least = minimal_work(folder / name, TARGETS[arch], folder / f"floor-{arch}")
    floors: list[float] = []

    def others() -> None:
        """Measure a link by each program of `times`, and the least work that such a link needs."""
        for contender, seconds_by_round in times.items():
            seconds_by_round.append(contenders.seconds(contender))
        floors.append(least())
        contenders.clear()

    monkeypatch.chdir(folder)
    contenders.link()
    benchmark.group = f"sm_{arch}, an archive of {MEMBERS} host objects with {size} of device code"
    benchmark.pedantic(contenders.link, setup=others, rounds=ROUNDS)
    if benchmark.stats is not None:  # None when benchmarks are disabled
        times[API] = list(benchmark.stats.stats.data)
        for contender in (API, CLI):
            report.archives[f"sm_{arch}, {size}, {contender}"] = (
                ratio(times[NVLINK], times[contender]),
                ratio(times[NVLINK], floors),
                GOALS[contender],
            )
