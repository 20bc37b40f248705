"""Part of merge from sm_100 on: inputs whose Mercury sections repeat those of an earlier input.

Most links never load this module.
"""

from __future__ import annotations

from struct import pack

from pylink._native import elfheaders, folds
from pylink._native.tables import Numbers
from pylink.dedup import MalformedCubin, MercuryObject, fold
from pylink.dedup.cubin import vectors_of
from pylink.dedup.reasons import CODE_TARGETS
from pylink.diagnostics.stream import printable, write
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.dedup import Verdict
    from pylink.diagnostics import Sink
    from pylink.phases.merge import Merged
    from pylink.phases.read import Objects

# Where a stronger copy rejects: it is a matter of symbols, as in the last stage.
STAGE_STRONGER = 3


class Decision:
    """What became of one file: whether it folds into `reference`, and why not.

    `verdict` is that of the file's last comparison, None for the first file; `stronger` names the
    function whose copy keeps an accepted file from folding. `file` and `reference` are numbers of
    files, `reference` is None where the sections were rejected.
    """

    __slots__ = ("file", "reference", "stronger", "verdict")

    def __init__(
        self, file: int, reference: int | None, verdict: Verdict | None, stronger: str | None
    ) -> None:
        self.file = file
        self.reference = reference
        self.verdict = verdict
        self.stronger = stronger

    @property
    def folds(self) -> bool:
        return self.reference is not None and self.stronger is None

    @property
    def code(self) -> int:
        if self.stronger is not None:
            return CODE_TARGETS
        return 0 if self.verdict is None else self.verdict.code

    @property
    def stage(self) -> int:
        """The stage that rejected, 0 for none."""
        if self.stronger is not None:
            return STAGE_STRONGER
        return 0 if self.verdict is None else self.verdict.stage or 0

    @property
    def section(self) -> str | None:
        """The section or relocation target that rejected, where a single one did."""
        return None if self.stronger is not None or self.verdict is None else self.verdict.entry

    @property
    def reason(self) -> str:
        if self.stronger is not None:
            return f"its copy of {self.stronger} counts, that of the reference does not"
        return "" if self.verdict is None else self.verdict.reason


class Folding:
    """What comparing the Mercury sections of files decided, for who looks at it later.

    `files` are the numbers of the files that have some, `items` their vectors, `decisions` what
    became of each, `result` the comparisons. `refused` has number and reason of each file that
    cannot be read.
    """

    __slots__ = ("decisions", "files", "items", "refused", "result")

    def __init__(self, merged: Merged, numbers: Iterable[int]) -> None:
        """Compare the files of `numbers`."""
        self.files, self.items, self.refused = read_vectors(merged.objects, numbers)
        self.result = fold(self.items)
        self.decisions: list[Decision] = []
        for row, found in enumerate(self.result.reference):
            file, reference = self.files[row], None if found is None else self.files[found]
            stronger = find_stronger(merged, reference, file)
            self.decisions.append(Decision(file, reference, self.result.verdicts[row], stronger))


def read_vectors(
    objects: Objects, numbers: Iterable[int]
) -> tuple[list[int], list[MercuryObject], list[tuple[int, str]]]:
    """The columns `files`, `items` and `refused` of a Folding."""
    files: list[int] = []
    items: list[MercuryObject] = []
    refused: list[tuple[int, str]] = []
    for number in numbers:
        name = objects.names[number]
        sections = elfheaders.file_sections(objects, number)
        try:
            item = vectors_of(MercuryObject, sections, memoryview(objects.arena), name)
        except MalformedCubin as error:
            refused.append((number, str(error).removeprefix(f"{name}: ")))
            continue
        if item.headers:
            files.append(number)
            items.append(item)
    return files, items, refused


def fold_mercury(merged: Merged, numbers: Iterable[int], sink: Sink) -> Numbers:
    """What stands for each input section; empty when nothing folds.

    `numbers` are the files that could fold. Where somebody looks at the decisions, all others are
    compared, too, and `merged` keeps what was found.
    """
    objects = merged.objects
    job = objects.job
    ties = set(numbers)
    folding = Folding(merged, range(len(objects.names)) if job.records_folds else numbers)
    if job.records_folds:
        merged.folding = folding
    for number, reason in folding.refused:
        if number in ties or job.traces_folds:
            sink.report("not-folded", file=objects.names[number], reason=reason)
    pairs = b""
    for decision in folding.decisions:
        if decision.folds:
            pairs += pack("<ii", decision.file, decision.reference)
        if job.traces_folds and decision.verdict is not None:
            write(None, printable(_line(decision, decision.verdict)) + "\n")
    stand_ins = folds.pair_sections(objects, pairs) if pairs else Numbers()
    job.steps.done("fold_mercury", folding.result)
    return stand_ins


def find_stronger(merged: Merged, reference: int | None, candidate: int) -> str | None:
    """The function whose copy of the candidate counts while the reference's lost."""
    if reference is None:
        return None
    symbol = folds.find_stronger(merged, reference, candidate)
    return None if symbol < 0 else symbol_name(merged.objects, symbol)


def _line(decision: Decision, verdict: Verdict) -> str:
    """What -edbg says of one comparison."""
    ours, theirs = verdict.candidate.name, verdict.reference.name
    if decision.code:
        return (
            f"merc-dedup: {ours}: rejected with {decision.code} against {theirs}: {decision.reason}"
        )
    return f"merc-dedup: {ours}: folds into {theirs} (0)"
