"""Pass relocate: relocations applied, and those left for the loader, by type and section."""

from __future__ import annotations

from collections import Counter

from pylink.facts import sectionkinds
from pylink.facts.records import REL, RELA
from pylink.facts.relocations import relocation_name
from pylink.remarks.passes.catalogue import RELOCATIONS_APPLIED, RELOCATIONS_KEPT
from pylink.remarks.passes.outputs import Outputs
from pylink.remarks.record import MISSED, PASSED
from pylink.tables import CONSTANT_KIND, ENTITY, FIX, KEEP, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.relocate import Image
    from pylink.remarks import Remarks

# Bits of FixRow.how; rows.pxd has the same.
FIX_REL = 1
FIX_MERCURY = 16

SHARES_TWIN = 2  # PlaceRow.made

PASS = "relocate"


def emit(image: Image, remarks: Remarks) -> None:
    outputs = Outputs(image.placed)
    if remarks.wants(PASS, PASSED):
        _tell_applied(outputs, remarks)
    if remarks.wants(PASS, MISSED):
        _tell_kept(outputs, remarks)


def _tell_applied(outputs: Outputs, remarks: Remarks) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    saved: Counter[tuple[int, int]] = Counter()
    kinds = [row[2] for row in rows(outputs.placed.merged.entities, ENTITY)]
    for _, _, type_, out, entity, _, _, how, _, _ in rows(outputs.placed.merged.fixes, FIX):
        target = out
        if how & FIX_MERCURY:
            row = outputs.rows[out]
            if row[2] == sectionkinds.TEXT:
                # A capsule takes constants; what else its code refers to it has by name.
                if entity < 0 or kinds[entity] != CONSTANT_KIND or row[13] < 0:
                    continue
                target = row[13]
            elif outputs.made(out) == SHARES_TWIN:
                continue
        counts[target, type_] += 1
        saved[target, type_] += (REL if how & FIX_REL else RELA).size
    for out, type_ in outputs.ordered(counts):
        remarks.emit(
            RELOCATIONS_APPLIED(
                outputs.name(out),
                outputs.place(out),
                saved[out, type_],
                Applied=counts[out, type_],
                Type=relocation_name(type_),
            )
        )


def _tell_kept(outputs: Outputs, remarks: Remarks) -> None:
    keeps = list(rows(outputs.placed.merged.keeps, KEEP))
    for table, row in enumerate(outputs.rows):
        target = _target(outputs, row)
        if target < 0 or not outputs.index[table]:
            continue
        counts: Counter[int] = Counter()
        at = row[16]
        while at >= 0:
            counts[keeps[at][2]] += 1
            at = keeps[at][5]
        for type_, count in sorted(counts.items()):
            remarks.emit(
                RELOCATIONS_KEPT(
                    outputs.name(target),
                    outputs.place(target),
                    count * row[8],
                    Kept=count,
                    Type=relocation_name(type_),
                    Table=outputs.name(table),
                )
            )


def _target(outputs: Outputs, row: tuple[int, ...]) -> int:
    """The section whose relocations a table holds; a Mercury one goes with the plain table's.

    -1 for what is no table, and for the record of resolved relocations of --preserve-relocs.
    """
    if row[2] == sectionkinds.RESOLVED_RELA:
        return -1
    if row[14] < 0:
        return row[10]
    plain = outputs.rows[row[14]][10]
    return outputs.rows[plain][13] if plain >= 0 else -1
