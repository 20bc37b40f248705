"""Part of merge: kernels that were removed, as reports give the reason and as a diagnostic."""

from __future__ import annotations

from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.tables import DESELECTED, KERNEL, entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged, Objects

# By whether host code selects kernels: why a kernel is removed, and a function that only such
# kernels reach.
_REASONS = {
    True: ("no host code names it", "only kernels that no host code names reach it"),
    False: ("it is not in --kernels-used", "only kernels that are not in --kernels-used reach it"),
}

# So many of the kernels have a note with their place.
MOST_KERNELS = 10


def why_removed(objects: Objects, flags: int) -> str:
    """Why an entity of code with these flags is not in the output."""
    kernel, function = _REASONS[objects.references is not None]
    if flags & KERNEL:
        return kernel
    return function if flags & DESELECTED else "no kernel reaches it"


def report_removed(merged: Merged, removed: Sequence[int], sink: Sink) -> None:
    """Say how many kernels went and how to keep them.

    Those of the device runtime are nobody's, and borrowed ones are launched by code of the library.
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
        from pylink.locate.places import places_of  # only where they are looked at

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
    file = merged.objects.symbols[merged.entities[entity].winner].file
    if borrowed and merged.objects.homes[file] in borrowed:
        return True
    return SYSTEM_LIBRARY in merged.objects.names[file]
