"""Pass relocate: relocations that were applied or kept for the loader, by type and section."""

from __future__ import annotations

from collections import Counter

from pylink.facts import sectionkinds
from pylink.facts.records import REL, RELA
from pylink.facts.relocations import relocation_name
from pylink.facts.rownumbers import ContentsFrom, EntityKind, FixupFlag
from pylink.remarks.passes.catalogue import RELOCATIONS_APPLIED, RELOCATIONS_KEPT
from pylink.remarks.passes.outputs import Outputs
from pylink.remarks.record import MISSED, PASSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.relocate import Image
    from pylink.remarks import Remarks
    from pylink.rows import OutRow


PASS = "relocate"


def emit(image: Image, remarks: Remarks) -> None:
    """Emit the numbers of relocations that were applied, and of those that the output keeps."""
    outputs = Outputs(image.placed)
    if remarks.wants(PASS, PASSED):
        _emit_applied(outputs, remarks)
    if remarks.wants(PASS, MISSED):
        _emit_kept(outputs, remarks)


def _emit_applied(outputs: Outputs, remarks: Remarks) -> None:
    """Emit a remark for each output section and type of relocation that was resolved in it."""
    # Numbers of relocations, and bytes of their entries, by output section and relocation type.
    counts: Counter[tuple[int, int]] = Counter()
    saved: Counter[tuple[int, int]] = Counter()
    kinds = outputs.placed.merged.entities.column("kind")
    for fixup in outputs.placed.merged.fixups:
        target = out = fixup.out
        if fixup.how & FixupFlag.MERC:
            row = outputs.rows[out]
            if row.kind == sectionkinds.TEXT:
                # A capsule, the Mercury form of code: only its references to constants are
                # resolved, since it refers to other symbols by name.
                if fixup.entity < 0 or kinds[fixup.entity] != EntityKind.CONSTANT or row.merc < 0:
                    continue
                target = row.merc
            elif outputs.contents(out) == ContentsFrom.TWIN:
                continue
        counts[target, fixup.type] += 1
        saved[target, fixup.type] += (REL if fixup.how & FixupFlag.REL else RELA).size
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


def _emit_kept(outputs: Outputs, remarks: Remarks) -> None:
    """Emit a remark for each relocation section (table) of the output and each type in it."""
    emitted = outputs.placed.merged.emitted
    for table, row in enumerate(outputs.rows):
        target = _target(outputs, row)
        if target < 0 or not outputs.index[table]:
            continue
        counts: Counter[int] = Counter()  # by relocation type
        number = row.head
        while number >= 0:
            counts[emitted[number].type] += 1
            number = emitted[number].next
        for type_, count in sorted(counts.items()):
            remarks.emit(
                RELOCATIONS_KEPT(
                    outputs.name(target),
                    outputs.place(target),
                    count * row.entsize,
                    Kept=count,
                    Type=relocation_name(type_),
                    Table=outputs.name(table),
                )
            )


def _target(outputs: Outputs, row: OutRow) -> int:
    """Return the output section that the relocations in a section patch, -1 for other sections.

    The row of a Mercury relocation section does not name the patched section, which is the Mercury
    form of the section that the plain relocations patch. The list of resolved relocations, which
    --preserve-relocs adds, does not count as a relocation section.
    """
    if row.kind == sectionkinds.RESOLVED_RELA:
        return -1
    if row.twin < 0:
        return row.target
    plain_section = outputs.rows[row.twin].target
    return outputs.rows[plain_section].merc if plain_section >= 0 else -1
