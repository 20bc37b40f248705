"""Checks forecasts of growth: links of six kinds are profiled, and compared with twice the link.

`make growth` runs it; CHECK="--repeat 3 debug" runs a part. Each link is profiled by the command
line, with --profile-aprof. A process of its own does this link and one with twice the modules in
turn. For each phase and step (a routine), the least processor time of the second link is divided
by that of the first: the measured factor. Forecasts are checked for the link and for routines that
take at least `SHARE` of it. The exit status is 1 unless, for links and for routines,

- nine in ten intervals contain the measured factor, or fewer only by chance (19 in 20),
- four in five forecasts have an interval, not counting those whose reason is a change of path,
- no interval is wider than upper / lower = 1.5 if the scatter is under 3 %,
- no routine is said to hurt if its measured factor is 2.2 or less.
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

# Least share of a link's time that a checked routine takes; least shares of intervals that contain
# the measured factor, and of forecasts that have an interval.
SHARE = 0.05
HOLDING, TELLING = 0.9, 0.8
# Probability with which a check may fail by chance, if HOLDING is the true share of intervals.
UNLUCKY = 0.05
NARROW, CALM = 1.5, 0.03  # widest interval (upper / lower), if the scatter is less than CALM
HARMLESS = 2.2  # largest measured factor of a routine that must not be said to hurt
FEWEST_ROUNDS = 12
REPORT = "link.aprof"
# The beginning of the reason why a forecast has no interval: the routine works in another way from
# some size on.
CHANGED = re.compile(r"from [0-9]+ on it has ")
# Phases and steps that run once: --profile-aprof repeats the others with parts of the inputs.
ONCE = ("init", "write")
ONCE_STEPS = ("measure", "classify", "unpack")


def main() -> int:
    """Check the kinds of links that arguments name, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="first letters (default: all)")
    parser.add_argument("--seconds", type=float, default=2, help="of each pair (default: 2)")
    parser.add_argument("--repeat", type=int, default=1, help="profile so often (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep reports and factors")
    parser.add_argument("--verbose", action="store_true", help="print every forecast")
    arguments = parser.parse_args()
    start = time.monotonic()
    kinds = [k for k in KINDS if not arguments.kinds or k.name.startswith(tuple(arguments.kinds))]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            for arch in kind.archs:
                for count in kind.counts[:-1]:
                    factors = measure(kind, arch, count, arguments.seconds, Path(scratch))
                    for number in range(arguments.repeat):
                        fits = forecasts(kind, arch, count, Path(scratch))
                        if arguments.keep:
                            name = f"{kind.name}_{arch}_{count}_{number}"
                            shutil.copy(Path(scratch) / REPORT, arguments.keep / f"{name}.aprof")
                            (arguments.keep / f"{name}.json").write_text(json.dumps(factors))
                        for fit in fits:
                            factor = factors.get(fit.routine)
                            if factor is not None:
                                group = "links" if fit.routine == "link" else "routines"
                                count_forecast(counts[group, kind.name], fit, factor)
                                if arguments.verbose:
                                    print(f"{kind.name} {arch} {count}: {describe(fit, factor)}")
                                    sys.stdout.flush()
    faults = summarize(counts)
    minutes = (time.monotonic() - start) / 60
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {minutes:.1f} minutes"
    print(f"{load}: {'; '.join(faults) or 'good'}")
    return 1 if faults else 0


def forecasts(kind: Kind, arch: str, count: int, scratch: Path) -> list[Fit]:
    """Profile a link; return forecasts for it and for routines that take at least SHARE of it."""
    folder, names = inputs_of(kind, arch, count)
    report = scratch / REPORT
    program = [sys.executable, "-m", "pylink", f"-arch=sm_{arch}", *names]
    options = ["-o", str(scratch / "profiled.cubin"), "--profile-aprof", str(report)]
    subprocess.run([*program, *options], cwd=folder, check=True)
    fits = fit_report(read(report))
    return [fit for fit in fits if fit.part >= SHARE and len(fit.points) > 1]


