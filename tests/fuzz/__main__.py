"""The command line of the fuzzer; `make fuzz` runs it on a build with sanitizers."""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path

from helpers import oracle

from fuzz import corpus
from fuzz.campaign import Campaign, Finding, Tally
from fuzz.jobs import Job, draw
from fuzz.minimise import minimise, write


def parser() -> argparse.ArgumentParser:
    """What FUZZ of `make fuzz` may be."""
    options = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    options.add_argument("--jobs", type=int, default=10_000, help="how many links to try")
    options.add_argument("--first", type=int, default=0, help="number of the first")
    options.add_argument("--seed", type=int, default=1, help="another seed is another run")
    options.add_argument("--seconds", type=float, default=0, help="stop then, if not done before")
    options.add_argument("--programs", type=int, default=0, help="also so many generated ones")
    options.add_argument("--sound", action="store_true", help="only changes that break no rule")
    options.add_argument("--no-nvlink", action="store_true", help="look for crashes alone")
    options.add_argument("--sanitized", type=Path, help="the build with sanitizers to be run")
    options.add_argument("--found", type=Path, default=Path("build/fuzz/found"))
    options.add_argument("--repeat", type=Path, help="run the job of this job.json and no other")
    return options


def main() -> int:
    options = parser().parse_args()
    sanitized = options.sanitized and options.sanitized.resolve()
    compares = not options.no_nvlink and oracle.find() is not None
    if options.repeat:
        jobs = iter([Job.from_json(json.loads(options.repeat.read_text()))])
    else:
        programs = corpus.names(options.programs)
        numbers = itertools.islice(itertools.count(options.first), options.jobs)
        jobs = (draw(options.seed, n, programs, sound=options.sound) for n in numbers)
    with (
        tempfile.TemporaryDirectory(prefix="pylink-fuzz-") as scratch,
        Campaign(Path(scratch), sanitized=sanitized, compares=compares) as campaign,
    ):
        tally = campaign.run(jobs, seconds=options.seconds, found=tell, progress=tell_progress)
        for finding in tally.findings:
            print(write(minimise(finding, campaign), options.found))
    tell_progress(tally)
    for kind, count in tally.kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if tally.kinds else 0


def tell(finding: Finding) -> None:
    print(f"{finding.job.number} {finding.label}\n    {finding.text[:300]}", flush=True)


def tell_progress(tally: Tally) -> None:
    states = ", ".join(f"{count} {state}" for state, count in tally.states.most_common())
    print(f"{tally.jobs} jobs: {states}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
