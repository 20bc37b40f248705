"""Whether forecasts of growth hold: links of six kinds, profiled, and then really doubled.

`make growth` runs it; CHECK="--repeat 3 debug" runs a part. Each link is profiled by the command
line, with --profile-aprof. Then a process of its own links it and one with twice the modules in
turns, and the cost of each phase and step of the one is divided by that of the other: least
processor time of all rounds. Forecasts are of the link and of what takes `SHARE` of it. The exit
status is 1 unless, for links and for routines,

- nine in ten intervals hold the measured factor, or fewer by chance (19 in 20) alone,
- four in five forecasts have an interval, those aside that name a change of path as the reason,
- none is wider than upper / lower = 1.5 where the scatter is under 3 %,
- nothing "will hurt" whose doubling costs 2.2 or less, within what the measurement tells.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import pylink
from benchmarks.doubled import KINDS, Kind, inputs_of
from pylink._native.inputfiles import keep_memory
from pylink.aprof import Fit, fit_report, read

SHARE = 0.05
HARMLESS = 2.2
HOLDING, TELLING = 0.9, 0.8
# So seldom is a run this bad by chance.
UNLUCKY = 0.05
NARROW, CALM = 1.5, 0.03
FEWEST_ROUNDS = 12
REPORT = "link.aprof"
# The reason of a routine that begins to go another way near its largest size.
CHANGED = re.compile(r"from [0-9]+ on it has ")
# Phases and steps that parts of a link do not repeat.
ONCE = ("init", "write")
ONCE_STEPS = ("measure", "classify", "unpack")


def main() -> int:
    """Check the kinds that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="first letters (default: all)")
    parser.add_argument("--seconds", type=float, default=2, help="of each pair (default: 2)")
    parser.add_argument("--repeat", type=int, default=1, help="profile so often (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep reports and factors")
    parser.add_argument("--verbose", action="store_true", help="print every forecast")
    asked = parser.parse_args()
    begun = time.monotonic()
    kinds = [k for k in KINDS if not asked.kinds or k.name.startswith(tuple(asked.kinds))]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            for arch in kind.archs:
                for count in kind.counts[:-1]:
                    factors = measure(kind, arch, count, asked.seconds, Path(scratch))
                    for number in range(asked.repeat):
                        found = forecasts(kind, arch, count, Path(scratch))
                        if asked.keep:
                            name = f"{kind.name}_{arch}_{count}_{number}"
                            shutil.copy(Path(scratch) / REPORT, asked.keep / f"{name}.aprof")
                            (asked.keep / f"{name}.json").write_text(json.dumps(factors))
                        for fit in found:
                            factor = factors.get(fit.routine)
                            if factor is not None:
                                what = "links" if fit.routine == "link" else "routines"
                                add(counts[what, kind.name], fit, factor)
                                if asked.verbose:
                                    print(f"{kind.name} {arch} {count}: {line(fit, factor)}")
                                    sys.stdout.flush()
    faults = summarize(counts)
    minutes = (time.monotonic() - begun) / 60
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {minutes:.1f} minutes"
    print(f"{load}: {'; '.join(faults) or 'good'}")
    return 1 if faults else 0


def forecasts(kind: Kind, arch: str, count: int, scratch: Path) -> list[Fit]:
    """What a profile of a link says of the link and of what takes a share of it."""
    folder, names = inputs_of(kind, arch, count)
    report = scratch / REPORT
    program = [sys.executable, "-m", "pylink", f"-arch=sm_{arch}", *names]
    options = ["-o", str(scratch / "profiled.cubin"), "--profile-aprof", str(report)]
    subprocess.run([*program, *options], cwd=folder, check=True)
    fits = fit_report(read(report))
    return [fit for fit in fits if fit.part >= SHARE and len(fit.points) > 1]


def measure(kind: Kind, arch: str, count: int, seconds: float, scratch: Path) -> dict[str, float]:
    """By routine, how many times as much a link of twice the modules costs."""
    work = []
    for modules in (count, 2 * count):
        folder, names = inputs_of(kind, arch, modules)
        work.append((str(folder), names))
    argv = [sys.executable, "-m", "benchmarks.check_growth", "--link", f"sm_{arch}", str(seconds)]
    done = subprocess.run(
        [*argv, str(scratch / "linked.cubin")],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=True,
    )
    once, twice = json.loads(done.stdout)
    return {name: twice[name] / cost for name, cost in once.items() if cost and name in twice}