def measure(kind: Kind, arch: str, count: int, seconds: float, scratch: Path) -> dict[str, float]:
    """Return, by routine, its cost with 2 * `count` modules, divided by that with `count`."""
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
    """Do the links whose inputs are on standard input, in turn; print the least costs of each.

    The costs are processor time in ns by routine, as JSON. Links are repeated for `seconds` of
    processor time, and in FEWEST_ROUNDS rounds or more.
    """
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
            total_cost = 0
            for phase in profile.phases:
                if phase.tag in ONCE:
                    continue
                once = sum(step.cpu_ns for step in phase.steps if step.name in ONCE_STEPS)
                step_costs = {step.name: step.cpu_ns for step in phase.steps}
                step_costs[phase.tag] = phase.cpu_ns - once
                total_cost += step_costs[phase.tag]
                for name, cost in step_costs.items():
                    costs[name] = min(costs.get(name, cost), cost)
            costs["link"] = min(costs.get("link", total_cost), total_cost)
    print(json.dumps(least))


def count_forecast(counts: Counter[str], fit: Fit, factor: float) -> None:
    """Count a forecast, and whether the measured factor confirms it.

    Both bounds of `fit.interval` are 1 if there is no forecast of an interval.
    """
    low, high = fit.interval
    counts["forecasts"] += 1
    if high > 1:
        counts["intervals"] += 1
        counts["held"] += low <= factor <= high
        counts["too wide"] += high / low > NARROW and fit.growth.scatter < CALM
    elif CHANGED.match(fit.growth.reason):
        counts["changed path"] += 1
    counts["false alarms"] += fit.hurts and factor <= HARMLESS


def describe(fit: Fit, factor: float) -> str:
    """Return a line with a forecast and the measured factor."""
    low, high = fit.interval
    between = f"{low:.2f} to {high:.2f}" if high > 1 else f"none: {fit.growth.reason}"
    held = "" if high <= 1 or low <= factor <= high else "  MISSED"
    return (
        f"{fit.routine}: {factor:.2f} measured, {between}, {fit.model}, "
        f"scatter {fit.growth.scatter:.1%}{held}"
    )


def summarize(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Print the counts of each kind of link; return a line for each requirement that fails."""
    columns = ("forecasts", "changed path", "intervals", "held", "too wide", "false alarms")
    print(f"{'':9} {'kind':12}" + "".join(f"{column:>14}" for column in columns))
    faults = []
    for group in ("links", "routines"):
        total: Counter[str] = Counter()
        for (group_here, kind), count in counts.items():
            if group_here == group:
                total += count
                print(f"{group:9} {kind:12}" + "".join(f"{count[c]:14}" for c in columns))
        print(f"{group:9} {'all':12}" + "".join(f"{total[c]:14}" for c in columns))
        faults += faults_of(group, total)
    return faults


def least_held(interval_count: int) -> int:
    """Return how many intervals hold at least in 19 of 20 runs, if nine in ten hold on average."""
    chance = 0.0
    for held in range(interval_count + 1):
        chance += (
            math.comb(interval_count, held)
            * HOLDING**held
            * (1 - HOLDING) ** (interval_count - held)
        )
        if chance > UNLUCKY:
            return held
    return interval_count


def faults_of(group: str, total: Counter[str]) -> list[str]:
    """Return lines for requirements that forecasts of `group`, links or routines, do not meet."""
    held, interval_count = total["held"], total["intervals"]
    expected = total["forecasts"] - total["changed path"]
    faults = []
    if held < least_held(interval_count):
        faults.append(
            f"{group}: {held} of {interval_count} intervals hold, which are fewer than chance "
            f"makes of {HOLDING:.0%}"
        )
    if interval_count < TELLING * expected:
        faults.append(
            f"{group}: {interval_count} of {expected} have an interval, {TELLING:.0%} are wanted"
        )
    for fault in ("too wide", "false alarms"):
        if total[fault]:
            faults.append(f"{group}: {total[fault]} {fault}")
    return faults


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link"]:
        link_in_turns(sys.argv[2], float(sys.argv[3]), sys.argv[4])
        sys.exit(0)
    sys.exit(main())
