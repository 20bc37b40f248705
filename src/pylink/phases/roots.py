"""Part of merge: selects the kernels that keep code alive."""

from __future__ import annotations

from pylink._native import resolve
from pylink._native.tables import Marks
from pylink.diagnostics.stream import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def select_kernels(merged: Merged) -> Marks:
    """Return, by entity, whether the kernel is selected: by an option, or by host code.

    If neither selects kernels, all are selected, and the result is empty, unless modules are
    borrowed. A kernel of a borrowed module is selected only if device code takes its address, to
    launch it.
    """
    selected = _named_kernels(merged)
    libraries = merged.objects.libraries
    if libraries is None or not libraries.borrowed:
        return selected
    source_numbers = merged.objects.source_numbers
    return resolve.select_unborrowed(
        merged,
        bytes(source_number in libraries.borrowed for source_number in source_numbers),
        selected,
    )


def _named_kernels(merged: Merged) -> Marks:
    """Return, by entity, whether an option or host code names the kernel.

    Empty if neither selects kernels, and with -g.
    """
    objects = merged.objects
    options = objects.job.options
    if objects.job.debug:
        return Marks()  # nvlink ignores the selection with -g
    references = objects.references
    if references is not None:
        return resolve.select_referenced(merged, references.external, references.internal)
    if not (options.kernels_used or options.variables_used):
        return Marks()
    return resolve.select_kernels(merged, [to_bytes(name) for name in options.kernels_used])
