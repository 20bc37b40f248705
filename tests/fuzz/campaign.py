"""Many jobs: draws each, has it linked, judges the result, keeps what was found."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz import verdict
from fuzz.jobs import Job
from fuzz.process import CRASH, HANG, Process, crash_kind
from fuzz.worker import BROKEN, LINKED, REFUSED

# Findings of one kind that are kept.
KEPT = 3

# What nvlink makes of a damaged program is counted, but never a finding: it takes ten times as long
# as pylink, and is asked about one of so many.
SAMPLED = 10


@dataclass(frozen=True)
class Finding:
    """A job with what is wrong: `kind` is shared by those that look alike."""

    job: Job
    state: str
    kind: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.state}: {self.kind}"


@dataclass
class Tally:
    """What became of the jobs of a campaign: how many ended how, and findings by their kinds."""

    states: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def jobs(self) -> int:
        return self.states.total()


def asks_nvlink(job: Job, state: str) -> bool:
    """Whether a job that pylink linked or refused is given to nvlink, too."""
    if verdict.is_sound(job):
        return True
    return state == LINKED and zlib.crc32(job.number.encode()) % SAMPLED == 0


class Campaign:
    """Runs jobs with one worker, in two folders below `scratch`: one for each linker."""

    def __init__(self, scratch: Path, *, sanitized: Path | None = None, compares: bool) -> None:
        self.ours, self.theirs = scratch / "ours", scratch / "theirs"
        self.ours.mkdir()
        self.theirs.mkdir()
        self.compares = compares
        self.process = Process(self.ours, sanitized)
        self.tally = Tally()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.stop()

    def run(
        self,
        jobs: Iterable[Job],
        *,
        seconds: float = 0,
        found: Callable[[Finding], None] = lambda finding: None,
        progress: Callable[[Tally], None] = lambda tally: None,
    ) -> Tally:
        """Run the jobs, or as many as `seconds` are enough for; tell of findings of new kinds."""
        start = told = time.monotonic()
        for job in jobs:
            state, finding = self.run_job(job)
            self.tally.states[state] += 1
            if finding is not None:
                self.tally.kinds[finding.label] += 1
                if self.tally.kinds[finding.label] <= KEPT:
                    self.tally.findings.append(finding)
                    found(finding)
            now = time.monotonic()
            if now - told > 60:
                told = now
                progress(self.tally)
            if seconds and now - start > seconds:
                break
        return self.tally

    def run_job(self, job: Job) -> tuple[str, Finding | None]:
        """The state that a job ended in, and the finding if it is one."""
        (self.ours / "out").unlink(missing_ok=True)
        answer = self.process.ask(job)
        state, text = answer["state"], answer["text"]
        if state == CRASH:
            return state, Finding(job, state, crash_kind(text), text)
        if state in (HANG, BROKEN):
            return state, Finding(job, state, verdict.kind_of(text), text)
        if not self.compares or not asks_nvlink(job, state):
            return state, None
        if state == REFUSED:
            judged = verdict.judge_refusal(job, text, self.theirs)
        else:
            judged = verdict.judge(job, (self.ours / "out").read_bytes(), self.theirs)
        if judged.state == verdict.DIFFERENT:
            return judged.state, Finding(job, judged.state, judged.kind, "\n".join(judged.lines))
        return f"{state}, {judged.state}", None
