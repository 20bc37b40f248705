"""The smallest job that still shows a finding, and the folder that repeats it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fuzz import corpus, wrapping
from fuzz.campaign import Campaign, Finding
from fuzz.jobs import Job


def minimise(finding: Finding, campaign: Campaign) -> Finding:
    """Take away changes, options, inputs and wrapping as long as the finding stays of its kind."""
    smaller = True
    while smaller:
        smaller = False
        for job in simpler(finding.job):
            _, found = campaign.run_job(job)
            if found is not None and found.label == finding.label:
                finding, smaller = found, True
                break
    return finding


def simpler(job: Job) -> Iterator[Job]:
    """Jobs with one thing less."""
    for number in range(len(job.changes)):
        yield replace(job, changes=job.changes[:number] + job.changes[number + 1 :])
    for name in ("words", "extras"):
        items = getattr(job, name)
        for number in range(len(items)):
            yield replace(job, **{name: items[:number] + items[number + 1 :]})
    if job.order:
        yield replace(job, order="")
    if job.wrapping_seed:
        yield replace(job, wrapping_seed="")
    elif job.wrapping != wrapping.BARE:
        yield replace(job, wrapping=wrapping.BARE)
    _, images = corpus.program(job.program)
    left = [number for number in range(len(images)) if number not in job.left_out]
    if len(left) > 1 and not job.wrapping_seed:
        for number in left:
            yield replace(job, left_out=(*job.left_out, number))


def write(finding: Finding, folder: Path) -> Path:
    """Write inputs, job, both command lines and what is wrong into a folder; its path."""
    job = finding.job
    place = folder / f"{finding.state.replace(' ', '-')}-{job.number}"
    place.mkdir(parents=True, exist_ok=True)
    names = []
    for name, data in job.inputs():
        (place / name).write_bytes(data)
        names.append(name)
    words = " ".join([f"-arch=sm_{job.arch}", *job.words, *names])
    (place / "job.json").write_text(json.dumps(job.to_json(), indent=1) + "\n")
    (place / "report.txt").write_text(
        f"{finding.label}\n\n"
        f"pylink --merc-dedup=off {words} -o pylink.out\nnvlink {words} -o nvlink.out\n"
        f"extras: {', '.join(job.extras) or 'none'}\n\n{finding.text}\n"
    )
    return place
