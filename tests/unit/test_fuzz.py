"""A short run of the fuzzer, the same each time; `make fuzz` is the long one."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz import corpus, edits, races, verdict, wrapping
from fuzz.campaign import Campaign, Finding, Tally, asks_nvlink
from fuzz.draft import ALIGN, SIZE, Draft
from fuzz.jobs import Change, Job, draw
from fuzz.minimise import minimise, write
from fuzz.process import CRASH, HANG
from fuzz.worker import BROKEN, LINKED, REFUSED
from helpers import oracle
from helpers.cubin_builder import one_kernel

PROGRAM = "golden/80/weak"


def campaign(folder: Path, *, sound: bool, jobs: int, seed: int) -> Tally:
    names = corpus.names()
    drawn = (draw(seed, number, names, sound=sound) for number in range(jobs))
    compares = sound and oracle.find() is not None
    with Campaign(folder, compares=compares) as made:
        return made.run(drawn)


def told(findings: list[Finding]) -> str:
    return "\n".join(
        f"{finding.label}\n{json.dumps(finding.job.to_json())}" for finding in findings
    )


def test_damaged_inputs_end_in_an_image_or_an_error(tmp_path: Path) -> None:
    tally = campaign(tmp_path, sound=False, jobs=1200, seed=1)
    assert not tally.findings, told(tally.findings)
    assert tally.jobs == 1200
    # Neither is what all jobs come to: an edit that nothing survives, or that is never seen.
    assert tally.states[REFUSED] > 300
    assert tally.states[LINKED] > 300


@oracle.needs_oracle
def test_valid_programs_become_what_nvlink_makes_of_them(tmp_path: Path) -> None:
    tally = campaign(tmp_path, sound=True, jobs=300, seed=1)
    assert not tally.findings, told(tally.findings)
    assert tally.states[f"{LINKED}, {verdict.EQUAL}"] > 150


@pytest.mark.parametrize("edit", edits.EDITS)
def test_every_edit_changes_something(edit: str) -> None:
    """And the same number always does the same."""
    changed = 0
    for name in ("golden/75/calls", "golden/100/debug", "golden/100/switches", "golden/90a/calls"):
        _, images = corpus.program(name)
        for number in range(10):
            made = edits.apply(images[0], edit, str(number), images[1:])
            assert made == edits.apply(images[0], edit, str(number), images[1:])
            changed += made != images[0]
    assert changed


@pytest.mark.parametrize("kind", wrapping.KINDS)
def test_wrapped_programs_are_linked_until_they_are_damaged(kind: str, tmp_path: Path) -> None:
    with Campaign(tmp_path, compares=False) as campaign_of:
        assert campaign_of.run_job(Job("0", PROGRAM, "80", wrapping=kind)) == (LINKED, None)
    _, images = corpus.program(PROGRAM)
    if kind != wrapping.BARE:
        made = [wrapping.wrap(kind, images, "80", seed) for seed in ("", "1", "1", "2")]
        assert made[1] == made[2]
        assert len({str(job) for job in made}) == 3


def test_a_job_is_drawn_from_its_number() -> None:
    names = corpus.names()
    jobs = [draw(1, number, names) for number in range(50)]
    assert jobs == [draw(1, number, names) for number in range(50)]
    assert len({str(job) for job in jobs}) == 50
    assert jobs != [draw(2, number, names) for number in range(50)]
    for job in jobs:
        assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job
        assert job.inputs() == job.inputs()


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A campaign whose worker crashes at one edit, hangs at another, and raises at a third."""
    made = Campaign(tmp_path, compares=False)
    answers = {
        "header-field": {"state": CRASH, "text": "a\n==1==ERROR: heap-buffer-overflow\n"},
        "section-cut": {"state": HANG, "text": "no answer"},
        "name-byte": {"state": BROKEN, "text": "KeyError: 17 (merge.py:merge)"},
    }

    def ask(job: Job) -> dict[str, str]:
        wanted = [answers[change.edit] for change in job.changes if change.edit in answers]
        return wanted[0] if wanted else {"state": LINKED, "text": ""}

    monkeypatch.setattr(made.process, "ask", ask)
    return made


