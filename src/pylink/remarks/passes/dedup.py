"""Pass merc-dedup: which Mercury sections folded, which did not and why, and what that cost.

A link compares only files that could fold. The comparisons are made again here, over all files,
which decides the same. A file that stays is compared with the kept one most like it, as in the
report of `pylink dedup`: what stands in the way there is what somebody could change.
"""

from __future__ import annotations

from struct import iter_unpack

from pylink.dedup import MissingXxhash, Stats
from pylink.dedup.analysis import analyse
from pylink.phases.fold import Decision, find_stronger, read_files
from pylink.remarks.passes.catalogue import COST, NOT_READ, SECTION_FOLDED, SECTION_REJECTED, At
from pylink.remarks.passes.view import View
from pylink.tables import SECTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.fold import Refuse
    from pylink.phases.merge import Merged
    from pylink.phases.read import Objects
    from pylink.remarks import Remarks

# What a remark names that concerns no single section.
ALL_SECTIONS = ".nv.merc"


def emit(merged: Merged, remarks: Remarks) -> None:
    """Links that fold nothing by their nature have no remark."""
    objects = merged.objects
    if not objects.job.folds_mercury:
        return
    view = View(merged)

    def refuse(file: int, reason: str) -> None:
        remarks.emit(
            NOT_READ(ALL_SECTIONS, view.at_file(file), 0, File=view.names[file], Reason=reason)
        )

    decisions, stats = compare_nearest(objects, merged.symbol_role, refuse)
    for number, (reference,) in enumerate(iter_unpack("<i", merged.stand_ins)):
        if reference < 0:
            continue
        size = SECTION.unpack_from(view.sections, number * SECTION.size)[2]
        place = view.at_section(reference)
        remarks.emit(
            SECTION_FOLDED(
                view.section_name(number),
                view.at_section(number),
                size,
                ReferenceSection=view.section_name(reference),
                Reference=At(view.file_of_section(reference), place),
                BytesSaved=size,
            )
        )
    for decision in decisions:
        if decision.folds or decision.verdict is None:
            continue
        remarks.emit(
            SECTION_REJECTED(
                decision.section or ALL_SECTIONS,
                view.at_file(decision.file),
                decision.verdict.candidate.size,
                File=view.names[decision.file],
                Reference=At(
                    decision.verdict.reference.name, (decision.verdict.reference.name, 0, 0)
                ),
                Stage=decision.stage,
                Code=decision.code,
                Difference=decision.reason,
            )
        )
    if decisions:
        counts = stats.counts()
        remarks.emit(
            COST(
                ALL_SECTIONS,
                view.output,
                counts["bytes_compared"],
                Files=len(decisions),
                Pairs=counts["pairs"],
                BytesCompared=counts["bytes_compared"],
                MemcmpCalls=counts["memcmp_calls"],
                TwinProbes=counts["twin_probes"],
                PrefilterHits=counts["prefilter_hits"],
                FalsePositives=counts["false_positives"],
                Digests=counts["digests"],
                DigestBytes=counts["digest_bytes"],
            )
        )


def compare_nearest(objects: Objects, roles: bytes, refuse: Refuse) -> tuple[list[Decision], Stats]:
    """The decision for every file with Mercury sections, and the work that folding took."""
    files, items = read_files(objects, range(len(objects.names)), refuse)
    try:
        analysis = analyse(items)
    except MissingXxhash:
        analysis = analyse(items, prefilter="none")
    numbers = {id(item): number for number, item in zip(files, items, strict=True)}
    decisions = []
    for number, candidate in zip(files, analysis.candidates, strict=True):
        reference = None if candidate.reference is None else numbers[id(candidate.reference)]
        name = find_stronger(objects, roles, reference, number)
        decisions.append(Decision(number, reference, candidate.verdict, name))
    return decisions, analysis.stats
