"""Pass merc-dedup: which Mercury sections folded, which did not and why, and the cost.

A section folds if the output omits it and uses an equal section of an earlier file instead. For
remarks on files that do not fold, the link compares all files, not only likely ones; the decisions
are the same. The remark tells how a kept file differs from the most similar earlier one, as in the
report of `pylink dedup`, since that is the difference that a user can hope to remove.
"""

from __future__ import annotations

from pylink.dedup.analysis import analyze
from pylink.dedup.saving import saved_bytes
from pylink.mercury.decisions import Decision
from pylink.remarks.passes import MERC_DEDUP
from pylink.remarks.passes.catalogue import COST, NOT_READ, SECTION_FOLDED, SECTION_REJECTED, At
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury import Verdict
    from pylink.mercury.decisions import Folding
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks

# Stands for the section's name in remarks that concern no single section.
ALL_SECTIONS = ".nv.merc"


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit remarks on folding; none for links that fold no Mercury sections."""
    objects = merged.objects
    if not objects.job.folds_mercury:
        return
    view = View(merged)
    _emit_folded(merged, remarks, view)
    folding = merged.folding
    if folding is None or not remarks.wants_reasons(MERC_DEDUP):
        return
    for file, reason in folding.refused:
        remarks.emit(
            NOT_READ(ALL_SECTIONS, view.at_file(file), 0, File=view.names[file], Reason=reason)
        )
    decisions = _nearest_decisions(folding)
    for decision in decisions:
        if decision.verdict is not None and not decision.folds:
            _emit_rejected(decision, decision.verdict, remarks, view)
    if decisions:
        saved = saved_bytes(objects) if merged.stand_ins else 0
        counts = folding.result.stats.counts()
        _emit_cost(len(decisions), counts, saved or 0, remarks, view)


def _emit_folded(merged: Merged, remarks: Remarks, view: View) -> None:
    """Emit a remark for each section that is replaced by another file's."""
    for number, reference in enumerate(merged.stand_ins):
        if reference < 0:
            continue
        size = view.sections[number].size
        remarks.emit(
            SECTION_FOLDED(
                view.section_name(number),
                view.at_section(number),
                size,
                ReferenceSection=view.section_name(reference),
                Reference=At(view.file_of_section(reference), view.at_section(reference)),
                SectionBytes=size,
            )
        )


def _emit_rejected(decision: Decision, verdict: Verdict, remarks: Remarks, view: View) -> None:
    """Emit a remark that says why a file did not fold into the reference.

    The reference is the file with which `verdict` compares it.
    """
    reference = verdict.reference.name
    remarks.emit(
        SECTION_REJECTED(
            decision.section or ALL_SECTIONS,
            view.at_file(decision.file),
            verdict.candidate.size,
            File=view.names[decision.file],
            Reference=At(reference, (reference, 0, 0)),
            Stage=decision.stage,
            Code=decision.code,
            Difference=decision.reason,
        )
    )


def _emit_cost(
    files: int, counts: dict[str, int], saved: int, remarks: Remarks, view: View
) -> None:
    """Emit one remark on the work that comparisons took, and on the bytes saved.

    `files` is the number of files compared. `counts` has amounts of work by name, such as
    `bytes_compared`.
    """
    compared = counts["bytes_compared"]
    remarks.emit(
        COST(
            ALL_SECTIONS,
            view.output,
            compared,
            Files=files,
            Pairs=counts["pairs"],
            BytesCompared=compared,
            MemcmpCalls=counts["memcmp_calls"],
            TwinProbes=counts["twin_probes"],
            PrefilterHits=counts["prefilter_hits"],
            FalsePositives=counts["false_positives"],
            Digests=counts["digests"],
            DigestBytes=counts["digest_bytes"],
            BytesSaved=saved,
        )
    )


def _nearest_decisions(folding: Folding) -> list[Decision]:
    """Return the decision for every compared file, in the order of `folding.decisions`.

    The verdict of a file that another one accepted is their comparison. That of any other file is
    the comparison with the most similar earlier file that was not accepted either, or the last of
    these if none has an equal section. It is None for the first file.
    """
    candidates = analyze(folding.items, result=folding.result).candidates
    return [
        Decision(decision.file, decision.reference, candidate.verdict, decision.stronger)
        for decision, candidate in zip(folding.decisions, candidates, strict=True)
    ]
