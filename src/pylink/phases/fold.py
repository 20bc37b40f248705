"""Part of merge from sm_100 on: folds Mercury sections that repeat those of an earlier input.

To fold a section is to omit it, and to use the earlier one. Most links never load this module.
"""

from __future__ import annotations

from struct import pack

from pylink._native import elfheaders, folds
from pylink._native.tables import Numbers
from pylink.diagnostics.stream import printable, write
from pylink.mercury import MalformedCubin, MercuryObject, fold
from pylink.mercury.decisions import Decision, Folding
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics import Sink
    from pylink.mercury import Verdict
    from pylink.phases.results import Merged, Objects


def read_mercury_objects(
    objects: Objects, numbers: Iterable[int]
) -> tuple[list[int], list[MercuryObject], list[tuple[int, str]]]:
    """Read the Mercury sections of the files `numbers`.

    Returns the numbers of the files that have such sections, their objects, and the number and the
    fault of each file that cannot be read.
    """
    files: list[int] = []
    items: list[MercuryObject] = []
    refused: list[tuple[int, str]] = []
    for number in numbers:
        name = objects.names[number]
        sections = elfheaders.file_sections(objects, number)
        try:
            item = MercuryObject.from_sections(sections, memoryview(objects.arena), name)
        except MalformedCubin as error:
            refused.append((number, str(error).removeprefix(f"{name}: ")))
            continue
        if item.headers:
            files.append(number)
            items.append(item)
    return files, items, refused


def _compare_files(merged: Merged, numbers: Iterable[int]) -> Folding:
    """Compare the Mercury sections of the files `numbers`, and decide which of them fold."""
    files, items, refused = read_mercury_objects(merged.objects, numbers)
    result = fold(items)
    decisions = []
    for item, reference_item in enumerate(result.reference):  # both index `items`
        reference = None if reference_item is None else files[reference_item]
        stronger = find_winning_symbol(merged, reference, files[item])
        decisions.append(Decision(files[item], reference, result.verdicts[item], stronger))
    return Folding(items, refused, decisions, result)


def fold_mercury(merged: Merged, numbers: Iterable[int], sink: Sink) -> Numbers:
    """Return, by input section, the number of the section that replaces it, or -1.

    The result is empty if nothing folds.

    `numbers` are the files that could fold. If observers or -edbg want the decisions, all files
    are compared, and `merged.folding` is set.
    """
    objects = merged.objects
    job = objects.job
    candidates = set(numbers)
    folding = _compare_files(merged, range(len(objects.names)) if job.records_folds else numbers)
    if job.records_folds:
        merged.folding = folding
    for number, reason in folding.refused:
        if number in candidates or job.traces_folds:
            sink.report("not-folded", file=objects.names[number], reason=reason)
    pairs = b""
    for decision in folding.decisions:
        if decision.folds:
            pairs += pack("<ii", decision.file, decision.reference)
        if job.traces_folds and decision.verdict is not None:
            write(None, printable(_trace_line(decision, decision.verdict)) + "\n")
    stand_ins = folds.pair_sections(objects, pairs) if pairs else Numbers()
    job.steps.end_step("fold_mercury", folding)
    return stand_ins


def find_winning_symbol(merged: Merged, reference: int | None, candidate: int) -> str | None:
    """Return the name of a function whose copy won in file `candidate` and lost in `reference`.

    None if there is no such function, or if `reference` is None.
    """
    if reference is None:
        return None
    symbol = folds.find_winning_symbol(merged, reference, candidate)
    return None if symbol < 0 else symbol_name(merged.objects, symbol)


def _trace_line(decision: Decision, verdict: Verdict) -> str:
    """Return the line of -edbg on one comparison."""
    candidate, reference = verdict.candidate.name, verdict.reference.name
    if decision.code:
        return (
            f"merc-dedup: {candidate}: rejected with {decision.code} against {reference}: "
            f"{decision.reason}"
        )
    return f"merc-dedup: {candidate}: folds into {reference} (0)"