def link_in_turns(arch: str, seconds: float, output: str) -> None:
    """Link the inputs that standard input tells, in turns; print the least costs."""
    keep_memory()  # as the command line does
    work = json.load(sys.stdin)
    least: list[dict[str, int]] = [{} for _ in work]
    rounds = 0
    while rounds < FEWEST_ROUNDS or time.process_time() < seconds:
        rounds += 1
        for (folder, names), costs in zip(work, least, strict=True):
            os.chdir(folder)
            profile = pylink.link(names, arch=arch, output=output, profile=True).profile
            assert profile is not None
            whole = 0
            for phase in profile.phases:
                if phase.tag in ONCE:
                    continue
                once = sum(step.cpu_ns for step in phase.steps if step.name in ONCE_STEPS)
                found = {step.name: step.cpu_ns for step in phase.steps}
                found[phase.tag] = phase.cpu_ns - once
                whole += found[phase.tag]
                for name, cost in found.items():
                    costs[name] = min(costs.get(name, cost), cost)
            costs["link"] = min(costs.get("link", whole), whole)
    print(json.dumps(least))


def add(counts: Counter[str], fit: Fit, factor: float) -> None:
    """Count what became of a forecast."""
    low, high = fit.interval
    counts["forecasts"] += 1
    if high > 1:
        counts["intervals"] += 1
        counts["held"] += low <= factor <= high
        counts["too wide"] += high / low > NARROW and fit.growth.scatter < CALM
    elif CHANGED.match(fit.growth.reason):
        counts["changed path"] += 1
    counts["false alarms"] += fit.hurts and factor <= HARMLESS


def line(fit: Fit, factor: float) -> str:
    """A forecast and what was measured, in words."""
    low, high = fit.interval
    between = f"{low:.2f} to {high:.2f}" if high > 1 else f"none: {fit.growth.reason}"
    held = "" if high <= 1 or low <= factor <= high else "  MISSED"
    return (
        f"{fit.routine}: {factor:.2f} measured, {between}, {fit.model}, "
        f"scatter {fit.growth.scatter:.1%}{held}"
    )


def summarize(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Print the counts of each kind; what is not good, in words."""
    columns = ("forecasts", "changed path", "intervals", "held", "too wide", "false alarms")
    print(f"{'':9} {'kind':12}" + "".join(f"{column:>14}" for column in columns))
    faults = []
    for what in ("links", "routines"):
        every: Counter[str] = Counter()
        for (of, kind), each in counts.items():
            if of == what:
                every += each
                print(f"{what:9} {kind:12}" + "".join(f"{each[c]:14}" for c in columns))
        print(f"{what:9} {'all':12}" + "".join(f"{every[c]:14}" for c in columns))
        faults += faults_of(what, every)
    return faults


def least_held(given: int) -> int:
    """How many of `given` intervals hold at least, in 19 of 20 runs, if nine in ten of all do."""
    chance = 0.0
    for held in range(given + 1):
        chance += math.comb(given, held) * HOLDING**held * (1 - HOLDING) ** (given - held)
        if chance > UNLUCKY:
            return held
    return given


def faults_of(what: str, every: Counter[str]) -> list[str]:
    """What is not good about forecasts of links or routines, in words."""
    held, given = every["held"], every["intervals"]
    asked = every["forecasts"] - every["changed path"]
    faults = []
    if held < least_held(given):
        faults.append(
            f"{what}: {held} of {given} intervals hold, which are fewer than chance makes of "
            f"{HOLDING:.0%}"
        )
    if given < TELLING * asked:
        faults.append(f"{what}: {given} of {asked} have an interval, {TELLING:.0%} are wanted")
    for fault in ("too wide", "false alarms"):
        if every[fault]:
            faults.append(f"{what}: {every[fault]} {fault}")
    return faults


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link"]:
        link_in_turns(sys.argv[2], float(sys.argv[3]), sys.argv[4])
        sys.exit(0)
    sys.exit(main())
