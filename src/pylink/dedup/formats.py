"""An analysis as tables for people, as JSON and as CSV."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from pylink.dedup.analysis import blocker_of
from pylink.dedup.rows import in_words
from pylink.diagnostics.paths import shortener
from pylink.terminal.tables import Table, csv_text

if TYPE_CHECKING:
    from pylink.dedup.analysis import Analysis, Candidate

FAMILY_COLUMNS = (
    "family",
    "sections",
    "bytes",
    "folded",
    "folded bytes",
    "one by one",
    "one by one bytes",
)
CANDIDATE_COLUMNS = (
    "object",
    "sections",
    "bytes",
    "folds into",
    "compared with",
    "code",
    "stage",
    "index",
    "entry",
    "offset",
    "reason",
)
NS_PER_MS = 1e6


def candidate_row(candidate: Candidate) -> dict[str, object]:
    """One object by the names of CANDIDATE_COLUMNS; None where nothing applies."""
    item, verdict = candidate.item, candidate.verdict
    row: dict[str, object] = dict.fromkeys(CANDIDATE_COLUMNS)
    row["object"] = item.name
    row["sections"] = len(item.headers) + len(item.targets)
    row["bytes"] = item.size
    if candidate.reference is not None:
        row["folds into"] = candidate.reference.name
    if verdict is not None:
        row["compared with"] = verdict.reference.name
        row["code"] = verdict.code
        row["stage"] = verdict.stage
        row["index"] = verdict.index
        row["entry"] = verdict.entry
        row["offset"] = verdict.offset
        row["reason"] = verdict.reason
    return row


def as_json(analysis: Analysis) -> str:
    """Everything the analysis knows, as one JSON object."""
    value = {
        "objects": [
            {name.replace(" ", "_"): cell for name, cell in candidate_row(candidate).items()}
            for candidate in analysis.candidates
        ],
        "families": {name: asdict(row) for name, row in analysis.families.items()},
        "total": asdict(analysis.total),
        "saved_bytes": analysis.saved_bytes,
        "payload_bytes": analysis.payload_bytes,
        "blockers": dict(analysis.blockers.most_common()),
        "unlisted": {
            name: {"sections": count, "bytes": size}
            for name, (count, size) in analysis.unlisted.items()
        },
        "without_mercury_sections": analysis.without,
        "stats": analysis.stats.as_dict(),
    }
    return json.dumps(value, indent=2) + "\n"


def as_csv(analysis: Analysis) -> str:
    """One line for each object."""
    rows = (candidate_row(candidate).values() for candidate in analysis.candidates)
    return csv_text([CANDIDATE_COLUMNS, *rows])


def tables(analysis: Analysis, top: int, *, everything: bool) -> list[Table]:
    """What to show, in the order of interest: of the objects `top`, the largest that fold first.

    Without `everything` that is a screen: objects, and what blocks folding, in words.
    """
    tables_here = [_objects(analysis, top, everything=everything)]
    if analysis.blockers:
        rows = [(in_words(name), str(count)) for name, count in analysis.blockers.most_common()]
        tables_here.append(Table("What keeps objects from folding", ("reason", "objects"), rows))
    if not everything:
        return tables_here
    tables_here.append(_families(analysis))
    if analysis.unlisted:
        rows3 = [(name, str(n), str(size)) for name, (n, size) in analysis.unlisted.items()]
        tables_here.append(Table("Never compared", ("section", "sections", "bytes"), rows3))
    tables_here.append(_work(analysis))
    return tables_here


def _objects(analysis: Analysis, top: int, *, everything: bool) -> Table:
    rows = []
    shorten = shortener([candidate.item.name for candidate in analysis.candidates])
    ordered = sorted(
        analysis.candidates, key=lambda each: (each.reference is None, -each.item.size)
    )
    for candidate in ordered[:top]:
        verdict = candidate.verdict
        into = candidate.reference
        fate = "kept" if into is None else f"folds into {shorten(into.name)}"
        if verdict is None:
            code, stage, reason = "", "", "nothing to fold into before it"
        else:
            code, stage, reason = str(verdict.code), str(verdict.stage or ""), verdict.reason
            if verdict.code:
                why = reason if everything else in_words(blocker_of(verdict))
                reason = f"{why}, against {shorten(verdict.reference.name)}"
            elif not everything:
                reason = "all of it is there already"
        name = shorten(candidate.item.name)
        rows.append((name, fate, code, stage, reason) if everything else (name, fate, reason))
    hidden = len(ordered) - len(rows)
    title = f"Objects, {hidden} more with --top or --csv" if hidden else "Objects"
    if not everything:
        return Table(title, ("object", "fate", "reason"), rows, left=3)
    return Table(title, ("object", "fate", "code", "stage", "reason"), rows, left=5)


def _families(analysis: Analysis) -> Table:
    rows = [
        (name, *map(str, asdict(row).values()))
        for name, row in (*analysis.families.items(), ("total", analysis.total))
    ]
    return Table("Sections by family", FAMILY_COLUMNS, rows)


def _work(analysis: Analysis) -> Table:
    rows = [(name.replace("_", " "), str(count)) for name, count in analysis.stats.counts().items()]
    for stage, nanoseconds in enumerate(analysis.stats.stage_ns, 1):
        rows.append((f"stage {stage} ms", f"{nanoseconds / NS_PER_MS:.3f}"))
    return Table("Work", ("count", "value"), rows)
