"""Link the cubins of demo/cubins with pylink and compare with what nvlink made of them.

    python demo/run.py

Then it profiles one of the links, and writes a page about what that cost. Times are the best of
several whole processes. Where nvlink 13.0.88 is installed it runs in turn with pylink; elsewhere
the times recorded by demo/make.py are shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import pylink
from pylink.dedup import MercuryObject, fold

HERE = Path(__file__).parent
OUT = HERE.parent / "build" / "demo"
PYLINK = Path(sys.executable).with_name("pylink")
RUNS = 15
SHOWN = 8
# Why a cubin does not fold; docs/dedup.md has the stages.
REASONS = {
    17: "its contents differ",
    18: "its relocations or their symbols differ",
    19: "its section headers differ",
}
sys.path[:0] = [str(HERE.parent / "tests")]

from helpers.compare import compare


def best_times(commands: Sequence[Sequence[str]]) -> list[float]:
    """Milliseconds of the fastest run of each command, taken in turn."""
    best = [float("inf")] * len(commands)
    for _ in range(RUNS):
        for number, command in enumerate(commands):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            best[number] = min(best[number], (time.perf_counter() - start) * 1000)
    return best


def find_nvlink() -> str | None:
    """The nvlink of the oracle extra, when that is installed beside pylink."""
    path = Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin/nvlink"
    return str(path) if path.is_file() else None


def show_dedup(cubins: Sequence[str], saved: int) -> None:
    """What folds when equal mercury sections are kept once; sm_90 and before have none."""
    objects = [MercuryObject.from_cubin(Path(cubin).read_bytes(), name=cubin) for cubin in cubins]
    objects = [one for one in objects if one.primary]
    if not objects:
        print("  deduplicated      nothing: no mercury sections")
        return
    result = fold(objects, prefilter="none")
    folded = sum(reference is not None for reference in result.reference)
    print(f"  deduplicated      {folded} of {len(objects)} cubins, {saved} bytes saved")
    for row, reference in enumerate(result.reference):
        if reference is not None:
            names = [Path(objects[number].name).name for number in (row, reference)]
            print(f"    {names[0]} has the mercury sections of {names[1]}")
    codes = [verdict.code for verdict in result.verdicts if verdict is not None and verdict.code]
    for code in sorted(set(codes)):
        print(f"    {codes.count(code)} kept with code {code}: {REASONS[code]}")


def show(folder: Path) -> bool:
    """Link the cubins of one architecture; whether the result is that of nvlink."""
    arch = folder.name
    cubins = sorted(map(str, folder.glob("*.cubin")))
    size = sum(Path(cubin).stat().st_size for cubin in cubins)
    print(f"{arch}: {len(cubins)} cubins, {size / 1024:.0f} KiB")

    in_process = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        made = pylink.link(cubins, arch=arch)
        taken = (time.perf_counter() - start) * 1000
        if taken < in_process:
            in_process, result = taken, made
    phases = ", ".join(f"{phase} {ms:.2f}" for phase, ms in result.timings.items())
    print(f"  in one process    pylink.link {in_process:.1f} ms ({phases})")

    # What nvlink writes has every copy.
    output = OUT / f"{arch}.cubin"
    ours = [str(PYLINK), f"-arch={arch}", "--merc-dedup=off", *cubins]
    commands = [[*ours, "-o", str(output)]]
    nvlink = find_nvlink()
    if nvlink:
        theirs = OUT / f"{arch}.nvlink.cubin"
        commands.append([nvlink, f"-arch={arch}", *cubins, "-o", str(theirs)])
    times = best_times(commands)
    recorded = json.loads((HERE / "linked" / "nvlink.json").read_text())["milliseconds"]
    if len(times) == 1:
        times.append(recorded[arch])
    how = "" if nvlink else " (recorded)"
    print(f"  whole process     pylink {times[0]:.1f} ms, nvlink {times[1]:.1f} ms{how}")

    whole = pylink.link(cubins, arch=arch, merc_dedup="off").image
    show_dedup(cubins, len(whole) - len(result.image))

    differences = compare(output.read_bytes(), (HERE / "linked" / output.name).read_bytes())
    if output.read_bytes() != whole:
        differences.append("the command line and the Python interface made different images")
    print(
        f"  output            {output.relative_to(HERE.parent)}, {len(whole)} bytes with all copies"
    )
    verdict = "no" if differences else "yes, but for the note that names the tool"
    print(f"  equal to nvlink's {verdict}")
    for difference in differences[:SHOWN]:
        print(f"    {difference}")
    return not differences


def profile(folder: Path) -> None:
    """Profile a link, and show what its report and page say."""
    cubins = sorted(map(str, folder.glob("*.cubin")))
    report, growth, page = (OUT / name for name in ("link.ncu-rep", "link.aprof", "link.html"))
    options = [f"--profile={report}", f"--profile-aprof={growth}", f"--Map={OUT / 'link.map'}"]
    output = str(OUT / "profiled.cubin")
    # Stock sections from the package: a demo leaves nothing in anyone's home.
    here = {**os.environ, "PYLINK_DISABLE_SECTION_DEPLOYMENT": "1"}
    link = [f"-arch={folder.name}", *cubins, "-o", output, *options]
    subprocess.run([PYLINK, *link], env=here, check=True)
    subprocess.run([PYLINK, "report", report, growth, "--html", page], env=here, check=True)
    print(f"profile of {folder.name}: open {page.relative_to(HERE.parent)} in a browser, or run")
    print(f"  {os.path.relpath(PYLINK, HERE.parent)} report {report.relative_to(HERE.parent)}")


def main() -> int:
    """Show every architecture; exit status 1 when a result differs."""
    OUT.mkdir(parents=True, exist_ok=True)
    print(f"pylink {pylink.__version__}")
    folders = sorted((HERE / "cubins").iterdir())
    equal = [show(folder) for folder in folders]
    profile(folders[0])
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
