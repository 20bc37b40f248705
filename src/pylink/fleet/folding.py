"""Computes what folding saves for the targets of an index, by `pylink.mercury` and real links.

To fold is to omit Mercury sections of an input that repeat an earlier input's. Equal digests are
only a hint: if all objects of a target differ in the digests of their Mercury debug sections,
nothing folds, and its files are not read. The files of other targets are linked up to the layout,
with and without folding; the difference is the saving. Folding compares sections byte by byte.
Results are stored under a key that changes with every file of the target.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from pylink import __version__
from pylink.dedup.analysis import analyze, blocker_of
from pylink.dedup.saving import ErrorCollector, read_inputs, saved_bytes
from pylink.diagnostics.stream import printable
from pylink.facts.outcomes import FoldOutcome
from pylink.files.atomic import write_whole
from pylink.fleet.walk import Stamp
from pylink.options.model import Input
from pylink.packages.extras import need
from pylink.phases.fold import read_mercury_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylink.fleet.database import Database
    from pylink.fleet.engine import Engine
    from pylink.fleet.index import Index

# The tables that this module makes, and their columns.
FOLDING_TABLES = {
    "saving": {
        "target": "string",
        "sm": "int32",
        "objects": "int64",
        "folded": "int64",
        "payload_bytes": "int64",
        "saved_bytes": "int64",
        "note": "string",
    },
    "blockers": {
        "target": "string",
        "sm": "int32",
        "code": "int32",
        "blocker": "string",
        "objects": "int64",
        "bytes": "int64",
    },
}

# The first architecture with Mercury sections.
FIRST_SM = 100

# By target and architecture: the number of relocatable cubins with Mercury debug sections, and the
# number of distinct sums of these sections' hashes. Equal sections have equal sums. Different ones
# may have equal sums as well, so the bytes are compared before anything is folded.
_TARGETS = """
WITH sums AS (
    SELECT object, sum(hash(family, suffix, size, digest)::HUGEINT) AS sum
    FROM {s}.sections WHERE family LIKE '.nv.merc.%debug%' GROUP BY object)
SELECT target, sm, count(*) AS objects, count(DISTINCT sum) AS sums
FROM {s}.members JOIN {s}.objects USING (file) JOIN sums USING (object)
WHERE sm >= ? AND NOT linked GROUP BY target, sm ORDER BY target, sm"""

# All files of a target with undamaged, unlinked code for an architecture, in the order of the link.
_FILES = """
SELECT DISTINCT target, sm, place, file, raw_root, raw_path, files.size, mtime, ctime, inode
FROM {s}.members JOIN {s}.objects USING (file) JOIN {s}.files USING (file)
WHERE sm >= ? AND NOT linked AND fault IS NULL ORDER BY target, sm, place, file"""


@dataclass(frozen=True)
class Task:
    """A target for one architecture, with its files.

    `key` names its stored result, and `objects` counts the relocatable cubins with Mercury debug
    sections. `may_fold` says that two of them have equal digests of these sections, so that the
    link may omit (fold) those of one.
    """

    key: str
    target: str
    sm: int
    objects: int
    may_fold: bool
    files: tuple[bytes, ...]
    stamps: tuple[Stamp, ...]


def find_tasks(database: Database, schema: str = "main") -> list[Task]:
    """Return a task for each target and architecture with Mercury debug sections, sorted."""
    inputs: dict[tuple[str, int], list[tuple[int, bytes, Stamp]]] = {}
    for row in database.ask(_FILES.format(s=schema), [FIRST_SM]).rows:
        target, sm, _, file, root, path, *stamp = row
        task = (file, os.path.join(root, path), Stamp(*stamp))
        inputs.setdefault((target, sm), []).append(task)
    tasks = []
    for target, sm, objects, sums in database.ask(_TARGETS.format(s=schema), [FIRST_SM]).rows:
        files = inputs[target, sm]
        numbers, names, stamps = zip(*files, strict=True)
        text = json.dumps([__version__, target, sm, numbers])
        key = need("xxhash").xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))
        tasks.append(Task(key, target, sm, objects, sums < objects, names, stamps))
    return tasks


def fold(
    index: Index,
    tasks: Sequence[Task],
    engine: Engine,
    *,
    every: bool,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Return the results of targets, stored or computed, by the keys of the tasks.

    Without a stored result, targets with one object are omitted and, unless `every` is set, those
    in which nothing may fold (`may_fold` is False). If the index is writable, new results are
    stored, and results of other keys are removed.
    """
    with contextlib.suppress(OSError):
        directory = os.path.join(index.directory, "folding")
        for name in {*os.listdir(directory)} - {f"{task.key}.json" for task in tasks}:
            os.unlink(os.path.join(directory, name))  # results of changed targets
    results, tasks_to_run = {}, []
    for task in tasks:
        result = read_result(index, task)
        if result is not None:
            results[task.key] = result
        elif (every or task.may_fold) and task.objects > 1:
            tasks_to_run.append(task)
    for done, (task, text) in enumerate(engine.map(fold_target, tasks_to_run), 1):
        results[task.key] = json.loads(text)
        with contextlib.suppress(OSError):
            write_whole(_result_path(index, task), text)
        if progress is not None:
            progress(done, len(tasks_to_run))
    return results


