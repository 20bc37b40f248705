"""Which input a field of the output comes from, for relocations that cannot be applied."""

from __future__ import annotations

from struct import iter_unpack, unpack_from

from pylink.facts import sectionkinds
from pylink.locate.places import places_of
from pylink.tables import (
    ENTITY,
    FIX,
    KEEP,
    OUT,
    PATCH,
    PLACE,
    SECTION,
    UNSIZED,
    entity_name,
    rows,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic
    from pylink.phases.layout import Placed
    from pylink.phases.merge import Merged

_CUT_BANK = 3  # the constant bank that a link which selects kernels folds


def explain_patch(diagnostic: Diagnostic, placed: Placed, patches: bytes, bad: int) -> None:
    """The place and symbol of a row of the patch table."""
    at, _, type, _, _ = PATCH.unpack_from(patches, bad * PATCH.size)
    starts = [place[0] for place in rows(placed.places, PLACE)]
    for fix in rows(placed.merged.fixes, FIX):
        if fix[2] == type and starts[fix[3]] + fix[0] == at:
            _explain(diagnostic, placed.merged, fix[3], fix[0], fix[4])
            return


def explain_deleted(diagnostic: Diagnostic, placed: Placed) -> None:
    """The place and symbol of the first relocation of data against an extern array."""
    merged = placed.merged
    for fix in rows(merged.fixes, FIX):
        if fix[4] < 0 or OUT.unpack_from(placed.outs, fix[3] * OUT.size)[2] == sectionkinds.TEXT:
            continue
        if ENTITY.unpack_from(merged.entities, fix[4] * ENTITY.size)[3] & UNSIZED:
            _explain(diagnostic, merged, fix[3], fix[0], fix[4])
            return


def explain_cut(diagnostic: Diagnostic, placed: Placed) -> None:
    """The place and symbol of a relocation that stays, behind the end of its constant bank."""
    merged = placed.merged
    outs = list(rows(placed.outs, OUT))
    for relocations in outs:
        target, at = relocations[10], relocations[16]
        if (
            relocations[2] != sectionkinds.RELOC
            or target < 0
            or outs[target][2] != sectionkinds.CONSTANT
        ):
            continue
        while at >= 0:
            offset, _, _, entity, _, at = KEEP.unpack_from(merged.keeps, at * KEEP.size)
            if outs[target][3] == _CUT_BANK and offset >= outs[target][6]:
                _explain(diagnostic, merged, target, offset, entity)
                return


def _explain(diagnostic: Diagnostic, merged: Merged, out: int, offset: int, entity: int) -> None:
    """Give a record the input and the symbol of a field of an output section."""
    objects = merged.objects
    if entity >= 0:
        diagnostic.symbol = entity_name(objects.arena, objects.symbols, merged.entities, entity)
    section = _input_of(merged, out, offset)
    if section < 0:
        return
    (base,) = unpack_from("<Q", merged.base, 8 * section)
    places = places_of(objects)
    places.fill(diagnostic, section, offset - base, diagnostic.symbol)
    if diagnostic.source is None and entity >= 0:
        first = ENTITY.unpack_from(merged.entities, entity * ENTITY.size)[0]
        places.fill_lines(diagnostic, first)


def _input_of(merged: Merged, out: int, offset: int) -> int:
    """The input section that has a byte of an output section, or -1."""
    sections = rows(merged.objects.sections, SECTION)
    homes = iter_unpack("<i", merged.out_of)
    bases = iter_unpack("<Q", merged.base)
    for row, (fields, (home,), (base,)) in enumerate(zip(sections, homes, bases, strict=True)):
        if home == out and base <= offset < base + fields[2]:
            return row
    return -1
