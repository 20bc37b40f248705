"""What a linked job is worth: the same as nvlink's output, or a finding, or a known difference.

`KNOWN` are the differences that docs/nvlink-differences.md lists, each by a rule about the job and
both outputs and never by its file.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle
from helpers.compare import image_differences

from fuzz import corpus, wrapping
from fuzz.draft import Draft
from fuzz.edits import EDITS
from fuzz.jobs import Job
from pylink.inspect.image import MalformedCubin

EQUAL, KNOWN_KIND, REFUSED_BY_NVLINK = "equal", "known difference", "nvlink refuses"
DIFFERENT, DAMAGED = "different", "different, of damaged input"

# What tells findings of one kind apart from those of another is the rest.
NUMBERS = re.compile(r"\$?_+ZT?[NKZ]*\w+|0x[0-9a-f]+|(\b[0-9a-f]{2} ?)+\b|'[^']*'|\d+")

WEAK_FUNCTION = 0x22
DEBUG_DATA = re.compile(r"\w+ \.(rela?\.|nv\.merc\.|nv\.merc\.rela\.)?(nv_)?debug_")

# On some damaged inputs nvlink does not end.
NVLINK_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """`kind` is the same for findings that look alike, `lines` say what this one is."""

    state: str
    kind: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """Both outputs of a job, and how they differ."""

    job: Job
    ours: bytes
    theirs: bytes
    lines: Sequence[str]


def kind_of(text: str) -> str:
    return NUMBERS.sub("N", text)[:160]


def run_nvlink(job: Job, folder: Path) -> oracle.NvlinkResult | None:
    """nvlink's side of a job, in a folder that has its files; None when it does not end."""
    names = [name for name, _ in job.inputs()]
    output = folder / "nvlink.out"
    output.unlink(missing_ok=True)
    words = [f"-arch=sm_{job.arch}", *job.words, *names, "-o", output.name]
    try:
        return oracle.run_nvlink(words, folder, output.name, seconds=NVLINK_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def judge(job: Job, ours: bytes, folder: Path) -> Verdict:
    """Compare a linked job with nvlink's output."""
    for name, data in job.inputs():
        (folder / name).write_bytes(data)
    result = run_nvlink(job, folder)
    if result is None or result.code or result.image is None:
        said = result.stderr.partition("\n")[0] if result else "it does not end"
        return Verdict(REFUSED_BY_NVLINK, kind_of(said))
    try:
        lines = image_differences(ours, result.image)
    except MalformedCubin:
        return Verdict(KNOWN_KIND, "nvlink's output cannot be read")
    if not lines:
        return Verdict(EQUAL)
    pair = Pair(job, ours, result.image, lines)
    for name, rule in KNOWN.items():
        if rule(pair):
            return Verdict(KNOWN_KIND, name, tuple(lines))
    again = run_nvlink(job, folder)
    if again is None or again.image is None or image_differences(again.image, result.image):
        return Verdict(KNOWN_KIND, "nvlink does not repeat its output", tuple(lines))
    state = DIFFERENT if is_sound(job) else DAMAGED
    return Verdict(state, kind_of(lines[0]), tuple(lines))


def judge_refusal(job: Job, said: str, folder: Path) -> Verdict:
    """Whether nvlink refuses as well what pylink refused with these words."""
    for name, data in job.inputs():
        (folder / name).write_bytes(data)
    result = run_nvlink(job, folder)
    if result is None or result.code or result.image is None:
        return Verdict(REFUSED_BY_NVLINK)
    lines = tuple(said.splitlines()) or ("nothing said",)
    return Verdict(DIFFERENT, kind_of(f"refused: {lines[0]}"), lines)


def is_sound(job: Job) -> bool:
    """Whether a compiler could have written the inputs, so that both linkers have to agree."""
    return not job.wrapping_seed and all(
        EDITS[change.edit].is_sound(job.arch) for change in job.changes
    )


def has_debug_data_of_replaced_copies(pair: Pair) -> bool:
    """Numbers of registers were changed, so that a weak function's later copy stays, on sm_100.

    nvlink converts offsets in debug data of the copy that went by the instructions of the other.
    """
    if not any(change.edit == "attribute-count" for change in pair.job.changes):
        return False
    if not pair.job.arch.startswith("1") or not all(DEBUG_DATA.match(line) for line in pair.lines):
        return False
    _, images = corpus.program(pair.job.program)
    names = [name for image in images for name in weak_functions(image)]
    return len(set(names)) < len(names)


def weak_functions(image: bytes) -> set[bytes]:
    """The weak functions that a cubin defines."""
    draft = Draft(image)
    places = [(number, draft.symbol_at(number)) for number in range(draft.symbol_count)]
    return {
        draft.symbol_name(number)
        for number, at in places
        if draft.peek(at + 4, 1) == WEAK_FUNCTION and draft.peek(at + 6, 2)
    }


def has_members_that_nvlink_does_not_see(pair: Pair) -> bool:
    """BSD's archives have names in front of the contents, so that no member begins as ELF does."""
    return pair.job.wrapping == wrapping.BSD_ARCHIVE


KNOWN: dict[str, Callable[[Pair], bool]] = {
    rule.__name__.replace("_", " "): rule
    for rule in (
        has_debug_data_of_replaced_copies,
        has_members_that_nvlink_does_not_see,
    )
}
