"""The figures of a machine in Markdown, for docs/benchmarks.md; `make bench` prints them last."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from helpers import oracle

from benchmarks.report import MB, Outcome, Report, ratio
from pylink.bench import machine
from pylink.bench.contenders import API, CLI, COPY, NVJITLINK, NVLINK

ROOT = Path(__file__).resolve().parents[1]
COUNT = 1600  # inputs of the links on the page
# The links of docs/benchmarks.md: architecture and module size, in the order of its table.
LINKS = (("100", "15KB"), ("100", "50KB"), ("90a", "15KB"), ("90a", "50KB"))
ARCHIVES = ("100", "75", "90a")
COLUMNS = (
    "inputs",
    f"{NVLINK} / API",
    f"{NVLINK} / CLI",
    f"{NVJITLINK} / API",
    "API / copy",
    "rested: API / copy, CLI / copy",
    f"CLI MB ({NVLINK})",
)


def number(value: float, digits: int = 1) -> str:
    """Return a figure as docs/benchmarks.md has it; `-` if it was not measured (NaN).

    From 20 on it has no decimals, otherwise `digits` of them.
    """
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 20 else f"{value:.{digits}f}"


def measured_links(report: Report) -> list[Outcome]:
    """Return the links of docs/benchmarks.md that were measured, in the order of its table."""
    by_link = {(link.arch, link.size): link for link in report.outcomes if link.count == COUNT}
    return [by_link[key] for key in LINKS if key in by_link]


def archive_ratio(report: Report, arch: str, contender: str) -> float:
    """Return nvlink's time for an archive, divided by a contender's; NaN if not measured."""
    measured = report.archives.get(f"sm_{arch}, 15KB, {contender}")
    return measured[0] if measured else math.nan


def link_row(link: Outcome) -> list[str]:
    """Return the row of a link, with the columns of COLUMNS."""
    rested = [ratio(link.rested.get(name, []), link.rested.get(COPY, [])) for name in (API, CLI)]
    peaks = [link.peaks.get(name, 0) / MB for name in (CLI, NVLINK)]
    return [
        f"sm_{link.arch}, {link.input_bytes / link.count / 1000:.1f} kB",
        number(link.ratio(NVLINK, API)),
        number(link.ratio(NVLINK, CLI)),
        number(link.ratio(NVJITLINK, API)),
        number(link.ratio(API, COPY), 2),
        ", ".join(number(value, 2) for value in rested),
        f"{peaks[0]:.0f} ({peaks[1]:.0f})",
    ]


def history_row(report: Report, date: str, commit: str) -> str:
    """Return the row of docs/benchmarks.md's history: figures that were not measured are `-`."""
    by_link = {(link.arch, link.size): link for link in measured_links(report)}
    cells = [date, commit]
    for key in LINKS:
        link = by_link.get(key)
        values = (link.ratio(NVLINK, API), link.ratio(API, COPY)) if link else ()
        cells.append(f"{number(values[0])}, {number(values[1], 2)}" if values else "-")
    archives = [number(archive_ratio(report, arch, API)) for arch in ARCHIVES]
    cells.append(", ".join(archives) if set(archives) != {"-"} else "-")
    return f"| {' | '.join(cells)} |"


def machine_lines(facts: dict[str, str], commit: str, load: float) -> list[str]:
    """Return the heading of a machine, and a sentence with everything on which figures depend.

    `load` is that before the first measurement.
    """
    processor, cores = facts["processor"], facts["cores"]
    keys = ("memory", "kernel", "file system", "C library")
    parts = [f"{cores} cores of {processor}", *(facts[key] for key in keys)]
    parts += [f"large pages {facts['large pages']}", f"Python {facts['Python']}"]
    parts += [f"nvlink {oracle.version()}", f"pylink {facts['pylink']} of {commit}"]
    parts += [facts["date"], f"load {load:.2f} at the start"]
    return [f"### {processor}, {cores} cores", "", f"The machine: {', '.join(parts)}."]


def block(report: Report, facts: dict[str, str], commit: str, load: float) -> list[str]:
    """Return lines for docs/benchmarks.md; none without a link of 1,600 inputs or an archive."""
    links = measured_links(report)
    if not links and not report.archives:
        return []
    lines = [*machine_lines(facts, commit, load), ""]
    rows: list[Sequence[str]] = [COLUMNS, ["---"] * len(COLUMNS), *map(link_row, links)]
    lines += [f"| {' | '.join(row)} |" for row in rows] if links else []
    for arch in ARCHIVES:
        api, cli = (archive_ratio(report, arch, name) for name in (API, CLI))
        if not math.isnan(api):
            lines += ["", f"Archive, sm_{arch}: nvlink / API {number(api)}, / CLI {number(cli)}."]
    day = facts["date"].partition(" ")[0]
    return [*lines, "", "For the history:", "", history_row(report, day, commit)]


def current_block(report: Report, load: float) -> list[str]:
    """Return the lines for docs/benchmarks.md from this machine and this commit."""
    argv = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    commit = done.stdout.strip() or "an unknown commit"
    return block(report, machine.facts(str(oracle.cache_root())), commit, load)
