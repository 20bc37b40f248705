"""An analysis as tables for people, as JSON and as CSV."""

from __future__ import annotations

from dataclasses import asdict

from pylink.dedup.analysis import blocker_of
from pylink.dedup.rows import describe_blocker
from pylink.diagnostics.paths import shortener
from pylink.terminal.tables import TextTable, csv_text, json_text
from pylink.timing import NS_PER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.dedup.analysis import Analysis, Candidate

# Titles of the columns of the table of section families. `one by one` has the sections that would
# fold if each folded on its own.
FAMILY_COLUMNS = (
    "family", "sections", "bytes", "folded", "folded bytes", "one by one", "one by one bytes",
)  # fmt: skip
# Names of the facts about an object: columns of CSV, and keys of JSON, which have underscores.
CANDIDATE_COLUMNS = (
    "object", "sections", "bytes", "folds into", "compared with", "code", "stage", "index", "entry",
    "offset", "reason",
)  # fmt: skip


def _candidate_row(candidate: Candidate) -> dict[str, object]:
    """Return the cells of an object's row by column of CANDIDATE_COLUMNS; None for an empty one."""
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
    """Return the whole analysis as one JSON object."""
    value = {
        "objects": [
            {name.replace(" ", "_"): cell for name, cell in _candidate_row(candidate).items()}
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
    return json_text(value)


def as_csv(analysis: Analysis) -> str:
    """Return the objects as CSV, a line for each."""
    rows = (_candidate_row(candidate).values() for candidate in analysis.candidates)
    return csv_text([CANDIDATE_COLUMNS, *rows])


def tables(analysis: Analysis, top: int, *, everything: bool) -> list[TextTable]:
    """Return the tables to show, the most important first.

    `top` is the number of objects to show; those that fold come first. Without `everything` the
    tables fit on a screen: objects, and in words what blocks folding.
    """
    result = [_objects_table(analysis, top, everything=everything)]
    if analysis.blockers:
        rows = [
            (describe_blocker(name), str(count)) for name, count in analysis.blockers.most_common()
        ]
        result.append(TextTable("What keeps objects from folding", ("reason", "objects"), rows))
    if not everything:
        return result
    result.append(_families_table(analysis))
    if analysis.unlisted:
        unlisted_rows = [(name, str(n), str(size)) for name, (n, size) in analysis.unlisted.items()]
        result.append(TextTable("Never compared", ("section", "sections", "bytes"), unlisted_rows))
    result.append(_work_table(analysis))
    return result


def _objects_table(analysis: Analysis, top: int, *, everything: bool) -> TextTable:
    """Return the table of `top` objects: first those that fold, then the others.

    In each group the largest objects come first. With `everything` the table also has the code of
    the outcome (see `Verdict`), and the stage of the comparison that rejected the object.
    """
    rows = []
    shorten = shortener([candidate.item.name for candidate in analysis.candidates])
    ordered = sorted(
        analysis.candidates,
        key=lambda candidate: (candidate.reference is None, -candidate.item.size),
    )
    for candidate in ordered[:top]:
        verdict = candidate.verdict
        reference = candidate.reference
        fate = "kept" if reference is None else f"folds into {shorten(reference.name)}"
        if verdict is None:
            code, stage, reason = "", "", "no earlier object to fold into"
        else:
            code, stage, reason = str(verdict.code), str(verdict.stage or ""), verdict.reason
            if verdict.code:
                reason_text = reason if everything else describe_blocker(blocker_of(verdict))
                reason = f"{reason_text}, against {shorten(verdict.reference.name)}"
            elif not everything:
                reason = "all its sections are in an earlier object"
        name = shorten(candidate.item.name)
        rows.append((name, fate, code, stage, reason) if everything else (name, fate, reason))
    hidden = len(ordered) - len(rows)
    title = f"Objects, {hidden} more with --top or --csv" if hidden else "Objects"
    if not everything:
        return TextTable(title, ("object", "fate", "reason"), rows, text_columns=3)
    return TextTable(title, ("object", "fate", "code", "stage", "reason"), rows, text_columns=5)


def _families_table(analysis: Analysis) -> TextTable:
    """Return the table with a row for each section family, and their total in the last row."""
    rows = [
        (name, *map(str, asdict(row).values()))
        for name, row in (*analysis.families.items(), ("total", analysis.total))
    ]
    return TextTable("Sections by family", FAMILY_COLUMNS, rows)


def _work_table(analysis: Analysis) -> TextTable:
    """Return the table of the cost of comparing: counts, and the milliseconds of each stage."""
    rows = [(name.replace("_", " "), str(count)) for name, count in analysis.stats.counts().items()]
    for stage, nanoseconds in enumerate(analysis.stats.stage_ns, 1):
        rows.append((f"stage {stage} ms", f"{nanoseconds / NS_PER_MS:.3f}"))
    return TextTable("Work", ("count", "value"), rows)
