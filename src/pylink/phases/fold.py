"""Part of merge from sm_100 on: inputs whose Mercury sections repeat those of an earlier input.

Most links never load this module.
"""

from __future__ import annotations

from struct import pack

from pylink._native import elfheaders, folds
from pylink._native.tables import Numbers
from pylink.dedup import FoldResult, MalformedCubin, MercuryObject, MissingXxhash, fold
from pylink.dedup.cubin import vectors_of
from pylink.dedup.reasons import CODE_TARGETS
from pylink.diagnostics.stream import printable, write
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pylink.dedup import Verdict
    from pylink.diagnostics import Sink
    from pylink.phases.merge import Merged
    from pylink.phases.read import Objects

    Refuse = Callable[[int, str], None]

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


def fold_mercury(merged: Merged, numbers: Iterable[int], sink: Sink) -> Numbers:
    """What stands for each input section; empty when nothing folds.

    `numbers` are the files that could fold; a trace compares all others, too.
    """
    objects = merged.objects
    trace = objects.job.traces_folds

    def refuse(number: int, reason: str) -> None:
        sink.report("not-folded", file=objects.names[number], reason=reason)

    if trace:
        numbers = range(len(objects.names))
    decisions, result = compare_files(merged, numbers, refuse)
    pairs = b""
    for decision in decisions:
        if decision.folds:
            pairs += pack("<ii", decision.file, decision.reference)
        if trace and decision.verdict is not None:
            write(None, printable(_line(decision, decision.verdict)) + "\n")
    stand_ins = folds.pair_sections(objects, pairs) if pairs else Numbers()
    objects.job.steps.done("fold_mercury", result)
    return stand_ins


def compare_files(
    merged: Merged, numbers: Iterable[int], refuse: Refuse
) -> tuple[list[Decision], FoldResult]:
    """The decision for every file of `numbers` with Mercury sections, and the comparisons it took.

    `refuse` is told the number of a file that cannot be read, and why.
    """
    files, items = read_files(merged.objects, numbers, refuse)
    result = _fold(items)
    decisions = []
    for row, found in enumerate(result.reference):
        reference = None if found is None else files[found]
        name = find_stronger(merged, reference, files[row])
        decisions.append(Decision(files[row], reference, result.verdicts[row], name))
    return decisions, result


def read_files(
    objects: Objects, numbers: Iterable[int], refuse: Refuse
) -> tuple[list[int], list[MercuryObject]]:
    """The files of `numbers` that have Mercury sections: their numbers and vectors."""
    files = []
    items = []
    for number in numbers:
        item = _read(objects, number, refuse)
        if item is not None and item.headers:
            files.append(number)
            items.append(item)
    return files, items


def _read(objects: Objects, number: int, refuse: Refuse) -> MercuryObject | None:
    name = objects.names[number]
    sections = elfheaders.file_sections(objects, number)
    try:
        return vectors_of(MercuryObject, sections, memoryview(objects.arena), name)
    except MalformedCubin as error:
        refuse(number, str(error).removeprefix(f"{name}: "))
    return None


def _fold(items: list[MercuryObject]) -> FoldResult:
    try:
        return fold(items)
    except MissingXxhash:
        return fold(items, prefilter="none")


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
