"""The device-link step, by five contenders in turn.

They are `nvcc -dlink`, nvcc with pylink in place of nvlink, the nvcc of an overlay, and `pylink
dlink` as a process of its own and by a server.

The goals of a case say how many times as fast as nvcc the step must be. Ratios are of runs in the
same round, so that other programs disturb both alike. Inputs are host objects with code for several
architectures, from the modules of the other benchmarks. Units and templates are larger modules,
compressed as nvcc does. Every round runs all contenders once. After a first round that is not
counted, the times of all rounds are summarized at the end.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
from helpers import oracle
from helpers.containers import differences
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from helpers.hostlink import contents
from helpers.toolkit import start_nvlink
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from pylink.bench.contenders import this_program
from pylink.bench.processes import Launcher, Run
from pylink.bench.server import Server
from pylink.command.overlay import make_overlay

ARCHS = ("75", "80", "86", "90", "100", "120")


class Kind(NamedTuple):
    """Modules of a size, compiled with flags of nvcc; how their entries are compressed."""

    size: str
    flags: tuple[str, ...]
    compression: str  # a key of `fatbin_builder.MODES`


KINDS = {
    "modules": Kind("15KB", inputs.FLAGS, "none"),
    # Two kernels and three functions, without line tables.
    "units": Kind("30KB", (), "zstd"),
    # Four kernels instead of two.
    "large-units": Kind("50KB", (), "zstd"),
    # Three kernels, two of them instances of a template.
    "templates": Kind("TEMPLATES", (), "zstd"),
}
DLINK, NVCC, OVERLAY = "pylink dlink", "nvcc", "nvcc of an overlay"
AS_NVLINK, SERVED = "pylink as nvlink", "pylink serve"
# Number of objects and their kind, number of architectures and of rounds, and the goal for each
# contender: nvcc's time divided by its own.
CASES = [
    (2, "modules", 1, 15, {DLINK: 1.0, SERVED: 3.0}),
    (2, "modules", 6, 15, {DLINK: 1.0, SERVED: 3.0}),
    (400, "modules", 6, 3, {DLINK: 20.0}),
    (400, "units", 6, 3, {DLINK: 20.0}),
    (400, "large-units", 6, 3, {DLINK: 20.0}),
    (400, "templates", 6, 3, {DLINK: 20.0}),
    pytest.param(1600, "modules", 6, 3, {DLINK: 40.0}, marks=pytest.mark.bench_large),
    pytest.param(1600, "units", 6, 3, {DLINK: 40.0}, marks=pytest.mark.bench_large),
    pytest.param(1600, "large-units", 6, 3, {DLINK: 40.0}, marks=pytest.mark.bench_large),
    pytest.param(1600, "templates", 6, 3, {DLINK: 40.0}, marks=pytest.mark.bench_large),
]


def host_objects(kind: Kind, count: int, archs: tuple[str, ...]) -> tuple[Path, list[str]]:
    """Return a folder, and the names of `count` host objects in it; missing ones are made."""
    sets = [inputs.cubins(arch, kind.size, count, kind.flags) for arch in archs]
    folder = sets[0][0].parent / f"hosted-{kind.compression}-{'-'.join(archs)}"
    folder.mkdir(exist_ok=True)
    names = []
    for number, name in enumerate(sets[0][1]):
        target = folder / f"{name.removesuffix('.cubin')}.o"
        names.append(target.name)
        if target.is_file():
            continue
        entries = [
            entry((place / all_names[number]).read_bytes(), int(arch), mode=kind.compression)
            for arch, (place, all_names) in zip(archs, sets, strict=True)
        ]
        code = ("__nv_relfatbin", container(*entries))
        ids = ("__nv_module_id", f"_{number:08x}_5_{target.stem}_cu\0".encode())
        partial = folder / f"{target.name}.{os.getpid()}"
        partial.write_bytes(host_object([code, SEGMENT, ids]))
        os.replace(partial, target)
    return folder, names


@oracle.needs_oracle
@pytest.mark.parametrize(("count", "kind", "archs", "rounds", "goals"), CASES)
def test_bench_dlink(
    benchmark: BenchmarkFixture,
    launcher: Launcher,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    count: int,
    kind: str,
    archs: int,
    rounds: int,
    goals: dict[str, float],
) -> None:
    chosen = ARCHS[-archs:] if archs > 1 else ("90",)
    folder, names = host_objects(KINDS[kind], count, chosen)
    home = oracle.toolchain().bin.parent
    for name in ("overlay", "linker"):
        make_overlay(str(tmp_path / name), str(home))
    start_nvlink(tmp_path / "linker")
    options = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in chosen]
    (tmp_path / "words").write_text("\n".join(names))
    options += ["-shared", "--options-file", str(tmp_path / "words"), "-o"]
    step = [this_program(), "dlink", "--cuda", str(home), *options]
    commands = {
        NVCC: [oracle.toolchain().tool("nvcc"), "-dlink", *options, str(tmp_path / "real.o")],
        AS_NVLINK: [f"{tmp_path}/linker/bin/nvcc", "-dlink", *options, f"{tmp_path}/linker.o"],
        OVERLAY: [f"{tmp_path}/overlay/bin/nvcc", "-dlink", *options, f"{tmp_path}/overlay.o"],
        DLINK: [*step, str(tmp_path / "made.o")],
        SERVED: [*step, str(tmp_path / "served.o")],
    }
    server = Server(this_program())
    runs: dict[str, list[Run]] = {name: [] for name in commands}

    def turn() -> None:
        """Run each command once."""
        for name, command in commands.items():
            starts = server.launcher if name == SERVED else launcher
            runs[name].append(starts.run(command, folder))

    benchmark.group = f"device-link step, {count} {kind} for {archs} architectures"
    try:
        benchmark.pedantic(turn, rounds=rounds, warmup_rounds=1)
    finally:
        server.close()
    dlink_contents, nvcc_contents = (
        contents(tmp_path, name, ".nv_fatbin") for name in ("made.o", "real.o")
    )
    assert differences(dlink_contents, nvcc_contents) == []
    assert (tmp_path / "served.o").read_bytes() == (tmp_path / "made.o").read_bytes()
    with capsys.disabled():
        print(f"\n{count} {kind} x {archs}: least and median s, processor, peak MiB, nvcc / it")
        for name, measured in runs.items():
            seconds = [run.seconds for run in measured[1:]]
            pairs = zip(runs[NVCC][1:], measured[1:], strict=True)
            ratio = median(nvcc_run.seconds / run.seconds for nvcc_run, run in pairs)
            goal = f" (goal: {goals[name]:g})" if name in goals else ""
            print(
                f"  {name:<20} {min(seconds):.3f} {median(seconds):.3f} "
                f"{min(run.cpu for run in measured):.3f} {max(run.rss for run in measured) >> 20} "
                f"{ratio:.1f}{goal}"
            )