def fold_target(task: Task) -> tuple[Task, bytes]:
    """Link one target with and without folding; return the task, and its result as JSON."""
    result = _fold_target(task)
    return task, (json.dumps(result, sort_keys=True) + "\n").encode()


def _fold_target(task: Task) -> dict[str, Any]:
    """Return the rows of the tables in FOLDING_TABLES for one target."""
    for name, stamp in zip(task.files, task.stamps, strict=True):
        if not stamp.fits(name):
            return _make_failure(task, f"{printable(name)} has changed since it was indexed")
    sink = ErrorCollector()
    inputs = [Input(os.fsdecode(name), whole_archive=True) for name in task.files]
    objects = read_inputs(inputs, f"sm_{task.sm}", sink)
    if objects is None:
        return _make_failure(task, _link_failure(sink))
    _, items, _ = read_mercury_objects(objects, range(len(objects.names)))
    analysis = analyze(items)
    saved = saved_bytes(objects, sink)
    counts: Counter[tuple[int, str]] = Counter()
    sizes: Counter[tuple[int, str]] = Counter()
    for candidate in analysis.candidates:
        verdict = candidate.verdict
        if verdict is not None and verdict.reason_row != FoldOutcome.ACCEPTED:
            counts[verdict.code, blocker_of(verdict)] += 1
            sizes[verdict.code, blocker_of(verdict)] += candidate.item.size
    return {
        "saving": {
            "target": task.target,
            "sm": task.sm,
            "objects": len(objects.names),
            "folded": sum(candidate.reference is not None for candidate in analysis.candidates),
            "payload_bytes": analysis.payload_bytes,
            "saved_bytes": saved,
            "note": _link_failure(sink) if saved is None else None,
        },
        "blockers": [
            {
                "target": task.target,
                "sm": task.sm,
                "code": code,
                "blocker": name,
                "objects": count,
                "bytes": sizes[code, name],
            }
            for (code, name), count in sorted(counts.items())
        ],
    }


def _link_failure(sink: ErrorCollector) -> str:
    """Return why the inputs of a target do not link."""
    return printable(sink.first.message) if sink.first is not None else "its inputs do not link"


def _make_failure(task: Task, note: str) -> dict[str, Any]:
    """Return the rows for a target that could not be compared; `note` is the reason."""
    saving = dict.fromkeys(FOLDING_TABLES["saving"], None) | {
        "target": task.target,
        "sm": task.sm,
        "objects": task.objects,
        "note": note,
    }
    return {"saving": saving, "blockers": []}


def read_result(index: Index, task: Task) -> dict[str, Any] | None:
    """Return the stored result of a target, None if missing, damaged or a failure."""
    try:
        with open(_result_path(index, task), "rb") as file:
            result = json.load(file)
        rows = [("saving", result["saving"]), *(("blockers", row) for row in result["blockers"])]
        is_valid = all(_has_columns(row, FOLDING_TABLES[table]) for table, row in rows)
        return result if is_valid and result["saving"]["saved_bytes"] is not None else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _has_columns(row: dict[str, Any], kinds: Mapping[str, str]) -> bool:
    """Return whether a row of a stored file, which may be damaged, has these columns."""
    return row.keys() == kinds.keys() and all(
        isinstance(row[name], (str if kind == "string" else int) | None)
        for name, kind in kinds.items()
    )


def list_rows(
    results: Mapping[str, Any], tasks: Iterable[Task], table: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, of blockers or of savings, from the results of targets.

    A target without a result has a saving of 0 if nothing may fold (`may_fold` is false), else no
    row.
    """
    for task in tasks:
        result = results.get(task.key)
        if table == "blockers":
            yield from result["blockers"] if result else ()
        elif result:
            yield result["saving"]
        elif not task.may_fold:
            row = {"target": task.target, "sm": task.sm, "objects": task.objects}
            yield {**row, "folded": 0, "payload_bytes": 0, "saved_bytes": 0, "note": None}


def _result_path(index: Index, task: Task) -> str:
    """Return the path of the stored result of a target."""
    return os.path.join(index.directory, "folding", f"{task.key}.json")
