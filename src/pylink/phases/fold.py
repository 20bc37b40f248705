"""Part of merge from sm_100 on: inputs whose Mercury sections repeat those of an earlier input.

Most links never load this module.
"""

from __future__ import annotations

import sys
from struct import pack

from pylink._native import folds
from pylink.dedup import FoldResult, MalformedCubin, MercuryObject, MissingXxhash, fold
from pylink.tables import FILE, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.dedup import Verdict
    from pylink.diagnostics import Sink
    from pylink.phases.read import Objects

CODE_STRONGER = 18


def fold_mercury(objects: Objects, roles: bytes, numbers: Iterable[int], sink: Sink) -> bytes:
    """What `merge` takes as stand-ins; empty when nothing folds.

    `numbers` are the files that could fold; a trace compares all others, too.
    """
    trace = objects.job.traces_folds
    if trace:
        numbers = range(len(objects.names))
    files = []
    items = []
    for number in numbers:
        item = _read(objects, number, sink)
        if item is not None and item.headers:
            files.append(number)
            items.append(item)
    result = _fold(items)
    pairs = b""
    for row, found in enumerate(result.reference):
        verdict = result.verdicts[row]
        stronger = -1
        if found is not None:
            stronger = folds.find_stronger(
                objects.files, objects.symbols, roles, files[found], files[row]
            )
            if stronger < 0:
                pairs += pack("<ii", files[row], files[found])
        if trace and verdict is not None:
            sys.stderr.write(_line(objects, verdict, stronger))
    if not pairs:
        return b""
    return folds.pair_sections(objects.arena, objects.files, objects.sections, pairs)


def _read(objects: Objects, number: int, sink: Sink) -> MercuryObject | None:
    row = FILE.unpack_from(objects.files, number * FILE.size)
    name = objects.names[number]
    data = memoryview(objects.arena)[row[0] : row[0] + row[1]]
    try:
        return MercuryObject.from_cubin(data, name)
    except MalformedCubin as error:
        sink.report("not-folded", file=name, reason=str(error).removeprefix(f"{name}: "))
    return None


def _fold(items: list[MercuryObject]) -> FoldResult:
    try:
        return fold(items)
    except MissingXxhash:
        return fold(items, prefilter="none")


def _line(objects: Objects, verdict: Verdict, stronger: int) -> str:
    """What -edbg says of one comparison."""
    ours, theirs = verdict.candidate.name, verdict.reference.name
    if stronger >= 0:
        name = symbol_name(objects.arena, objects.symbols, stronger)
        reason = f"its copy of {name} counts, the reference's does not"
        return f"merc-dedup: {ours}: rejected with {CODE_STRONGER} against {theirs}: {reason}\n"
    if verdict.code:
        return (
            f"merc-dedup: {ours}: rejected with {verdict.code} against {theirs}: {verdict.reason}\n"
        )
    return f"merc-dedup: {ours}: folds into {theirs} (0)\n"
