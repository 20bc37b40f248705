"""Part of layout: reports removed kernels. Remarks and maps get the reasons from here, too."""

from __future__ import annotations

from pylink.facts.rownumbers import EntityFlag
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged, Objects

# Reasons for a removed kernel, and for a function that only removed kernels reach. By what selects
# kernels: True is host code, False is an option.
_REASONS = {
    True: ("no host code names it", "only kernels that no host code names reach it"),
    False: ("it is not in --kernels-used", "only kernels that are not in --kernels-used reach it"),
}

# Most removed kernels whose places (file, or source line) the diagnostic shows.
MOST_KERNELS = 10


def why_removed(objects: Objects, flags: int) -> str:
    """Return the reason why a function with these EntityFlag bits is not in the output."""
    kernel_reason, function_reason = _REASONS[objects.references is not None]
    if flags & EntityFlag.KERNEL:
        return kernel_reason
    return function_reason if flags & EntityFlag.DESELECTED else "no kernel reaches it"


def report_removed(merged: Merged, removed: Sequence[int], sink: Sink) -> None:
    """Report the number of removed kernels, and how to keep them.

    Kernels of the device runtime do not count, nor kernels of borrowed modules: host code of the
    library launches them.
    """
    objects = merged.objects
    libraries = objects.libraries
    borrowed = libraries.borrowed if libraries is not None else ()
    if borrowed or any(SYSTEM_LIBRARY in name for name in objects.names):
        removed = [entity for entity in removed if not _is_foreign(merged, entity, borrowed)]
        if not removed:
            return
    winners = [merged.entities[entity].winner for entity in removed[:MOST_KERNELS]]

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.places import places_of  # loaded only if the diagnostic is shown

        places = places_of(objects)
        places.fill_definition(diagnostic, winners[0])
        diagnostic.notes += [places.note_definition("defined-here", row) for row in winners[1:]]

    sink.report(
        "kernels-removed",
        explain=explain,
        count=len(removed),
        symbol=entity_name(merged, removed[0]),
        file=objects.names[objects.symbols[winners[0]].file],
    )


def _is_foreign(merged: Merged, entity: int, borrowed: Container[int]) -> bool:
    """Return whether a kernel is of the device runtime or of a borrowed module."""
    file = merged.objects.symbols[merged.entities[entity].winner].file
    if borrowed and merged.objects.source_numbers[file] in borrowed:
        return True
    return SYSTEM_LIBRARY in merged.objects.names[file]
