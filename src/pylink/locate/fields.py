"""Finds the input section and symbol of a field in the output that cannot be relocated."""

from __future__ import annotations

from pylink.facts import sectionkinds
from pylink.facts.rownumbers import EntityFlag
from pylink.locate.places import places_of
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Patches
    from pylink.diagnostics import Diagnostic
    from pylink.phases.results import Merged, Placed


def explain_patch(diagnostic: Diagnostic, placed: Placed, patches: Patches, row: int) -> None:
    """Set the place and symbol of a diagnostic to those of the patch `patches[row]`.

    A patch is a field of the output that the link fills in. Its place is that of the relocation in
    an input that asks for it; without one, the diagnostic stays as it is.
    """
    patch = patches[row]
    starts = placed.places.column("offset")
    for fix in placed.merged.fixups:
        if fix.type == patch.type and starts[fix.out] + fix.offset == patch.offset:
            _explain_field(diagnostic, placed.merged, fix.out, fix.offset, fix.entity)
            return


def explain_extern_array(diagnostic: Diagnostic, placed: Placed) -> None:
    """Set the place and symbol of a diagnostic about data that refers to an extern array.

    They are those of the first relocation outside of code whose symbol is such an array.
    """
    merged = placed.merged
    for fixup in merged.fixups:
        if fixup.entity < 0 or placed.outs[fixup.out].kind == sectionkinds.TEXT:
            continue
        if merged.entities[fixup.entity].flags & EntityFlag.UNSIZED:
            _explain_field(diagnostic, merged, fixup.out, fixup.offset, fixup.entity)
            return


def _explain_field(
    diagnostic: Diagnostic, merged: Merged, output_section: int, offset: int, entity: int
) -> None:
    """Set the place and symbol of a diagnostic from a field of an output section.

    The field is `offset` bytes from the section's start; `entity` is its symbol, -1 for none.
    """
    objects = merged.objects
    if entity >= 0:
        diagnostic.symbol = entity_name(merged, entity)
    section = _find_input_section(merged, output_section, offset)
    if section < 0:
        return
    places = places_of(objects)
    places.fill(diagnostic, section, offset - merged.base[section], diagnostic.symbol)
    if diagnostic.source is None and entity >= 0:
        first = merged.entities[entity].first
        places.fill_lines(diagnostic, first)


def _find_input_section(merged: Merged, output_section: int, offset: int) -> int:
    """Return the input section of a byte of an output section; -1 if not found."""
    sizes = merged.objects.sections.column("size")
    rows = zip(sizes, merged.out_of, merged.base, strict=True)
    for section, (size, out_section, base) in enumerate(rows):
        if out_section == output_section and base <= offset < base + size:
            return section
    return -1