def test_findings_are_counted_by_kind_and_made_smaller(scripted: Campaign, tmp_path: Path) -> None:
    bad = [Change(0, name, "1") for name in ("header-field", "section-cut", "name-byte")]
    harmless = Change(0, "code-bits", "1")
    jobs = [
        Job(str(number), PROGRAM, "80", (harmless, image), words=("-r", "-g"), extras=("map",))
        for number, image in enumerate(bad * 5)
    ]
    tally = scripted.run(jobs)
    assert sorted(tally.kinds.values()) == [5, 5, 5]
    assert len(tally.findings) == 9
    assert "broken: KeyError: N (merge.py:merge)" in tally.kinds
    for finding in tally.findings:
        small = minimise(finding, scripted)
        assert [change.edit for change in small.job.changes] == [finding.job.changes[1].edit]
        assert (small.job.words, small.job.extras) == ((), ())
        folder = write(small, tmp_path / "found")
        assert json.loads((folder / "job.json").read_text()) == json.loads(
            json.dumps(small.job.to_json())
        )
        assert finding.label in (folder / "report.txt").read_text()
        assert any(folder.glob("*.cubin"))


def test_a_worker_that_ends_is_a_crash_and_another_one_goes_on(tmp_path: Path) -> None:
    made = Campaign(tmp_path, compares=False)
    good = Job("0", PROGRAM, "80")
    assert made.run_job(good) == (LINKED, None)
    assert made.process.process is not None
    made.process.process.kill()
    made.process.process.wait()
    state, finding = made.run_job(good)
    assert (state, finding is not None) == (CRASH, True)
    assert made.run_job(good) == (LINKED, None)
    made.process.stop()


@oracle.needs_oracle
def test_a_valid_program_that_is_refused_is_told(tmp_path: Path) -> None:
    job, damaged = (
        Job("0", PROGRAM, "80", (Change(0, edit, "1"),)) for edit in ("code-bits", "name-byte")
    )
    with Campaign(tmp_path, compares=True) as made:
        judged = verdict.judge_refusal(job, "pylink error   : no\n", made.theirs)
        missing = verdict.judge_refusal(replace(job, arch="75"), "no", made.theirs)
    assert (judged.state, judged.kind) == (verdict.DIFFERENT, "refused: pylink error   : no")
    assert missing.state == verdict.REFUSED_BY_NVLINK
    assert asks_nvlink(job, REFUSED)
    assert not asks_nvlink(damaged, REFUSED)


def test_nvlink_is_asked_about_all_valid_programs_and_some_others() -> None:
    names = corpus.names()
    jobs = [draw(1, number, names) for number in range(500)]
    sound = [job for job in jobs if verdict.is_sound(job)]
    others = [job for job in jobs if not verdict.is_sound(job)]
    assert len(sound) > 80
    assert all(asks_nvlink(job, LINKED) for job in sound)
    assert 20 < sum(asks_nvlink(job, LINKED) for job in others) < 80


@oracle.needs_oracle
def test_another_output_than_nvlinks_is_told(tmp_path: Path) -> None:
    made = Campaign(tmp_path, compares=True)
    job = Job("0", PROGRAM, "80")
    assert made.run_job(job) == (f"{LINKED}, {verdict.EQUAL}", None)
    draft = Draft((made.ours / "out").read_bytes())
    code = draft.named(b".text.")[0]
    draft.data[draft.sections[code][4]] ^= 1
    judged = verdict.judge(job, draft.build(), made.theirs)
    assert judged.state == verdict.DIFFERENT
    damaged = Job("0", PROGRAM, "80", (Change(0, "note-word", "nothing"),))
    assert verdict.judge(damaged, draft.build(), made.theirs).state in (
        verdict.DAMAGED,
        verdict.REFUSED_BY_NVLINK,
    )
    made.process.stop()


def test_contents_that_grow_move(tmp_path: Path) -> None:
    image = one_kernel().build()
    draft = Draft(image)
    number = draft.named(b".text.")[0]
    draft.put(number, b"x" * 1000)
    again = Draft(draft.build())
    assert again.contents(number) == b"x" * 1000
    assert again.sections[number][SIZE] == 1000
    assert again.sections[number][ALIGN] == draft.sections[number][ALIGN]
    assert again.name(number) == draft.name(number)
    for other in range(1, len(draft.sections)):
        if other != number:
            assert again.contents(other) == Draft(image).contents(other)


def test_programs_are_linked_by_several_threads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `make races` does under the thread sanitizer; an image that is another one is found."""
    assert races.link_all("golden/100/calls", 0) == 0
    assert capsys.readouterr().out.endswith(", 0 of them different\n")
    images = itertools.count()
    monkeypatch.setattr(races, "linked", lambda given, arch: [str(next(images))])
    assert races.link_all("golden/80/weak", 0) == 1
    said = capsys.readouterr().out
    assert "golden/80/weak, archive: the image depends on the number of threads\n" in said
